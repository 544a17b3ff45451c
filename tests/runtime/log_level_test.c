/* runtime/system/log.c: lines that are less severe than the level are not written, on any thread,
 * and the level changes while the system runs. */
#include "tests/runtime/stalls.h"

#include <domus/log.h>

#include <errno.h>

static const domus_type fail_type = {.name = "fail"};

static int refuse(domus_stack *stack, void *self, const void *payload)
{
    return -EPROTO;
}

static int refuse_to_mount(domus_stack *stack, void *self)
{
    return -ENXIO;
}

static const domus_behaviour failing = {
    .name = "failing", .on = (const domus_on[]){{&fail_type, refuse, 0}, {NULL, NULL, 0}}};
static const domus_behaviour unborn = {.name = "unborn", .on_mount = refuse_to_mount};

/* On each thread an actor fails, which is a warning, and another is not mounted, an error. */
static void let_fail(domus_system *system)
{
    for (uint32_t thread = 0; thread < 2; thread++) {
        uint32_t errors = domt_lines("actor unborn", "is ended");
        uint64_t failures = domt_profile(system, thread).failures;
        domus_address address;
        domt_notice(system, domt_spawn(system, thread, &failing, NULL), &fail_type, NULL);
        DOMT_WAIT_FOR(10, domt_profile(system, thread).failures > failures);
        ck_assert_int_eq(domus_outside_spawn_on(system, thread, &unborn, NULL, &address), 0);
        DOMT_WAIT_FOR(10, domt_lines("actor unborn", "is ended") > errors);
    }
}

static void is_said(uint32_t failures, uint32_t ends)
{
    ck_assert_uint_eq(domt_lines("actor failing", "has failed: EPROTO"), failures);
    ck_assert_uint_eq(domt_lines("actor unborn", "is ended"), ends);
}

DOMT_TEST(the_level_is_that_of_the_configuration_and_changes_at_any_time)
{
    domus_config config = domt_config(2);

    ck_assert_int_eq(config.log.level, DOMUS_LOG_INFO);
    config.log.level = DOMUS_LOG_ERROR;
    domus_system *system = domt_start_logging(&config);
    ck_assert_int_eq(domus_system_log_level(system), DOMUS_LOG_ERROR);
    let_fail(system);
    is_said(0, 2);
    ck_assert_int_eq(domus_system_set_log_level(system, DOMUS_LOG_WARNING), 0);
    ck_assert_int_eq(domus_system_log_level(system), DOMUS_LOG_WARNING);
    let_fail(system);
    is_said(2, 4);
    ck_assert_int_eq(domus_system_set_log_level(system, DOMUS_LOG_ERROR), 0);
    let_fail(system);
    is_said(2, 6);
    domt_end(system);
}

DOMT_TEST(there_are_three_levels)
{
    domus_config config = domt_config(1);
    domus_system *system = domt_start_logging(&config);

    ck_assert_int_eq(domus_system_set_log_level(system, (domus_log_level)3), -EINVAL);
    ck_assert_int_eq(domus_system_set_log_level(system, (domus_log_level)-1), -EINVAL);
    ck_assert_int_eq(domus_system_log_level(system), DOMUS_LOG_INFO);
    ck_assert_str_eq(domus_log_level_name(DOMUS_LOG_ERROR), "error");
    ck_assert_str_eq(domus_log_level_name(DOMUS_LOG_WARNING), "warning");
    ck_assert_str_eq(domus_log_level_name(DOMUS_LOG_INFO), "info");
    ck_assert_str_eq(domus_log_level_name((domus_log_level)3), "");
    domt_end(system);
}

DOMT_SUITE(60)
