/* house/family/life.c: spawns at home and elsewhere, mounts, and leases (M9, M10); also what a
 * table of addresses needs. */
#include "house/family/life.h"
#include "house/family/slots.h"
#include "house/message/mailbox.h"
#include "tests/house/recorder.h"
#include "tests/house/steps.h"
#include "tests/support/suite.h"

#include <domus/actor.h>

#include <errno.h>
#include <string.h>

static domt_world world;
static domt_log log0;

static int abort_when_handled(domus_stack *stack, void *self, const void *payload)
{
    ck_abort_msg("a message was handled");
}

static domus_address spawn_recorder(domi_manager *from, uint32_t home)
{
    domt_recorder recorder = {.log = &log0};

    return domt_spawn(from, world.managers[home], &domt_recording, &recorder);
}

/* --- birth ----------------------------------------------------------------------------------- */

DOMT_TEST(spawn_mounts_before_the_first_mail_which_may_be_sent_at_once)
{
    domt_world_open(&world, 2);
    for (uint32_t from = 0; from < 3; from++) { /* spawn from home, another home, and the outside */
        log0.count = log0.mounts = 0;
        domus_address one = spawn_recorder(world.managers[from], 0);
        domt_send_note(world.managers[from], one, 1);
        domt_let_recorder_ask(world.managers[from], one, one, 2);
        domt_send_note(world.managers[from], one, 3);
        ck_assert_uint_eq(log0.mounts, 0);
        (void)domi_manager_take_arrivals(world.managers[0]);
        ck_assert_uint_eq(one.house->state, DOMI_MOUNTING);
        /* messages for a house in MOUNTING wait until it is mounted */
        domt_send_note(world.managers[0], one, 4);
        ck_assert_uint_eq(log0.count, 0);
        (void)domi_manager_mount_actors(world.managers[0]);
        ck_assert_uint_eq(log0.mounts, 1);
        ck_assert_uint_eq(one.house->state, DOMI_READY);
        domt_settle_world(&world);
        ck_assert_str_eq(domt_log_letters_from_entry(&log0, 0), "nnnar");
        ck_assert_uint_eq(log0.mounts, 1);
    }
    domt_world_end(&world);
    ck_assert_uint_eq(log0.stops, 3);
}

DOMT_TEST(spawn_counts_houses_and_spawns)
{
    domt_world_open(&world, 2);
    for (uint32_t i = 0; i < 10; i++)
        (void)spawn_recorder(world.managers[i % 3], i % 2);
    domt_settle_world(&world);
    ck_assert_uint_eq(world.managers[0]->births.houses + world.managers[1]->births.houses, 10);
    ck_assert_uint_eq(DOMT_SUM(&world, spawns), 10);
    domt_world_end(&world);
    ck_assert_uint_eq(log0.mounts, 10);
    ck_assert_uint_eq(log0.stops, 10);
}

DOMT_TEST(state_begins_as_a_copy_or_zeroed_at_every_size)
{
    static const uint32_t sizes[] = {0,   1,   16,  17,   80,   81,          208,
                                     209, 464, 465, 1040, 1041, 100u * 1024, 1024u * 1024};
    static unsigned char state[1024 * 1024];
    static domus_behaviour behaviours[sizeof sizes / sizeof sizes[0]];

    domt_world_open(&world, 1);
    memset(state, 0xa5, sizeof state);
    /* in the second round, actors live in slots that were used */
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            behaviours[i] = (domus_behaviour){.name = "sized", .state_size = sizes[i]};
            domus_address copied =
                domt_spawn(world.managers[0], world.managers[0], &behaviours[i], state);
            ck_assert_uint_eq((uintptr_t)copied.house->self % 16, 0);
            ck_assert_int_eq(memcmp(copied.house->self, state, sizes[i]), 0);
            domus_address zeroed =
                domt_spawn(world.managers[0], world.managers[0], &behaviours[i], NULL);
            const unsigned char *bytes = zeroed.house->self;
            for (uint32_t j = 0; j < sizes[i]; j += 1 + sizes[i] / 1000)
                ck_assert_uint_eq(bytes[j], 0);
            domt_settle_world(&world);
            ck_assert_int_eq(domi_house_ask_to_stop(world.managers[0], copied), 0);
            domt_stop_actor_and_settle(&world, domt_outside_manager(&world), zeroed);
        }
    }
    ck_assert_uint_eq(world.managers[0]->births.houses, 0);
    domt_world_end(&world);
}

