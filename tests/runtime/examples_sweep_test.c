/* The examples `lines` and `rooms` over many seeds of a network that fails. */
#include "examples/rooms/rooms.h"
#include "tests/runtime/net_sweep.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* examples/lines.c over many seeds of a network that fails: every answer comes or has a reason not
 * to, and answers come in the order of the requests. DOMUS_SEED=n runs seed n alone; DOMT_LONG
 * runs 20 times as many. The lines of a client begin with its number, so no other client asks for
 * them, and the client knows each answer: the number of times that it has sent this line. Some
 * lines are too long for a shard, or for the stage. */

/* The example itself is included, with its main() under another name. */
int domt_lines_main(int argc, char **argv);
#define main domt_lines_main
#include "examples/lines.c"
#undef main

#define SEEDS DOMT_SCALE(1000, 60)
#define DEEDS 40u /* actions of all clients in one seed */
#define WORDS 7u  /* number of different lines that a client sends, each of them many times */
#define ROOM  (1u << 18)
#define AT    "127.0.0.1:80"

typedef struct line_client {
    domus_peer *peer;
    uint64_t counts[WORDS];
    char *expected; /* bytes of all answers that the client expects, in their order */
    size_t expected_size;
    size_t checked; /* number of bytes of `expected` that have come */
    /* `lines`: number of lines that the client has sent; `answers`: number of answers that it
     * got */
    uint64_t lines;
    uint64_t answers;
    bool is_done;    /* the client sends no more */
    bool was_rude;   /* the client has closed or reset its connection */
    bool is_wrong;   /* the client has sent bytes that end its channel */
    bool is_partial; /* the last line that the client has sent has no end */
} line_client;

static line_client clients[DOMT_SWEEP_CLIENTS];
static uint32_t clients_count;

/* --- clients ---------------------------------------------------------------------------------- */

static void add_expected_bytes_of_client(line_client *client, const char *text)
{
    size_t size = strlen(text);

    ck_assert_uint_le(client->expected_size + size, ROOM);
    memcpy(client->expected + client->expected_size, text, size);
    client->expected_size += size;
}

static void send_random_line(domt_sweep *sweep, line_client *client)
{
    uint32_t word = (uint32_t)domt_sweep_draw_below(sweep, WORDS);
    bool is_long = domt_sweep_draw_below(sweep, 12) == 0;
    const char *end = domt_sweep_draw_below(sweep, 3) == 0 ? "\r\n" : "\n";
    char line[128], answer[32];

    int size = snprintf(line, sizeof line, "%u of %u %s%s", word, (unsigned)(client - clients),
                        is_long ? "is a line that is too long for an entry of a shard" : "", end);
    if (domus_peer_send(client->peer, line, (size_t)size) != 0)
        return;
    client->lines++;
    if (is_long)
        (void)snprintf(answer, sizeof answer, "error: EMSGSIZE\n");
    else
        (void)snprintf(answer, sizeof answer, "%llu\n", (unsigned long long)++client->counts[word]);
    add_expected_bytes_of_client(client, answer);
}

/* Send a line that the stage refuses, so the store reads no more bytes of this client. */
static void send_refused_line(line_client *client)
{
    static char bytes[9000];

    memset(bytes, 'x', sizeof bytes);
    if (domus_peer_send(client->peer, bytes, sizeof bytes) != 0)
        return;
    add_expected_bytes_of_client(client, "error: EMSGSIZE\n");
    client->is_wrong = client->is_done = true;
}

static void finish_sending_of_client(domt_sweep *sweep, line_client *client)
{
    if (!client->is_done && domt_sweep_draw_below(sweep, 3) == 0 &&
        domus_peer_send(client->peer, "part", 4) == 0) {
        add_expected_bytes_of_client(client, "error: EPIPE\n");
        client->is_partial = true;
    }
    domus_peer_finish(client->peer);
    client->is_done = true;
}

static void do_random_action_of_client(domt_sweep *sweep, line_client *client)
{
    uint64_t deed = domt_sweep_draw_below(sweep, 32);

    if (deed == 0) {
        finish_sending_of_client(sweep, client);
    } else if (deed == 8) {
        if (!client->is_done && domt_sweep_draw_below(sweep, 3) == 0)
            send_refused_line(client);
    } else if (!domt_sweep_disturb_peer(sweep, deed, client->peer, &client->is_done,
                                        &client->was_rude)) {
        for (uint64_t left = domt_sweep_draw_below(sweep, 30); left != 0 && !client->is_done;
             left--)
            send_random_line(sweep, client);
    }
}

