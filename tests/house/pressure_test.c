/* While memory is critical, asks and notices are refused with -EBUSY on both lanes, and no other
 * messages are. At memory.threadMax, asks and notices that need more memory are refused with
 * -ENOBUFS. */
#include "base/memory.h"
#include "house/family/life.h"
#include "house/message/letters.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "house/message/trim.h"
#include "tests/house/recorder.h"
#include "tests/house/steps.h"
#include "tests/support/suite.h"

#include <errno.h>

#define MS  UINT64_C(1000000)
#define KIB 1024u

static domt_world world;
static domt_log log0; /* log of the actor under test, on home 0 */
static domt_log log1; /* log of the other actors, on home 1 */
static domus_address one;
static domus_address other;
static _Atomic uint32_t level;
static void open_world(void)
{
    domt_world_open(&world, 2);
    for (uint32_t i = 0; i <= world.homes; i++)
        world.managers[i]->memory.pressure = &level;
    one = domt_spawn_recorder(&world, 0, &log0);
    other = domt_spawn_recorder(&world, 1, &log1);
}

static void set_simulated_memory_level(domus_memory_level now)
{
    atomic_store(&level, (uint32_t)now);
    for (uint32_t i = 0; i <= world.homes; i++)
        domi_manager_reread_memory_level(world.managers[i]);
}

static int send_note(uint32_t from)
{
    return domt_send_notice(world.managers[from], one, &domt_note, &(int64_t){1});
}

DOMT_TEST(m11_notices_are_refused_on_both_lanes_while_memory_is_critical)
{
    open_world();
    ck_assert_int_eq(send_note(0), 0);
    set_simulated_memory_level(DOMUS_MEMORY_CRITICAL);
    for (uint32_t from = 0; from <= world.homes; from++)
        ck_assert_int_eq(send_note(from), -EBUSY);
    ck_assert_int_eq(domt_send_notice(world.managers[0], one, &domt_counted, "payload"), -EBUSY);
    ck_assert_uint_eq(domt_releases, 0); /* the refused notice leaves its payload with the caller */
    ck_assert_uint_eq(DOMT_SUM(&world, busy), 4);
    ck_assert_uint_eq(DOMT_SUM(&world, refusals), 0);
    domt_settle_world(&world);
    ck_assert_uint_eq(log0.count, 1); /* the note that came before is handled */
    set_simulated_memory_level(DOMUS_MEMORY_HIGH);
    for (uint32_t from = 0; from <= world.homes; from++)
        ck_assert_int_eq(send_note(from), 0);
    set_simulated_memory_level(DOMUS_MEMORY_NORMAL);
    ck_assert_int_eq(send_note(0), 0);
    domt_settle_world(&world);
    ck_assert_uint_eq(log0.count, 5);
    domt_end_clean_world(&world);
}

DOMT_TEST(stale_address_is_reported_while_memory_is_critical)
{
    open_world();
    domt_stop_actor_and_settle(&world, world.managers[0], one);
    set_simulated_memory_level(DOMUS_MEMORY_CRITICAL);
    ck_assert_int_eq(send_note(0), -ESTALE);
    ck_assert_int_eq(send_note(1), -ESTALE);
    ck_assert_int_eq(domt_send_notice(world.managers[0], (domus_address){0}, &domt_note, "1234567"),
                     -ESTALE);
    domt_world_end(&world);
}

/* --- asks ------------------------------------------------------------------------------------ */

static int heard_error;
static unsigned heard;

static int count_answer_and_record_error(domus_stack *stack, void *self, const domus_answer *answer)
{
    heard_error = answer->error;
    heard++;
    return 0;
}

static int ask_with_counted_payload(domus_stack *stack, void *context)
{
    return domus_ask(stack, one, &domt_counted, "payload", count_answer_and_record_error);
}

