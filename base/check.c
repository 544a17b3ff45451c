/* How a failed check ends the process. The text goes out by write(2) only, because the heap may be
 * the broken part. If nobody reads standard error for a second (where poll() is refused: at once),
 * the rest of the text is dropped: a failed process must not stay, with everything that it holds,
 * to wait for a reader. */
#include "base/check.h"

#include "base/symbol.h"

#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FRAMES_MAX 64 /* most frames of a backtrace that are printed */

#define READER_MS 1000 /* milliseconds to wait until standard error can be written */
/* most times that a wait for standard error is begun again because a signal ended it */
#define TRIES_MAX 16

/* Write to standard error where a filter of system calls forbids poll(). O_NONBLOCK is set only for
 * this write, because other processes may share the pipe or terminal. If fcntl() is forbidden, too,
 * the write may block: the text is worth more than a certain end of the process. */
static bool write_to_stderr_without_poll(const char *text)
{
    int flags = fcntl(STDERR_FILENO, F_GETFL);

    if (flags >= 0)
        (void)fcntl(STDERR_FILENO, F_SETFL, flags | O_NONBLOCK);
    bool is_said = write(STDERR_FILENO, text, strlen(text)) > 0;
    if (flags >= 0 && (flags & O_NONBLOCK) == 0)
        (void)fcntl(STDERR_FILENO, F_SETFL, flags);
    return is_said;
}

/* Write `text` to standard error. Returns false if nobody has read for READER_MS, or if
 * the write fails. */
static bool write_to_stderr(const char *text)
{
    struct pollfd reader = {.fd = STDERR_FILENO, .events = POLLOUT};
    int ready = poll(&reader, 1, READER_MS);

    for (int tries = 0; ready < 0 && errno == EINTR && tries < TRIES_MAX; tries++)
        ready = poll(&reader, 1, READER_MS);
    if (ready < 0)
        return write_to_stderr_without_poll(text);
    /* poll() says that a pipe is writable only if it has room for a whole line of a failed check,
     * so write() does not block. */
    return ready > 0 && write(STDERR_FILENO, text, strlen(text)) > 0;
}

static void print_backtrace(void)
{
    void *frames[FRAMES_MAX];
    char place[384];
    char text[512];
    int count = backtrace(frames, FRAMES_MAX);

    for (int i = 0; i < count; i++) {
        domi_symbol_describe_address(frames[i], true, false, place, sizeof place);
        snprintf(text, sizeof text, "  #%d %s\n", i, place);
        if (!write_to_stderr(text))
            return;
    }
}

_Noreturn void domi_check_failed(const char *expression, const char *file, int line,
                                 const char *function)
{
    char text[512];
    sigset_t pipe;

    sigemptyset(&pipe);
    /* a failed check has to end the process by SIGABRT, even if standard error is a closed pipe */
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, NULL);
    snprintf(text, sizeof text, "domus: check failed: %.256s (%s:%d, %s)\n", expression, file, line,
             function);
    if (write_to_stderr(text))
        print_backtrace();
    abort();
}
