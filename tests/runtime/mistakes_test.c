/* Actors that break rules do no harm to others. The log has a line for each mistake of a handler
 * from which the library goes on, once for each behaviour and type of message, and the profile
 * counts all of them; lines that are less severe than the log's level are not written. A wrong
 * behaviour is refused with a text that says what is wrong. */
#include "tests/runtime/running.h"
#include "tests/runtime/stalls.h"

#include "base/memory.h"

#include <domus/detached.h>
#include <domus/letters.h>
#include <domus/log.h>
#include <domus/pipeline.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- an actor that is asked, and one that makes mistakes -------------------------------------- */

static const domus_type question = {.name = "question"};
static const domus_type drops_type = {.name = "drops"};
static const domus_type twice_type = {.name = "twice"};
static const domus_type odd_type = {.name = "odd"};
static const domus_type right_type = {.name = "right"};
static domus_address oracle_address;
static _Atomic uint64_t handled, resumed;

static int reply_to_any_ask(domus_stack *stack, void *self, const void *payload)
{
    return domus_reply(stack, &question, NULL);
}

static int count_resumed_conversation(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_fetch_add(&resumed, 1);
    return 0;
}

static int ask_but_return_zero(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&handled, 1);
    ck_assert_int_eq(domus_ask(stack, oracle_address, &question, NULL, count_resumed_conversation),
                     DOMUS_PARKED);
    return 0;
}

static int ask_twice_in_one_handler(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&handled, 1);
    (void)domus_ask(stack, oracle_address, &question, NULL, count_resumed_conversation);
    return domus_ask(stack, oracle_address, &question, NULL, count_resumed_conversation);
}

static int return_five_in_handler(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&handled, 1);
    return 5;
}

/* None of these calls is a mistake: to send several asks of which the first answer is enough, to
 * fail after an ask was begun, and to wait again in a resumed function. */
static int ask_twice_and_wait_in_resumed_function(domus_stack *stack, void *self,
                                                  const domus_answer *answer)
{
    (void)domus_ask_add(stack, oracle_address, &question, NULL, 0, 1);
    (void)domus_ask_add(stack, oracle_address, &question, NULL, 0, 2);
    return domus_wait_first(stack, count_resumed_conversation);
}

static int ask_and_return_parked(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&handled, 1);
    (void)domus_ask_add(stack, oracle_address, &question, NULL, 0, 0);
    return domus_ask(stack, oracle_address, &question, NULL,
                     ask_twice_and_wait_in_resumed_function);
}

static const domus_behaviour oracle = {
    .name = "oracle", .on = (const domus_on[]){{&question, reply_to_any_ask, 0}, {0}}};
static const domus_behaviour hasty = {
    .name = "hasty",
    .on = (const domus_on[]){{&drops_type, ask_but_return_zero, 0},
                             {&twice_type, ask_twice_in_one_handler, 0},
                             {&odd_type, return_five_in_handler, 0},
                             {&right_type, ask_and_return_parked, 0},
                             {0}}};

/* Send the actor whose handlers make mistakes `times` notices of `type`, and wait until it was
 * resumed `resumes` times. */
static void let_actor_make_mistakes(domus_system *system, const domus_type *type, uint64_t times,
                                    uint64_t resumes)
{
    domus_address address = domt_spawn(system, 0, &hasty, NULL);

    atomic_store(&handled, 0);
    atomic_store(&resumed, 0);
    for (uint64_t i = 0; i < times; i++)
        domt_send_notice(system, address, type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&handled) == times && atomic_load(&resumed) == resumes);
    ck_assert_int_eq(domus_outside_stop(system, address), 0);
}

