/* A detached actor that is told of a cancel while it receives, and has asked itself for the
 * conversation that is cancelled: the cancel of its own ask reaches it, too. */
#include "tests/runtime/running.h"

#include <domus/detached.h>

#include <errno.h>

static domus_address detached;
static domus_conversation asking;
static domus_kept kept;
static _Atomic uint32_t keeps, pauses;
static _Atomic int work_error, kept_error;

static const domus_type work_type = {.name = "work"};
static const domus_type part_type = {.name = "part"};
static const domus_type pause_type = {.name = "pause"};
static const domus_type done_type = {.name = "done"};
static const domus_type go_type = {.name = "go"};
static const domus_type give_up_type = {.name = "give up"};
static const domus_type *const done_types[] = {&done_type, NULL};
static const domus_pattern done = {.types = done_types};

/* --- the detached actor ----------------------------------------------------------------------- */

static int on_part_answered(domus_stack *stack, void *self, const domus_answer *answer)
{
    return answer->error;
}

static int on_work(domus_stack *stack, void *self, const void *nothing)
{
    return domus_ask(stack, detached, &part_type, NULL, on_part_answered);
}

static int on_part(domus_stack *stack, void *self, const void *nothing)
{
    int error = domus_keep(stack, &kept);

    atomic_fetch_add(&keeps, 1);
    return error;
}

static int on_pause(domus_stack *stack, void *self, const void *nothing)
{
    domus_received got;

    atomic_fetch_add(&pauses, 1);
    int error = domus_receive_now(stack, &done, DOMUS_FOR_EVER, &got);
    atomic_store(&kept_error, domus_kept_reply(stack, kept, &done_type, NULL));
    atomic_fetch_add(&pauses, 1);
    return error;
}

static const domus_behaviour worker = {
    .name = "worker",
    .on = (const domus_on[]){{&work_type, on_work, 0},
                             {&part_type, on_part, 0},
                             {&pause_type, on_pause, 0},
                             {NULL, NULL, 0}},
};

/* --- who asks it, and gives up ---------------------------------------------------------------- */

static int on_work_answered(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_store(&work_error, answer->error);
    return 0;
}

static int on_go(domus_stack *stack, void *self, const void *nothing)
{
    ck_assert_int_eq(domus_conversation_of(stack, &asking), 0);
    return domus_ask(stack, detached, &work_type, NULL, on_work_answered);
}

static int on_give_up(domus_stack *stack, void *self, const void *nothing)
{
    return domus_cancel(stack, asking);
}

static const domus_behaviour asker = {
    .name = "asker",
    .on = (const domus_on[]){{&go_type, on_go, 0}, {&give_up_type, on_give_up, 0}, {NULL, NULL, 0}},
};

DOMT_TEST(cancel_reaches_what_an_actor_that_receives_has_asked_of_itself)
{
    const domus_spawn_options options = {.detached = true};
    domus_config config = domt_config(1);

    config.detached.threads_max = 1;
    domus_system *system = domt_start(&config);
    ck_assert_int_eq(domus_outside_spawn_with(system, &worker, NULL, &options, &detached), 0);
    domus_address one = domt_spawn(system, 0, &asker, NULL);
    domt_notice(system, one, &go_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&keeps) == 1);
    domt_notice(system, detached, &pause_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&pauses) == 1);
    domt_notice(system, one, &give_up_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&work_error) == -ECANCELED);
    domt_notice(system, detached, &done_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&pauses) == 2);
    domt_end(system);
    ck_assert_int_eq(atomic_load(&kept_error), -ENOENT);
}

DOMT_SUITE(60)
