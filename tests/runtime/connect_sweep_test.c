/* Storms of connects over many seeds of a network that fails: many actors connect to servers that
 * refuse, are slow, have no room, close or open, and the actors cancel, stop, and close channels.
 * Each connect ends once, with an address or an error, and nothing is left of it. DOMUS_SEED=n runs
 * seed n alone; DOMT_LONG runs 20 times as many seeds. */
#include "tests/runtime/net_sweep.h"
#include "tests/runtime/network.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include "runtime/testkit/kit.h"

#include <domus/connect.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS    DOMT_SCALE(1000, 60)
#define ACTORS   8u
#define DEEDS    60u
#define CONNECTS 256u
#define KEPT     8u /* number of channels that an actor remembers */

/* --- servers ---------------------------------------------------------------------------------- */

/* The places to connect to: "several" has the first three addresses, "nothing" has none. Other
 * places do not answer while their link is broken (10.0.0.3), have no room (unix:@full), or do not
 * exist. */
static const char *const places[] = {
    "10.0.0.1:80", "10.0.0.2:80", "10.0.0.3:80",    "several:80", "nothing:80",
    "127.0.0.1:7", "unix:@full",  "unix:/run/gone", "[::1]:80",
};

static domus_peer_listener *listeners[3]; /* listeners at the places number 0, 2 and 6 */

static int resolve_several_to_three_hosts(void *context, const char *name,
                                          domus_endpoint *ret_found, uint32_t max)
{
    static const unsigned char hosts[] = {3, 2, 1};

    ck_assert_uint_ge(max, 3);
    if (strcmp(name, "several") != 0)
        return -ENODATA;
    for (uint32_t i = 0; i < 3; i++)
        ret_found[i] =
            (domus_endpoint){.family = AF_INET, .size = 4, .bytes = {10, 0, 0, hosts[i]}};
    return 3;
}

static void open_listener_of_sweep(domt_sweep *sweep, uint32_t which)
{
    static const char *const at[] = {"10.0.0.1:80", "10.0.0.3:80", "unix:@full"};

    if (listeners[which] == NULL)
        DOMT_SWEEP_HOLD(sweep, domus_peer_listen(sweep->kit, at[which], which == 2 ? 1 : 4,
                                                 &listeners[which]) == 0);
}

/* Change a server in a random way: it closes and resets connections that it has not accepted, or it
 * opens again, or it accepts a connection and uses it. */
static void change_server_at_random(domt_sweep *sweep)
{
    uint32_t which = (uint32_t)domt_sweep_draw_below(sweep, 3);
    domus_endpoint dark;
    domus_peer *peer;

    switch (domt_sweep_draw_below(sweep, 8)) {
    case 0:
        if (listeners[which] != NULL)
            domus_peer_listener_close(listeners[which]);
        listeners[which] = NULL;
        break;
    case 1:
        open_listener_of_sweep(sweep, which);
        break;
    case 2:
        ck_assert_int_eq(domus_endpoint_parse("10.0.0.3:0", &dark), 0);
        (void)domus_testkit_net_part(sweep->kit, NULL, &dark, domt_sweep_draw_below(sweep, 2) == 0);
        break;
    default:
        if (listeners[which] == NULL || domus_peer_accept(listeners[which], 0, &peer) != 0)
            break;
        if (domt_sweep_draw_below(sweep, 3) == 0)
            domus_peer_reset(peer);
        else if (domt_sweep_draw_below(sweep, 2) == 0)
            domus_peer_close(peer);
        break;
    }
}

/* --- actors that connect ---------------------------------------------------------------------- */

/* The outcome of a connect, as its actor was told. */
typedef struct outcome {
    uint32_t ends; /* how many times the actor was told of an end of the connect */
    bool failed;   /* the call that begins the connect has failed itself */
} outcome;

typedef struct order {
    uint64_t timeout_ns;
    uint32_t place; /* index in `places` of the address to connect to */
    /* number of connects that one conversation waits for; 0: cancel them; UINT32_MAX: close a
     * channel */
    uint32_t count;
    uint32_t first; /* number of the first of the order's connects */
    uint32_t chance;
} order;

typedef struct connector {
    domus_conversation last; /* the conversation that the actor has begun last */
    domus_address kept[KEPT];
    uint32_t kept_count;
} connector;