DOMT_TEST(mistakes_are_told_once_and_counted_each_time)
{
    domus_config config = domt_config_of_threads(1);
    domus_system *system = domt_start_logging_system(&config);

    oracle_address = domt_spawn(system, 0, &oracle, NULL);
    let_actor_make_mistakes(system, &right_type, 3, 3);
    ck_assert_uint_eq(domt_count_log_lines("", NULL), 0);
    let_actor_make_mistakes(system, &drops_type, 3, 0);
    DOMT_WAIT_FOR(10, domt_profile_of_thread(system, 0).waits_lost == 3);
    let_actor_make_mistakes(system, &twice_type, 3, 3);
    DOMT_WAIT_FOR(10, domt_profile_of_thread(system, 0).waits_lost == 6);
    let_actor_make_mistakes(system, &odd_type, 3, 0);
    DOMT_WAIT_FOR(10, domt_profile_of_thread(system, 0).results_unknown == 3);
    domus_profile profile = domt_profile_of_thread(system, 0);
    ck_assert_uint_eq(profile.waits_lost, 6);
    ck_assert_uint_eq(profile.failures, 0);
    domt_end_system(system);
    ck_assert_uint_eq(domt_count_log_lines("", NULL), 3);
    ck_assert_uint_eq(domt_count_log_lines("actor hasty 0/", NULL), 3);
    ck_assert_uint_eq(
        domt_count_log_lines("handles drops let its conversation wait and returned 0", NULL), 1);
    ck_assert_uint_eq(domt_count_log_lines("handles twice let its conversation wait twice", NULL),
                      1);
    ck_assert_uint_eq(domt_count_log_lines("handles odd returned 5, which is neither", NULL), 1);
}

/* --- an actor that has its most conversations ------------------------------------------------- */

static int sleep_but_return_zero(domus_stack *stack, void *self, const void *payload)
{
    atomic_fetch_add(&handled, 1);
    return domus_sleep(stack, 20 * DOMT_MS, count_resumed_conversation);
}

static const domus_behaviour slow = {
    .name = "slow", .on = (const domus_on[]){{&question, sleep_but_return_zero, 0}, {0}}};

DOMT_TEST(reached_conversations_max_is_logged_once_in_a_spell)
{
    domus_config config = domt_config_of_threads(1);

    config.scheduler.conversations_max = 2;
    domus_system *system = domt_start_logging_system(&config);
    domus_address address = domt_spawn(system, 0, &slow, NULL);

    atomic_store(&resumed, 0);
    for (int i = 0; i < 12; i++)
        domt_send_notice(system, address, &question, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&resumed) == 12);
    uint64_t times = domt_profile_of_thread(system, 0).conversations_full;
    ck_assert_uint_ge(times, 6);
    DOMT_WAIT_FOR(20, domt_count_log_lines("no actor comes to scheduler.conversationsMax any more",
                                           NULL) == 1);
    domt_end_system(system);
    ck_assert_uint_eq(domt_count_log_lines("slow 0/", NULL), 1);
    ck_assert_uint_eq(domt_count_log_lines("has 2 conversations, the most that", NULL), 1);
}

/* --- levels of the log ------------------------------------------------------------------------ */

static const domus_type fail_type = {.name = "fail"};

static int fail_with_eproto(domus_stack *stack, void *self, const void *payload)
{
    return -EPROTO;
}

static int refuse_to_mount(domus_stack *stack, void *self)
{
    return -ENXIO;
}

static const domus_behaviour failing = {
    .name = "failing", .on = (const domus_on[]){{&fail_type, fail_with_eproto, 0}, {0}}};
static const domus_behaviour unborn = {.name = "unborn", .on_mount = refuse_to_mount};

/* On each thread, let one actor fail, which the log has as a warning, and let another one fail to
 * mount, which it has as an error. */
