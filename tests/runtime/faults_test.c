/* A behaviour that is wrong is refused with words that say what is wrong: in the error of the
 * system when a listener is to be served by it, in the log when an actor is to be made of it. */
#include "tests/runtime/running.h"

#include <domus/pipeline.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static char last_line[DOMUS_LOG_TEXT_MAX + 1]; /* this thread alone causes lines */

static void log_line(void *context, domus_log_level level, uint32_t thread, const char *text)
{
    memcpy(last_line, text, strlen(text) + 1);
}

static int take(domus_stack *stack, void *self, const void *payload)
{
    return 0;
}

static const domus_type some_type = {.name = "some"};
static const domus_pipeline_stage lines[] = {{&domus_line_stage, NULL}, {NULL, NULL}};
static const domus_pipeline_stage none[] = {{NULL, NULL}};
static const domus_pipeline of_lines = {.stages = lines};
static const domus_pipeline empty = {.stages = none};
static const domus_on_peer peer_rows[] = {{.type = NULL}};
static const domus_on bare_rows[] = {{&some_type, NULL, 0}, {NULL, NULL, 0}};
static const domus_on large_rows[] = {{&some_type, take, DOMUS_FRAME_MAX + 1}, {NULL, NULL, 0}};
static const domus_behaviour state = {.name = "child"};

static const struct {
    domus_behaviour behaviour;
    const char *fault;
} wrong[] = {
    {{.kind = DOMUS_CHANNELS, .state_size = 1024 * 1024 + 1}, "its state_size is above 1 MiB"},
    {{.kind = DOMUS_CHANNELS, .on = bare_rows}, "a row of `on` has no `handle`"},
    {{.kind = DOMUS_CHANNELS, .on = large_rows},
     "a row of `on` has a frame_size above DOMUS_FRAME_MAX"},
    {{.kind = DOMUS_CHANNELS, .on_end = {take, DOMUS_FRAME_MAX + 1}},
     "a function has a frame_size above DOMUS_FRAME_MAX"},
    {{.kind = DOMUS_CHANNELS, .on_peer = peer_rows}, "it has on_peer and no pipeline"},
    {{.kind = DOMUS_CHANNELS, .pipeline = &of_lines, .on_read = {take, 0}},
     "it has on_read beside a pipeline, which reads the bytes"},
    {{.kind = DOMUS_CHANNELS, .pipeline = &empty},
     "its pipeline is wrong (domus/pipeline.h), or a stage refuses its options"},
    {{.kind = DOMUS_CHANNELS, .channel = &state},
     "the kind of its `channel` is not DOMUS_CHANNELS"},
    {{.kind = (domus_kind)7}, "its kind is neither DOMUS_STATE nor DOMUS_CHANNELS"},
    /* The kind is forgotten, and so it is that of a state actor. */
    {{.on_read = {take, 0}},
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
    const domus_hooks hooks = {.log = log_line};
    domus_config config = domt_config(1);
    domus_system *system = NULL;
    domus_address address;
    char expected[256];

    config.listeners = &listener;
    config.listener_count = 1;
    ck_assert_int_eq(domus_system_new_with(&config, &hooks, NULL, 0, &system), 0);
    ck_assert_int_eq(domus_system_start(system), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        domus_behaviour behaviour = wrong[i].behaviour;
        behaviour.name = "wrong";
        ck_assert_int_eq(domus_serve(system, "front", &behaviour, NULL, NULL), -EINVAL);
        snprintf(expected, sizeof expected, "listener front: %s", wrong[i].fault);
        ck_assert_str_eq(domus_system_error(system), expected);
        last_line[0] = '\0';
        ck_assert_int_eq(domus_outside_spawn_on(system, 0, &behaviour, NULL, &address), -EINVAL);
        snprintf(expected, sizeof expected, "no actor is made of behaviour wrong: %s",
                 wrong[i].fault);
        ck_assert_str_eq(last_line, expected);
    }
    ck_assert_int_eq(domus_serve(system, "front", NULL, NULL, NULL), -EINVAL);
    ck_assert_str_eq(domus_system_error(system), "listener front: there is no behaviour");
    ck_assert_int_eq(domus_serve(system, "front", &state, NULL, NULL), -EINVAL);
    ck_assert_str_eq(domus_system_error(system), "listener front: the kind of its behaviour is not "
                                                 "DOMUS_CHANNELS, so it has no connections");
    ck_assert(!domus_listener_is_served(system, "front"));
    ck_assert(!domus_listener_is_served(system, "nix"));
    domt_end(system);
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
        domus_config config = domt_config(1);

        config.listeners = count != 0 ? &listener : NULL;
        config.listener_count = count;
        domus_system *system = domt_start(&config);
        ck_assert_int_eq(domus_serve(system, "nix", &state, NULL, NULL), -ENOENT);
        ck_assert_str_eq(domus_system_error(system), said[count]);
        domt_end(system);
    }
}

DOMT_SUITE(60)
