/* io/pipelines/ without memory. If there is no memory to copy the bytes of a waiting request, its
 * conversation sees them unchanged to its end, the channel is reset, and no thread loops without
 * rest meanwhile. In a system whose memory.limit is little more than what the process has, peers
 * send more requests than there is memory for, and read late: each gets its answers in order and
 * whole, or its connection ends. Afterwards the system serves as before. */
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

/* Counts of the service since the last check_request_waits_without_memory(). */
static uint32_t waited, cancelled, kept;
static uint32_t held; /* number of runs in which a receive buffer was not given back at once */
/* true: a resumed conversation can keep its slice, because there is memory again */
static bool is_kept;
/* number of the allocation that fails after the channel has closed, and all later ones */
static int64_t fails_at_close;

typedef struct waiting {
    domus_slice text;
} waiting;

/* Check that a request "+<n> <text>" has its whole text: n times the letter that belongs to n. */
static void assert_request_is_whole(domus_slice line)
{
    const char *data = domus_slice_data(line);
    char *end;
    uint32_t size = (uint32_t)strtoul(data + 1, &end, 10);
    ck_assert_uint_eq(line.size, (uint32_t)(end + 1 - data) + size);
    for (uint32_t i = 0; i < size; i++)
        ck_assert_int_eq(end[1 + i], 'a' + (int)(size % 26));
}

static int check_text_after_wait(domus_stack *stack, void *self, const domus_answer *answer)
{
    domus_slice text = ((waiting *)domus_frame(stack))->text;
    domus_slice copy;

    assert_request_is_whole(text);
    waited += answer->error == 0;
    cancelled += answer->error != 0;
    if (!is_kept)
        return 0;
    ck_assert_int_eq(domus_slice_keep(text, &copy), 0);
    assert_request_is_whole(text);
    assert_request_is_whole(copy);
    domus_slice_free(copy);
    kept++;
    return 0;
}

static int wait_in_handler_without_memory(domus_stack *stack, void *self, const void *payload)
{
    domus_slice text = ((const domus_packet *)payload)->bytes;
    ((waiting *)domus_frame(stack))->text = text;
    assert_request_is_whole(text);
    int error = domus_sleep(stack, 20 * MS, check_text_after_wait);
    /* the next allocation, which fails, is the one for the copy of the request */
    domi_memory_fail_allocation_after(0, 0);
    return error;
}

static uint32_t marks_of_line(const void *payload)
{
    domus_slice line = ((const domus_packet *)payload)->bytes;
    return domus_slice_data(line)[0] == '+' ? DOMUS_OUTLIVES : 0;
}

static int count_opened_channel(domus_stack *stack, void *self, const void *payload)
{
    domt_pipes_now.opened++;
    return 0;
}

static int record_close_and_let_memory_fail(domus_stack *stack, void *self, const void *payload)
{
    domt_pipes_now.closed++;
    domt_pipes_now.close_error = ((const domus_channel_event *)payload)->error;
    if (domt_pipes_now.closed == 1)
        /* after the close the library tries once more to copy the request */
        domi_memory_fail_allocation_after(fails_at_close, 0);
    return 0;
}

static const domus_behaviour service = {
    .name = "waiting",
    .kind = DOMUS_CHANNELS,
    .pipeline = &domt_pipe_pipeline,
    .on_peer = (const domus_on_peer[]){{&domus_packet_type, wait_in_handler_without_memory,
                                        sizeof(waiting), 0, marks_of_line},
                                       {.type = NULL}},
    .on_open = {count_opened_channel, 0},
    .on_close = {record_close_and_let_memory_fail, 0}};

/* Write a request whose text has `size` bytes. Returns how many bytes the whole request has. */
static size_t write_request_of_size(char *to, char mark, uint32_t size)
{
    int head = snprintf(to, size, "%c%u ", mark, (unsigned)size);
    memset(to + head, 'a' + (int)(size % 26), size);
    to[(uint32_t)head + size] = '\n';
    return (uint32_t)head + size + 1;
}