DOMT_TEST(spawn_refuses_a_wrong_behaviour)
{
    static const domus_behaviour large = {.name = "large", .state_size = 1024 * 1024 + 1};
    static const domus_behaviour odd = {.name = "odd", .kind = (domus_kind)7};
    const domus_behaviour wide = {
        .name = "wide",
        .on = (const domus_on[]){{&domt_counted, abort_when_handled, DOMUS_FRAME_MAX + 1}, {0}}};
    const domus_behaviour hollow = {.name = "hollow",
                                    .on = (const domus_on[]){{&domt_counted, NULL, 0}, {0}}};
    const domus_address untouched = {NULL, 77};
    domus_address address = untouched;

    domt_world_open(&world, 1);
    domi_manager *home = world.managers[0];
    ck_assert_int_eq(domi_house_spawn_without_parent(home, home, NULL, NULL, &address), -EINVAL);
    ck_assert_int_eq(domi_house_spawn_without_parent(home, home, &large, NULL, &address), -EINVAL);
    ck_assert_int_eq(domi_house_spawn_without_parent(home, home, &odd, NULL, &address), -EINVAL);
    ck_assert_int_eq(domi_house_spawn_without_parent(home, home, &wide, NULL, &address), -EINVAL);
    ck_assert_int_eq(domi_house_spawn_without_parent(home, home, &hollow, NULL, &address), -EINVAL);
    home->ending.has_stopped = true;
    ck_assert_int_eq(domi_house_spawn_without_parent(home, home, &domt_agent, NULL, &address),
                     -ESHUTDOWN);
    ck_assert_mem_eq(&address, &untouched, sizeof address);
    domt_world_end(&world);
}

/* --- on_mount -------------------------------------------------------------------------------- */

static int mount_result;
static unsigned stopped;
static domus_address friend;
static int heard_error;

static int send_note_and_fail_mount(domus_stack *stack, void *self)
{
    ck_assert_int_eq(domus_notice(stack, friend, &domt_note, &(int64_t){9}), 0);
    return mount_result;
}

static void on_stop_count_stop(domus_stack *stack, void *self)
{
    stopped++;
}

static const domus_behaviour failing = {
    .name = "failing",
    .on = (const domus_on[]){{&domt_counted, abort_when_handled, 0}, {0}},
    .on_mount = send_note_and_fail_mount,
    .on_stop = on_stop_count_stop};

static int record_error_of_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    heard_error = answer->error;
    return 0;
}

static int ask_with_payload_of_counted_release(domus_stack *stack, void *to)
{
    return domus_ask(stack, *(domus_address *)to, &domt_counted, "payload", record_error_of_answer);
}

DOMT_TEST(mount_that_fails_ends_the_actor_without_on_stop)
{
    domt_world_open(&world, 2);
    friend = domt_spawn_recorder(&world, 0, &log0);
    mount_result = -EIO;
    domus_address one = domt_spawn(world.managers[1], world.managers[0], &failing, NULL);
    domus_address agent = domt_spawn(world.managers[1], world.managers[1], &domt_agent, NULL);
    ck_assert_int_eq(domt_send_notice(world.managers[1], one, &domt_counted, "payload"), 0);
    domt_send_function_to_call(world.managers[1], agent, ask_with_payload_of_counted_release, &one);
    domt_iterate_home(world.managers[1]); /* the ask is sent before its actor's mount */
    domt_settle_world(&world);
    ck_assert_uint_eq(stopped, 0);
    ck_assert_uint_eq(domt_releases, 2);
    ck_assert_int_eq(heard_error, -ESTALE);
    ck_assert_uint_eq(DOMT_SUM(&world, failures), 1);
    ck_assert_uint_eq(DOMT_SUM(&world, dead_letters), 2);
    ck_assert_int_eq(domt_send_notice(world.managers[1], one, &domt_note, &(int64_t){1}), -ESTALE);
    ck_assert_int_eq(domi_house_ask_to_stop(world.managers[1], one), -ESTALE);
    /* the note that the actor had sent in on_mount has come */
    ck_assert_uint_eq(domt_log_count_letter(&log0, 'n'), 1);
    domt_end_clean_world(&world);
    ck_assert_uint_eq(stopped, 0);
}

