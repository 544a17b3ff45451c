/* A wrong pipeline is refused when an actor with it is made, in whatever way that happens, and a
 * right one is checked then and not again for each channel. */
#include "tests/runtime/pipes.h"
#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <domus/pool.h>
#include <domus/testkit.h>

#include <errno.h>
#include <stdatomic.h>

/* --- a stage that counts how often it is checked ---------------------------------------------- */

static _Atomic uint32_t checks;

/* The options are the result. */
static int check(const void *options)
{
    atomic_fetch_add(&checks, 1);
    return *(const int *)options;
}

static int decode(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    return domus_wire_append(wire, "!", 1) == 0 ? (int)size : -ENOMEM;
}

static int encode(domus_wire *wire, void *state, uint64_t id, const domus_type *type,
                  const void *payload)
{
    return 0;
}

static const domus_stage stage = {
    .name = "checked", .check = check, .decode = decode, .encode = encode};

static const int right = 0, wrong = -EDOM, odd = 1;

#define PIPELINE(options)                                                                          \
    {                                                                                              \
        .stages = (const domus_pipeline_stage[])                                                   \
        {                                                                                          \
            {&stage, options}, {NULL, NULL},                                                       \
        }                                                                                          \
    }
static const domus_pipeline right_pipeline = PIPELINE(&right);
static const domus_pipeline wrong_pipeline = PIPELINE(&wrong);
static const domus_pipeline odd_pipeline = PIPELINE(&odd);

static const domus_behaviour right_channel = {
    .name = "right", .kind = DOMUS_CHANNELS, .pipeline = &right_pipeline};
static const domus_behaviour wrong_channel = {
    .name = "wrong", .kind = DOMUS_CHANNELS, .pipeline = &wrong_pipeline};
static const domus_behaviour odd_channel = {
    .name = "odd", .kind = DOMUS_CHANNELS, .pipeline = &odd_pipeline};
static const domus_behaviour of_wrong = {
    .name = "of wrong", .kind = DOMUS_CHANNELS, .channel = &wrong_channel};

/* --- the ways of an actor --------------------------------------------------------------------- */

enum { SPAWN, SPAWN_OWNER, CONNECT, POOL, DATAGRAM, BECOME, WAYS };

static int results[WAYS];

static int connected(domus_stack *stack, void *self, const domus_answer *answer)
{
    return answer->error;
}

static int try_ways(domus_stack *stack, void *self)
{
    const domus_pool_options pool = {.behaviour = &wrong_channel};
    const domus_connect_options connect = {.behaviour = &wrong_channel};
    const domus_datagram_options datagram = {.behaviour = &right_channel};
    domus_endpoint at;
    domus_address made;

    ck_assert_int_eq(domus_endpoint_parse("127.0.0.1:0", &at), 0);
    results[SPAWN] = domus_spawn(stack, &wrong_channel, NULL, &made);
    results[SPAWN_OWNER] = domus_spawn(stack, &of_wrong, NULL, &made);
    results[CONNECT] = domus_connect(stack, "127.0.0.1:1", &connect, connected);
    results[POOL] = domus_pool_open(stack, "127.0.0.1:1", &pool, &made);
    results[DATAGRAM] = domus_datagram_open(stack, &at, &datagram, &made, NULL);
    results[BECOME] = domus_become(stack, &wrong_channel);
    return 0;
}

static const domus_behaviour trier = {
    .name = "trier", .kind = DOMUS_CHANNELS, .on_mount = try_ways};

DOMT_TEST(a_wrong_pipeline_is_refused_when_an_actor_is_made)
{
    domus_testkit *kit = domt_pipes_kit(NULL, &domt_pipe_plain, 1);
    domus_system *system = domus_testkit_system(kit);
    domus_address made;

    ck_assert_int_eq(domus_outside_spawn_on(system, 0, &wrong_channel, NULL, &made), -EDOM);
    ck_assert_int_eq(domus_outside_spawn_on(system, 0, &odd_channel, NULL, &made), -EINVAL);
    ck_assert_int_eq(domus_outside_spawn_on(system, 0, &trier, NULL, &made), 0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    for (int i = 0; i < WAYS; i++)
        ck_assert_msg(results[i] == (i == DATAGRAM ? -EOPNOTSUPP : -EDOM), "way %d: %d", i,
                      results[i]);
    domt_pipes_end(kit);
}

/* --- listeners -------------------------------------------------------------------------------- */

static domus_testkit *listening_kit(const domus_behaviour *behaviour, int expected)
{
    domus_config config;

    domt_pipes_configure(&config);
    config.system.threads = 1;
    domus_testkit *kit = domt_kit_listening(&config, "pipe", DOMT_PIPE_AT, 1);
    ck_assert_int_eq(domus_serve(domus_testkit_system(kit), "pipe", behaviour, NULL, NULL),
                     expected);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    return kit;
}

static void end_kit(domus_testkit *kit)
{
    (void)domus_testkit_stop(kit);
    domus_testkit_free(kit);
}

DOMT_TEST(a_listener_with_a_wrong_pipeline_is_not_served)
{
    end_kit(listening_kit(&wrong_channel, -EDOM));
    end_kit(listening_kit(&of_wrong, -EDOM));
}

DOMT_TEST(a_pipeline_is_not_checked_for_each_channel)
{
    atomic_store(&checks, 0);
    domus_testkit *kit = listening_kit(&right_channel, 0);
    uint32_t made = atomic_load(&checks);

    ck_assert_uint_ge(made, 1);
    for (int i = 0; i < 10; i++) {
        domus_peer *peer = domt_pipes_peer(kit);
        domt_pipes_send(kit, peer, "a");
        domt_pipes_expect(kit, peer, "!");
        domus_peer_close(peer);
    }
    ck_assert_uint_eq(atomic_load(&checks), made);
    end_kit(kit);
}

/* --- behaviours that change ------------------------------------------------------------------- */

static const domus_behaviour raw = {.name = "raw", .kind = DOMUS_CHANNELS};
static int become_raw, become_right;

static int change_rows(domus_stack *stack, void *self, const void *payload)
{
    become_raw = domus_become(stack, &raw);
    become_right = domus_become(stack, &right_channel);
    return 0;
}

static const domus_behaviour changing = {.name = "changing",
                                         .kind = DOMUS_CHANNELS,
                                         .pipeline = &right_pipeline,
                                         .on_open = {change_rows, 0}};
static const domus_behaviour changing_raw = {
    .name = "changing raw", .kind = DOMUS_CHANNELS, .on_open = {change_rows, 0}};

DOMT_TEST(a_channel_keeps_to_messages_or_to_bytes)
{
    domus_testkit *kit = listening_kit(&changing, 0);
    domus_peer *peer = domt_pipes_peer(kit);

    domt_pipes_send(kit, peer, "a");
    domt_pipes_expect(kit, peer, "!");
    ck_assert_int_eq(become_raw, -EINVAL);
    ck_assert_int_eq(become_right, 0);
    end_kit(kit);
    kit = listening_kit(&changing_raw, 0);
    (void)domt_pipes_peer(kit);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    ck_assert_int_eq(become_raw, 0);
    ck_assert_int_eq(become_right, -EINVAL);
    end_kit(kit);
}

DOMT_SUITE(60)