static void let_actors_fail_and_fail_to_mount(domus_system *system)
{
    for (uint32_t thread = 0; thread < 2; thread++) {
        uint32_t errors = domt_count_log_lines("actor unborn", "is ended");
        uint64_t failures = domt_profile_of_thread(system, thread).failures;
        domus_address address;
        domt_send_notice(system, domt_spawn(system, thread, &failing, NULL), &fail_type, NULL);
        DOMT_WAIT_FOR(10, domt_profile_of_thread(system, thread).failures > failures);
        ck_assert_int_eq(domus_outside_spawn_on(system, thread, &unborn, NULL, &address), 0);
        DOMT_WAIT_FOR(10, domt_count_log_lines("actor unborn", "is ended") > errors);
    }
}

static void expect_logged_failures_and_ends(uint32_t failures, uint32_t ends)
{
    ck_assert_uint_eq(domt_count_log_lines("actor failing", "has failed: EPROTO"), failures);
    ck_assert_uint_eq(domt_count_log_lines("actor unborn", "is ended"), ends);
}

DOMT_TEST(log_level_is_configured_and_may_change_at_any_time)
{
    domus_config config = domt_config_of_threads(2);

    ck_assert_int_eq(config.log.level, DOMUS_LOG_INFO);
    config.log.level = DOMUS_LOG_ERROR;
    domus_system *system = domt_start_logging_system(&config);
    ck_assert_int_eq(domus_system_log_level(system), DOMUS_LOG_ERROR);
    let_actors_fail_and_fail_to_mount(system);
    expect_logged_failures_and_ends(0, 2);
    ck_assert_int_eq(domus_system_set_log_level(system, DOMUS_LOG_WARNING), 0);
    ck_assert_int_eq(domus_system_log_level(system), DOMUS_LOG_WARNING);
    let_actors_fail_and_fail_to_mount(system);
    expect_logged_failures_and_ends(2, 4);
    ck_assert_int_eq(domus_system_set_log_level(system, DOMUS_LOG_ERROR), 0);
    let_actors_fail_and_fail_to_mount(system);
    expect_logged_failures_and_ends(2, 6);
    domt_end_system(system);
}

DOMT_TEST(log_has_three_levels)
{
    domus_config config = domt_config_of_threads(1);
    domus_system *system = domt_start_logging_system(&config);

    ck_assert_int_eq(domus_system_set_log_level(system, (domus_log_level)3), -EINVAL);
    ck_assert_int_eq(domus_system_set_log_level(system, (domus_log_level)-1), -EINVAL);
    ck_assert_int_eq(domus_system_log_level(system), DOMUS_LOG_INFO);
    ck_assert_str_eq(domus_log_level_name(DOMUS_LOG_ERROR), "error");
    ck_assert_str_eq(domus_log_level_name(DOMUS_LOG_WARNING), "warning");
    ck_assert_str_eq(domus_log_level_name(DOMUS_LOG_INFO), "info");
    ck_assert_str_eq(domus_log_level_name((domus_log_level)3), "");
    domt_end_system(system);
}

/* --- what nobody else suffers from ------------------------------------------------------------ */

static const domus_type go_type = {.name = "go"};

static atomic_int wrong, forked;

/* --- the outside's asker ---------------------------------------------------------------------- */

static int stop_sender_that_is_outside(domus_stack *stack, void *self, const void *payload)
{
    domus_address sender = domus_sender(stack);

    if (sender.house != NULL || domus_stop(stack, sender) != -ESTALE ||
        domus_link_actor(stack, sender, NULL) != -EINVAL)
        atomic_fetch_add(&wrong, 1);
    return domus_reply(stack, &go_type, NULL);
}

static const domus_behaviour attacker = {
    .name = "attacker", .on = (const domus_on[]){{&go_type, stop_sender_that_is_outside, 0}, {0}}};

DOMT_TEST(stop_of_an_asker_from_outside_is_refused)
{
    domus_system *system = domt_start_system_of_threads(1);
    domus_address address = domt_spawn(system, 0, &attacker, NULL);

    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(domus_outside_ask(system, address, &go_type, NULL, 5000 * DOMT_MS, NULL),
                         0);
    ck_assert_int_eq(atomic_load(&wrong), 0);
    domt_end_system(system);
}

