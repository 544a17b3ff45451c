/* examples/rooms over many seeds of a network that fails: each line that comes was sent by a guest,
 * comes complete and once, and lines of one guest come in order; a guest that was neither reset nor
 * slow has got each line of its own. DOMUS_SEED=n runs seed n alone; DOMT_LONG runs 20 times as
 * many. */
#include "tests/runtime/net_sweep.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include "examples/rooms/rooms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS  DOMT_SCALE(1000, 60)
#define DEEDS  40u /* most actions of all guests in one seed */
#define GUESTS 5u

typedef struct teller {
    domus_peer *peer;
    uint32_t said; /* number of whole lines that the guest has given to its peer */
    /* for each other guest, the number after that of its last line that this guest has received */
    uint32_t heard[GUESTS];
    uint32_t own;  /* number of this guest's own lines that have come back to it */
    char line[32]; /* the line that the guest is giving to its peer in pieces */
    size_t given;  /* number of bytes of `line` that the guest has given to its peer */
    /* the guest has gone to another room, so it may miss lines that were on their way */
    bool has_moved;
    bool is_gone; /* the guest has reset the connection */
} teller;

static teller guests[GUESTS];
static bool drops_lines; /* true: the channels' marks are so low that slow readers miss lines */

static void make_kit_of_rooms(domt_sweep *sweep)
{
    domus_listener_config listener = {.name = "rooms", .address = "127.0.0.1:80", .backlog = 4};
    domus_config config;

    domt_sweep_draw_config(sweep, &config);
    drops_lines = config.channel.send_high_bytes < 65536;
    rooms_settings = (struct rooms_settings){
        .slow_bytes = drops_lines ? 500 : 65536, .room_count = 2, .rooms = {"lobby", "garden"}};
    domt_sweep_make_kit(sweep, &config, &listener, 1);
    ck_assert_int_eq(
        domus_serve(domus_testkit_system(sweep->kit), "rooms", &rooms_behaviour, NULL, NULL), 0);
}

/* Give the guest's peer another piece of its line, or of the next line. */
static void send_next_piece_of_line(domt_sweep *sweep, uint32_t index)
{
    teller *one = &guests[index];
    size_t length;

    if (one->given == 0)
        (void)snprintf(one->line, sizeof one->line, "%u %u\n", index, one->said);
    length = strlen(one->line);
    size_t size = 1 + domt_sweep_draw_below(sweep, length - one->given);
    if (domus_peer_send(one->peer, one->line + one->given, size) != 0)
        return;
    one->given += size;
    if (one->given == length) {
        one->given = 0;
        one->said++;
    }
}

static void do_random_action_of_guest(domt_sweep *sweep, uint32_t index)
{
    static const char join[] = "/join garden\n";
    teller *one = &guests[index];

    switch (domt_sweep_draw_below(sweep, 16)) {
    case 0:
        if (one->given == 0)
            one->has_moved |= domus_peer_send(one->peer, join, sizeof join - 1) == 0;
        break;
    case 1:
        domus_peer_pause(one->peer);
        break;
    case 2:
        domus_peer_resume(one->peer);
        break;
    case 3:
        if (domt_sweep_draw_below(sweep, 4) != 0)
            break;
        domus_peer_reset(one->peer);
        one->is_gone = true;
        break;
    case 4:
        domus_peer_hold(one->peer);
        break;
    case 5:
        domus_peer_release(one->peer);
        break;
    default:
        send_next_piece_of_line(sweep, index);
        break;
    }
}

/* Read all whole lines that a guest has received, and check what the head of this file claims of
 * them. */