/* Check that the bytes that have come are the begin of the expected ones. If a fault has ended the
 * client's stream within a line, its last answer may be that of a wrong line. */
static void check_bytes_of_client(domt_sweep *sweep, line_client *client)
{
    size_t size;
    const char *got = domus_peer_got(client->peer, &size);
    size_t left = client->expected_size - client->checked;
    size_t same = 0;

    while (same < size && same < left && got[same] == client->expected[client->checked + same])
        client->answers += got[same++] == '\n';
    client->checked += same;
    if (same < size && sweep->faults.ends != 0) {
        same = size;
        client->is_wrong = true;
    }
    DOMT_SWEEP_HOLD(sweep, same == size);
    domus_peer_take(client->peer, size);
}

static void check_bytes_of_all_clients(domt_sweep *sweep)
{
    for (uint32_t i = 0; i < clients_count; i++)
        check_bytes_of_client(sweep, &clients[i]);
}

static void let_clients_act_at_random(domt_sweep *sweep)
{
    uint32_t deeds = 1 + (uint32_t)domt_sweep_draw_below(sweep, DEEDS);

    clients_count = 1 + (uint32_t)domt_sweep_draw_below(sweep, DOMT_SWEEP_CLIENTS);
    for (uint32_t i = 0; i < clients_count; i++) {
        char *room = clients[i].expected != NULL ? clients[i].expected : malloc(ROOM);
        ck_assert_ptr_nonnull(room);
        clients[i] = (line_client){.expected = room};
        ck_assert_int_eq(domus_peer_connect(sweep->kit, AT, NULL, &clients[i].peer), 0);
    }
    for (uint32_t i = 0; i < deeds; i++) {
        do_random_action_of_client(sweep, &clients[domt_sweep_draw_below(sweep, clients_count)]);
        domt_sweep_step_randomly(sweep, 20, 3);
        check_bytes_of_all_clients(sweep);
    }
}

/* --- the end ---------------------------------------------------------------------------------- */

static bool have_all_clients_ended(void)
{
    for (uint32_t i = 0; i < clients_count; i++) {
        if (!clients[i].was_rude && !domus_peer_has_end(clients[i].peer) &&
            domus_peer_error(clients[i].peer) == 0)
            return false;
    }
    return true;
}

/* Let all clients finish, and check that each one whose connection was not reset gets all its
 * answers. */
static void finish_all_clients(domt_sweep *sweep)
{
    for (uint32_t i = 0; i < clients_count; i++) {
        finish_sending_of_client(sweep, &clients[i]);
        domus_peer_release(clients[i].peer);
        if (!clients[i].was_rude)
            domus_peer_resume(clients[i].peer);
    }
    for (int tries = 0; tries < 200 && (tries == 0 || !have_all_clients_ended()); tries++)
        DOMT_SWEEP_HOLD(sweep, domus_testkit_advance(sweep->kit, 3 * DOMT_SWEEP_SECOND) == 0);
    check_bytes_of_all_clients(sweep);
    for (uint32_t i = 0; i < clients_count; i++) {
        const line_client *client = &clients[i];
        domus_peer_counts counts = domus_peer_count(client->peer);
        int error = domus_peer_error(client->peer);

        DOMT_SWEEP_HOLD(sweep, client->was_rude || domus_peer_has_end(client->peer) || error != 0);
        if (!client->was_rude && sweep->faults.ends == 0 && error == 0 && counts.missed == 0)
            DOMT_SWEEP_HOLD(sweep, client->checked == client->expected_size);
    }
}