static int spawn_arm_timer_and_ask_in_mount(domus_stack *stack, void *self)
{
    domus_address child;
    int64_t number = 4;

    ck_assert_int_eq(domus_spawn(stack, &domt_agent, NULL, &child), 0);
    ck_assert_int_eq(domus_after(stack, 1000000, &domt_tick, &number, NULL), 0);
    ck_assert_int_eq(domus_barrier(stack), 0);
    return domus_ask(stack, friend, &domt_question, &number, record_error_of_answer);
}

static int record_number_of_tick(domus_stack *stack, void *self, const void *number)
{
    heard_error += 10 * (int)*(const int64_t *)number;
    return 0;
}

static const domus_behaviour busy = {
    .name = "busy",
    .on = (const domus_on[]){{&domt_tick, record_number_of_tick, 0}, {0}},
    .on_mount = spawn_arm_timer_and_ask_in_mount};

DOMT_TEST(mount_may_ask_and_park_spawn_and_arm_timers)
{
    domt_world_open(&world, 2);
    friend = domt_spawn_recorder(&world, 1, &log0);
    heard_error = 77;
    domus_address one = domt_spawn(domt_outside_manager(&world), world.managers[0], &busy, NULL);
    domt_settle_world(&world);
    ck_assert_int_eq(heard_error, 0);
    ck_assert_uint_eq(one.house->marks & DOMI_MARKS_HOLD, 0);
    ck_assert_uint_eq(world.managers[0]->births.houses, 2);
    domt_pass_time(&world, 3000000);
    ck_assert_int_eq(heard_error, 40);
    domt_world_end(&world);
}

/* --- leases ---------------------------------------------------------------------------------- */

/* End an actor, and spawn another one in the same slot. Returns its address. */
static domus_address end_and_spawn_next_life(domus_address address)
{
    domt_stop_actor_and_settle(&world, address.house->home, address);
    domus_address next = spawn_recorder(world.managers[0], 0);
    domt_settle_world(&world);
    ck_assert_ptr_eq(next.house, address.house);
    return next;
}

DOMT_TEST(m9_stale_address_reaches_nobody)
{
    int64_t number = 1;

    domt_world_open(&world, 2);
    domus_address agent = domt_spawn(world.managers[1], world.managers[1], &domt_agent, NULL);
    domus_address old = spawn_recorder(world.managers[0], 0);
    domt_settle_world(&world);
    domus_address next = end_and_spawn_next_life(old);
    ck_assert_uint_eq(next.lease, old.lease + 1);
    for (uint32_t from = 0; from < 3; from++) {
        ck_assert_int_eq(domt_send_notice(world.managers[from], old, &domt_note, &number), -ESTALE);
        ck_assert_int_eq(domi_house_ask_to_stop(world.managers[from], old), -ESTALE);
    }
    domt_run_as_actor(&world, agent, ask_with_payload_of_counted_release, &old);
    ck_assert_int_eq(heard_error, -ESTALE);
    ck_assert_uint_eq(atomic_load(&next.house->life) & 0xffffffffu, 0);
    domt_send_note(world.managers[1], next, 2);
    domt_settle_world(&world);
    ck_assert_uint_eq(log0.count, 1);
    domt_world_end(&world);
}

/* A race that the test steps by hand: a sender reads the lease just before the actor ends, and puts
 * just after that into the free slot. actor_end_test.c tests a put into the slot's next life. */
DOMT_TEST(late_mail_for_a_free_slot_is_a_dead_letter)
{
    domt_world_open(&world, 2);
    domus_address one = spawn_recorder(world.managers[0], 0);
    domt_settle_world(&world);

    ck_assert_int_eq(domt_send_notice(world.managers[1], one, &domt_counted, "payload"), 0);
    atomic_fetch_or(&one.house->life, DOMI_LIFE_CLOSED);
    (void)domi_manager_take_arrivals(world.managers[0]);
    atomic_fetch_and(&one.house->life, ~DOMI_LIFE_CLOSED);
    ck_assert_uint_eq(domt_releases, 1);
    ck_assert_uint_eq(DOMT_SUM(&world, dead_letters), 1);
    domt_end_clean_world(&world);
}

