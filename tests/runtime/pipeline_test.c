/* io/pipelines/ on real sockets and threads: each way to answer, in order, while peers come and go,
 * and a stop with requests under way. The same program is run on both backends. */
#include "tests/runtime/pipes.h"
#include "tests/runtime/running.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROUNDS DOMT_SCALE(200, 30)

static const char asked[] = "now 0 a\nnear 1 b\nfar 1 c\nfnear 0 d\nffar 1 e\nkeep 1 f\nkfwd 0 g\n"
                            "kffar 1 h\nsleep 1 i\n!ffar 0 j\ntake 0 k\nerr 0 l\nslice 0 m\n";
static const char expected[] = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nerror EBADMSG\nm\n";

static int connect_to(uint16_t port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void send_all(int fd, const char *text, size_t size)
{
    while (size != 0) {
        ssize_t sent = send(fd, text, size, MSG_NOSIGNAL);
        ck_assert_int_gt(sent, 0);
        text += sent;
        size -= (size_t)sent;
    }
}

static void expect(int fd, const char *text)
{
    size_t size = strlen(text);
    char got[1024];

    for (size_t at = 0; at < size;) {
        ssize_t part = recv(fd, got + at, size - at, 0);
        if (part < 0 && errno == EINTR) /* the kernel has done work for a ring of this thread */
            continue;
        ck_assert_msg(part > 0, "%s after %zu bytes", part == 0 ? "end" : strerror(errno), at);
        at += (size_t)part;
    }
    ck_assert_msg(memcmp(got, text, size) == 0, "%.*s", (int)size, got);
}

static domus_system *serve(uint16_t *ret_port)
{
    static const domus_listener_config listener = {
        .name = "pipe", .address = "127.0.0.1:0", .backlog = 64};
    domus_config config = domt_config(2);

    config.listeners = &listener;
    config.listener_count = 1;
    domus_system *system = domt_start(&config);
    domt_pipes_helpers(system, 0, 1);
    ck_assert_int_eq(domus_serve(system, "pipe", &domt_pipe_framed, NULL, ret_port), 0);
    return system;
}

DOMT_TEST(answers_come_in_order_over_real_sockets)
{
    uint16_t port;
    domus_system *system = serve(&port);

    for (uint32_t round = 0; round < ROUNDS; round++) {
        int fd = connect_to(port);
        size_t split = round % (sizeof asked - 1);
        send_all(fd, asked, split);
        if (round % 4 == 0)
            domt_pause_ns(100000);
        send_all(fd, asked + split, sizeof asked - 1 - split);
        if (round % 3 == 0)
            ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
        if (round % 5 != 4)
            expect(fd, expected);
        close(fd); /* in some rounds with requests under way, and answers unread */
    }
    domt_end(system);
}

DOMT_TEST(a_stop_answers_what_was_read)
{
    for (uint32_t round = 0; round < 5; round++) {
        uint16_t port;
        domus_system *system = serve(&port);
        int fd = connect_to(port);

        send_all(fd, asked, sizeof asked - 1);
        send_all(fd, "ffar 20 x\n!ffar 20 y\nnow 0 z\n", 30);
        expect(fd, "a\n");
        domt_end(system);
        expect(fd, expected + 2);
        expect(fd, "x\ny\nz\n");
        close(fd);
    }
}

DOMT_SUITE(120)