DOMT_TEST(m11_a_refused_ask_resumes_with_ebusy)
{
    open_world();
    domus_address agents[2];
    for (uint32_t i = 0; i < 2; i++)
        agents[i] = domt_spawn(world.managers[i], world.managers[i], &domt_agent, NULL);
    domt_settle_world(&world);
    for (uint32_t i = 0; i < 2; i++)
        domt_send_function_to_call(world.managers[i], agents[i], ask_with_counted_payload, NULL);
    set_simulated_memory_level(DOMUS_MEMORY_CRITICAL);
    /* the agents took their calls before, so they handle them now, and their asks fail */
    domt_settle_world(&world);
    ck_assert_uint_eq(heard, 2);
    ck_assert_int_eq(heard_error, -EBUSY);
    ck_assert_uint_eq(domt_releases, 2); /* the payload of each refused ask was released */
    ck_assert_uint_eq(DOMT_SUM(&world, busy), 2);
    domt_end_clean_world(&world);
}

/* --- never refused --------------------------------------------------------------------------- */

static int arm_timer(domus_stack *stack, void *context)
{
    return domus_after(stack, MS, &domt_tick, &(int64_t){7}, NULL);
}

DOMT_TEST(m11_replies_exceptions_and_events_pass_while_memory_is_critical)
{
    open_world();
    domus_address failing = domt_spawn_failing_recorder(&world, 1, &log1);
    /* an actor on the same home, which the actor under test reaches by the home lane */
    domus_address beside = domt_spawn_recorder(&world, 0, &log1);
    domt_run_as_actor(&world, one, arm_timer, NULL);
    domt_let_recorder_ask(world.managers[0], one, other, 1);
    domt_let_recorder_ask(world.managers[0], one, failing, 2);
    domt_let_recorder_ask(world.managers[0], one, beside, 3);
    while (domt_run_state_queue(world.managers[0]) == 0)
        domt_take_arrivals_and_timers(world.managers[0]);
    set_simulated_memory_level(DOMUS_MEMORY_CRITICAL);
    domt_advance_time_without_runs(&world, 2 * MS);
    domt_settle_world(&world);
    ck_assert_uint_eq(domt_log_count_letter(&log0, 'r'), 2);
    ck_assert_uint_eq(domt_log_count_letter(&log0, 'x'), 1);
    ck_assert_uint_eq(domt_log_count_letter(&log0, 'e'), 1);
    ck_assert_uint_eq(DOMT_SUM(&world, busy), 0);
    domt_world_end(&world);
}

static int stop_actor_under_test(domus_stack *stack, void *context)
{
    return domus_stop(stack, one);
}

DOMT_TEST(a_stop_passes_while_memory_is_critical)
{
    open_world();
    domus_address agent = domt_spawn(world.managers[1], world.managers[1], &domt_agent, NULL);
    domt_settle_world(&world);
    domt_send_function_to_call(world.managers[1], agent, stop_actor_under_test, NULL);
    set_simulated_memory_level(DOMUS_MEMORY_CRITICAL);
    domt_settle_world(&world);
    ck_assert_int_eq(send_note(1), -ESTALE);
    domt_world_end(&world);
}

static int forward_to_actor_under_test(domus_stack *stack, void *self, const void *payload)
{
    return domus_forward(stack, one);
}

static const domus_behaviour passer = {
    .name = "passer", .on = (const domus_on[]){{&domt_note, forward_to_actor_under_test, 0}, {0}}};

DOMT_TEST(taken_message_is_passed_on_while_memory_is_critical)
{
    int64_t number = 5;

    open_world();
    for (uint32_t home = 0; home < 2; home++) {
        domus_address by = domt_spawn(world.managers[home], world.managers[home], &passer, NULL);
        domt_settle_world(&world);
        set_simulated_memory_level(DOMUS_MEMORY_NORMAL);
        ck_assert_int_eq(domt_send_notice(world.managers[1], by, &domt_note, &number), 0);
        set_simulated_memory_level(DOMUS_MEMORY_CRITICAL);
        domt_settle_world(&world);
        ck_assert_uint_eq(log0.count, home + 1);
        ck_assert(world.managers[home]->memory.busy);
        ck_assert_int_eq(send_note(home), -EBUSY); /* a new message is refused at the same time */
    }
    domt_world_end(&world);
}

/* --- memory.threadMax ------------------------------------------------------------------------ */

static const domus_type medium = {.name = "medium", .size = 200};
static const domus_type large = {.name = "large", .size = 1000};
static const domus_type huge = {.name = "huge", .size = 60000};

/* Returns an agent on home 1, in a world where the memory of each thread is bounded by `max`
 * bytes. */
