/* runtime/outside/outside_ask.c: foreign threads ask and wait, many at once. They get
 * answers, errors and time-outs, also when a stop comes between. They may spawn with names
 * and options, too. */
#include "runtime/control/life.h"
#include "runtime/outside/outside.h"
#include "tests/runtime/running.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

static atomic_uint_fast64_t released;
static atomic_uint_fast64_t kept;
static atomic_int deadlock;
static domus_system *the_system;

static void count_released_message(void *payload)
{
    atomic_fetch_add(&released, 1);
}

static const domus_type twice_type = {
    .name = "twice", .size = sizeof(uint64_t), .release = count_released_message};
static const domus_type number_type = {
    .name = "number", .size = sizeof(uint64_t), .release = count_released_message};
static const domus_type large_type = {
    .name = "large", .size = 40000, .release = count_released_message};
static const domus_type fail_type = {.name = "fail"};
static const domus_type mute_type = {.name = "mute"};
static const domus_type hold_type = {
    .name = "hold", .size = sizeof(uint64_t), .release = count_released_message};
static const domus_type unknown_type = {
    .name = "unknown", .size = sizeof(uint64_t), .release = count_released_message};
static const domus_type grow_type = {.name = "grow"};
static const domus_type nap_type = {.name = "nap", .size = sizeof(uint64_t)};
static const domus_type recurse_type = {.name = "recurse"};

static int reply_double_of_number(domus_stack *stack, void *self, const void *payload)
{
    uint64_t answer = *(const uint64_t *)payload * 2;
    return domus_reply(stack, &number_type, &answer);
}

static int reply_large_message(domus_stack *stack, void *self, const void *payload)
{
    static const char bytes[40000] = "large";
    return domus_reply(stack, &large_type, bytes);
}

static int fail_with_eproto(domus_stack *stack, void *self, const void *payload)
{
    return -EPROTO;
}

static int ignore_message(domus_stack *stack, void *self, const void *payload)
{
    return 0;
}

static int keep_ask_unanswered(domus_stack *stack, void *self, const void *payload)
{
    domus_kept ask;
    atomic_fetch_add(&kept, 1);
    return domus_keep(stack, &ask);
}

static int reply_deadline_of_ask(domus_stack *stack, void *self, const domus_answer *answer)
{
    uint64_t deadline_ns = domus_deadline_ns(stack);
    return domus_reply(stack, &number_type, &deadline_ns);
}

static int sleep_and_reply_deadline(domus_stack *stack, void *self, const void *payload)
{
    return domus_sleep(stack, *(const uint64_t *)payload, reply_deadline_of_ask);
}

static int ask_own_actor_from_outside(domus_stack *stack, void *self, const void *payload)
{
    atomic_store(&deadlock,
                 domus_outside_ask(the_system, domus_self(stack), &mute_type, NULL, 0, NULL));
    return domus_fail(stack, -EDOM);
}

static const domus_behaviour server = {
    .name = "server",
    .on = (const domus_on[]){{&twice_type, reply_double_of_number, 0},
                             {&fail_type, fail_with_eproto, 0},
                             {&mute_type, ignore_message, 0},
                             {&hold_type, keep_ask_unanswered, 0},
                             {&grow_type, reply_large_message, 0},
                             {&nap_type, sleep_and_reply_deadline, 0},
                             {&recurse_type, ask_own_actor_from_outside, 0},
                             {0}}};

static int ask_number_from_outside(domus_system *system, domus_address to, const domus_type *type,
                                   uint64_t number, uint64_t timeout_ns)
{
    return domus_outside_ask(system, to, type, &number, timeout_ns, NULL);
}

static domus_system *start_system(uint32_t threads)
{
    domus_config config = domt_config_of_threads(threads);
    return domt_start_system(&config);
}

static uint64_t count_late_replies(const domus_system *system)
{
    domus_profile profile;
    ck_assert_int_eq(domus_outside_profile(system, &profile), 0);
    return profile.late_replies;
}

DOMT_TEST(an_answer_comes_with_its_type_and_payload)
{
    domus_system *system = start_system(2);
    uint64_t sum = 0;

    for (uint32_t thread = 0; thread < 2; thread++) {
        domus_address to = domt_spawn(system, thread, &server, NULL);
        for (uint64_t i = 0; i < 100; i++) {
            uint64_t number = 0;
            domus_outside_reply reply = {.buffer = &number, .size = sizeof number};
            ck_assert_int_eq(domus_outside_ask(system, to, &twice_type, &i, 0, &reply), 0);
            ck_assert(reply.type == &number_type && reply.length == sizeof number);
            sum += number;
        }
    }
    ck_assert_uint_eq(sum, 2 * 9900);
    /* the payloads of 200 asks; the answers belong to the caller */
    ck_assert_uint_eq(atomic_load(&released), 200);
    domt_end_system(system);
}