/* Let other peers send bytes, which are received into any buffer that is free. */
static void let_peers_overwrite_free_buffers(void)
{
    static char bytes[20000];

    memset(bytes, '#', sizeof bytes);
    for (int i = 0; i < 20; i++) {
        domus_peer *peer = domt_pipe_connect_peer();
        ck_assert_int_eq(domus_peer_send(peer, bytes, sizeof bytes), 0);
        domt_pipe_run_kit();
        domus_peer_reset(peer);
    }
    domt_pipe_run_kit();
}

static bool are_all_buffers_free(void)
{
    const domus_system *system = domt_pipe_system_of_kit();

    for (uint32_t i = 0; i < system->count; i++) {
        const domi_io *io = &system->threads[i].io;
        if (domi_io_count_free_buffers(io) != io->config->io.buffers.count)
            return false;
    }
    return true;
}

/* Let a request wait while there is no memory for a copy of its bytes. It is the only request in
 * its piece, or is followed by others, or lies in a window, because it came in two parts. */
static void check_request_waits_without_memory(char mark, uint32_t size, bool is_first,
                                               uint32_t first_part)
{
    char *bytes = calloc(1, 3 * (size_t)size + 100);
    size_t all;

    domus_config config = domt_pipe_default_config();
    config.io.buffers.count = 32;
    /* larger than the usual buffers of a kit, so that a request fits into one */
    config.io.buffers.size_bytes = 16384;
    domus_peer *peer = domt_pipe_begin_kit(&config, &service, 1);

    waited = cancelled = kept = 0;
    ck_assert_ptr_nonnull(bytes);
    all = write_request_of_size(bytes, mark, size);
    if (is_first)
        all += write_request_of_size(bytes + all, mark, size + 1);
    if (first_part != 0) {
        ck_assert_int_eq(domus_peer_send(peer, bytes, first_part), 0);
        domt_pipe_run_kit();
    }
    ck_assert_int_eq(domus_peer_send(peer, bytes + first_part, all - first_part), 0);
    domt_pipe_run_kit();
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_uint_eq(domt_pipes_now.closed, 1);
    ck_assert_int_eq(domt_pipes_now.close_error, -ENOMEM);
    held += are_all_buffers_free() ? 0 : 1;
    let_peers_overwrite_free_buffers();
    domt_pipe_pass_time(30 * MS);
    ck_assert_int_ne(domus_peer_error(peer), 0);
    ck_assert_uint_eq(waited, mark == '+');
    ck_assert_uint_eq(cancelled, mark != '+');
    ck_assert_uint_eq(kept, is_kept ? 1 : 0);
    free(bytes);
    domt_pipe_end_kit(); /* domt_pipe_end_kit() checks that every buffer has come back */
}

DOMT_TEST(bytes_that_cannot_be_copied_stay_until_their_conversation_ends)
{
    static const uint32_t sizes[] = {300, 5000, 12000};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int mode = 0; mode < 20; mode++) {
            char mark = mode % 2 == 0 ? '+' : '-';
            is_kept = mode % 4 >= 2;
            fails_at_close = mode / 4;
            check_request_waits_without_memory(mark, sizes[i], false, 0);
            check_request_waits_without_memory(mark, sizes[i], true, 0);
            check_request_waits_without_memory(mark, sizes[i], false, 200);
            check_request_waits_without_memory(mark, sizes[i], true, 200);
        }
    }
    ck_assert_uint_gt(held, 0);
}

/* --- from some allocation on there is no memory ----------------------------------------------- */

static const char some_of_all[] =
    "now 0 a\nslice 0 b\nsleep 1 c\nffar 1 d\nfar 1 e\nkeep 1 f\nkffar 1 g\n!now 0 h\n%note\n"
    "odd 0 i\nline 0 j\nkfwd 0 l\ntake 0 m\n&fnear 0 n\n!far 0 o\nnow 0 p\n";

/* Send requests while allocation number `count` fails. Returns whether all requests were answered
 * all the same. */
