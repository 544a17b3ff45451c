/* Sends at random on sockets with little room, whose peers read now and then, finish, or close:
 * whether the bytes of a send go by the ring or directly (direct.h), each send completes once, and
 * the peer receives just the bytes that the results count, in order. DOMT_SEED=<n> runs one seed
 * only. */
#include "base/random.h"
#include "tests/io/ring.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHANNELS      7u
#define SEEDS         DOMT_SCALE(100, 30)
#define STEPS         600u
#define SIZE_MAX_SENT 3000u
/* size of the socket's send buffer that the test asks for; the kernel makes it a bit larger */
#define ROOM 2048

/* kinds of operations; bits 8 and up of user_data are the operation's number */
enum { SEND, CANCEL };

typedef struct channel {
    int ends[2];
    uint64_t begun;       /* number of sends so far, and so of the send in flight */
    uint64_t sent;        /* bytes sent: the sum of the results of all sends */
    uint64_t read;        /* bytes that the peer has read */
    unsigned char *bytes; /* bytes of the send in flight; NULL: there is none */
    uint32_t size;        /* number of bytes of the send in flight */
    bool is_cut;          /* the send in flight has its bytes in pieces */
    bool cancelled;       /* a cancel of the send in flight was begun */
    uint32_t cancels;     /* number of cancels that have not completed */
    bool finished;        /* this side has sent FIN, and sends no more */
    bool gone;            /* the peer has closed its end */
    bool failed;          /* a send has ended with an error */
} channel;

static channel channels[CHANNELS];
static domi_random dice;
static uint64_t now_seed;
static uint64_t whole, parts, refused, cancelled; /* number of sends that have ended in each way */

static uint32_t random_below(uint32_t below)
{
    return (uint32_t)domi_random_below(&dice, below);
}

static unsigned char byte_of_stream_at(uint32_t index, uint64_t place)
{
    return (unsigned char)((place * 31 + place / 251) ^ index * 37);
}

static uint64_t user_data_of_operation(uint32_t index, uint32_t operation, uint64_t serial)
{
    return index + 1 + operation * 256 + serial * 65536;
}

/* --- the sender ------------------------------------------------------------------------------- */

static void send_pieces(channel *to, uint64_t number)
{
    struct iovec pieces[DOMI_PIECES_MAX];
    struct msghdr message = {.msg_iov = pieces};
    uint32_t at = 0;

    while (at != to->size) {
        uint32_t left = to->size - at;
        bool is_last = message.msg_iovlen == DOMI_PIECES_MAX - 1;
        uint32_t size = is_last ? left : 1 + random_below(left);
        pieces[message.msg_iovlen++] = (struct iovec){to->bytes + at, size};
        at += size;
    }
    domt_backend->send_message(domt_ring, to->ends[0], &message, number);
    /* the list may be overwritten, because the call has copied it */
    memset(pieces, 0xff, sizeof pieces);
    memset(&message, 0xff, sizeof message);
}

static void begin_random_send(uint32_t index)
{
    channel *to = &channels[index];

    if (to->bytes != NULL || to->finished)
        return;
    to->size = 1 + random_below(random_below(2) == 0 ? 40 : SIZE_MAX_SENT);
    to->bytes = malloc(to->size);
    ck_assert_ptr_nonnull(to->bytes);
    for (uint32_t i = 0; i < to->size; i++)
        to->bytes[i] = byte_of_stream_at(index, to->sent + i);
    to->is_cut = random_below(2) == 0;
    to->cancelled = false;
    uint64_t number = user_data_of_operation(index, SEND, ++to->begun);
    if (to->is_cut)
        send_pieces(to, number);
    else
        domt_backend->send(domt_ring, to->ends[0], to->bytes, to->size, number);
}

static void begin_cancel_of_send(uint32_t index)
{
    channel *of = &channels[index];

    if (of->bytes == NULL || of->cancels == 3)
        return;
    of->cancelled = true;
    of->cancels++;
    domt_backend->cancel(domt_ring, of->ends[0], user_data_of_operation(index, SEND, of->begun),
                         user_data_of_operation(index, CANCEL, of->begun));
}

static void count_result_of_send(channel *of, int32_t result)
{
    if (result > 0) {
        ck_assert_int_le(result, (int32_t)of->size);
        of->sent += (uint32_t)result;
        *((uint32_t)result == of->size ? &whole : &parts) += 1;
        ck_assert_msg(!of->failed, "seed %llu: bytes left behind an error",
                      (unsigned long long)now_seed);
    } else if (result == -ECANCELED) {
        ck_assert(of->cancelled);
        cancelled++;
    } else if (result == -EAGAIN) {
        ck_assert(of->is_cut);
    } else {
        ck_assert_msg(of->gone && (result == -EPIPE || result == -ECONNRESET),
                      "seed %llu: a send ended with %d", (unsigned long long)now_seed, result);
        of->failed = true;
        refused++;
    }
    free(of->bytes); /* the operation has completed, so nothing reads these bytes any more */
    of->bytes = NULL;
}

static void apply_completion_to_channel(const domi_completion *completion)
{
    uint32_t index = (uint32_t)(completion->user_data & 255) - 1;
    uint32_t operation = (uint32_t)(completion->user_data >> 8 & 255);

    ck_assert_uint_lt(index, CHANNELS);
    channel *of = &channels[index];
    ck_assert_uint_eq(completion->flags, 0);
    if (operation == CANCEL) {
        ck_assert_uint_ne(of->cancels, 0);
        of->cancels--;
        ck_assert(completion->result == 0 || completion->result == -ENOENT ||
                  completion->result == -EALREADY);
        return;
    }
    ck_assert_msg(of->bytes != NULL && completion->user_data >> 16 == of->begun,
                  "seed %llu: a send completed twice", (unsigned long long)now_seed);
    count_result_of_send(of, completion->result);
}

