/* A handler that sends to a sleeper and does not return: the sleeper begins soon all the same,
 * because its wake-up is put off only while it dozes (contract: Park and wake). On real threads.
 *
 * Each round first makes the receiver's thread doze, by messages that come every few hundred
 * microseconds; then the sender computes behind its send, or waits for what it has sent. */
#include "tests/runtime/running.h"

#define ROUNDS    5u
#define WARM_UPS  40u
#define PAUSE_NS  UINT64_C(300000)
#define LONG_NS   (200 * DOMT_MS)
#define BEGINS_NS (100 * DOMT_MS) /* most of a doze is what the machine may be late */

static const domus_type warm_type = {.name = "warm"};
static const domus_type compute_type = {.name = "compute"};
static const domus_type wait_type = {.name = "wait"};
static const domus_type work_type = {.name = "work"};

static domus_address receiver;
static _Atomic uint64_t worked, worked_ns, returned, waited_ns;

static int work(domus_stack *stack, void *self, const void *payload)
{
    atomic_store(&worked_ns, domt_now_ns());
    atomic_fetch_add(&worked, 1);
    return 0;
}

static int warm(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&returned, 1);
    return domus_notice(stack, receiver, &work_type, NULL);
}

/* Go on after the send until `until` messages were handled there, and for `least_ns`. */
static int send_and_stay(domus_stack *stack, uint64_t least_ns, bool waits)
{
    uint64_t until = atomic_load(&worked) + 1;
    uint64_t begun_ns = domt_now_ns();

    ck_assert_int_eq(domus_notice(stack, receiver, &work_type, NULL), 0);
    while (domt_now_ns() - begun_ns < least_ns || (waits && atomic_load(&worked) < until))
        ;
    uint64_t at_ns = atomic_load(&worked) < until ? domt_now_ns() : atomic_load(&worked_ns);
    if (at_ns - begun_ns > atomic_load(&waited_ns))
        atomic_store(&waited_ns, at_ns - begun_ns);
    atomic_fetch_add(&returned, 1);
    return 0;
}

static int compute(domus_stack *stack, void *self, const void *payload)
{
    return send_and_stay(stack, LONG_NS, false);
}

static int wait_for_it(domus_stack *stack, void *self, const void *payload)
{
    return send_and_stay(stack, 0, true);
}

static const domus_behaviour sender_behaviour = {
    .name = "sender",
    .on = (const domus_on[]){{&warm_type, warm, 0},
                             {&compute_type, compute, 0},
                             {&wait_type, wait_for_it, 0},
                             {NULL, NULL, 0}},
};
static const domus_behaviour receiver_behaviour = {
    .name = "receiver",
    .on = (const domus_on[]){{&work_type, work, 0}, {NULL, NULL, 0}},
};

static void send(domus_system *system, domus_address sender, const domus_type *type)
{
    uint64_t done = atomic_load(&returned) + 1;

    domt_notice(system, sender, type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&returned) == done);
}

static void expect_soon(const domus_type *type)
{
    domus_config config = domt_config(2);

    config.scheduler.idle.stand_in_ns = 100000;
    domus_system *system = domt_start(&config);
    domus_address sender = domt_spawn(system, 0, &sender_behaviour, NULL);
    receiver = domt_spawn(system, 1, &receiver_behaviour, NULL);
    atomic_store(&waited_ns, 0);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < WARM_UPS; i++) {
            uint64_t before = atomic_load(&worked);
            send(system, sender, &warm_type);
            DOMT_WAIT_FOR(20, atomic_load(&worked) > before);
            domt_pause_ns(PAUSE_NS);
        }
        send(system, sender, type);
    }
    ck_assert_uint_lt(atomic_load(&waited_ns), BEGINS_NS);
    ck_assert_uint_gt(domt_profile(system, 0).steals, 0); /* the first thread stood in */
    domt_end(system);
}

DOMT_TEST(message_of_a_handler_that_computes_on_is_handled_soon)
{
    expect_soon(&compute_type);
}

DOMT_TEST(handler_may_wait_for_what_a_sleeper_does)
{
    expect_soon(&wait_type);
}

DOMT_SUITE(60)
