/* Pipelines of a system whose memory.limit is little above what the process has: peers send more
 * requests than there is memory for, and read late. All get answers in order and unharmed, or their
 * connections end; and afterwards the system serves as before. */
#include "tests/runtime/pipes.h"
#include "tests/runtime/running.h"
#include "tests/support/crowd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MIB     UINT64_C(1048576)
#define PEERS   24
#define ASKED   DOMT_SCALE(400, 60) /* requests of each */
#define FILLING 3000u

typedef struct reader {
    int fd;
    uint32_t sent, got; /* requests, answers */
    size_t left;        /* bytes of `line` that were not sent */
    bool ended;
    char line[FILLING + 64];
    size_t in_size;
    char in[FILLING + 64]; /* the start of an answer */
} reader;

static reader readers[PEERS];

static uint64_t resident_bytes(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%*u %llu", &pages), 1);
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static size_t write_text(char to[FILLING + 64], uint32_t peer, uint32_t number)
{
    int head = snprintf(to, FILLING, "%u.%u.", (unsigned)peer, (unsigned)number);

    memset(to + head, 'a' + (int)((peer + number) % 26), FILLING);
    to[(uint32_t)head + FILLING] = '\n';
    return (uint32_t)head + FILLING + 1;
}

/* Send on, as much as the socket takes. */
static void send_some(reader *one)
{
    static const char *const hows[] = {"sleep 400 ", "far 200 ", "keep 300 ", "slice 0 ",
                                       "ffar 100 "};
    uint32_t peer = (uint32_t)(one - readers);

    while (!one->ended && (one->left != 0 || one->sent < ASKED)) {
        if (one->left == 0) {
            const char *how = hows[(peer + one->sent) % 5];
            size_t head = strlen(how);
            memcpy(one->line, how, head);
            one->left = head + write_text(one->line + head, peer, one->sent++);
            memmove(one->line + sizeof one->line - one->left, one->line, one->left);
        }
        ssize_t done = send(one->fd, one->line + sizeof one->line - one->left, one->left,
                            MSG_DONTWAIT | MSG_NOSIGNAL);
        if (done < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (done < 0)
            return; /* its end is read */
        one->left -= (size_t)done;
    }
}

/* Check that a line is the answer to the next request, or says that it has failed. */
static void take_line(reader *one, const char *line, size_t size)
{
    char expected[FILLING + 64];
    size_t all = write_text(expected, (uint32_t)(one - readers), one->got++);

    if (size > 6 && memcmp(line, "error ", 6) == 0)
        return;
    ck_assert_msg(size == all && memcmp(line, expected, all) == 0,
                  "peer %d, answer %u: %zu bytes, %.40s instead of %.40s", (int)(one - readers),
                  one->got - 1, size, line, expected);
}

static void read_some(reader *one)
{
    while (!one->ended) {
        ssize_t got =
            recv(one->fd, one->in + one->in_size, sizeof one->in - one->in_size, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got <= 0) {
            one->ended = true;
            return;
        }
        one->in_size += (size_t)got;
        const char *end;
        while ((end = memchr(one->in, '\n', one->in_size)) != NULL) {
            size_t size = (size_t)(end + 1 - one->in);
            take_line(one, one->in, size);
            one->in_size -= size;
            memmove(one->in, one->in + size, one->in_size);
        }
        ck_assert_uint_lt(one->in_size, sizeof one->in);
    }
}

static bool is_over(void)
{
    for (int i = 0; i < PEERS; i++) {
        send_some(&readers[i]);
        read_some(&readers[i]);
    }
    for (int i = 0; i < PEERS; i++) {
        if (!readers[i].ended && readers[i].got < ASKED)
            return false;
    }
    return true;
}

/* A sanitizer keeps what is freed, so a system in one may stay at its limit, where it
 * accepts nobody. */
static void wait_for_all(void)
{
    uint64_t until_ns = domt_now_ns() + (DOMT_SANITIZED ? 5 : 60) * UINT64_C(1000) * DOMT_MS;

    while (!is_over()) {
        if (domt_now_ns() >= until_ns) {
            ck_assert(DOMT_SANITIZED);
            return;
        }
        domt_pause_ns(200000);
    }
}

static void ask_anew(uint16_t port)
{
    static const char asked[] = "sleep 1 text\n";
    char got[5];
    int fd = domt_connect(port);

    ck_assert_int_eq(send(fd, asked, sizeof asked - 1, MSG_NOSIGNAL), sizeof asked - 1);
    ck_assert_int_eq(recv(fd, got, sizeof got, MSG_WAITALL), sizeof got);
    ck_assert_mem_eq(got, "text\n", 5);
    close(fd);
}

/* Run with so much memory above what the process has. Adds what has happened to the sums. */
static void run_with(uint64_t bytes, uint32_t *ended, uint32_t *answers)
{
    const domus_listener_config listener = {
        .name = "pipe", .address = "127.0.0.1:0", .backlog = 64};
    domus_config config = domt_config(2);
    domus_memory now;
    uint16_t port;

    config.listeners = &listener;
    config.listener_count = 1;
    config.io.buffers.count = 256;
    config.memory.interval_ns = 2 * DOMT_MS;
    config.memory.limit_bytes = resident_bytes() + (DOMT_SANITIZED ? 8 : 1) * bytes;
    domus_system *system = domt_start(&config);
    domt_pipes_helpers(system, 0, 1);
    ck_assert_int_eq(domus_serve(system, "pipe", &domt_pipe_framed, NULL, &port), 0);
    for (int i = 0; i < PEERS; i++)
        readers[i] = (reader){.fd = domt_connect(port)};
    for (int i = 0; i < 150; i++) { /* nobody reads */
        for (int peer = 0; peer < PEERS; peer++)
            send_some(&readers[peer]);
        domt_pause_ns(2 * DOMT_MS);
    }
    wait_for_all();
    for (int i = 0; i < PEERS; i++) {
        *ended += readers[i].ended;
        *answers += readers[i].got;
        close(readers[i].fd);
    }
    if (!DOMT_SANITIZED) {
        DOMT_WAIT_FOR(10, (domus_system_memory(system, &now), now.level == DOMUS_MEMORY_NORMAL));
        ask_anew(port);
    }
    domt_end(system);
}

DOMT_TEST(pipelines_in_little_memory_answer_right_or_end)
{
    uint32_t ended = 0, answers = 0;

    for (uint64_t mib = 12; mib <= 48; mib *= 2)
        run_with(mib * MIB, &ended, &answers);
    ck_assert(ended > 0 || DOMT_SANITIZED);
    ck_assert_uint_gt(answers, 0);
}

DOMT_SUITE(120)
