/* runtime/outside/blocking.c: the end of blocking work resumes its conversation, whatever becomes
 * of the actor meanwhile. */
#include "house/conversation/stack.h"

#include "tests/runtime/running.h"

#include <domus/blocking.h>

#include <errno.h>

static const domus_type go_type = {.name = "go"};
static const domus_type stop_type = {.name = "stop"};

static _Atomic uint32_t resumed, wrong, begun, stopped, returned;
static _Atomic int last_error;
static _Atomic bool hold;

/* A frame, which says where it was when the helper thread got its address. */
typedef struct work {
    int number;
    const void *address;
} work;

static int wait_while_held(void *argument)
{
    atomic_fetch_add(&begun, 1);
    for (int i = 0; i < 20000 && atomic_load(&hold); i++)
        domt_pause_ns(DOMT_MS);
    int number = *(const int *)argument;
    atomic_fetch_add(&returned, 1);
    return number;
}

static int ended(domus_stack *stack, void *self, const domus_answer *answer)
{
    const work *own = domus_frame(stack);

    atomic_store(&last_error, answer->error);
    if (own->address != own || domi_stack_house(stack)->asks != 0)
        atomic_fetch_add(&wrong, 1);
    if (answer->error == 0 &&
        (answer->type != &domus_blocking_type || *(const int *)answer->payload != own->number))
        atomic_fetch_add(&wrong, 1);
    atomic_fetch_add(&resumed, 1);
    return 0;
}

/* The argument is in the frame: it lasts as long as the conversation. */
static int go(domus_stack *stack, void *self, const void *payload)
{
    work *own = domus_frame(stack);

    *own = (work){.number = *(const int *)self, .address = own};
    int result = domus_blocking(stack, wait_while_held, &own->number, ended);
    if (domi_stack_house(stack)->asks != 0) /* it depends on no other actor */
        atomic_fetch_add(&wrong, 1);
    return result;
}

static int stop_oneself(domus_stack *stack, void *self, const void *payload)
{
    return domus_stop(stack, domus_self(stack));
}

static void on_stop(domus_stack *stack, void *self)
{
    atomic_fetch_add(&stopped, 1);
}

static const domus_behaviour worker = {
    .name = "worker",
    .state_size = sizeof(int),
    .on = (const domus_on[]){{&go_type, go, sizeof(work)},
                             {&stop_type, stop_oneself, 0},
                             {NULL, NULL, 0}},
    .on_stop = on_stop,
};

static void clear(void)
{
    atomic_store(&resumed, 0);
    atomic_store(&wrong, 0);
    atomic_store(&begun, 0);
    atomic_store(&returned, 0);
    atomic_store(&stopped, 0);
    atomic_store(&last_error, 1);
    atomic_store(&hold, false);
}

DOMT_TEST(end_of_blocking_work_resumes_with_what_it_returned)
{
    domus_config config = domt_config(2);
    int number = 42;

    clear();
    domus_system *system = domt_start(&config);
    for (uint32_t i = 0; i < 200; i++) {
        domus_address one = domt_spawn(system, i % 2, &worker, &number);
        for (int k = 0; k < 10; k++)
            domt_notice(system, one, &go_type, NULL);
    }
    DOMT_WAIT_FOR(20, atomic_load(&resumed) == 2000);
    ck_assert_uint_eq(atomic_load(&wrong), 0);
    ck_assert_int_eq(atomic_load(&last_error), 0);
    domt_end(system);
}

DOMT_TEST(negative_end_of_blocking_work_is_the_error)
{
    domus_config config = domt_config(1);
    int number = -EIO;

    clear();
    domus_system *system = domt_start(&config);
    domt_notice(system, domt_spawn(system, 0, &worker, &number), &go_type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&resumed) == 1);
    ck_assert_int_eq(atomic_load(&last_error), -EIO);
    domt_end(system);
}

DOMT_TEST(blocking_work_at_its_limit_fails_with_eagain)
{
    domus_config config = domt_config(1);
    int number = 1;

    config.blocking.threads_max = 1;
    config.blocking.queue_max = 1;
    clear();
    atomic_store(&hold, true);
    domus_system *system = domt_start(&config);
    domus_address one = domt_spawn(system, 0, &worker, &number);
    domt_notice(system, one, &go_type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&begun) == 1);
    domt_notice(system, one, &go_type, NULL);
    domt_notice(system, one, &go_type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&resumed) == 1);
    ck_assert_int_eq(atomic_load(&last_error), -EAGAIN);
    atomic_store(&hold, false);
    DOMT_WAIT_FOR(20, atomic_load(&resumed) == 3);
    domt_end(system);
}

DOMT_TEST(stop_waits_for_work_that_runs_and_withdraws_what_does_not)
{
    domus_config config = domt_config(1);
    int number = 1;

    config.blocking.threads_max = 1;
    clear();
    atomic_store(&hold, true);
    domus_system *system = domt_start(&config);
    domus_address one = domt_spawn(system, 0, &worker, &number);
    domt_notice(system, one, &go_type, NULL);
    domt_notice(system, one, &go_type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&begun) == 1);
    domt_notice(system, one, &stop_type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&resumed) == 1);
    ck_assert_int_eq(atomic_load(&last_error), -ECANCELED); /* the one that had not begun */
    domt_pause_ns(5 * DOMT_MS);
    ck_assert_uint_eq(atomic_load(&stopped), 0);
    atomic_store(&hold, false);
    DOMT_WAIT_FOR(20, atomic_load(&stopped) == 1);
    ck_assert_uint_eq(atomic_load(&resumed), 2);
    ck_assert_uint_eq(atomic_load(&begun), 1);
    domt_end(system);
}

/* The argument of the work is in the frame, and the function reads it when all else is over. */
DOMT_TEST(work_that_outlasts_the_actor_timeout_is_abandoned_and_said)
{
    int number = 1;

    domus_config config = domt_config(1);

    config.shutdown.actor_timeout_ns = 20 * DOMT_MS;
    clear();
    atomic_store(&hold, true);
    domus_system *system = domt_start(&config);
    domus_address one = domt_spawn(system, 0, &worker, &number);
    domt_notice(system, one, &go_type, NULL);
    DOMT_WAIT_FOR(20, atomic_load(&begun) == 1);
    ck_assert_int_eq(domus_system_stop(system), 0);
    ck_assert_ptr_nonnull(strstr(domus_system_left(system), "worker"));
    ck_assert_ptr_nonnull(strstr(domus_system_left(system), "1 conversations"));
    ck_assert_uint_eq(atomic_load(&stopped), 0); /* it is left as it is */
    domus_system_free(system);                   /* frees nothing: the frame is used */
    atomic_store(&hold, false);
    DOMT_WAIT_FOR(20, atomic_load(&returned) == 1);
    domt_pause_ns(20 * DOMT_MS);
    domus_system_free(system);
    ck_assert_uint_eq(atomic_load(&stopped), 1);
}

DOMT_SUITE(60)