static outcome outcomes[CONNECTS];
static uint32_t begun, opened, closed, mounted, stopped;
static uint32_t refusal; /* decides by its bits how a channel answers its mount and its opening */
static struct {
    uint64_t connected, refused, timed_out, cancelled, limited, others;
} met;

static const domus_type order_type = {.name = "order", .size = sizeof(order)};
static const domus_type close_type = {.name = "close"};

static int on_line_mount_refuse_at_times(domus_stack *stack, void *self)
{
    mounted++;
    switch (refusal++ % 16) {
    case 3:
        return -EPERM;
    case 7:
        return domus_channel_close(stack, domus_channel_running(stack));
    case 11:
        return domus_stop(stack, domus_self(stack));
    default:
        return 0;
    }
}

static void on_line_stop_count(domus_stack *stack, void *self)
{
    stopped++;
}

static int on_line_open_fail_at_times(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    opened++;
    switch (refusal % 8) {
    case 1:
        return -EACCES;
    case 2:
        return domus_channel_reset(stack, event->channel, -EPROTO);
    case 5:
        return domus_channel_append(stack, event->channel, "hello", 5);
    default:
        return 0;
    }
}

static int on_line_close_count(domus_stack *stack, void *self, const void *payload)
{
    closed++;
    return 0;
}

static int close_running_channel(domus_stack *stack, void *self, const void *nothing)
{
    (void)domus_channel_close(stack, domus_channel_running(stack));
    return 0;
}

static const domus_behaviour line = {
    .name = "line",
    .kind = DOMUS_CHANNELS,
    .state_size = 8,
    .on = (const domus_on[]){{&close_type, close_running_channel, 0}, {0}},
    .on_mount = on_line_mount_refuse_at_times,
    .on_stop = on_line_stop_count,
    .on_open = {on_line_open_fail_at_times, 0},
    .on_close = {on_line_close_count, 0},
};

static void count_outcome_of_connect(int error)
{
    switch (error) {
    case 0:
        met.connected++;
        break;
    case -ECONNREFUSED:
    case -ENOENT:
        met.refused++;
        break;
    case -ETIMEDOUT:
        met.timed_out++;
        break;
    case -ECANCELED:
        met.cancelled++;
        break;
    case -ENOBUFS:
        met.limited++;
        break;
    default:
        met.others++;
    }
}

static void record_end_of_connect(domus_stack *stack, connector *mine, const domus_answer *answer)
{
    ck_assert_uint_lt(answer->tag, CONNECTS);
    outcomes[answer->tag].ends++;
    count_outcome_of_connect(answer->error);
    if (answer->error != 0)
        return;
    const domus_connected *connected = answer->payload;
    if (mine->kept_count < KEPT)
        mine->kept[mine->kept_count++] = connected->channel;
    else
        (void)domus_notice(stack, connected->channel, &close_type, NULL);
}

static int record_ends_of_connects(domus_stack *stack, void *self, const domus_answer *answers)
{
    for (const domus_answer *answer = answers; answer != NULL; answer = answer->next)
        record_end_of_connect(stack, self, answer);
    return 0;
}

static int begin_ordered_connects(domus_stack *stack, connector *mine, const order *now)
{
    const domus_connect_options options = {.behaviour = &line, .timeout_ns = now->timeout_ns};
    uint32_t added = 0;

    (void)domus_conversation_of(stack, &mine->last);
    for (uint32_t i = 0; i < now->count; i++) {
        uint32_t place = (now->place + i) % (sizeof places / sizeof places[0]);
        int error = domus_connect_add(stack, places[place], &options, now->first + i);
        if (error != 0)
            outcomes[now->first + i].failed = true;
        else
            added++;
    }
    return added != 0 ? domus_wait_all(stack, record_ends_of_connects) : 0;
}

static int on_order_connect_or_cancel(domus_stack *stack, void *self, const void *payload)
{
    connector *mine = self;
    order now;

    memcpy(&now, payload, sizeof now);
    if (now.count == 0) {
        (void)domus_cancel(stack, mine->last);
        return 0;
    }
    if (now.count != UINT32_MAX)
        return begin_ordered_connects(stack, mine, &now);
    if (mine->kept_count == 0)
        return 0;
    uint32_t which = now.chance % mine->kept_count;
    if (now.chance % 2 == 0)
        (void)domus_notice(stack, mine->kept[which], &close_type, NULL);
    else
        (void)domus_stop(stack, mine->kept[which]);
    mine->kept[which] = mine->kept[--mine->kept_count];
    return 0;
}

