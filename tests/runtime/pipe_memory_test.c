/* io/pipelines/ without memory: a conversation that waits and whose bytes cannot be copied out sees
 * them unchanged to its end, the channel is reset, and no thread runs in circles meanwhile. */
#include "base/memory.h"
#include "runtime/testkit/kit.h"
#include "tests/runtime/pipes.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS     DOMT_PIPE_MS
#define SECOND DOMT_PIPE_SECOND

static void pass(domus_testkit *kit, uint64_t ns)
{
    ck_assert_int_eq(domus_testkit_advance(kit, ns), 0);
}

/* --- a service whose requests wait without memory --------------------------------------------- */

/* The seen of the service since hold_waiting() began. */
static uint32_t waited, cancelled, kept;
static uint32_t held; /* runs in which a receive buffer was not given back at once */
static bool is_kept;  /* a resumed conversation keeps its slice, as there is memory again */
static int64_t fails_at_close; /* the allocation that fails when the channel has closed */

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
    domi_memory_fail_after(0, 0); /* the next one is for the copy */
    return error;
}

static uint32_t marks_of(const void *payload)
{
    domus_slice line = ((const domus_packet *)payload)->bytes;

    return domus_slice_data(line)[0] == '+' ? DOMUS_OUTLIVES : 0;
}

static int note_open(domus_stack *stack, void *self, const void *payload)
{
    domt_pipes_now.opened++;
    return 0;
}

static int note_close(domus_stack *stack, void *self, const void *payload)
{
    domt_pipes_now.closed++;
    domt_pipes_now.close_error = ((const domus_channel_event *)payload)->error;
    if (domt_pipes_now.closed == 1)
        domi_memory_fail_after(fails_at_close, 0); /* one is for another try to copy them */
    return 0;
}

static const domus_behaviour service = {
    .name = "waiting",
    .kind = DOMUS_CHANNELS,
    .pipeline = &domt_pipe_pipeline,
    .on_peer = (const domus_on_peer[]){{&domus_packet_type, wait_without_memory, sizeof(waiting), 0,
                                        marks_of},
                                       {.type = NULL}},
    .on_open = {note_open, 0},
    .on_close = {note_close, 0},
};

/* Write the request of this size. Returns its bytes. */
static size_t write_request(char *to, char mark, uint32_t size)
{
    int head = snprintf(to, size, "%c%u ", mark, (unsigned)size);

    memset(to + head, 'a' + (int)(size % 26), size);
    to[(uint32_t)head + size] = '\n';
    return (uint32_t)head + size + 1;
}

/* Other peers fill the receive buffers with other bytes. */
static void overwrite(domus_testkit *kit)
{
    static char bytes[20000];

    memset(bytes, '#', sizeof bytes);
    for (int i = 0; i < 20; i++) {
        domus_peer *peer = domt_pipes_peer(kit);
        ck_assert_int_eq(domus_peer_send(peer, bytes, sizeof bytes), 0);
        ck_assert_int_eq(domus_testkit_run(kit), 0);
        domus_peer_reset(peer);
    }
    ck_assert_int_eq(domus_testkit_run(kit), 0);
}

static bool has_all_buffers(domus_testkit *kit)
{
    const domus_system *system = domus_testkit_system(kit);

    for (uint32_t i = 0; i < system->count; i++) {
        const domi_io *io = &system->threads[i].io;
        if (domi_io_buffers_free(io) != io->config->io.buffers.count)
            return false;
    }
    return true;
}

/* A request waits when there is no memory for its bytes: as the only one of a piece, before others,
 * or in a window, because it came in two parts. */
static void hold_waiting(char mark, uint32_t size, bool is_first, uint32_t first_part)
{
    char *bytes = calloc(1, 3 * (size_t)size + 100);
    domus_config config;
    size_t all;

    domt_pipes_configure(&config);
    config.io.buffers.count = 32;
    config.io.buffers.size_bytes = 16384; /* those of a kit are smaller than these messages */
    domus_testkit *kit = domt_pipes_kit(&config, &service, 1);
    domus_peer *peer = domt_pipes_peer(kit);

    waited = cancelled = kept = 0;
    ck_assert_ptr_nonnull(bytes);
    all = write_request(bytes, mark, size);
    if (is_first)
        all += write_request(bytes + all, mark, size + 1);
    if (first_part != 0) {
        ck_assert_int_eq(domus_peer_send(peer, bytes, first_part), 0);
        ck_assert_int_eq(domus_testkit_run(kit), 0);
    }
    ck_assert_int_eq(domus_peer_send(peer, bytes + first_part, all - first_part), 0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    domi_memory_fail_after(-1, 0);
    ck_assert_uint_eq(domt_pipes_now.closed, 1);
    ck_assert_int_eq(domt_pipes_now.close_error, -ENOMEM);
    held += has_all_buffers(kit) ? 0 : 1;
    overwrite(kit);
    pass(kit, 30 * MS);
    ck_assert_int_ne(domus_peer_error(peer), 0);
    ck_assert_uint_eq(waited, mark == '+');
    ck_assert_uint_eq(cancelled, mark != '+');
    ck_assert_uint_eq(kept, is_kept ? 1 : 0);
    free(bytes);
    domt_pipes_end(kit); /* every buffer has come back */
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

/* Returns whether everything was answered although memory was short. */
static bool run_short(int64_t count, const char *line)
{
    domus_testkit *kit = domt_pipes_kit(NULL, &domt_pipe_framed, 1);
    domus_peer *peer = domt_pipes_peer(kit);
    size_t size;

    domt_pipes_send(kit, peer, line);
    domt_pipes_send(kit, peer, some_of_all);
    domi_memory_fail_after(count, 1);
    int result = domus_testkit_run(kit);
    if (result == 0)
        result = domus_testkit_advance(kit, 5 * MS);
    domi_memory_fail_after(-1, 0);
    ck_assert_msg(result == 0, "allocation %d: %s", (int)count, domus_testkit_error(kit));
    pass(kit, 10 * SECOND);
    const char *got = domus_peer_got(peer, &size);
    bool is_whole = size > 2 && memcmp(got + size - 3, "\np\n", 3) == 0;
    bool has_failed = memmem(got, size, "ENOMEM", 6) != NULL || kit->net->is_out_of_memory ||
                      domus_peer_error(peer) != 0;
    ck_assert_msg(is_whole || has_failed, "allocation %d: %.*s", (int)count, (int)size, got);
    domt_pipes_end(kit);
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

DOMT_SUITE(120)