static domus_address open_world_with_memory_bound(uint64_t max)
{
    domt_world_init(&world, 2);
    world.config.memory.thread_max_bytes = max;
    ck_assert_int_eq(domt_world_start(&world), 0);
    one = domt_spawn_recorder(&world, 0, &log0);
    domus_address agent = domt_spawn(world.managers[1], world.managers[1], &domt_agent, NULL);
    domt_settle_world(&world);
    return agent;
}

static int fill_result;
static unsigned filled;

static int send_type_until_refused(domus_stack *stack, void *type)
{
    static const char payload[60000];

    do
        fill_result = domus_notice(stack, one, type, payload);
    while (fill_result == 0 && ++filled < 100000);
    return 0;
}

/* Send notices of a type by an agent on home 1 until one is refused. Returns how many were
 * taken. */
static unsigned let_agent_send_until_refused(domus_address agent, const domus_type *type)
{
    filled = 0;
    domt_send_function_to_call(world.managers[1], agent, send_type_until_refused,
                               (void *)(uintptr_t)type);
    (void)domt_iterate_home(world.managers[1]);
    return filled;
}

DOMT_TEST(a_thread_sends_no_more_than_its_memory_holds)
{
    const domus_type *const types[] = {&medium, &large, &huge};

    for (uint32_t i = 0; i < 3; i++) {
        domus_address agent = open_world_with_memory_bound(1024 * KIB);
        unsigned count = let_agent_send_until_refused(agent, types[i]);
        ck_assert_int_eq(fill_result, -ENOBUFS);
        ck_assert_uint_gt(count, i == 2 ? 5 : 500);
        ck_assert_uint_le(domi_pool_bytes_of_envelopes(world.managers[1]), 1024 * KIB);
        ck_assert_uint_eq(DOMT_SUM(&world, thread_max_refusals), 1);
        ck_assert_uint_eq(DOMT_SUM(&world, refusals), 0);
        /* Another thread has a memory bound of its own, and answers are not bounded. */
        ck_assert_int_eq(domt_send_notice(world.managers[0], one, &domt_note, "1234567"), 0);
        domt_settle_world(&world);
        /* the notices were handled, so there is room for as many again */
        unsigned again = let_agent_send_until_refused(agent, types[i]);
        ck_assert_uint_eq(again, count);
        domt_settle_world(&world);
        ck_assert_int_eq(atomic_load(&world.managers[1]->pool.heap_bytes), 0);
        domt_world_end(&world);
    }
}

DOMT_TEST(memory_for_answers_and_events_may_exceed_the_bound)
{
    domus_address agent = open_world_with_memory_bound(1024 * KIB);
    (void)let_agent_send_until_refused(agent, &large);
    ck_assert_ptr_null(domi_message_new(world.managers[1], 60000));
    ck_assert_int_eq(domi_message_error_of_failed_new(world.managers[1]), -ENOBUFS);
    domi_envelope *envelopes[3];
    for (uint32_t i = 0; i < 3; i++) {
        envelopes[i] = domi_envelope_new(world.managers[1], i == 0 ? 64 : i == 1 ? 500 : 60000);
        ck_assert_ptr_nonnull(envelopes[i]);
    }
    for (uint32_t i = 0; i < 3; i++)
        domi_pool_free_object(world.managers[0], &envelopes[i]->node);
    domt_settle_world(&world);
    domt_world_end(&world);
}

/* --- the memory comes back ------------------------------------------------------------------- */

static uint32_t count_steps_of_whole_trim(uint64_t now_ns)
{
    uint32_t steps = 0;

    while (domi_pool_take_trim_step(world.managers[1], now_ns, 1000))
        ck_assert_uint_lt(steps++, 100000);
    return steps;
}

static void fill_mailbox_and_handle_all(domus_address agent)
{
    (void)let_agent_send_until_refused(agent, &large);
    domt_settle_world(&world);
}

