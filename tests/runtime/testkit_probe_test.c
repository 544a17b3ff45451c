/* runtime/testkit/probe.c: probes of a test kit receive, expect, send, ask and answer messages. */
#include "base/memory.h"
#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <domus/testkit.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>

#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)

static const domus_type number_type = {.name = "number", .size = sizeof(uint32_t)};
static const domus_type word_type = {.name = "word", .size = 8};
static const domus_type question_type = {.name = "question", .size = sizeof(uint32_t)};
static const domus_type late_type = {.name = "late", .size = sizeof(domus_address)};
static const domus_type tick_type = {.name = "tick", .size = sizeof(domus_address)};
static const domus_type call_type = {.name = "call", .size = sizeof(domus_address)};
static const domus_type forget_type = {.name = "forget"};

static domus_testkit *kit;
static domus_probe *probe;

static void make_kit_with_probe(uint64_t seed)
{
    kit = domt_kit_new(NULL, seed);
    ck_assert_int_eq(domus_probe_new(kit, &probe), 0);
}

/* --- who they talk to ------------------------------------------------------------------------- */

static struct {
    domus_address sender; /* address of the sender of the last number */
    uint32_t number;
    uint32_t answers;
    int error; /* error of the last answer; 0: none */
} seen;

static int reply_by_notice_plus_one(domus_stack *stack, void *self, const void *number)
{
    seen.sender = domus_sender(stack);
    seen.number = *(const uint32_t *)number;
    return domus_notice(stack, seen.sender, &number_type, &(uint32_t){seen.number + 1});
}

static int reply_number_unless_zero(domus_stack *stack, void *self, const void *question)
{
    uint32_t number = *(const uint32_t *)question;
    return number == 0 ? -EDOM : domus_reply(stack, &number_type, &number);
}

/* Arm a timer, by which a tick is sent in 5 ms. */
static int arm_timer_of_late_notice(domus_stack *stack, void *self, const void *who)
{
    return domus_after(stack, 5 * MS, &tick_type, who, NULL);
}

static int send_late_notice(domus_stack *stack, void *self, const void *who_)
{
    domus_address who;
    memcpy(&who, who_, sizeof who);
    return domus_notice(stack, who, &forget_type, NULL);
}

static int record_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    seen.answers++;
    seen.error = answer->error;
    if (answer->error == 0)
        seen.number = *(const uint32_t *)answer->payload;
    return 0;
}

static int ask_back_with_five(domus_stack *stack, void *self, const void *who_)
{
    domus_address who;
    memcpy(&who, who_, sizeof who);
    return domus_ask(stack, who, &question_type, &(uint32_t){5}, record_answer);
}

static const domus_behaviour partner = {
    .name = "partner",
    .on = (const domus_on[]){{&number_type, reply_by_notice_plus_one, 0},
                             {&question_type, reply_number_unless_zero, 0},
                             {&late_type, arm_timer_of_late_notice, 0},
                             {&tick_type, send_late_notice, 0},
                             {&call_type, ask_back_with_five, 0},
                             {0}}};

static domus_address spawn_actor_on_thread_1(const domus_behaviour *behaviour)
{
    domus_address address;
    ck_assert_int_eq(
        domus_outside_spawn_on(domus_testkit_system(kit), 1, behaviour, NULL, &address), 0);
    return address;
}

static void send_notice_into_kit(domus_address to, const domus_type *type, const void *payload)
{
    ck_assert_int_eq(domus_outside_notice(domus_testkit_system(kit), to, type, payload), 0);
}

static bool is_same_address(domus_address one, domus_address other)
{
    return one.house == other.house && one.lease == other.lease;
}

/* --- expecting -------------------------------------------------------------------------------- */

