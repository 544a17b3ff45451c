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

static void release(void *payload)
{
    atomic_fetch_add(&released, 1);
}

static const domus_type twice_type = {
    .name = "twice", .size = sizeof(uint64_t), .release = release};
static const domus_type number_type = {
    .name = "number", .size = sizeof(uint64_t), .release = release};
static const domus_type large_type = {.name = "large", .size = 40000, .release = release};
static const domus_type fail_type = {.name = "fail"};
static const domus_type mute_type = {.name = "mute"};
static const domus_type hold_type = {.name = "hold", .size = sizeof(uint64_t), .release = release};
static const domus_type unknown_type = {
    .name = "unknown", .size = sizeof(uint64_t), .release = release};
static const domus_type grow_type = {.name = "grow"};
static const domus_type nap_type = {.name = "nap", .size = sizeof(uint64_t)};
static const domus_type recurse_type = {.name = "recurse"};

static int reply_double(domus_stack *stack, void *self, const void *payload)
{
    uint64_t answer = *(const uint64_t *)payload * 2;
    return domus_reply(stack, &number_type, &answer);
}

static int reply_large(domus_stack *stack, void *self, const void *payload)
{
    static const char bytes[40000] = "large";
    return domus_reply(stack, &large_type, bytes);
}

static int fail_handler(domus_stack *stack, void *self, const void *payload)
{
    return -EPROTO;
}

static int ignore_message(domus_stack *stack, void *self, const void *payload)
{
    return 0;
}

static int keep_ask(domus_stack *stack, void *self, const void *payload)
{
    domus_kept ask;
    atomic_fetch_add(&kept, 1);
    return domus_keep(stack, &ask);
}

static int reply_deadline(domus_stack *stack, void *self, const domus_answer *answer)
{
    uint64_t deadline_ns = domus_deadline_ns(stack);
    return domus_reply(stack, &number_type, &deadline_ns);
}

static int sleep_before_reply(domus_stack *stack, void *self, const void *payload)
{
    return domus_sleep(stack, *(const uint64_t *)payload, reply_deadline);
}

static int ask_oneself(domus_stack *stack, void *self, const void *payload)
{
    atomic_store(&deadlock,
                 domus_outside_ask(the_system, domus_self(stack), &mute_type, NULL, 0, NULL));
    return domus_fail(stack, -EDOM);
}

static const domus_behaviour server = {.name = "server",
                                       .on = (const domus_on[]){{&twice_type, reply_double, 0},
                                                                {&fail_type, fail_handler, 0},
                                                                {&mute_type, ignore_message, 0},
                                                                {&hold_type, keep_ask, 0},
                                                                {&grow_type, reply_large, 0},
                                                                {&nap_type, sleep_before_reply, 0},
                                                                {&recurse_type, ask_oneself, 0},
                                                                {0}}};

static int ask_from_here(domus_system *system, domus_address to, const domus_type *type,
                         uint64_t number, uint64_t timeout_ns)
{
    return domus_outside_ask(system, to, type, &number, timeout_ns, NULL);
}

static domus_system *start_system(uint32_t threads)
{
    domus_config config = domt_config(threads);
    return domt_start(&config);
}

static uint64_t late_replies(const domus_system *system)
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
    ck_assert_uint_eq(atomic_load(&released), 200); /* the asks; the caller owns the answers */
    domt_end(system);
}

DOMT_TEST(a_small_buffer_is_told_what_it_wants)
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
    /* Without a buffer the caller only learns that the ask was answered. */
    ck_assert_int_eq(domus_outside_ask(system, to, &grow_type, NULL, 0, NULL), 0);
    ck_assert_uint_eq(atomic_load(&released), 2);
    domt_end(system);
}

