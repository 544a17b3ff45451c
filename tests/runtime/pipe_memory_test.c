/* io/pipelines/ without memory. Without memory for a copy, a conversation that waits sees its bytes
 * unchanged to its end, the channel is reset, and no thread loops without rest meanwhile. In a
 * system whose memory.limit is little above what the process has, peers send more requests than
 * there is memory for, and read late: each gets its answers in order and whole, or its connection
 * ends; and afterwards the system serves as before. */
#include "base/memory.h"
#include "runtime/testkit/kit.h"
#include "tests/runtime/pipes.h"
#include "tests/runtime/running.h"
#include "tests/support/crowd.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MS     DOMT_PIPE_MS
#define SECOND DOMT_PIPE_SECOND

/* --- a service whose requests wait without memory --------------------------------------------- */

/* Counts of the service since hold_waiting() began. */
static uint32_t waited, cancelled, kept;
static uint32_t held; /* runs in which a receive buffer was not given back at once */
static bool is_kept;  /* a resumed conversation keeps its slice, because there is memory again */
/* number of the allocation that fails after the channel has closed */
static int64_t fails_at_close;

typedef struct waiting {
    domus_slice text;
} waiting;

/* Check that a request "+<n> <text>" still has its text, which is n times the letter of n. */
static void assert_whole(domus_slice line)
{
    const char *data = domus_slice_data(line);
    char *end;
    uint32_t size = (uint32_t)strtoul(data + 1, &end, 10);
    ck_assert_uint_eq(line.size, (uint32_t)(end + 1 - data) + size);
    for (uint32_t i = 0; i < size; i++)
        ck_assert_int_eq(end[1 + i], 'a' + (int)(size % 26));
}

static int has_waited(domus_stack *stack, void *self, const domus_answer *answer)
{
    domus_slice text = ((waiting *)domus_frame(stack))->text;
    domus_slice copy;

    assert_whole(text);
    waited += answer->error == 0;
    cancelled += answer->error != 0;
    if (!is_kept)
        return 0;
    ck_assert_int_eq(domus_slice_keep(text, &copy), 0);
    assert_whole(text);
    assert_whole(copy);
    domus_slice_free(copy);
    kept++;
    return 0;
}

static int wait_without_memory(domus_stack *stack, void *self, const void *payload)
{
    domus_slice text = ((const domus_packet *)payload)->bytes;
    ((waiting *)domus_frame(stack))->text = text;
    assert_whole(text);
    int error = domus_sleep(stack, 20 * MS, has_waited);
    domi_memory_fail_after(0, 0); /* the next allocation is for the copy */
    return error;
}

static uint32_t marks_of(const void *payload)
{
    domus_slice line = ((const domus_packet *)payload)->bytes;
    return domus_slice_data(line)[0] == '+' ? DOMUS_OUTLIVES : 0;
}

static int record_open(domus_stack *stack, void *self, const void *payload)
{
    domt_pipes_now.opened++;
    return 0;
}

static int record_close(domus_stack *stack, void *self, const void *payload)
{
    domt_pipes_now.closed++;
    domt_pipes_now.close_error = ((const domus_channel_event *)payload)->error;
    if (domt_pipes_now.closed == 1)
        /* one allocation is for another try to copy the bytes */
        domi_memory_fail_after(fails_at_close, 0);
    return 0;
}

static const domus_behaviour service = {
    .name = "waiting",
    .kind = DOMUS_CHANNELS,
    .pipeline = &domt_pipe_pipeline,
    .on_peer = (const domus_on_peer[]){{&domus_packet_type, wait_without_memory, sizeof(waiting), 0,
                                        marks_of},
                                       {.type = NULL}},
    .on_open = {record_open, 0},
    .on_close = {record_close, 0}};

/* Write a request of this size. Returns how many bytes it has. */
static size_t write_request(char *to, char mark, uint32_t size)
{
    int head = snprintf(to, size, "%c%u ", mark, (unsigned)size);
    memset(to + head, 'a' + (int)(size % 26), size);
    to[(uint32_t)head + size] = '\n';
    return (uint32_t)head + size + 1;
}

/* Let other peers fill the receive buffers with other bytes. */
static void overwrite_bytes(void)
{
    static char bytes[20000];

    memset(bytes, '#', sizeof bytes);
    for (int i = 0; i < 20; i++) {
        domus_peer *peer = domt_pipe_peer();
        ck_assert_int_eq(domus_peer_send(peer, bytes, sizeof bytes), 0);
        domt_pipe_run();
        domus_peer_reset(peer);
    }
    domt_pipe_run();
}

static bool has_all_buffers(void)
{
    const domus_system *system = domt_pipe_system();

    for (uint32_t i = 0; i < system->count; i++) {
        const domi_io *io = &system->threads[i].io;
        if (domi_io_buffers_free(io) != io->config->io.buffers.count)
            return false;
    }
    return true;
}

/* Let a request wait when there is no memory for its bytes: as the only one of a piece, before
 * others, or in a window, because it came in two parts. */