static const domus_on rows[] = {{&order_type, on_order_connect_or_cancel, 0}, {0}};
static const domus_behaviour business = {
    .name = "business", .state_size = sizeof(connector), .on = rows};
static const domus_behaviour relaying = {
    .name = "relaying", .kind = DOMUS_CHANNELS, .state_size = sizeof(connector), .on = rows};

static domus_address actors[ACTORS];

/* --- the storm -------------------------------------------------------------------------------- */

static void make_kit_of_random_config(domt_sweep *sweep)
{
    domus_config config;

    domt_sweep_draw_config(sweep, &config);
    config.connect.attempt_delay_ns = (1 + domt_sweep_draw_below(sweep, 20)) * 10 * DOMT_SWEEP_MS;
    config.connect.timeout_ns = DOMT_SWEEP_SECOND;
    config.channel.linger_ns = 50 * DOMT_SWEEP_MS;
    if (domt_sweep_draw_below(sweep, 3) == 0)
        config.connect.connections_max = 1 + (uint32_t)domt_sweep_draw_below(sweep, 8);
    if (domt_sweep_draw_below(sweep, 3) == 0)
        config.connect.under_way_max = 1 + (uint32_t)domt_sweep_draw_below(sweep, 4);
    domt_sweep_make_kit(sweep, &config, NULL, 0);
    domus_testkit_resolve_with(sweep->kit, resolve_several_to_three_hosts, NULL);
}

static void spawn_connecting_actor(domt_sweep *sweep, uint32_t which)
{
    ck_assert_int_eq(domus_outside_spawn_on(domus_testkit_system(sweep->kit),
                                            (uint32_t)domt_sweep_draw_below(sweep, 3),
                                            which % 2 == 0 ? &business : &relaying, NULL,
                                            &actors[which]),
                     0);
}

static void begin_sweep_of_seed(domt_sweep *sweep)
{
    domus_endpoint at;
    domus_address address;

    memset(outcomes, 0, sizeof outcomes);
    memset(listeners, 0, sizeof listeners);
    begun = opened = closed = mounted = stopped = 0;
    refusal = (uint32_t)domt_sweep_draw_below(sweep, 16);
    make_kit_of_random_config(sweep);
    ck_assert_int_eq(domus_endpoint_parse("127.0.0.1:7", &at), 0);
    ck_assert_int_eq(
        domus_outside_spawn_on(domus_testkit_system(sweep->kit), 1, &domt_net_echo, &at, &address),
        0);
    for (uint32_t i = 0; i < ACTORS; i++)
        spawn_connecting_actor(sweep, i);
    for (uint32_t i = 0; i < 3; i++)
        open_listener_of_sweep(sweep, i);
    (void)domus_testkit_run(sweep->kit);
    domt_sweep_draw_faults(sweep);
    ck_assert_int_eq(domus_testkit_net_set(sweep->kit, &sweep->faults), 0);
}

/* Send an order to one of the actors, which is drawn by chance. */
static void send_order_to_random_actor(domt_sweep *sweep, order now)
{
    domus_address to = actors[domt_sweep_draw_below(sweep, ACTORS)];

    now.first = begun;
    now.chance = (uint32_t)domt_sweep_draw_below(sweep, 1000);
    int error = domus_outside_notice(domus_testkit_system(sweep->kit), to, &order_type, &now);
    DOMT_SWEEP_HOLD(sweep, error == 0);
    if (now.count != UINT32_MAX)
        begun += now.count;
}