DOMT_TEST(an_exception_is_the_result_and_payloads_are_taken_in_every_case)
{
    domus_system *system = start_system(1);
    domus_address to = domt_spawn(system, 0, &server, NULL);
    const domus_type huge = {.name = "huge", .size = DOMUS_PAYLOAD_MAX + 1, .release = release};

    ck_assert_int_eq(ask_from_here(system, to, &fail_type, 0, 0), -EPROTO);
    ck_assert_int_eq(ask_from_here(system, to, &mute_type, 0, 0), -ENOMSG);
    ck_assert_uint_eq(atomic_load(&released), 0);
    ck_assert_int_eq(ask_from_here(system, to, &unknown_type, 0, 0), -EOPNOTSUPP);
    ck_assert_uint_eq(atomic_load(&released), 1);
    ck_assert_int_eq(ask_from_here(system, (domus_address){NULL, 0}, &twice_type, 0, 0), -ESTALE);
    ck_assert_uint_eq(atomic_load(&released), 2);
    ck_assert_int_eq(ask_from_here(system, to, &huge, 0, 0), -EMSGSIZE);
    ck_assert_uint_eq(atomic_load(&released), 3);
    ck_assert_int_eq(domus_outside_stop(system, to), 0);
    ck_assert_int_eq(ask_from_here(system, to, &twice_type, 0, 0), -ESTALE);
    ck_assert_uint_eq(atomic_load(&released), 4);
    ck_assert_int_eq(domus_system_stop(system), 0);
    ck_assert_int_eq(ask_from_here(system, to, &twice_type, 0, 0), -ESHUTDOWN);
    ck_assert_uint_eq(atomic_load(&released), 5);
    domus_system_free(system);
}

DOMT_TEST(a_time_out_is_never_early_and_a_late_answer_is_dropped_and_counted)
{
    domus_system *system = start_system(1);
    domus_address to = domt_spawn(system, 0, &server, NULL);
    uint64_t before_ns = domt_now_ns();

    ck_assert_int_eq(ask_from_here(system, to, &hold_type, 0, 30 * DOMT_MS), -ETIMEDOUT);
    ck_assert_uint_ge(domt_now_ns() - before_ns, 30 * DOMT_MS);
    ck_assert_uint_eq(atomic_load(&kept), 1);
    ck_assert_int_eq(ask_from_here(system, to, &nap_type, 60 * DOMT_MS, 20 * DOMT_MS), -ETIMEDOUT);
    domt_pause_ns(80 * DOMT_MS);
    /* no thread led the outside to sort the late reply */
    ck_assert_uint_eq(late_replies(system), 0);
    uint64_t released_before = atomic_load(&released);
    ck_assert_int_eq(domus_outside_notice(system, to, &mute_type, NULL), 0);
    ck_assert_uint_eq(late_replies(system), 1);
    ck_assert_uint_eq(atomic_load(&released), released_before + 1);
    domt_end(system);
}

DOMT_TEST(the_time_out_travels_and_zero_is_a_limit_too)
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
    domt_end(system);
}