static uint32_t reap_completions(uint32_t most)
{
    domi_completion completions[CHANNELS * 4];
    uint32_t count = domt_backend->reap(domt_ring, completions, most);

    ck_assert_uint_le(count, most);
    for (uint32_t i = 0; i < count; i++)
        apply_completion_to_channel(&completions[i]);
    return count;
}

/* Finish this side: FIN goes behind all that it has sent. */
static void finish_sending_side(uint32_t index)
{
    channel *of = &channels[index];

    if (of->bytes != NULL || of->finished)
        return;
    of->finished = true;
    (void)domt_backend->sockets->shutdown(domt_ring, of->ends[0], SHUT_WR);
}

/* --- its peers -------------------------------------------------------------------------------- */

/* Let the peer read. Returns false at the end of the stream, or if no byte is there. */
static bool let_peer_read(uint32_t index, uint32_t most)
{
    channel *from = &channels[index];
    unsigned char bytes[SIZE_MAX_SENT];

    if (from->gone)
        return false;
    int size = domt_receive_from_socket(from->ends[1], bytes, most);
    ck_assert(size >= 0 || size == -EAGAIN);
    ck_assert(size != 0 || from->finished);
    for (int i = 0; i < size; i++, from->read++)
        if (bytes[i] != byte_of_stream_at(index, from->read))
            ck_abort_msg("seed %llu, channel %u: another byte at %llu",
                         (unsigned long long)now_seed, index, (unsigned long long)from->read);
    return size > 0;
}

static void let_peer_close(uint32_t index)
{
    if (channels[index].gone)
        return;
    channels[index].gone = true;
    domt_close_socket(channels[index].ends[1]);
}

/* --- a seed ----------------------------------------------------------------------------------- */

static void do_random_step(void)
{
    uint32_t index = random_below(CHANNELS);

    switch (random_below(16)) {
    case 0:
    case 1:
        ck_assert_int_eq(domt_backend->enter(domt_ring, 0, 0), 0);
        break;
    case 2:
        ck_assert_int_eq(domt_backend->enter(domt_ring, 1, DOMT_MS / 100), 0);
        break;
    case 3:
    case 4:
        ck_assert_int_eq(domt_backend->submit(domt_ring), 0);
        break;
    case 5:
    case 6:
    case 7:
        (void)reap_completions(1 + random_below(CHANNELS * 4));
        break;
    case 8:
    case 9:
        (void)let_peer_read(index, 1 + random_below(SIZE_MAX_SENT - 1));
        break;
    case 10:
        begin_cancel_of_send(index);
        break;
    case 11:
        if (random_below(40) == 0)
            let_peer_close(index);
        else if (random_below(40) == 0)
            finish_sending_side(index);
        break;
    default:
        begin_random_send(index);
        break;
    }
}

/* Returns true if an operation of the channel has not completed. */
static bool is_any_operation_under_way(const channel *of)
{
    return of->bytes != NULL || of->cancels != 0;
}

/* Let the peers read all bytes, and wait until all operations have completed. */
static void let_all_operations_complete(void)
{
    for (uint32_t i = 0; i < CHANNELS; i++) {
        for (uint32_t tries = 0; is_any_operation_under_way(&channels[i]); tries++) {
            ck_assert_msg(tries < 1000, "seed %llu: a send of channel %u is lost",
                          (unsigned long long)now_seed, i);
            while (let_peer_read(i, SIZE_MAX_SENT))
                continue;
            ck_assert_int_eq(domt_backend->enter(domt_ring, 1, DOMT_MS), 0);
            while (reap_completions(CHANNELS * 4) != 0)
                continue;
        }
        while (let_peer_read(i, SIZE_MAX_SENT))
            continue;
        ck_assert_msg(channels[i].gone || channels[i].read == channels[i].sent,
                      "seed %llu, channel %u: %llu of %llu bytes came",
                      (unsigned long long)now_seed, i, (unsigned long long)channels[i].read,
                      (unsigned long long)channels[i].sent);
    }
}

static void run_random_steps_of_seed(void)
{
    const int room = ROOM;

    domi_random_init(&dice, now_seed);
    domt_ring_begin_with_buffers();
    for (uint32_t i = 0; i < CHANNELS; i++) {
        channels[i] = (channel){.bytes = NULL};
        domt_make_socket_pair(channels[i].ends);
        (void)domt_backend->sockets->option_set(domt_ring, channels[i].ends[0], SOL_SOCKET,
                                                SO_SNDBUF, &room, sizeof room);
    }
    for (uint32_t i = 0; i < STEPS; i++)
        do_random_step();
    let_all_operations_complete();
    for (uint32_t i = 0; i < CHANNELS; i++) {
        let_peer_close(i);
        domt_backend->forget(domt_ring, channels[i].ends[0]);
        domt_close_socket(channels[i].ends[0]);
    }
    domt_backend->close(domt_ring);
}

DOMT_TEST(bytes_sent_in_any_way_come_once_and_in_order)
{
    const char *only = getenv("DOMT_SEED");
    uint64_t first = only != NULL ? strtoull(only, NULL, 10) : 1;
    uint64_t count = only != NULL ? 1 : getenv("DOMT_LONG") != NULL ? 50 * SEEDS : SEEDS;

    for (now_seed = first; now_seed < first + count; now_seed++)
        run_random_steps_of_seed();
    if (only != NULL)
        return;
    ck_assert_uint_gt(whole, 10 * count);
    ck_assert_uint_gt(parts, count / 2);
    ck_assert_uint_gt(cancelled, count / 2);
    ck_assert_uint_gt(refused, count / 4);
}

DOMT_SUITE(60)