static bool check_requests_while_allocation_fails(int64_t count, const char *line)
{
    domus_peer *peer = domt_pipe_begin_kit(NULL, &domt_pipe_framed, 1);
    size_t size;

    domt_pipe_peer_send_text(peer, line);
    domt_pipe_peer_send_text(peer, some_of_all);
    domi_memory_fail_allocation_after(count, 1);
    int result = domus_testkit_run(domt_pipe_kit);
    if (result == 0)
        result = domus_testkit_advance(domt_pipe_kit, 5 * MS);
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_msg(result == 0, "allocation %d: %s", (int)count, domus_testkit_error(domt_pipe_kit));
    domt_pipe_pass_time(10 * SECOND);
    const char *got = domus_peer_got(peer, &size);
    bool is_whole = size > 2 && memcmp(got + size - 3, "\np\n", 3) == 0;
    bool has_failed = memmem(got, size, "ENOMEM", 6) != NULL ||
                      domt_pipe_kit->net->is_out_of_memory || domus_peer_error(peer) != 0;
    ck_assert_msg(is_whole || has_failed, "allocation %d: %.*s", (int)count, (int)size, got);
    domt_pipe_end_kit();
    return is_whole && !has_failed;
}

DOMT_TEST(lasting_lack_of_memory_ends_requests_in_an_error)
{
    char *line = calloc(1, 3100);
    int64_t count = 0;

    ck_assert_ptr_nonnull(line);
    size_t head = (size_t)snprintf(line, 3100, "sleep 1 ");
    memset(line + head, 'x', 3000);
    line[head + 3000] = '\n';
    while (!check_requests_while_allocation_fails(count, line) || count < 60)
        count++;
    ck_assert_int_ge(count, 20);
    free(line);
}

/* --- a limit of memory, on real sockets ------------------------------------------------------- */

#define MIB     UINT64_C(1048576)
#define PEERS   24
#define ASKED   DOMT_SCALE(400, 60) /* number of requests that each reader sends */
#define FILLING 3000u

typedef struct reader {
    int fd;
    /* number of requests that the reader has sent, and of answers that it got */
    uint32_t sent, got;
    size_t left; /* bytes of the current request that the reader has still to send */
    bool ended;
    char line[FILLING + 64];
    size_t in_size;
    char in[FILLING + 64]; /* begin of an answer that has not come as a whole */
} reader;

static reader readers[PEERS];

static uint64_t resident_bytes_of_process(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%*u %llu", &pages), 1);
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static size_t write_text_of_request(char to[FILLING + 64], uint32_t peer, uint32_t number)
{
    int head = snprintf(to, FILLING, "%u.%u.", (unsigned)peer, (unsigned)number);
    memset(to + head, 'a' + (int)((peer + number) % 26), FILLING);
    to[(uint32_t)head + FILLING] = '\n';
    return (uint32_t)head + FILLING + 1;
}

/* Send the next bytes of a client's requests, as many as its socket takes. */
static void send_next_bytes_of_requests(reader *one)
{
    static const char *const hows[] = {"sleep 400 ", "far 200 ", "keep 300 ", "slice 0 ",
                                       "ffar 100 "};
    uint32_t peer = (uint32_t)(one - readers);

    while (!one->ended && (one->left != 0 || one->sent < ASKED)) {
        if (one->left == 0) {
            const char *how = hows[(peer + one->sent) % 5];
            size_t head = strlen(how);
            memcpy(one->line, how, head);
            one->left = head + write_text_of_request(one->line + head, peer, one->sent++);
            memmove(one->line + sizeof one->line - one->left, one->line, one->left);
        }
        ssize_t done = send(one->fd, one->line + sizeof one->line - one->left, one->left,
                            MSG_DONTWAIT | MSG_NOSIGNAL);
        if (done < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (done < 0)
            return; /* the reader has got the end of its connection */
        one->left -= (size_t)done;
    }
}

/* Check that a line is the answer to the reader's next request, or says that this request has
 * failed. */
static void check_line_answers_request(reader *one, const char *line, size_t size)
{
    char expected[FILLING + 64];
    size_t all = write_text_of_request(expected, (uint32_t)(one - readers), one->got++);

    if (size > 6 && memcmp(line, "error ", 6) == 0)
        return;
    ck_assert_msg(size == all && memcmp(line, expected, all) == 0,
                  "peer %d, answer %u: %zu bytes, %.40s instead of %.40s", (int)(one - readers),
                  one->got - 1, size, line, expected);
}

static void read_lines_of_reader(reader *one)
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
            check_line_answers_request(one, one->in, size);
            one->in_size -= size;
            memmove(one->in, one->in + size, one->in_size);
        }
        ck_assert_uint_lt(one->in_size, sizeof one->in);
    }
}