DOMT_TEST(reply_buffer_that_is_too_small_is_told_the_size)
{
    domus_system *system = start_system(1);
    domus_address to = domt_spawn(system, 0, &server, NULL);
    static char bytes[40000];
    domus_outside_reply reply = {.buffer = bytes, .size = sizeof bytes - 1};

    ck_assert_int_eq(domus_outside_ask(system, to, &grow_type, NULL, 0, &reply), -EMSGSIZE);
    ck_assert_uint_eq(reply.length, sizeof bytes);
    ck_assert(reply.type == &large_type && bytes[0] == '\0');
    ck_assert_uint_eq(atomic_load(&released), 1);
    reply.size++;
    ck_assert_int_eq(domus_outside_ask(system, to, &grow_type, NULL, 0, &reply), 0);
    ck_assert_str_eq(bytes, "large");
    ck_assert_uint_eq(atomic_load(&released), 1);
    /* Without a buffer for the answer, the caller only learns that the ask was answered. */
    ck_assert_int_eq(domus_outside_ask(system, to, &grow_type, NULL, 0, NULL), 0);
    ck_assert_uint_eq(atomic_load(&released), 2);
    domt_end_system(system);
}

DOMT_TEST(outside_ask_gets_error_and_payload_is_taken)
{
    domus_system *system = start_system(1);
    domus_address to = domt_spawn(system, 0, &server, NULL);
    const domus_type huge = {
        .name = "huge", .size = DOMUS_PAYLOAD_MAX + 1, .release = count_released_message};

    ck_assert_int_eq(ask_number_from_outside(system, to, &fail_type, 0, 0), -EPROTO);
    ck_assert_int_eq(ask_number_from_outside(system, to, &mute_type, 0, 0), -ENOMSG);
    ck_assert_uint_eq(atomic_load(&released), 0);
    ck_assert_int_eq(ask_number_from_outside(system, to, &unknown_type, 0, 0), -EOPNOTSUPP);
    ck_assert_uint_eq(atomic_load(&released), 1);
    ck_assert_int_eq(ask_number_from_outside(system, (domus_address){NULL, 0}, &twice_type, 0, 0),
                     -ESTALE);
    ck_assert_uint_eq(atomic_load(&released), 2);
    ck_assert_int_eq(ask_number_from_outside(system, to, &huge, 0, 0), -EMSGSIZE);
    ck_assert_uint_eq(atomic_load(&released), 3);
    ck_assert_int_eq(domus_outside_stop(system, to), 0);
    ck_assert_int_eq(ask_number_from_outside(system, to, &twice_type, 0, 0), -ESTALE);
    ck_assert_uint_eq(atomic_load(&released), 4);
    ck_assert_int_eq(domus_system_stop(system), 0);
    ck_assert_int_eq(ask_number_from_outside(system, to, &twice_type, 0, 0), -ESHUTDOWN);
    ck_assert_uint_eq(atomic_load(&released), 5);
    domus_system_free(system);
}

DOMT_TEST(a_time_out_is_never_early_and_a_late_answer_is_dropped_and_counted)
{
    domus_system *system = start_system(1);
    domus_address to = domt_spawn(system, 0, &server, NULL);
    uint64_t before_ns = domt_now_ns();

    ck_assert_int_eq(ask_number_from_outside(system, to, &hold_type, 0, 30 * DOMT_MS), -ETIMEDOUT);
    ck_assert_uint_ge(domt_now_ns() - before_ns, 30 * DOMT_MS);
    ck_assert_uint_eq(atomic_load(&kept), 1);
    ck_assert_int_eq(ask_number_from_outside(system, to, &nap_type, 60 * DOMT_MS, 20 * DOMT_MS),
                     -ETIMEDOUT);
    domt_pause_ns(80 * DOMT_MS);
    /* the late reply is not counted yet, because no waiting thread has sorted the outside's
     * messages */
    ck_assert_uint_eq(count_late_replies(system), 0);
    uint64_t released_before = atomic_load(&released);
    ck_assert_int_eq(domus_outside_notice(system, to, &mute_type, NULL), 0);
    ck_assert_uint_eq(count_late_replies(system), 1);
    ck_assert_uint_eq(atomic_load(&released), released_before + 1);
    domt_end_system(system);
}