/* --- others ----------------------------------------------------------------------------------- */

static int fork_and_record_child(domus_stack *stack, void *self, const void *payload)
{
    int child = fork();
    if (child > 0)
        atomic_store(&forked, child);
    return 0;
}

static const domus_behaviour divider = {
    .name = "divider", .on = (const domus_on[]){{&go_type, fork_and_record_child, 0}, {0}}};

DOMT_TEST(a_detached_handler_that_returns_in_a_child_ends_it)
{
    domus_system *system = domt_start_system_of_threads(1);
    int status = 0;

    domus_address address = domt_spawn_detached(system, &divider);
    domt_send_notice(system, address, &go_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&forked) != 0);
    DOMT_WAIT_FOR(10, waitpid(atomic_load(&forked), &status, WNOHANG) != 0);
    ck_assert(WIFSIGNALED(status));
    domt_end_system(system);
}

DOMT_TEST(after_a_failed_start_detached_actors_can_be_made)
{
    domus_config config = domt_config_of_threads(2);
    /* threads are pinned, because a pinned thread allocates memory when it is made */
    config.system.cpus = "auto";
    int result = -1;

    for (int64_t count = 0; result != 0; count++) {
        domus_system *system = NULL;
        ck_assert_int_eq(domus_system_new(&config, NULL, 0, &system), 0);
        domi_memory_fail_allocation_after(count, 0);
        result = domus_system_start(system);
        domi_memory_fail_allocation_after(-1, 0);
        if (result != 0)
            ck_assert_int_eq(domus_system_start(system), 0);
        (void)domt_spawn_detached(system, &divider);
        domt_end_system(system);
    }
}

DOMT_TEST(ended_subscribers_of_letters_hold_no_place)
{
    domus_system *system = domt_start_system_of_threads(1);

    for (uint32_t i = 0; i < 2 * DOMUS_LETTERS_SUBSCRIBERS_MAX; i++) {
        domus_address address = domt_spawn(system, 0, &divider, NULL);
        ck_assert_int_eq(domus_outside_letters(system, address, DOMUS_LETTERS_DEAD), 0);
        ck_assert_int_eq(domus_outside_stop(system, address), 0);
        DOMT_WAIT_FOR(10, domus_outside_stop(system, address) == -ESTALE);
    }
    domt_end_system(system);
}

/* --- behaviours that are wrong ---------------------------------------------------------------- */

static const domus_type some_type = {.name = "some"};
static const domus_pipeline_stage line_stages[] = {{&domus_line_stage, NULL}, {NULL, NULL}};
static const domus_pipeline_stage none[] = {{NULL, NULL}};
static const domus_pipeline of_lines = {.stages = line_stages};
static const domus_pipeline empty = {.stages = none};
static const domus_on_peer peer_rows[] = {{.type = NULL}};
static const domus_on bare_rows[] = {{&some_type, NULL, 0}, {0}};
static const domus_on large_rows[] = {{&some_type, domt_ignore_message, DOMUS_FRAME_MAX + 1}, {0}};
static const domus_behaviour state = {.name = "child"};