DOMT_TEST(a_probe_takes_any_type_in_order)
{
    char word[8] = "";
    uint32_t number = 0;

    make_kit_with_probe(1);
    send_notice_into_kit(domus_probe_address(probe), &number_type, &(uint32_t){3});
    send_notice_into_kit(domus_probe_address(probe), &word_type, "fourfive");
    ck_assert_int_eq(domus_probe_expect(probe, &number_type, 0, &number), 0);
    ck_assert_uint_eq(number, 3);
    ck_assert_int_eq(domus_probe_expect(probe, &word_type, 0, word), 0);
    ck_assert_mem_eq(word, "fourfive", 8);
    ck_assert_ptr_null(domus_probe_sender(probe).house);
    ck_assert_int_eq(domus_probe_expect_nothing(probe, SECOND), 0);
    ck_assert_ptr_nonnull(strstr(domus_testkit_trace(kit), " probe 0 receives the notice word\n"));
    domus_testkit_free(kit);
}

DOMT_TEST(probe_leaves_first_message_of_other_type)
{
    make_kit_with_probe(1);
    send_notice_into_kit(domus_probe_address(probe), &number_type, &(uint32_t){3});
    ck_assert_int_eq(domus_probe_expect(probe, &word_type, SECOND, NULL), -EBADMSG);
    ck_assert_str_eq(domus_testkit_error(kit),
                     "probe 0 expected word, but the notice number came first");
    ck_assert_int_eq(domus_probe_expect_error(probe, -EDOM, SECOND), -EBADMSG);
    ck_assert_int_eq(domus_probe_expect_nothing(probe, SECOND), -EBADMSG);
    ck_assert_uint_eq(domus_testkit_now_ns(kit), DOMUS_TESTKIT_START_NS);
    ck_assert_int_eq(domus_probe_expect(probe, &number_type, 0, NULL), 0);
    domus_testkit_free(kit);
}

DOMT_TEST(expecting_lets_no_more_time_pass_than_it_takes)
{
    domus_address self;

    make_kit_with_probe(1);
    domus_address late = spawn_actor_on_thread_1(&partner);
    self = domus_probe_address(probe);
    send_notice_into_kit(late, &late_type, &self);
    ck_assert_int_eq(domus_probe_expect(probe, &forget_type, 5 * MS - 1, NULL), -ETIMEDOUT);
    ck_assert_str_eq(domus_testkit_error(kit), "probe 0 expected forget, but nothing came");
    ck_assert_uint_eq(domus_testkit_now_ns(kit), DOMUS_TESTKIT_START_NS + 5 * MS - 1);
    ck_assert_int_eq(domus_probe_expect(probe, &forget_type, SECOND, NULL), 0);
    ck_assert_uint_eq(domus_testkit_now_ns(kit), DOMUS_TESTKIT_START_NS + 5 * MS);
    ck_assert(is_same_address(domus_probe_sender(probe), late));
    ck_assert_int_eq(domus_probe_expect_nothing(probe, SECOND), 0);
    ck_assert_uint_eq(domus_testkit_now_ns(kit), DOMUS_TESTKIT_START_NS + 5 * MS + SECOND);
    ck_assert_int_eq(domus_probe_expect(probe, &forget_type, UINT64_MAX, NULL), -ETIMEDOUT);
    domus_testkit_free(kit);
}

/* --- acting ----------------------------------------------------------------------------------- */

DOMT_TEST(message_of_a_probe_has_the_probe_as_sender)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint32_t number = 0;

        make_kit_with_probe(seed);
        domus_address other = spawn_actor_on_thread_1(&partner);
        ck_assert_int_eq(domus_probe_send(probe, other, &number_type, &(uint32_t){8}), 0);
        ck_assert_int_eq(domus_probe_expect(probe, &number_type, 0, &number), 0);
        ck_assert_uint_eq(number, 9);
        ck_assert(is_same_address(seen.sender, domus_probe_address(probe)));
        ck_assert(is_same_address(domus_probe_sender(probe), other));
        domus_testkit_free(kit);
    }
}

/* A probe sends to its own thread and to other threads, all of which sleep, and each of them is
 * woken. */