/* Stop the system while clients send lines, and check that each line that was read is answered. */
static void stop_while_clients_send(domt_sweep *sweep)
{
    for (uint32_t i = 0; i < clients_count; i++) {
        domus_peer_release(clients[i].peer);
        if (!clients[i].was_rude)
            domus_peer_resume(clients[i].peer);
    }
    bool is_drained = domus_testkit_stop(sweep->kit) == 0;
    /* Wait for the bytes that the system has sent and that are still on their way. */
    DOMT_SWEEP_HOLD(sweep, domus_testkit_advance(sweep->kit, DOMT_SWEEP_SECOND) == 0);
    check_bytes_of_all_clients(sweep);
    if (!is_drained || domt_sweep_discarded_bytes(sweep) != 0 || sweep->faults.ends != 0)
        return;
    for (uint32_t i = 0; i < clients_count; i++) {
        const line_client *client = &clients[i];
        domus_peer_counts counts = domus_peer_count(client->peer);

        if (client->was_rude || client->is_wrong || domus_peer_error(client->peer) != 0 ||
            counts.missed != 0 || counts.lost != 0 || counts.sent != counts.delivered ||
            counts.unsent != 0)
            continue;
        DOMT_SWEEP_HOLD(sweep, client->answers >= client->lines);
    }
}

static int run_lines_sweep_of_seed(uint64_t seed, void *context)
{
    static const domus_routing by_line = {DOMUS_ROUTE_HASH, hash_of};
    domus_listener_config listener = {.name = "lines", .address = AT, .backlog = 4};
    /* `is_relayed` is set, because bytes behind a wrong line are received and then discarded, as
     * with a proxy. */
    domt_sweep sweep = {.seed = seed, .is_relayed = true};
    domus_config config;

    domi_random_init(&sweep.random, seed);
    domt_sweep_draw_config(&sweep, &config);
    config.channel.requests_max = (uint32_t)domt_sweep_draw_below(&sweep, 3) * 5;
    domt_sweep_make_kit(&sweep, &config, &listener, 1);
    domus_system *system = domus_testkit_system(sweep.kit);
    ck_assert_int_eq(
        domus_outside_spawn_many(system, &shard, NULL, SHARDS, &by_line, NULL, &shards), 0);
    ck_assert_int_eq(domus_serve(system, "lines", &lines, NULL, NULL), 0);
    domt_sweep_draw_faults(&sweep);
    ck_assert_int_eq(domus_testkit_net_set(sweep.kit, &sweep.faults), 0);
    let_clients_act_at_random(&sweep);
    if (domt_sweep_draw_below(&sweep, 4) != 0)
        finish_all_clients(&sweep);
    else
        stop_while_clients_send(&sweep);
    return domt_sweep_end_and_check_seed(&sweep);
}

DOMT_TEST(every_answer_is_accounted_for_and_in_order)
{
    domt_sweep_run_seeds(SEEDS, run_lines_sweep_of_seed);
}

/* --- rooms sweep ------------------------------------------------------------------------------ */

/* examples/rooms over many seeds of a network that fails: each line that comes was sent by a
 * guest, comes complete and once, and lines of one guest come in order; a guest that was neither
 * reset nor slow has got each line of its own. DOMUS_SEED=n runs seed n alone; DOMT_LONG runs 20
 * times as many. */

#define ROOMS_DEEDS 40u /* most actions of all guests in one seed */
#define GUESTS      5u

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

static void make_kit_with_chat_rooms(domt_sweep *sweep)
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

/* Read all whole lines that a guest has received, and check that each was sent by a guest, is
 * complete, and comes once and in order. */
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

static int run_rooms_sweep_of_seed(uint64_t seed, void *context)
{
    domt_sweep sweep = {.seed = seed};

    domi_random_init(&sweep.random, seed);
    make_kit_with_chat_rooms(&sweep);
    domt_sweep_draw_faults(&sweep);
    ck_assert_int_eq(domus_testkit_net_set(sweep.kit, &sweep.faults), 0);
    memset(guests, 0, sizeof guests);
    for (uint32_t i = 0; i < GUESTS; i++)
        ck_assert_int_eq(domus_peer_connect(sweep.kit, "127.0.0.1:80", NULL, &guests[i].peer), 0);
    for (uint64_t deeds = 1 + domt_sweep_draw_below(&sweep, ROOMS_DEEDS); deeds != 0; deeds--) {
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
    return domt_sweep_end_and_check_seed(&sweep);
}

DOMT_TEST(every_line_of_the_rooms_is_accounted_for)
{
    domt_sweep_run_seeds(SEEDS, run_rooms_sweep_of_seed);
}

DOMT_SUITE(3000)