DOMT_TEST(slabs_are_trimmed_a_second_after_they_have_grown)
{
    domus_address agent = open_world_with_memory_bound(64 * 1024 * KIB);
    domi_manager *manager = world.managers[1];
    fill_mailbox_and_handle_all(agent);
    uint64_t mapped = manager->pool.slabs[DOMI_SLAB_1088].mapped_bytes;
    ck_assert_uint_gt(mapped, 8 * 1024 * KIB);
    uint64_t start_ns = manager->now_ns;
    /* the slab grew just now, so it is not trimmed for a second */
    ck_assert_uint_eq(count_steps_of_whole_trim(start_ns), 0);
    ck_assert_uint_eq(count_steps_of_whole_trim(start_ns + 999 * MS), 0);
    ck_assert_uint_gt(count_steps_of_whole_trim(start_ns + 1001 * MS), 0);
    ck_assert_uint_lt(manager->pool.slabs[DOMI_SLAB_1088].mapped_bytes, mapped / 3);
    ck_assert_uint_eq(domi_counter_read(&manager->counters.trimmed_bytes),
                      mapped - manager->pool.slabs[DOMI_SLAB_1088].mapped_bytes);
    /* The memory is needed again at once after a trim, so the next trim waits longer. */
    fill_mailbox_and_handle_all(agent);
    ck_assert_uint_eq(count_steps_of_whole_trim(start_ns + 1100 * MS), 0);
    ck_assert_uint_eq(count_steps_of_whole_trim(start_ns + 2200 * MS), 0);
    ck_assert_uint_gt(count_steps_of_whole_trim(start_ns + 3200 * MS), 0);
    domt_end_clean_world(&world);
}

DOMT_TEST(slabs_are_trimmed_sooner_while_memory_is_short)
{
    domus_address agent = open_world_with_memory_bound(64 * 1024 * KIB);
    domi_manager *manager = world.managers[1];
    (void)let_agent_send_until_refused(agent, &large);
    manager->memory.pressure = &level;
    atomic_store(&level, DOMUS_MEMORY_HIGH);
    domi_manager_reread_memory_level(manager);
    uint64_t start_ns = manager->now_ns;
    ck_assert_uint_eq(count_steps_of_whole_trim(start_ns), 0);
    /* this trim gives nothing back, because no message was handled yet */
    ck_assert_uint_gt(count_steps_of_whole_trim(start_ns + 101 * MS), 0);
    uint64_t mapped = manager->pool.slabs[DOMI_SLAB_1088].mapped_bytes;
    domt_settle_world(&world);
    atomic_store(&level, DOMUS_MEMORY_NORMAL);
    domi_manager_reread_memory_level(manager);
    ck_assert_uint_gt(count_steps_of_whole_trim(start_ns + 202 * MS), 0);
    ck_assert_uint_lt(manager->pool.slabs[DOMI_SLAB_1088].mapped_bytes, mapped / 3);
    /* while memory is short, trims are tried again every second for a while */
    ck_assert_uint_gt(count_steps_of_whole_trim(start_ns + 1203 * MS), 0);
    ck_assert_uint_gt(count_steps_of_whole_trim(start_ns + 2204 * MS), 0);
    domt_world_end(&world);
}

#define HELD 60000

static domi_envelope *held[2 * HELD];

static void hold_envelopes(uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        held[i] = domi_message_new(world.managers[1], 64);
        ck_assert_ptr_nonnull(held[i]);
    }
}

/* Free all held envelopes but one of each `every`. */
static void free_held_envelopes_but_each_nth(uint32_t from, uint32_t to, uint32_t every)
{
    for (uint32_t i = from; i < to; i++) {
        if (i % every != 0)
            domi_pool_free_object(world.managers[1], &held[i]->node);
    }
}

/* Only one message comes at a time, as in retries or heartbeats: its memory is trimmed all the
 * same. */
DOMT_TEST(light_traffic_keeps_no_slab_from_being_trimmed)
{
    open_world();
    domi_manager *manager = world.managers[1];
    const domi_slab *slab = &manager->pool.slabs[DOMI_SLAB_64];
    hold_envelopes(1, HELD);
    free_held_envelopes_but_each_nth(1, HELD, HELD);
    uint64_t mapped = slab->mapped_bytes;
    uint64_t now_ns = manager->now_ns;
    for (uint32_t ms = 0; ms < 5000; ms++, now_ns += MS) {
        (void)domi_pool_take_trim_step(manager, now_ns, DOMI_TRIM_BUSY);
        hold_envelopes(1, 2);
        free_held_envelopes_but_each_nth(1, 2, HELD);
    }
    ck_assert_uint_le(slab->mapped_bytes, mapped / 2);
    domt_world_end(&world);
}

