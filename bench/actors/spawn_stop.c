/* The row of actors that are spawned, do nothing, and stop: 1,000 at once, all by one parent.
 *
 * As a process of Erlang ends with its function, a child here stops itself as it is mounted. The
 * last child of a batch tells the parent when it stops. At the end the thread's count of stops
 * shows that all the others have stopped, too. */
#include "bench/actors/rows.h"

static int stop_child_as_it_mounts(domus_stack *stack, void *self)
{
    (void)self;
    return domus_stop(stack, domus_self(stack));
}

static void tell_parent_of_last_stop(domus_stack *stack, void *parent)
{
    stage_must_succeed(domus_notice(stack, *(domus_address *)parent, &go_type, NULL), "notice");
}

static const domus_behaviour child = {.name = "child", .on_mount = stop_child_as_it_mounts};
static const domus_behaviour last = {
    .name = "last",
    .state_size = sizeof(domus_address),
    .on_mount = stop_child_as_it_mounts,
    .on_stop = tell_parent_of_last_stop,
};

struct parent {
    uint64_t left;
    bool began;
};

static int spawn_next_batch_of_children(domus_stack *stack, void *self_, const void *nothing)
{
    struct parent *self = self_;
    domus_address address = domus_self(stack);
    uint64_t batch = self->left < SPAWN_BATCH ? self->left : SPAWN_BATCH;

    (void)nothing;
    if (!self->began)
        stage_begin_clocks();
    self->began = true;
    if (batch == 0) {
        stage_end_clocks();
        stage_let_main_thread_return();
        return 0;
    }
    self->left -= batch;
    for (uint64_t i = 1; i < batch; i++) {
        domus_address unused;
        stage_must_succeed(domus_spawn(stack, &child, NULL, &unused), "spawn");
    }
    stage_must_succeed(domus_spawn(stack, &last, &address, &address), "spawn");
    return 0;
}

static const domus_behaviour parent_behaviour = {
    .name = "parent",
    .state_size = sizeof(struct parent),
    .on = (const domus_on[]){{.type = &go_type, .handle = spawn_next_batch_of_children},
                             {.type = NULL}},
};

void row_run_spawns_and_stops(domus_system *system, uint64_t children)
{
    struct parent state = {.left = children};
    domus_profile profile;

    stage_spawn_and_notify(system, stage_spawn_child_of_root(system, 0, &parent_behaviour, &state),
                           &go_type, NULL);
    stage_wait_and_print_times();
    stage_must_succeed(domus_system_profile(system, 0, &profile), "profile");
    if (profile.stops != children)
        stage_exit_with_wrong_result("some are not gone");
}
