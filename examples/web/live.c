/* The live line: one line of rates on a terminal, written again and again. */
#include "web.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LINE_MAX_BYTES 512u

static bool has_written;

bool web_live_is_possible(void)
{
    const char *terminal = getenv("TERM");

    return isatty(STDOUT_FILENO) && terminal != NULL && strcmp(terminal, "dumb") != 0;
}

/* The columns of the terminal, less one, so that the line never wraps. */
static size_t columns(void)
{
    struct winsize size;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 2)
        return 79;
    return size.ws_col - 1u;
}

/* A percentage of what is given in 1/1000. */
static unsigned percent(unsigned share)
{
    return (share + 5) / 10;
}

static size_t write_thread(char *text, size_t size, const uint16_t *phases)
{
    int length = snprintf(text, size, " %u/%u/%u/%u",
                          percent(phases[DOMUS_PHASE_SUBMIT] + phases[DOMUS_PHASE_COMPLETIONS]),
                          percent(phases[DOMUS_PHASE_CHANNELS] + phases[DOMUS_PHASE_EVENTS]),
                          percent(phases[DOMUS_PHASE_STATE]), percent(phases[DOMUS_PHASE_SLEEP]));

    return length > 0 ? (size_t)length : 0;
}

/* Four shares for each thread, as many as fit. */
void web_live_write(const struct web_rates *rates)
{
    char text[LINE_MAX_BYTES];
    size_t most = columns();
    struct pollfd terminal = {.fd = STDOUT_FILENO, .events = POLLOUT};
    int head =
        snprintf(text, sizeof text,
                 "%" PRIu64 " requests/s, %" PRIu64 " connections, io/channels/state/sleep %%:",
                 rates->requests, rates->connections);
    size_t length = head > 0 ? (size_t)head : 0;

    if (most > sizeof text - 1)
        most = sizeof text - 1;
    for (uint32_t i = 0; i < rates->threads && length < most; i++)
        length += write_thread(text + length, sizeof text - length, rates->shares[i].phases);
    if (length > most)
        length = most;
    /* A terminal that was stopped (Ctrl-S) shows nothing, and holds up nobody. */
    if (poll(&terminal, 1, 0) != 1 || (terminal.revents & POLLOUT) == 0)
        return;
    has_written = true;
    (void)dprintf(STDOUT_FILENO, "\r%.*s\033[K", (int)length, text);
}

void web_live_end(void)
{
    struct pollfd terminal = {.fd = STDOUT_FILENO, .events = POLLOUT};

    if (has_written && poll(&terminal, 1, 0) == 1 && (terminal.revents & POLLOUT) != 0)
        (void)dprintf(STDOUT_FILENO, "\n");
}