DOMT_TEST(a_probe_wakes_the_thread_of_its_receiver)
{
    domus_probe *probes[3];

    make_kit_with_probe(1);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(domus_probe_new(kit, &probes[i]), 0);
    for (int i = 0; i < 9; i++) {
        domus_probe *from = probes[i % 3], *to = probes[i / 3];

        ck_assert_int_eq(domus_testkit_advance(kit, SECOND), 0);
        ck_assert_int_eq(domus_probe_send(from, domus_probe_address(to), &forget_type, NULL), 0);
        ck_assert_int_eq(domus_probe_expect(to, &forget_type, 0, NULL), 0);
        ck_assert(is_same_address(domus_probe_sender(to), domus_probe_address(from)));
    }
    domus_testkit_free(kit);
}

DOMT_TEST(answers_and_failures_of_a_probes_asks_are_expected)
{
    uint32_t number = 0;

    make_kit_with_probe(1);
    domus_address other = spawn_actor_on_thread_1(&partner);
    for (uint32_t i = 1; i <= 100; i++)
        ck_assert_int_eq(domus_probe_ask(probe, other, &question_type, &i), 0);
    for (uint32_t i = 1; i <= 100; i++) {
        ck_assert_int_eq(domus_probe_expect(probe, &number_type, 0, &number), 0);
        ck_assert_uint_eq(number, i);
    }
    ck_assert_int_eq(domus_probe_ask(probe, other, &question_type, &(uint32_t){0}), 0);
    ck_assert_int_eq(domus_probe_expect(probe, &number_type, 0, NULL), -EBADMSG);
    ck_assert_ptr_nonnull(strstr(domus_testkit_error(kit), "but a failure came first (-33, "));
    ck_assert_int_eq(domus_probe_expect_error(probe, -EDOM, 0), 0);

    /* The ask fails before it is sent, because its receiver has ended. */
    ck_assert_int_eq(domus_outside_stop(domus_testkit_system(kit), other), 0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    ck_assert_int_eq(domus_probe_ask(probe, other, &question_type, &number), 0);
    ck_assert_int_eq(domus_probe_expect_error(probe, -ESTALE, 0), 0);
    ck_assert_int_eq(domus_probe_send(probe, other, &number_type, &number), -ESTALE);
    ck_assert_int_eq(domus_probe_expect_nothing(probe, SECOND), 0);
    domus_testkit_free(kit);
}

DOMT_TEST(a_probe_answers_when_the_test_says_so)
{
    domus_address self;
    uint32_t number;

    make_kit_with_probe(1);
    domus_address caller = spawn_actor_on_thread_1(&partner);
    self = domus_probe_address(probe);
    ck_assert_int_eq(domus_probe_reply(probe, &number_type, &(uint32_t){6}), -EINVAL);
    send_notice_into_kit(caller, &call_type, &self);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    ck_assert_int_eq(domus_probe_reply(probe, &number_type, &(uint32_t){6}), -EINVAL);
    ck_assert_int_eq(domus_probe_expect(probe, &question_type, 0, &number), 0);
    ck_assert_uint_eq(number, 5);
    ck_assert(is_same_address(domus_probe_sender(probe), caller));
    ck_assert_int_eq(domus_testkit_advance(kit, 10 * SECOND), 0);
    ck_assert_uint_eq(seen.answers, 0);
    ck_assert_int_eq(domus_probe_fail(probe, 3), -EINVAL);
    ck_assert_int_eq(domus_probe_reply(probe, &number_type, &(uint32_t){6}), 0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    ck_assert_uint_eq(seen.answers, 1);
    ck_assert_uint_eq(seen.number, 6);

    send_notice_into_kit(caller, &call_type, &self);
    ck_assert_int_eq(domus_probe_expect(probe, &question_type, 0, NULL), 0);
    ck_assert_int_eq(domus_probe_fail(probe, -ERANGE), 0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    ck_assert_int_eq(seen.error, -ERANGE);
    domus_testkit_free(kit);
}

DOMT_TEST(ask_that_a_stopped_probe_did_not_answer_fails)
{
    domus_address self;

    make_kit_with_probe(1);
    domus_address caller = spawn_actor_on_thread_1(&partner);
    self = domus_probe_address(probe);
    for (int i = 0; i < 3; i++)
        send_notice_into_kit(caller, &call_type, &self);
    ck_assert_int_eq(domus_probe_expect(probe, &question_type, 0, NULL), 0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    ck_assert_int_eq(domus_outside_stop(domus_testkit_system(kit), self), 0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    ck_assert_uint_eq(seen.answers, 3);
    ck_assert_int_eq(seen.error, -ESTALE);
    ck_assert_int_eq(domus_probe_send(probe, caller, &forget_type, NULL), -ESTALE);
    ck_assert_int_eq(domus_probe_ask(probe, caller, &forget_type, NULL), -ESTALE);
    ck_assert_int_eq(domus_probe_reply(probe, &number_type, &(uint32_t){6}), -ESTALE);
    ck_assert_int_eq(domus_probe_expect(probe, &question_type, 0, NULL), 0);
    domus_testkit_free(kit);
}

DOMT_TEST(a_probes_ask_fails_when_its_time_is_over)
{
    domus_probe *silent;

    make_kit_with_probe(1);
    ck_assert_int_eq(domus_probe_new(kit, &silent), 0);
    ck_assert_int_eq(domus_probe_ask_within(probe, domus_probe_address(silent), &question_type,
                                            &(uint32_t){1}, 5 * MS),
                     0);
    ck_assert_int_eq(domus_probe_expect(silent, &question_type, 0, NULL), 0);
    ck_assert_int_eq(domus_probe_expect_nothing(probe, 5 * MS - 1), 0);
    ck_assert_int_eq(domus_probe_expect_error(probe, -ETIMEDOUT, SECOND), 0);
    ck_assert_uint_eq(domus_testkit_now_ns(kit), DOMUS_TESTKIT_START_NS + 5 * MS);
    /* this reply comes after the time-out of the ask */
    (void)domus_probe_reply(silent, &number_type, &(uint32_t){2});
    ck_assert_int_eq(domus_probe_expect_nothing(probe, SECOND), 0);
    ck_assert_int_eq(domus_probe_reply(silent, &number_type, &(uint32_t){2}), -EINVAL);
    domus_testkit_free(kit);
}

/* --- what payloads own ------------------------------------------------------------------------ */

static uint32_t releases;

static void count_released_payload(void *payload)
{
    ck_assert_mem_eq(payload, "owned...", 8);
    releases++;
}

static const domus_type owned_type = {
    .name = "owned", .size = 8, .release = count_released_payload};

DOMT_TEST(message_that_is_not_taken_is_dropped_once)
{
    char mine[8];

    make_kit_with_probe(1);
    for (int i = 0; i < 4; i++)
        send_notice_into_kit(domus_probe_address(probe), &owned_type, "owned...");
    ck_assert_int_eq(domus_probe_expect(probe, &owned_type, 0, mine), 0);
    /* the payload was not released, because it belongs to the caller now */
    ck_assert_uint_eq(releases, 0);
    ck_assert_int_eq(domus_probe_expect(probe, &owned_type, 0, NULL), 0);
    ck_assert_uint_eq(releases, 1);
    domus_testkit_free(kit);
    ck_assert_uint_eq(releases, 3);
}

/* An ask stays with the probe until the test answers it, and the payload that it owns is released
 * only once. */
DOMT_TEST(payloads_of_asks_and_replies_are_released_once)
{
    domus_probe *server;
    char mine[8];

    make_kit_with_probe(1);
    ck_assert_int_eq(domus_probe_new(kit, &server), 0);
    for (uint32_t i = 0; i < 2; i++) {
        ck_assert_int_eq(
            domus_probe_ask(probe, domus_probe_address(server), &owned_type, "owned..."), 0);
        ck_assert_int_eq(domus_probe_expect(server, &owned_type, 0, i == 0 ? mine : NULL), 0);
        ck_assert_uint_eq(releases, i == 0 ? 0 : 2);
        ck_assert_int_eq(domus_probe_reply(server, &owned_type, "owned..."), 0);
        ck_assert_int_eq(domus_probe_expect(probe, &owned_type, 0, i == 0 ? NULL : mine), 0);
        ck_assert_uint_eq(releases, i + 1);
    }
    ck_assert_int_eq(domus_probe_ask(probe, domus_probe_address(server), &owned_type, "owned..."),
                     0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    domus_testkit_free(kit); /* this call also releases a message that no test has expected */
    ck_assert_uint_eq(releases, 3);
}

DOMT_TEST(message_to_probe_without_memory_is_told)
{
    make_kit_with_probe(1);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    send_notice_into_kit(domus_probe_address(probe), &owned_type, "owned...");
    domi_memory_fail_allocation_after(0, 1);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_uint_eq(releases, 1);
    ck_assert_int_eq(domus_probe_expect(probe, &owned_type, 0, NULL), -ENOMEM);
    ck_assert_int_eq(domus_probe_expect(probe, &owned_type, 0, NULL), -ETIMEDOUT);
    domus_testkit_free(kit);
}

/* --- threads ---------------------------------------------------------------------------------- */

static void *use_probe_on_other_thread(void *partner_)
{
    domus_probe *another;
    uint32_t number = 7;

    ck_assert_int_eq(domus_probe_send(probe, *(domus_address *)partner_, &number_type, &number), 0);
    ck_assert_int_eq(domus_probe_expect(probe, &number_type, SECOND, &number), 0);
    ck_assert_uint_eq(number, 8);
    ck_assert_int_eq(domus_probe_new(kit, &another), 0);
    ck_assert_int_eq(domus_probe_send(another, domus_probe_address(probe), &forget_type, NULL), 0);
    ck_assert_int_eq(domus_probe_expect(probe, &forget_type, SECOND, NULL), 0);
    return NULL;
}

static void *stop_kit_on_thread(void *nothing)
{
    ck_assert_int_eq(domus_testkit_stop(kit), 0);
    return NULL;
}

static void call_on_another_thread(void *(*step)(void *context), void *context)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, step, context), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

/* Only one thread at a time uses a kit, but different threads may use it one after the other. */
DOMT_TEST(a_kit_may_be_used_by_several_threads_in_turn)
{
    make_kit_with_probe(1);
    domus_address address = spawn_actor_on_thread_1(&partner);
    (void)use_probe_on_other_thread(&address);
    call_on_another_thread(use_probe_on_other_thread, &address);
    (void)use_probe_on_other_thread(&address);
    call_on_another_thread(stop_kit_on_thread, NULL);
    domus_testkit_free(kit);
}

static int run_another_kit(domus_stack *stack, void *self, const void *nothing)
{
    domus_testkit *another = NULL;
    ck_assert_int_eq(domus_testkit_new(NULL, 2, NULL, 0, &another), 0);
    ck_assert_int_eq(domus_testkit_run(another), 0);
    domus_testkit_free(another);
    seen.error = domus_system_stop(domus_testkit_system(kit));
    return 0;
}

static const domus_behaviour trying = {
    .name = "trying", .on = (const domus_on[]){{&forget_type, run_another_kit, 0}, {0}}};

DOMT_TEST(actor_that_ran_another_kit_may_not_stop_its_system)
{
    make_kit_with_probe(1);
    send_notice_into_kit(spawn_actor_on_thread_1(&trying), &forget_type, NULL);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    ck_assert_int_eq(seen.error, -EDEADLK);
    domus_testkit_free(kit);
}

DOMT_SUITE(60)