DOMT_TEST(a_thread_of_the_system_does_not_wait_for_itself)
{
    domus_system *system = the_system = start_system(1);
    domus_address to = domt_spawn(system, 0, &server, NULL);
    ck_assert_int_eq(ask_from_here(system, to, &recurse_type, 0, 0), -EDOM);
    ck_assert_int_eq(atomic_load(&deadlock), -EDEADLK);
    domt_end(system);
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

/* Let the next asker ask in this way. */
static void begin_asker(uint32_t i, struct asker asker, void *(*run)(void *self))
{
    askers[i] = asker;
    ck_assert_int_eq(pthread_create(&threads[i], NULL, run, &askers[i]), 0);
}

/* Keep asking: most asks are answered, some time out, so that the lead changes hands in every
 * way. */
static void *keep_asking(void *self_)
{
    struct asker *self = self_;

    for (uint64_t i = 0; i < EACH; i++) {
        uint64_t number = 0;
        domus_outside_reply reply = {.buffer = &number, .size = sizeof number};

        if ((i + self->number) % 64 == 0) {
            self->timeouts +=
                ask_from_here(self->system, self->to[2], &hold_type, 0, DOMT_MS) == -ETIMEDOUT;
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
        begin_asker(i, (struct asker){.system = system, .to = {to[0], to[1], to[2]}, .number = i},
                    keep_asking);
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
    domt_end(system);
}

static void *ask_and_be_woken(void *self_)
{
    struct asker *self = self_;
    uint64_t before_ns = domt_now_ns();
    self->failures =
        (uint64_t)-ask_from_here(self->system, self->to[0], &nap_type, 300 * DOMT_MS, 0);
    self->sum = domt_now_ns() - before_ns;
    return NULL;
}

/* The first thread that waits leads. When its time is over the next one leads, and is woken by its
 * answer, not by the end of its time. */
DOMT_TEST(the_lead_is_handed_on)
{
    domus_system *system = start_system(1);
    domus_address to = domt_spawn(system, 0, &server, NULL);

    for (uint32_t i = 0; i < 3; i++) {
        begin_asker(i, (struct asker){.system = system, .to = {to}}, ask_and_be_woken);
        if (i == 0) /* this thread follows for the rest of its time */
            domt_pause_ns(20 * DOMT_MS);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_uint_eq(askers[i].failures, 0);
        ck_assert_uint_lt(askers[i].sum, 3000 * DOMT_MS);
    }
    domt_end(system);
}

static void *ask_for_ever(void *self_)
{
    struct asker *self = self_;
    self->failures = (uint64_t)-ask_from_here(self->system, self->to[0], &hold_type, 0, 0);
    return NULL;
}

/* Let all askers ask an actor that takes each ask and keeps it. */
static void begin_to_wait(domus_system *system)
{
    domus_address to = domt_spawn(system, 1, &server, NULL);
    for (uint32_t i = 0; i < ASKERS; i++)
        begin_asker(i, (struct asker){.system = system, .to = {to}}, ask_for_ever);
    DOMT_WAIT_FOR(10, atomic_load(&kept) == ASKERS);
}

/* Only the stop of the system can end the wait. */
DOMT_TEST(asker_that_waits_when_the_system_stops_gets_an_error)
{
    domus_system *system = start_system(2);
    begin_to_wait(system);
    uint64_t before_ns = domt_now_ns();
    domt_end(system);
    for (uint32_t i = 0; i < ASKERS; i++) {
        pthread_join(threads[i], NULL);
        /* The actor was stopped first, which fails the asks that it keeps; or the outside was
         * closed sooner. */
        ck_assert(askers[i].failures == ESTALE || askers[i].failures == ESHUTDOWN);
    }
    ck_assert_uint_lt(domt_now_ns() - before_ns, 5000 * DOMT_MS);
}

/* The stop closes the outside in this way if an actor has not let go of an ask in time. */
DOMT_TEST(closing_the_outside_fails_all_that_wait)
{
    domus_system *system = start_system(2);
    begin_to_wait(system);
    uint64_t before_ns = domt_now_ns();
    domi_system_set_stage(system, DOMI_STAGE_ENDING);
    ck_assert_uint_lt(domt_now_ns() - before_ns, 3000 * DOMT_MS); /* the askers were woken */
    ck_assert_uint_eq(system->askings_count, 0);
    ck_assert_ptr_null(system->leader);
    ck_assert_int_eq(ask_from_here(system, askers[0].to[0], &fail_type, 0, 0), -ESHUTDOWN);
    domi_system_set_stage(system, DOMI_STAGE_RUNNING);
    for (uint32_t i = 0; i < ASKERS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_uint_eq(askers[i].failures, ESHUTDOWN);
    }
    ck_assert_int_eq(ask_from_here(system, askers[0].to[0], &fail_type, 0, 0),
                     -EPROTO); /* the actor did not stop, after all */
    domt_end(system);
}

DOMT_TEST(options_and_names_are_the_outsides_too)
{
    domus_config config = domt_config(2);
    config.names.max = 1;
    domus_system *system = domt_start(&config);
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
    ck_assert_uint_eq(domt_profile(system, 1).notices, 51);
    domt_end(system);
}

DOMT_SUITE(60)