DOMT_TEST(spare_bytes_are_never_below_zero)
{
    uint32_t count = HELD;

    open_world();
    domi_manager *manager = world.managers[1];
    const domi_slab *slab = &manager->pool.slabs[DOMI_SLAB_64];
    hold_envelopes(0, HELD);
    free_held_envelopes_but_each_nth(0, HELD, 1000);
    uint64_t now_ns = manager->now_ns;
    (void)domi_pool_take_trim_step(manager, now_ns, DOMI_TRIM_IDLE);
    while (slab->spare_bytes == 0)
        ck_assert(domi_pool_take_trim_step(manager, now_ns + 2000 * MS, DOMI_TRIM_IDLE));
    /* Messages take the spare memory again before the pass of the trim has gone over the other
     * slabs. */
    for (; slab->spare_bytes != 0; count++)
        hold_envelopes(count, count + 1);
    ck_assert_uint_le(domi_counter_read(&manager->memory.spare_bytes), slab->mapped_bytes);
    free_held_envelopes_but_each_nth(HELD, count, 2 * HELD);
    for (uint32_t i = 0; i < HELD; i += 1000)
        domi_pool_free_object(manager, &held[i]->node);
    domt_world_end(&world);
}

DOMT_TEST(memory_that_is_taken_again_is_not_spare)
{
    open_world();
    domi_manager *manager = world.managers[1];
    uint64_t now_ns = manager->now_ns;
    hold_envelopes(0, HELD);
    free_held_envelopes_but_each_nth(0, HELD, 1000);
    for (int i = 0; i < 1000; i++, now_ns += 100 * MS)
        (void)domi_pool_take_trim_step(manager, now_ns, DOMI_TRIM_IDLE);
    uint64_t spare = domi_counter_read(&manager->memory.spare_bytes);
    ck_assert_uint_gt(spare, 0);
    for (uint32_t i = HELD; manager->pool.slabs[DOMI_SLAB_64].free != NULL;
         i++) /* until no free object of the slab is left */
        hold_envelopes(i, i + 1);
    for (int i = 0; i < 2000; i++, now_ns += 1000 * MS)
        (void)domi_pool_take_trim_step(manager, now_ns, DOMI_TRIM_IDLE);
    ck_assert_uint_eq(domi_counter_read(&manager->memory.spare_bytes), 0);
    domt_world_end(&world);
}

/* Another thread has just measured that memory is no longer critical; this thread learns of that as
 * it takes memory. */
static void learn_that_memory_is_not_critical(domi_meter *meter, size_t bytes)
{
    atomic_store(&level, DOMUS_MEMORY_HIGH);
    domi_manager_reread_memory_level(world.managers[0]);
}

DOMT_TEST(level_that_falls_while_mail_is_passed_on_is_not_raised_again)
{
    domi_meter meter = {.grown = learn_that_memory_is_not_critical, .tight = 1};

    open_world();
    static domi_letters letters;
    domi_manager *manager = world.managers[0];
    manager->directory.letters = &letters;
    ck_assert_int_eq(domi_letters_subscribe(&letters, other, DOMUS_LETTERS_REFUSED), 0);
    domi_envelope *envelope = domi_envelope_new(manager, 64);
    envelope->type = &domt_note;
    envelope->sender = NULL;
    envelope->sender_lease = 0;
    /* the mailbox counts as full, so a dead letter is written, for which the pool takes a new
     * chunk */
    domi_mailbox_mark_full(one.house);
    set_simulated_memory_level(DOMUS_MEMORY_CRITICAL);
    (void)domi_memory_set_meter(&meter);
    ck_assert_int_eq(domi_mailbox_put_passed_on(manager, one, &envelope->node, DOMI_NOTICE),
                     -ENOBUFS);
    (void)domi_memory_set_meter(NULL);
    ck_assert_uint_eq(manager->memory.pressure_seen, DOMUS_MEMORY_HIGH);
    ck_assert_int_eq(domt_send_notice(manager, other, &domt_note, "1234567"), 0);
    domi_pool_free_object(manager, &envelope->node);
    domt_settle_world(&world);
    domt_world_end(&world);
}

DOMT_SUITE(60)