DOMT_TEST(deadline_of_outside_ask_is_known_to_the_actor)
{
    domus_system *system = start_system(1);
    domus_address to = domt_spawn(system, 0, &server, NULL);
    const uint64_t times_ns[] = {0, 2 * DOMUS_OUTSIDE_ASK_MAX_NS, UINT64_MAX, 5000 * DOMT_MS};
    const uint64_t limits_ns[] = {DOMUS_OUTSIDE_ASK_NS, DOMUS_OUTSIDE_ASK_MAX_NS,
                                  DOMUS_OUTSIDE_ASK_MAX_NS, 5000 * DOMT_MS};

    for (int i = 0; i < 4; i++) {
        uint64_t deadline_ns = 0;
        uint64_t nap_ns = 0;
        domus_outside_reply reply = {.buffer = &deadline_ns, .size = sizeof deadline_ns};
        uint64_t now_ns = domt_now_ns();
        ck_assert_int_eq(domus_outside_ask(system, to, &nap_type, &nap_ns, times_ns[i], &reply), 0);
        ck_assert_uint_ge(deadline_ns, now_ns + limits_ns[i] - 100 * DOMT_MS);
        ck_assert_uint_le(deadline_ns, domt_now_ns() + limits_ns[i] + 100 * DOMT_MS);
    }
    domt_end_system(system);
}

DOMT_TEST(a_thread_of_the_system_does_not_wait_for_itself)
{
    domus_system *system = the_system = start_system(1);
    domus_address to = domt_spawn(system, 0, &server, NULL);
    ck_assert_int_eq(ask_number_from_outside(system, to, &recurse_type, 0, 0), -EDOM);
    ck_assert_int_eq(atomic_load(&deadlock), -EDEADLK);
    domt_end_system(system);
}

#define ASKERS 16
#define EACH   (DOMT_SANITIZED ? 200 : 2000)

struct asker {
    domus_system *system;
    domus_address to[3];
    uint32_t number;
    uint64_t sum;
    uint64_t failures;
    uint64_t timeouts;
};

static struct asker askers[ASKERS];
static pthread_t threads[ASKERS];

/* Start asker number `i` on a thread, which runs `run`. */
static void start_thread_of_asker(uint32_t i, struct asker asker, void *(*run)(void *self))
{
    askers[i] = asker;
    ck_assert_int_eq(pthread_create(&threads[i], NULL, run, &askers[i]), 0);
}

/* Ask again and again: most asks are answered and some time out, so the lead of the outside changes
 * hands in every way. */
static void *ask_again_and_again(void *self_)
{
    struct asker *self = self_;

    for (uint64_t i = 0; i < EACH; i++) {
        uint64_t number = 0;
        domus_outside_reply reply = {.buffer = &number, .size = sizeof number};

        if ((i + self->number) % 64 == 0) {
            self->timeouts += ask_number_from_outside(self->system, self->to[2], &hold_type, 0,
                                                      DOMT_MS) == -ETIMEDOUT;
            continue;
        }
        self->failures +=
            domus_outside_ask(self->system, self->to[i % 2], &twice_type, &i, 0, &reply) != 0;
        self->sum += number - 2 * i;
    }
    return NULL;
}

DOMT_TEST(sixteen_threads_ask_at_once)
{
    domus_system *system = start_system(2);
    domus_address to[3];

    for (uint32_t i = 0; i < 3; i++)
        to[i] = domt_spawn(system, i % 2, &server, NULL);
    for (uint32_t i = 0; i < ASKERS; i++) {
        start_thread_of_asker(
            i, (struct asker){.system = system, .to = {to[0], to[1], to[2]}, .number = i},
            ask_again_and_again);
    }
    uint64_t timeouts = 0;
    for (uint32_t i = 0; i < ASKERS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_uint_eq(askers[i].failures, 0);
        ck_assert_uint_eq(askers[i].sum, 0);
        timeouts += askers[i].timeouts;
    }
    uint64_t wanted = 0;
    for (uint64_t i = 0; i < EACH; i++) {
        for (uint64_t number = 0; number < ASKERS; number++)
            wanted += (i + number) % 64 == 0;
    }
    ck_assert_uint_eq(timeouts, wanted);
    domt_end_system(system);
}

static void *ask_until_late_reply(void *self_)
{
    struct asker *self = self_;
    uint64_t before_ns = domt_now_ns();
    self->failures =
        (uint64_t)-ask_number_from_outside(self->system, self->to[0], &nap_type, 300 * DOMT_MS, 0);
    self->sum = domt_now_ns() - before_ns;
    return NULL;
}

/* The first thread that waits for an answer leads. When its time-out has come the next one leads;
 * that one is woken by its own answer, and not by the end of its time. */
