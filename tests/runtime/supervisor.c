/* The socket that stands for the one of systemd; tests/runtime/supervisor.h has the contract. */
#include "tests/runtime/supervisor.h"

#include "tests/runtime/running.h"

#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* number of sending sockets, because the buffer of one may be full before the receiver's queue is
 */
#define FILLERS 8

static int fd = -1;
static struct sockaddr_un at;
static socklen_t size;
static char address[64];
static char text[DOMT_SUPERVISOR_TEXT_MAX];

void domt_supervisor_listen(bool at_path)
{
    at = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address, sizeof address, "%sdomus-test-%d", at_path ? "/tmp/" : "@", (int)getpid());
    size_t length = strlen(address);
    memcpy(at.sun_path, address, length + 1);
    if (!at_path)
        at.sun_path[0] = '\0';
    size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + at_path);
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, size), 0);
    ck_assert_int_eq(setenv("NOTIFY_SOCKET", address, 1), 0);
}

void domt_supervisor_fill_socket(void)
{
    for (int i = 0; i < FILLERS; i++) {
        int filler = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        while (sendto(filler, "full", 4, MSG_DONTWAIT, (struct sockaddr *)&at, size) == 4)
            continue;
        close(filler);
    }
}

void domt_supervisor_close(void)
{
    close(fd);
    if (address[0] == '/')
        unlink(address);
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
}

const char *domt_supervisor_next_message(uint32_t ms)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};

    if (poll(&ready, 1, (int)ms) != 1)
        return NULL;
    ssize_t got = recv(fd, text, sizeof text - 1, 0);
    ck_assert_int_gt(got, 0);
    text[got] = '\0';
    return text;
}

const char *domt_supervisor_expect_message(const char *part)
{
    for (;;) {
        const char *heard = domt_supervisor_next_message(20000);
        ck_assert_msg(heard != NULL, "no message with '%s'", part);
        if (strstr(heard, part) != NULL)
            return heard;
    }
}

uint32_t domt_supervisor_count_messages(const char *part, uint32_t ms)
{
    uint64_t until_ns = domt_now_ns() + ms * DOMT_MS;
    uint32_t count = 0;

    for (uint64_t now_ns = domt_now_ns(); now_ns < until_ns; now_ns = domt_now_ns()) {
        const char *heard =
            domt_supervisor_next_message((uint32_t)((until_ns - now_ns) / DOMT_MS) + 1);
        count += heard != NULL && strstr(heard, part) != NULL;
    }
    return count;
}
