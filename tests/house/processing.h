/* A world with one process in it, which counts its events, adds up their payloads, and does as a
 * test says. */
#ifndef DOMT_HOUSE_PROCESSING_H
#define DOMT_HOUSE_PROCESSING_H

#include "house/family/life.h"
#include "tests/house/steps.h"
#include "tests/support/house_world.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

#define MS UINT64_C(1000000)

static unsigned releases;

static inline void count_payload_release(void *payload)
{
    releases++;
}

static const domus_type number_type = {.name = "number", .size = 8};
static const domus_type owned_type = {.name = "owned", .size = 8, .release = count_payload_release};
static const domus_type owned_large_type = {
    .name = "owned large", .size = 600, .release = count_payload_release};
static const domus_type large_type = {.name = "large", .size = 600};
static const domus_type value_type = {.name = "value", .size = 8};
static const domus_type input_type = {.name = "input", .size = DOMUS_PROCESS_INPUT_MAX};
static const domus_type too_large_type = {.name = "too large", .size = DOMUS_PROCESS_INPUT_MAX + 1};

static domt_world world;
static domus_address agent;   /* an agent on home 0, which spawns the process */
static domus_address other;   /* an agent on home 1 */
static domus_address process; /* the process under test */

/* Functions that `init` and `step` of the process call; each test sets them. */
static int (*init_does)(domus_stack *stack);
static int (*step_does)(domus_stack *stack, const domus_process_event *events, uint32_t count,
                        domus_process_output *out);
static unsigned inits, steps, closes;
static uint32_t counts[64]; /* number of the events that each step was given */
static uint64_t sum;        /* sum of the payloads of all events */
static unsigned asks;
static unsigned owned; /* number of the events whose payloads own something */
static domus_kept kept;
static int error;
static uint64_t value;
static domus_address value_from;

/* --- the process ----------------------------------------------------------------------------- */

static inline int init_process(domus_stack *stack, void *self, const char *method,
                               const domus_type *type, const void *input)
{
    ck_assert(*(uint64_t *)self == 0);
    *(uint64_t *)self = 42;
    inits++;
    if (strcmp(method, "count") != 0)
        return -ENOENT;
    ck_assert(type == NULL || (type == &input_type && memcmp(input, "given", 6) == 0));
    return init_does != NULL ? init_does(stack) : 0;
}

static inline int count_events_and_step(domus_stack *stack, void *self,
                                        const domus_process_event *events, uint32_t count,
                                        domus_process_output *out)
{
    ck_assert(*(uint64_t *)self == 42);
    counts[steps++] = count;
    for (uint32_t i = 0; i < count; i++) {
        if (events[i].data != NULL)
            sum += *(const uint64_t *)events[i].data;
        owned += events[i].data_type != NULL && events[i].data_type->release != NULL;
        if (events[i].is_ask) {
            asks++;
            kept = events[i].ask;
        }
    }
    return step_does != NULL ? step_does(stack, events, count, out) : 0;
}

static inline void close_process(domus_stack *stack, void *self)
{
    ck_assert(*(uint64_t *)self == 42);
    closes++;
}

static const domus_process counting = {.name = "counting",
                                       .state_size = 3000,
                                       .init = init_process,
                                       .step = count_events_and_step,
                                       .close = close_process};

/* --- the others ------------------------------------------------------------------------------ */

static inline int record_value_and_sender(domus_stack *stack, void *self, const void *payload)
{
    value = *(const uint64_t *)payload;
    value_from = domus_sender(stack);
    return 0;
}

static inline int run_function_of_call(domus_stack *stack, void *self, const void *payload)
{
    const domt_call *order = payload;

    return order->function(stack, order->context);
}

static const domus_supervision restarting = {.otherwise = DOMUS_RESTART};

#define SPAWNER(supervised)                                                                        \
    {                                                                                              \
        .name = "spawner", .supervision = (supervised), .on = (const domus_on[])                   \
        {                                                                                          \
            {&domt_call_type, run_function_of_call, 0}, {&value_type, record_value_and_sender, 0}, \
                {0},                                                                               \
        }                                                                                          \
    }

static const domus_behaviour spawner = SPAWNER(NULL);
static const domus_behaviour supervisor = SPAWNER(&restarting);

static inline int spawn_process_with_method(domus_stack *stack, void *method)
{
    char input[DOMUS_PROCESS_INPUT_MAX] = "given";

    return error =
               domus_process_spawn(stack, &counting, method, &input_type, input, NULL, &process);
}

static inline void open_world_without_process(const domus_behaviour *behaviour)
{
    domt_world_open(&world, 2);
    agent = domt_spawn(domt_outside_manager(&world), world.managers[0], behaviour, NULL);
    other = domt_spawn(domt_outside_manager(&world), world.managers[1], &domt_agent, NULL);
    domt_settle_world(&world);
}

static inline void open_world_with_process(void)
{
    open_world_without_process(&spawner);
    domt_run_as_actor(&world, agent, spawn_process_with_method, "count");
    ck_assert_int_eq(error, 0);
    ck_assert_uint_eq(inits, 1);
    ck_assert_uint_eq(steps, 1);
    ck_assert_uint_eq(counts[0], 0);
}

static inline void close_world_of_process(void)
{
    domt_settle_world(&world);
    domt_end_clean_world(&world);
    ck_assert_uint_eq(closes, inits);
}

static inline void stop_process(void)
{
    domt_stop_actor_and_settle(&world, world.managers[0], process);
}

static inline void send_to_process(const domus_type *type, uint64_t number)
{
    uint64_t payload[75] = {number}; /* as large as the largest payload of the types */

    ck_assert_int_eq(domt_send_notice(domt_outside_manager(&world), process, type, payload), 0);
}

#endif
