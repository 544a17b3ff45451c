/* fair: how long a light actor takes to answer beside one that is flooded.
 *
 * On the same thread, a flooder fills the mailbox of one actor until it is refused, again and
 * again, so that it is always full. Each millisecond a visitor asks the light actor. The visitor
 * lives on their thread, or on the second thread if there is one. In a pool they live wherever its
 * runners take them. */
#include "bench/savina/rows.h"
#include "bench/support/measure.h"

#include <errno.h>

#define MILLISECOND_NS UINT64_C(1000000)

static const domus_type drop_type = {.name = "drop"};
static const domus_type more_type = {.name = "more"};
static const domus_type visit_type = {.name = "visit"};
static const domus_type asked_type = {.name = "asked", .size = sizeof(uint64_t)};
static const domus_type visits_type = {.name = "visits", .size = sizeof(uint64_t)};

/* The latencies of the light actor. The visitor writes them; the main thread reads them after the
 * visitor has reported its count. */
static struct histogram latencies;

static int drop_message(domus_stack *stack, void *self, const void *nothing)
{
    (void)stack, (void)self, (void)nothing;
    return 0;
}

static const domus_behaviour flooded = {
    .name = "flooded",
    .on = (const domus_on[]){{.type = &drop_type, .handle = drop_message}, {.type = NULL}},
};

static int flood_mailbox_until_full(domus_stack *stack, void *flooded_, const void *nothing)
{
    const domus_address *to = flooded_;
    int error;

    (void)nothing;
    do
        error = domus_notice(stack, *to, &drop_type, NULL);
    while (error == 0);
    if (error ==
        /* -ESTALE: at the end of the row the flooded actor stops while another runner is in this
         * function */
        -ESTALE)
        return 0;
    stage_must_succeed(error == -ENOBUFS ? 0 : error, "drop");
    return domus_notice(stack, domus_self(stack), &more_type, NULL);
}

static int begin_to_flood_at_mount(domus_stack *stack, void *flooded_)
{
    return flood_mailbox_until_full(stack, flooded_, NULL);
}

static const domus_behaviour flooder = {
    .name = "flooder",
    .state_size = sizeof(domus_address),
    .on = (const domus_on[]){{.type = &more_type, .handle = flood_mailbox_until_full},
                             {.type = NULL}},
    .on_mount = begin_to_flood_at_mount,
};

static int reply_to_visitor_with_its_time(domus_stack *stack, void *self, const void *asked_ns)
{
    (void)self;
    return domus_reply(stack, &asked_type, asked_ns);
}

static const domus_behaviour light = {
    .name = "light",
    .on = (const domus_on[]){{.type = &asked_type, .handle = reply_to_visitor_with_its_time},
                             {.type = NULL}},
};

struct visitor {
    domus_address host;
    domus_address light;
    uint64_t visits; /* number of visits that this visitor has still to make */
    uint64_t asked;
    uint64_t answered;
};

static int record_latency_of_answered_visit(domus_stack *stack, void *self_,
                                            const domus_answer *answer)
{
    struct visitor *self = self_;

    stage_must_succeed(answer->error, "ask");
    histogram_add_value(&latencies, measure_now_ns() - *(const uint64_t *)answer->payload);
    if (++self->answered < self->visits)
        return 0;
    return domus_notice(stack, self->host, &visits_type, &self->answered);
}

/* The visitor arms its timer for the next ask first, so that asks are sent in time even if an
 * answer is late. */
static int arm_next_visit_and_ask_light_actor(domus_stack *stack, void *self_, const void *nothing)
{
    struct visitor *self = self_;

    (void)nothing;
    if (++self->asked < self->visits)
        stage_must_succeed(domus_after(stack, MILLISECOND_NS, &visit_type, NULL, NULL), "timer");
    uint64_t now_ns = measure_now_ns();
    return domus_ask(stack, self->light, &asked_type, &now_ns, record_latency_of_answered_visit);
}

static int arm_first_visit_at_mount(domus_stack *stack, void *self)
{
    (void)self;
    return domus_after(stack, MILLISECOND_NS, &visit_type, NULL, NULL);
}

static const domus_behaviour visitor = {
    .name = "visitor",
    .state_size = sizeof(struct visitor),
    .on = (const domus_on[]){{.type = &visit_type, .handle = arm_next_visit_and_ask_light_actor},
                             {.type = NULL}},
    .on_mount = arm_first_visit_at_mount,
};

/* --- the host: all actors but the visitor live on its thread, or all in the pool -------------- */

static int start_actors_of_fair_row(domus_stack *stack, void *self, const void *visits)
{
    const domus_spawn_options far = stage_options_for_far_spawn();
    struct visitor state = {.host = domus_self(stack), .visits = *(const uint64_t *)visits};
    domus_address to;

    (void)self;
    stage_must_succeed(domus_spawn(stack, &flooded, NULL, &to), "spawn");
    stage_must_succeed(domus_spawn(stack, &flooder, &to, &to), "spawn");
    stage_must_succeed(domus_spawn(stack, &light, NULL, &state.light), "spawn");
    stage_must_succeed(domus_spawn_with(stack, &visitor, &state, &far, &to), "spawn");
    return 0;
}

static int end_fair_row_with_count_of_visits(domus_stack *stack, void *self, const void *visits)
{
    (void)self;
    return stage_end_root_with_result(stack, *(const uint64_t *)visits);
}

static const domus_behaviour host = {
    .name = "host",
    .on = (const domus_on[]){{.type = &go_type, .handle = start_actors_of_fair_row},
                             {.type = &visits_type, .handle = end_fair_row_with_count_of_visits},
                             {.type = NULL}},
    .on_stop = stage_on_stop_of_root,
};

static uint64_t finish_row_of_fairness(uint64_t visits, uint64_t *messages)
{
    (void)messages;
    stage_print_latencies(&latencies);
    return visits;
}

const struct stage_row row_fair = {.name = "fair", .root = &host, .finish = finish_row_of_fairness};