DOMT_TEST(m10_leases_grow_and_are_never_reused)
{
    enum { LIVES = 3000 };
    int64_t number = 1;

    domt_world_open(&world, 1);
    domus_address first = spawn_recorder(world.managers[0], 0);
    domus_address now = first;
    domt_settle_world(&world);
    for (uint32_t i = 1; i < LIVES; i++) {
        domus_address next = end_and_spawn_next_life(now);
        ck_assert_uint_eq(next.lease, now.lease + 1);
        now = next;
    }
    /* leases begin at 1, because lease 0 is that of nobody's address */
    ck_assert_uint_eq(first.lease, 1);
    ck_assert_int_eq(domt_send_notice(world.managers[0], first, &domt_note, &number), -ESTALE);
    domt_world_end(&world);
    ck_assert_uint_eq(log0.mounts, LIVES);
    ck_assert_uint_eq(log0.stops, LIVES);
}

DOMT_TEST(m10_slot_whose_leases_are_used_up_is_retired)
{
    int64_t number = 1;

    domt_world_open(&world, 1);
    domi_manager *home = world.managers[0];
    domus_address old = spawn_recorder(home, 0);
    domt_settle_world(&world);
    atomic_store(&old.house->life, (uint64_t)(UINT32_MAX - 1) << 32);
    old.lease = UINT32_MAX - 1;
    domus_address last = end_and_spawn_next_life(old);
    ck_assert_uint_eq(last.lease, UINT32_MAX);
    domt_send_note(home, last, 1);
    domt_settle_world(&world);
    ck_assert_uint_eq(log0.count, 1);

    domt_stop_actor_and_settle(&world, home, last);
    for (int i = 0; i < 200; i++) /* more spawns than the caches of slots hold */
        ck_assert_ptr_ne(spawn_recorder(home, 0).house, last.house);
    for (uint32_t lease = 0; lease < 3; lease++) {
        domus_address stale = {last.house, lease};
        ck_assert_int_eq(domt_send_notice(home, stale, &domt_note, &number), -ESTALE);
        ck_assert_int_eq(domi_house_ask_to_stop(home, stale), -ESTALE);
    }
    domt_world_end(&world);
}

/* --- addresses -------------------------------------------------------------------------------- */

DOMT_TEST(addresses_are_equal_by_house_and_lease)
{
    static domt_log logs[2];

    domt_world_open(&world, 2);
    domus_address one = domt_spawn_recorder(&world, 0, &logs[0]);
    domus_address other = domt_spawn_recorder(&world, 1, &logs[1]);
    domus_address next = {one.house, one.lease + 1};
    domus_address nobody = {0};

    ck_assert(domus_address_equals(one, one) && domus_address_equals(nobody, (domus_address){0}));
    ck_assert(!domus_address_equals(one, other) && !domus_address_equals(one, next));
    ck_assert(!domus_address_equals(one, nobody));
    ck_assert_uint_eq(domus_address_hash(one), domus_address_hash(one));
    ck_assert_uint_ne(domus_address_hash(one), domus_address_hash(other));
    ck_assert_uint_ne(domus_address_hash(one), domus_address_hash(next));
    domt_world_end(&world);
}

#define HOUSES  1024u
#define LEASES  16u
#define BUCKETS (HOUSES * LEASES)

/* Check that addresses spread evenly over the buckets of a hash table, although houses lie at equal
 * distances and leases count up. With as many buckets as addresses, chance puts some eight into the
 * fullest, and leaves a third empty. */
static void check_spread_of_hashes(unsigned shift)
{
    static unsigned char counts[BUCKETS];
    uint32_t empty = 0;

    memset(counts, 0, sizeof counts);
    for (uintptr_t house = 1; house <= HOUSES; house++) {
        for (uint32_t lease = 0; lease < LEASES; lease++) {
            domus_address address = {(struct domi_house *)(house * 512), lease};
            unsigned char *bucket = &counts[(domus_address_hash(address) >> shift) % BUCKETS];
            ck_assert_uint_lt(++*bucket, 16);
        }
    }
    for (uint32_t i = 0; i < BUCKETS; i++)
        empty += counts[i] == 0;
    ck_assert_uint_lt(empty, BUCKETS * 2 / 5);
}

DOMT_TEST(hashes_spread_by_their_low_and_by_their_high_bits)
{
    check_spread_of_hashes(0);
    check_spread_of_hashes(25);
    check_spread_of_hashes(50);
}

DOMT_SUITE(60)