static void do_random_action_of_sweep(domt_sweep *sweep)
{
    uint32_t which = (uint32_t)domt_sweep_draw_below(sweep, ACTORS);
    order now = {.count = 1 + (uint32_t)domt_sweep_draw_below(sweep, 4)};

    switch (domt_sweep_draw_below(sweep, 16)) {
    case 0: /* stop an actor while it works, and spawn another one in its place */
        DOMT_SWEEP_HOLD(sweep,
                        domus_outside_stop(domus_testkit_system(sweep->kit), actors[which]) == 0);
        spawn_connecting_actor(sweep, which);
        break;
    case 1:
    case 2:
        send_order_to_random_actor(sweep, (order){.count = 0});
        break;
    case 3:
    case 4:
    case 5:
        send_order_to_random_actor(sweep, (order){.count = UINT32_MAX});
        break;
    case 6:
    case 7:
    case 8:
    case 9:
        change_server_at_random(sweep);
        break;
    default:
        now.place = (uint32_t)domt_sweep_draw_below(sweep, sizeof places / sizeof places[0]);
        if (domt_sweep_draw_below(sweep, 2) == 0)
            now.timeout_ns = (1 + domt_sweep_draw_below(sweep, 100)) * DOMT_SWEEP_MS;
        if (begun + now.count <= CONNECTS)
            send_order_to_random_actor(sweep, now);
    }
}

/* Check that each connect has ended exactly once, except the connects of orders that were never
 * handled because their actor had been stopped. */
static void check_each_connect_ended_once(domt_sweep *sweep, uint64_t dead)
{
    uint64_t unknown = 0;

    for (uint32_t i = 0; i < begun; i++) {
        DOMT_SWEEP_HOLD(sweep, outcomes[i].ends <= 1 && !(outcomes[i].failed && outcomes[i].ends));
        unknown += !outcomes[i].failed && outcomes[i].ends == 0;
    }
    DOMT_SWEEP_HOLD(sweep, unknown <= 4 * dead);
    DOMT_SWEEP_HOLD(sweep, opened == closed);
    DOMT_SWEEP_HOLD(sweep, mounted >= stopped && mounted - stopped <= mounted / 2 + 1);
}

/* Check that no connect and no connection of this side is left on any thread. `ret_dead` gets the
 * number of dead letters. */
static void check_no_connect_is_left(domt_sweep *sweep, uint64_t *ret_dead)
{
    for (uint32_t i = 0; i < sweep->kit->system->count; i++) {
        const domi_io *io = &sweep->kit->system->threads[i].io;
        domus_profile profile;

        ck_assert_int_eq(domus_system_profile(sweep->kit->system, i, &profile), 0);
        *ret_dead += profile.dead_letters;
        DOMT_SWEEP_HOLD(sweep, io->connecting == 0 && io->connects == NULL);
        DOMT_SWEEP_HOLD(sweep, atomic_load(&io->outbound) == 0);
    }
}

static int run_sweep_of_seed(uint64_t seed, void *context)
{
    domt_sweep sweep = {.seed = seed, .is_relayed = true};
    uint64_t dead = 0;

    domi_random_init(&sweep.random, seed);
    begin_sweep_of_seed(&sweep);
    for (uint64_t deeds = 1 + domt_sweep_draw_below(&sweep, DEEDS); deeds != 0; deeds--) {
        do_random_action_of_sweep(&sweep);
        domt_sweep_step_randomly(&sweep, 30, 60);
    }
    /* in a quarter of the seeds the stop of the system ends what is under way */
    if (domt_sweep_draw_below(&sweep, 4) != 0)
        DOMT_SWEEP_HOLD(&sweep, domus_testkit_advance(sweep.kit, 3 * DOMT_SWEEP_SECOND) == 0);
    (void)domus_testkit_stop(sweep.kit);
    check_no_connect_is_left(&sweep, &dead);
    check_each_connect_ended_once(&sweep, dead);
    return domt_sweep_end_and_check_seed(&sweep);
}

DOMT_TEST(each_connect_ends_once)
{
    domt_sweep_run_seeds(SEEDS, run_sweep_of_seed);
    if (getenv("DOMUS_SEED") != NULL)
        return;
    printf("%llu connected, %llu refused, %llu timed out, %llu cancelled, %llu at a limit, %llu "
           "others\n",
           (unsigned long long)met.connected, (unsigned long long)met.refused,
           (unsigned long long)met.timed_out, (unsigned long long)met.cancelled,
           (unsigned long long)met.limited, (unsigned long long)met.others);
    ck_assert(met.connected != 0 && met.refused != 0 && met.timed_out != 0 && met.others != 0);
    ck_assert(met.cancelled != 0 && met.limited != 0);
}

/* With this seed a connect completes after the drain, and its peer acknowledges nothing. */
DOMT_TEST(connect_that_completes_after_the_drain_ends_with_it)
{
    ck_assert_int_eq(run_sweep_of_seed(47043, NULL), 0);
}

DOMT_SUITE(3000)