static void hold_waiting(char mark, uint32_t size, bool is_first, uint32_t first_part)
{
    char *bytes = calloc(1, 3 * (size_t)size + 100);
    size_t all;

    domus_config config = domt_pipe_config();
    config.io.buffers.count = 32;
    config.io.buffers.size_bytes = 16384; /* a kit's own buffers are smaller than these messages */
    domus_peer *peer = domt_pipe_begin(&config, &service, 1);

    waited = cancelled = kept = 0;
    ck_assert_ptr_nonnull(bytes);
    all = write_request(bytes, mark, size);
    if (is_first)
        all += write_request(bytes + all, mark, size + 1);
    if (first_part != 0) {
        ck_assert_int_eq(domus_peer_send(peer, bytes, first_part), 0);
        domt_pipe_run();
    }
    ck_assert_int_eq(domus_peer_send(peer, bytes + first_part, all - first_part), 0);
    domt_pipe_run();
    domi_memory_fail_after(-1, 0);
    ck_assert_uint_eq(domt_pipes_now.closed, 1);
    ck_assert_int_eq(domt_pipes_now.close_error, -ENOMEM);
    held += has_all_buffers() ? 0 : 1;
    overwrite_bytes();
    domt_pipe_pass(30 * MS);
    ck_assert_int_ne(domus_peer_error(peer), 0);
    ck_assert_uint_eq(waited, mark == '+');
    ck_assert_uint_eq(cancelled, mark != '+');
    ck_assert_uint_eq(kept, is_kept ? 1 : 0);
    free(bytes);
    domt_pipe_end(); /* the end checks that every buffer has come back */
}

DOMT_TEST(bytes_that_cannot_be_copied_stay_until_their_conversation_ends)
{
    static const uint32_t sizes[] = {300, 5000, 12000};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int mode = 0; mode < 20; mode++) {
            char mark = mode % 2 == 0 ? '+' : '-';
            is_kept = mode % 4 >= 2;
            fails_at_close = mode / 4;
            hold_waiting(mark, sizes[i], false, 0);
            hold_waiting(mark, sizes[i], true, 0);
            hold_waiting(mark, sizes[i], false, 200);
            hold_waiting(mark, sizes[i], true, 200);
        }
    }
    ck_assert_uint_gt(held, 0);
}

/* --- from some allocation on there is no memory ----------------------------------------------- */

static const char some_of_all[] =
    "now 0 a\nslice 0 b\nsleep 1 c\nffar 1 d\nfar 1 e\nkeep 1 f\nkffar 1 g\n!now 0 h\n%note\n"
    "odd 0 i\nline 0 j\nkfwd 0 l\ntake 0 m\n&fnear 0 n\n!far 0 o\nnow 0 p\n";

/* Returns whether all requests were answered although memory was short. */
static bool run_short(int64_t count, const char *line)
{
    domus_peer *peer = domt_pipe_begin(NULL, &domt_pipe_framed, 1);
    size_t size;

    domt_pipe_say(peer, line);
    domt_pipe_say(peer, some_of_all);
    domi_memory_fail_after(count, 1);
    int result = domus_testkit_run(domt_pipe_kit);
    if (result == 0)
        result = domus_testkit_advance(domt_pipe_kit, 5 * MS);
    domi_memory_fail_after(-1, 0);
    ck_assert_msg(result == 0, "allocation %d: %s", (int)count, domus_testkit_error(domt_pipe_kit));
    domt_pipe_pass(10 * SECOND);
    const char *got = domus_peer_got(peer, &size);
    bool is_whole = size > 2 && memcmp(got + size - 3, "\np\n", 3) == 0;
    bool has_failed = memmem(got, size, "ENOMEM", 6) != NULL ||
                      domt_pipe_kit->net->is_out_of_memory || domus_peer_error(peer) != 0;
    ck_assert_msg(is_whole || has_failed, "allocation %d: %.*s", (int)count, (int)size, got);
    domt_pipe_end();
    return is_whole && !has_failed;
}

DOMT_TEST(memory_that_stays_away_ends_in_an_error)
{
    char *line = calloc(1, 3100);
    int64_t count = 0;

    ck_assert_ptr_nonnull(line);
    size_t head = (size_t)snprintf(line, 3100, "sleep 1 ");
    memset(line + head, 'x', 3000);
    line[head + 3000] = '\n';
    while (!run_short(count, line) || count < 60)
        count++;
    ck_assert_int_ge(count, 20);
    free(line);
}

/* --- a limit of memory, on real sockets ------------------------------------------------------- */

#define MIB     UINT64_C(1048576)
#define PEERS   24
#define ASKED   DOMT_SCALE(400, 60) /* requests of each reader */
#define FILLING 3000u

typedef struct reader {
    int fd;
    uint32_t sent, got; /* requests sent, answers received */
    size_t left;        /* bytes of `line` that were not sent yet */
    bool ended;
    char line[FILLING + 64];
    size_t in_size;
    char in[FILLING + 64]; /* the start of an answer that has not come as a whole */
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

/* Send on, as many bytes as the socket takes. */
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
            return; /* the end of the connection was read */
        one->left -= (size_t)done;
    }
}

/* Check that a line is the answer to the next request, or says that the request has failed. */
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

/* A sanitizer keeps freed memory, so a system under it may stay at its limit, where it accepts no
 * connection. */
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

/* Run with so many bytes above what the process has. Adds the results to the sums. */
static void run_with(uint64_t bytes, uint32_t *ended, uint32_t *answers)
{
    domus_config config = domt_config(2);
    domus_memory now;

    domt_listen(&config);
    config.io.buffers.count = 256;
    config.memory.interval_ns = 2 * DOMT_MS;
    config.memory.limit_bytes = resident_bytes() + (DOMT_SANITIZED ? 8 : 1) * bytes;
    domus_system *system = domt_start(&config);
    domt_pipes_helpers(system, 0, 1);
    uint16_t port = domt_serve_front(system, &domt_pipe_framed, NULL);
    for (int i = 0; i < PEERS; i++)
        readers[i] = (reader){.fd = domt_connect(port)};
    for (int i = 0; i < 150; i++) { /* meanwhile nobody reads */
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