static bool run_readers_and_have_all_ended(void)
{
    for (int i = 0; i < PEERS; i++) {
        send_next_bytes_of_requests(&readers[i]);
        read_lines_of_reader(&readers[i]);
    }
    for (int i = 0; i < PEERS; i++) {
        if (!readers[i].ended && readers[i].got < ASKED)
            return false;
    }
    return true;
}

/* Connect and read until all is answered. Under a sanitizer the time is short: freed memory is
 * kept, so the system may stay at its limit, where it accepts no connection. */
static void connect_and_read_until_answered(void)
{
    uint64_t until_ns = domt_now_ns() + (DOMT_SANITIZED ? 5 : 60) * UINT64_C(1000) * DOMT_MS;

    while (!run_readers_and_have_all_ended()) {
        if (domt_now_ns() >= until_ns) {
            ck_assert(DOMT_SANITIZED);
            return;
        }
        domt_pause_ns(200000);
    }
}

static void ask_on_new_connection(uint16_t port)
{
    static const char asked[] = "sleep 1 text\n";
    char got[5];
    int fd = domt_connect_to_port(port);

    ck_assert_int_eq(send(fd, asked, sizeof asked - 1, MSG_NOSIGNAL), sizeof asked - 1);
    ck_assert_int_eq(recv(fd, got, sizeof got, MSG_WAITALL), sizeof got);
    ck_assert_mem_eq(got, "text\n", 5);
    close(fd);
}

/* Run a system whose memory.limit is `bytes` more than what the process has, and add up how many
 * connections ended and how many answers came. */
static void run_with_memory_limit(uint64_t bytes, uint32_t *ended, uint32_t *answers)
{
    domus_config config = domt_config_of_threads(2);
    domus_memory now;

    domt_add_front_listener(&config);
    config.io.buffers.count = 256;
    config.memory.interval_ns = 2 * DOMT_MS;
    config.memory.limit_bytes = resident_bytes_of_process() + (DOMT_SANITIZED ? 8 : 1) * bytes;
    domus_system *system = domt_start_system(&config);
    domt_pipes_spawn_helpers(system, 0, 1);
    uint16_t port = domt_serve_front_listener(system, &domt_pipe_framed, NULL);
    for (int i = 0; i < PEERS; i++)
        readers[i] = (reader){.fd = domt_connect_to_port(port)};
    for (int i = 0; i < 150; i++) { /* for a while no reader reads */
        for (int peer = 0; peer < PEERS; peer++)
            send_next_bytes_of_requests(&readers[peer]);
        domt_pause_ns(2 * DOMT_MS);
    }
    connect_and_read_until_answered();
    for (int i = 0; i < PEERS; i++) {
        *ended += readers[i].ended;
        *answers += readers[i].got;
        close(readers[i].fd);
    }
    if (!DOMT_SANITIZED) {
        DOMT_WAIT_FOR(10, (domus_system_memory(system, &now), now.level == DOMUS_MEMORY_NORMAL));
        ask_on_new_connection(port);
    }
    domt_end_system(system);
}

DOMT_TEST(pipelines_in_little_memory_answer_right_or_end)
{
    uint32_t ended = 0, answers = 0;
    for (uint64_t mib = 12; mib <= 48; mib *= 2)
        run_with_memory_limit(mib * MIB, &ended, &answers);
    ck_assert(ended > 0 || DOMT_SANITIZED);
    ck_assert_uint_gt(answers, 0);
}

DOMT_SUITE(120)