static const struct {
    domus_behaviour behaviour;
    const char *fault;
} faulty[] = {
    {{.kind = DOMUS_CHANNELS, .state_size = 1024 * 1024 + 1}, "its state_size is above 1 MiB"},
    {{.kind = DOMUS_CHANNELS, .on = bare_rows}, "a row of `on` has no `handle`"},
    {{.kind = DOMUS_CHANNELS, .on = large_rows},
     "a row of `on` has a frame_size above DOMUS_FRAME_MAX"},
    {{.kind = DOMUS_CHANNELS, .on_end = {domt_ignore_message, DOMUS_FRAME_MAX + 1}},
     "a function has a frame_size above DOMUS_FRAME_MAX"},
    {{.kind = DOMUS_CHANNELS, .on_peer = peer_rows}, "it has on_peer and no pipeline"},
    {{.kind = DOMUS_CHANNELS, .pipeline = &of_lines, .on_read = {domt_ignore_message, 0}},
     "it has on_read beside a pipeline, which reads the bytes"},
    {{.kind = DOMUS_CHANNELS, .pipeline = &empty},
     "its pipeline is wrong (domus/pipeline.h), or a stage refuses its options"},
    {{.kind = DOMUS_CHANNELS, .channel = &state},
     "the kind of its `channel` is not DOMUS_CHANNELS"},
    {{.kind = (domus_kind)7}, "its kind is neither DOMUS_STATE nor DOMUS_CHANNELS"},
    /* The behaviour does not give its kind, so it counts as that of a state actor. */
    {{.on_read = {domt_ignore_message, 0}},
     "its kind is DOMUS_STATE, and it has a member that only channels actors use"},
    {{.pipeline = &of_lines},
     "its kind is DOMUS_STATE, and it has a member that only channels actors use"},
    {{.channel = &state},
     "its kind is DOMUS_STATE, and it has a member that only channels actors use"},
};

DOMT_TEST(wrong_behaviours_are_refused_with_a_reason)
{
    static const domus_listener_config listener = {
        .name = "front", .address = "127.0.0.1:0", .backlog = 64};
    domus_config config = domt_config_of_threads(1);
    domus_address address;
    char expected[256];

    config.listeners = &listener;
    config.listener_count = 1;
    domus_system *system = domt_start_logging_system(&config);
    for (size_t i = 0; i < sizeof faulty / sizeof faulty[0]; i++) {
        domus_behaviour behaviour = faulty[i].behaviour;
        behaviour.name = "wrong";
        ck_assert_int_eq(domus_serve(system, "front", &behaviour, NULL, NULL), -EINVAL);
        snprintf(expected, sizeof expected, "listener front: %s", faulty[i].fault);
        ck_assert_str_eq(domus_system_error(system), expected);
        snprintf(expected, sizeof expected, "no actor is made of behaviour wrong: %s",
                 faulty[i].fault);
        uint32_t before = domt_count_log_lines(expected, NULL);
        ck_assert_int_eq(domus_outside_spawn_on(system, 0, &behaviour, NULL, &address), -EINVAL);
        ck_assert_uint_eq(domt_count_log_lines(expected, NULL), before + 1);
        ck_assert_str_eq(domt_first_log_line(expected), expected);
    }
    ck_assert_int_eq(domus_serve(system, "front", NULL, NULL, NULL), -EINVAL);
    ck_assert_str_eq(domus_system_error(system), "listener front: there is no behaviour");
    ck_assert_int_eq(domus_serve(system, "front", &state, NULL, NULL), -EINVAL);
    ck_assert_str_eq(domus_system_error(system), "listener front: the kind of its behaviour is not "
                                                 "DOMUS_CHANNELS, so it has no connections");
    ck_assert(!domus_listener_is_served(system, "front"));
    ck_assert(!domus_listener_is_served(system, "nix"));
    domt_end_system(system);
}

DOMT_TEST(a_listener_that_is_not_there_names_the_key)
{
    static const domus_listener_config listener = {
        .name = "front", .address = "127.0.0.1:0", .backlog = 64};
    static const char *const said[] = {
        "listener nix: the configuration has no key listeners, which domus_main() reads from "
        "--config FILE",
        "listener nix: the key listeners of the configuration does not have it",
    };

    for (uint32_t count = 0; count < 2; count++) {
        domus_config config = domt_config_of_threads(1);

        config.listeners = count != 0 ? &listener : NULL;
        config.listener_count = count;
        domus_system *system = domt_start_system(&config);
        ck_assert_int_eq(domus_serve(system, "nix", &state, NULL, NULL), -ENOENT);
        ck_assert_str_eq(domus_system_error(system), said[count]);
        domt_end_system(system);
    }
}

DOMT_SUITE(60)