static void check_lines_of_guest(domt_sweep *sweep, uint32_t index)
{
    teller *one = &guests[index];
    size_t size;
    const char *data = domus_peer_got(one->peer, &size);
    size_t at = 0;

    for (const char *end; (end = memchr(data + at, '\n', size - at)) != NULL;) {
        unsigned int from = GUESTS, number = 0;
        char expected[32];

        (void)sscanf(data + at, "%u %u", &from, &number);
        (void)snprintf(expected, sizeof expected, "%u %u\n", from, number);
        size_t length = (size_t)(end + 1 - (data + at));
        DOMT_SWEEP_HOLD(sweep, length == strlen(expected) &&
                                   memcmp(expected, data + at, length) == 0 && from < GUESTS);
        if (sweep->has_failed)
            return;
        /* a line must not come a second time, or after a later one */
        DOMT_SWEEP_HOLD(sweep, number >= one->heard[from]);
        DOMT_SWEEP_HOLD(sweep, number < guests[from].said);
        one->heard[from] = number + 1;
        one->own += from == index;
        at += length;
    }
    domus_peer_take(one->peer, at);
}

static void check_lines_of_all_guests(domt_sweep *sweep)
{
    for (uint32_t i = 0; i < GUESTS && !sweep->has_failed; i++)
        check_lines_of_guest(sweep, i);
}

/* Let time pass until everything has arrived, and check that each guest whose connection lives has
 * got all its own lines. */
static void let_all_lines_arrive(domt_sweep *sweep)
{
    for (uint32_t i = 0; i < GUESTS; i++) {
        domus_peer_release(guests[i].peer);
        domus_peer_resume(guests[i].peer);
    }
    for (int i = 0; i < 60; i++) {
        DOMT_SWEEP_HOLD(sweep, domus_testkit_advance(sweep->kit, DOMT_SWEEP_SECOND) == 0);
        check_lines_of_all_guests(sweep);
    }
    for (uint32_t i = 0; i < GUESTS; i++) {
        domus_peer_counts counts = domus_peer_count(guests[i].peer);
        bool lives = !guests[i].is_gone && domus_peer_error(guests[i].peer) == 0 &&
                     !domus_peer_has_end(guests[i].peer) && counts.lost == 0 && counts.missed == 0;

        if (lives && sweep->faults.ends == 0) {
            DOMT_SWEEP_HOLD(sweep, counts.unsent == 0);
            DOMT_SWEEP_HOLD(sweep,
                            drops_lines || guests[i].has_moved || guests[i].own == guests[i].said);
        }
        domus_peer_finish(guests[i].peer);
    }
    DOMT_SWEEP_HOLD(sweep, domus_testkit_advance(sweep->kit, 10 * DOMT_SWEEP_SECOND) == 0);
    check_lines_of_all_guests(sweep);
}

static int run_sweep_of_seed(uint64_t seed, void *context)
{
    domt_sweep sweep = {.seed = seed};

    domi_random_init(&sweep.random, seed);
    make_kit_of_rooms(&sweep);
    domt_sweep_draw_faults(&sweep);
    ck_assert_int_eq(domus_testkit_net_set(sweep.kit, &sweep.faults), 0);
    memset(guests, 0, sizeof guests);
    for (uint32_t i = 0; i < GUESTS; i++)
        ck_assert_int_eq(domus_peer_connect(sweep.kit, "127.0.0.1:80", NULL, &guests[i].peer), 0);
    for (uint64_t deeds = 1 + domt_sweep_draw_below(&sweep, DEEDS); deeds != 0; deeds--) {
        do_random_action_of_guest(&sweep, (uint32_t)domt_sweep_draw_below(&sweep, GUESTS));
        for (uint64_t steps = domt_sweep_draw_below(&sweep, 20); steps != 0; steps--)
            (void)domus_testkit_step(sweep.kit);
        if (domt_sweep_draw_below(&sweep, 8) == 0)
            (void)domus_testkit_advance(sweep.kit,
                                        domt_sweep_draw_below(&sweep, 3 * DOMT_SWEEP_MS));
        check_lines_of_all_guests(&sweep);
    }
    if (domt_sweep_draw_below(&sweep, 4) != 0)
        let_all_lines_arrive(&sweep);
    return domt_sweep_end_seed(&sweep);
}

DOMT_TEST(every_line_of_the_rooms_is_accounted_for)
{
    domt_sweep_run_seeds(SEEDS, run_sweep_of_seed);
}

DOMT_SUITE(3000)
