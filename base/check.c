/* The end of a failed check: it writes with write(2) only, because the heap may be what broke. */
#include "base/check.h"

#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FRAMES_MAX 64

_Noreturn void domi_check_failed(const char *expression, const char *file, int line,
                                 const char *function)
{
    char text[512];
    int length = snprintf(text, sizeof text, "domus: check failed: %s (%s:%d, %s)\n", expression,
                          file, line, function);

    if (length > 0) {
        size_t bytes = (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
        ssize_t ignored = write(STDERR_FILENO, text, bytes);
        (void)ignored;
    }

    void *frames[FRAMES_MAX];
    backtrace_symbols_fd(frames, backtrace(frames, FRAMES_MAX), STDERR_FILENO);
    abort();
}