DOMT_TEST(lead_of_waiting_askers_is_handed_on)
{
    domus_system *system = start_system(1);
    domus_address to = domt_spawn(system, 0, &server, NULL);

    for (uint32_t i = 0; i < 3; i++) {
        start_thread_of_asker(i, (struct asker){.system = system, .to = {to}},
                              ask_until_late_reply);
        if (i == 0) /* let the first asker lead for a while before the others wait, too */
            domt_pause_ns(20 * DOMT_MS);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_uint_eq(askers[i].failures, 0);
        ck_assert_uint_lt(askers[i].sum, 3000 * DOMT_MS);
    }
    domt_end_system(system);
}

static void *ask_and_wait_for_ever(void *self_)
{
    struct asker *self = self_;
    self->failures =
        (uint64_t)-ask_number_from_outside(self->system, self->to[0], &hold_type, 0, 0);
    return NULL;
}

/* Let all askers ask an actor that keeps each ask and never answers. */
static void let_all_askers_wait(domus_system *system)
{
    domus_address to = domt_spawn(system, 1, &server, NULL);
    for (uint32_t i = 0; i < ASKERS; i++)
        start_thread_of_asker(i, (struct asker){.system = system, .to = {to}},
                              ask_and_wait_for_ever);
    DOMT_WAIT_FOR(10, atomic_load(&kept) == ASKERS);
}

/* The asks have no time-out, so only the stop of the system can end their wait. */
DOMT_TEST(asker_that_waits_when_the_system_stops_gets_an_error)
{
    domus_system *system = start_system(2);
    let_all_askers_wait(system);
    uint64_t before_ns = domt_now_ns();
    domt_end_system(system);
    for (uint32_t i = 0; i < ASKERS; i++) {
        pthread_join(threads[i], NULL);
        /* -ESTALE if the stop of the actor has failed the asks that it kept, -ESHUTDOWN if the
         * outside was closed before. */
        ck_assert(askers[i].failures == ESTALE || askers[i].failures == ESHUTDOWN);
    }
    ck_assert_uint_lt(domt_now_ns() - before_ns, 5000 * DOMT_MS);
}

/* In a stop the outside is closed in this way if an actor has not let go of an ask in time. */
DOMT_TEST(closing_the_outside_fails_all_that_wait)
{
    domus_system *system = start_system(2);
    let_all_askers_wait(system);
    uint64_t before_ns = domt_now_ns();
    domi_system_set_stage(system, DOMI_STAGE_ENDING);
    /* the end came soon, because the askers were woken */
    ck_assert_uint_lt(domt_now_ns() - before_ns, 3000 * DOMT_MS);
    ck_assert_uint_eq(system->askings_count, 0);
    ck_assert_ptr_null(system->leader);
    ck_assert_int_eq(ask_number_from_outside(system, askers[0].to[0], &fail_type, 0, 0),
                     -ESHUTDOWN);
    domi_system_set_stage(system, DOMI_STAGE_RUNNING);
    for (uint32_t i = 0; i < ASKERS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_uint_eq(askers[i].failures, ESHUTDOWN);
    }
    ck_assert_int_eq(ask_number_from_outside(system, askers[0].to[0], &fail_type, 0, 0),
                     -EPROTO); /* the system was set back to running, and the actor still answers */
    domt_end_system(system);
}

DOMT_TEST(outside_spawns_with_options_and_names)
{
    domus_config config = domt_config_of_threads(2);
    config.names.max = 1;
    domus_system *system = domt_start_system(&config);
    domus_address address = {NULL, 0};
    domus_address found = {NULL, 0};
    domus_spawn_options options = {
        .placement = DOMUS_ON_THREAD, .thread = 1, .name = "the-server", .mailbox_max = 100};

    ck_assert_int_eq(domus_outside_find(system, "the-server", &found), -ENOENT);
    ck_assert_int_eq(domus_outside_spawn_with(system, &server, NULL, &options, &address), 0);
    ck_assert_int_eq(domus_outside_find(system, "the-server", &found), 0);
    ck_assert(found.house == address.house && found.lease == address.lease);
    ck_assert_int_eq(domus_outside_spawn_with(system, &server, NULL, &options, &address), -EEXIST);
    options.name = "another";
    ck_assert_int_eq(domus_outside_spawn_with(system, &server, NULL, &options, &address), -ENOSPC);
    options.thread = 2;
    ck_assert_int_eq(domus_outside_spawn_with(system, &server, NULL, &options, &address), -EINVAL);
    for (int i = 0; i < 50; i++)
        ck_assert_int_eq(domus_outside_notice(system, found, &mute_type, NULL), 0);
    ck_assert_int_eq(domus_outside_stop_after_mail(system, found), 0);
    DOMT_WAIT_FOR(10, domus_outside_find(system, "the-server", &address) == -ENOENT);
    ck_assert_uint_eq(domt_profile_of_thread(system, 1).notices, 51);
    domt_end_system(system);
}

DOMT_SUITE(60)
