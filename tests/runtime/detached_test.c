/* runtime/outside/detached.c: detached actors may block, are addressed as any actor is, and are
 * stopped. In a receive a detached actor can learn that a conversation was cancelled which waits
 * for its answer; the cancel of that ask then reaches it, too. */
#include "tests/runtime/running.h"

#include <domus/detached.h>

#include <errno.h>
#include <pthread.h>

static const domus_type note_type = {.name = "note", .size = sizeof(uint32_t)};
static const domus_type question_type = {.name = "question", .size = sizeof(uint32_t)};
static const domus_type go_type = {.name = "go"};
static const domus_type urgent_type = {.name = "urgent", .size = sizeof(uint32_t)};
static const domus_type spawn_type = {.name = "spawn"};

static _Atomic uint32_t notes, asks, mounted, stopped, wrong, answers, begun, released;
static _Atomic int last, last_error;
static _Atomic bool hold;
static _Atomic uint64_t threads[64];

static int record_thread_of_mount(domus_stack *stack, void *self)
{
    atomic_store(&threads[atomic_load(&mounted) % 64], (uint64_t)pthread_self());
    atomic_fetch_add(&mounted, 1);
    return 0;
}

static domus_system *system_;
/* true: on_stop of the detached actor stops the whole system */
static _Atomic bool stops_all;
static _Atomic int stop_said;

static void count_stop_of_actor(domus_stack *stack, void *self)
{
    atomic_fetch_add(&stopped, 1);
    if (atomic_load(&stops_all))
        atomic_store(&stop_said, domus_system_stop(system_));
}

static int on_note_record_number(domus_stack *stack, void *self, const void *note)
{
    atomic_store(&last, (int)*(const uint32_t *)note);
    atomic_fetch_add(&notes, 1);
    return 0;
}

static int on_question_reply_number_plus_one(domus_stack *stack, void *self, const void *number)
{
    uint32_t next = *(const uint32_t *)number + 1;
    atomic_fetch_add(&asks, 1);
    return domus_reply(stack, &question_type, &next);
}

/* Handle a message by blocking the thread, which only a detached actor may do. */
static int on_go_block_while_held(domus_stack *stack, void *self, const void *nothing)
{
    atomic_fetch_add(&begun, 1);
    for (int i = 0; i < 20000 && atomic_load(&hold); i++)
        domt_pause_ns(DOMT_MS);
    atomic_fetch_add(&released, 1);
    return 0;
}

static const domus_behaviour loner = {
    .name = "loner",
    .on = (const domus_on[]){{&note_type, on_note_record_number, 0},
                             {&question_type, on_question_reply_number_plus_one, 0},
                             {&go_type, on_go_block_while_held, 0},
                             {0}},
    .on_mount = record_thread_of_mount,
    .on_stop = count_stop_of_actor};

/* Handle messages as a thread would: this handler receives until it is told to stop, urgent
 * messages first and then the others in order. */
static int on_run_receive_until_told_to_stop(domus_stack *stack, void *self, const void *nothing)
{
    static const domus_type *const urgent[] = {&urgent_type, NULL};
    static const domus_type *const all[] = {&note_type, &question_type, NULL};
    const domus_pattern first = {.types = urgent};
    const domus_pattern then = {.types = all};
    domus_received got;
    int result;

    for (;;) {
        result = domus_receive_now(stack, &first, 0, &got);
        if (result == -ETIMEDOUT)
            result = domus_receive_now(stack, &then, 50 * DOMT_MS, &got);
        if (result == -ETIMEDOUT)
            continue;
        if (result != 0)
            break;
        if (got.is_ask && domus_reply(stack, &question_type, got.payload) != 0)
            atomic_fetch_add(&wrong, 1);
        if (!got.is_ask)
            (void)on_note_record_number(stack, self, got.payload);
    }
    atomic_store(&last_error, result);
    return 0;
}

static const domus_behaviour receiver = {
    .name = "receiver",
    .on = (const domus_on[]){{&go_type, on_run_receive_until_told_to_stop, 0}, {0}},
    .on_mount = record_thread_of_mount,
    .on_stop = count_stop_of_actor};

/* An actor of the system that makes detached actors and asks them. */
struct maker {
    const domus_behaviour *behaviour;
    domus_address made;
};

static int record_number_or_error_of_answer(domus_stack *stack, void *self,
                                            const domus_answer *answer)
{
    if (answer->error != 0)
        atomic_store(&last_error, answer->error);
    else
        atomic_store(&last, (int)*(const uint32_t *)answer->payload);
    atomic_fetch_add(&answers, 1);
    return 0;
}

static int ask_detached_actor(domus_stack *stack, void *self, const void *number)
{
    struct maker *maker = self;

    return domus_ask(stack, maker->made, &question_type, number, record_number_or_error_of_answer);
}

static int spawn_detached_actor(domus_stack *stack, void *self, const void *nothing)
{
    struct maker *maker = self;
    const domus_spawn_options options = {.detached = true};

    int result = domus_spawn_with(stack, maker->behaviour, NULL, &options, &maker->made);
    atomic_store(&last_error, result);
    return result == 0 ? domus_notice(stack, maker->made, &go_type, NULL) : 0;
}

static int send_note_to_detached_actor(domus_stack *stack, void *self, const void *note)
{
    return domus_notice(stack, ((struct maker *)self)->made, &note_type, note);
}

static int send_urgent_to_detached_actor(domus_stack *stack, void *self, const void *note)
{
    return domus_notice(stack, ((struct maker *)self)->made, &urgent_type, note);
}

static int stop_detached_actor(domus_stack *stack, void *self, const void *nothing)
{
    return domus_stop(stack, ((struct maker *)self)->made);
}

static int stop_detached_actor_after_mail(domus_stack *stack, void *self, const void *nothing)
{
    return domus_stop_after_mail(stack, ((struct maker *)self)->made);
}

static const domus_type stop_type = {.name = "stop"};
static const domus_type stop_after_type = {.name = "stop after mail"};

static const domus_behaviour maker_behaviour = {
    .name = "maker",
    .state_size = sizeof(struct maker),
    .on = (const domus_on[]){{&spawn_type, spawn_detached_actor, 0},
                             {&question_type, ask_detached_actor, 0},
                             {&note_type, send_note_to_detached_actor, 0},
                             {&urgent_type, send_urgent_to_detached_actor, 0},
                             {&stop_type, stop_detached_actor, 0},
                             {&stop_after_type, stop_detached_actor_after_mail, 0},
                             {0}},
};

static domus_address maker;

static void start_system_with_maker(const domus_behaviour *behaviour, uint32_t threads_max)
{
    domus_config config = domt_config_of_threads(1);

    config.detached.threads_max = threads_max;
    config.shutdown.actor_timeout_ns = 2000 * DOMT_MS;
    atomic_store(&notes, 0);
    atomic_store(&asks, 0);
    atomic_store(&mounted, 0);
    atomic_store(&stopped, 0);
    atomic_store(&wrong, 0);
    atomic_store(&answers, 0);
    atomic_store(&begun, 0);
    atomic_store(&released, 0);
    atomic_store(&last_error, 1);
    atomic_store(&hold, false);
    system_ = domt_start_system(&config);
    maker = domt_spawn(system_, 0, &maker_behaviour, &(struct maker){.behaviour = behaviour});
    domt_send_notice(system_, maker, &spawn_type, NULL);
    /* wait for the mount, because an actor that is stopped earlier never begins */
    DOMT_WAIT_FOR(10, atomic_load(&mounted) == 1);
}

/* Spawn a second detached actor whose handler does not return. The handler of the first one has to
 * be over before, because `hold` would hold it, too. */
static void hold_handler_of_second_actor(void)
{
    DOMT_WAIT_FOR(10, atomic_load(&released) == 1);
    atomic_store(&hold, true);
    domt_send_notice(system_, maker, &spawn_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&begun) == 2);
}

DOMT_TEST(detached_actor_answers_as_any_other)
{
    start_system_with_maker(&loner, 4);
    for (uint32_t i = 0; i < 500; i++) {
        domt_send_notice(system_, maker, &question_type, &i);
        DOMT_WAIT_FOR(10, atomic_load(&answers) == i + 1);
        ck_assert_int_eq(atomic_load(&last), (int)i + 1);
    }
    for (uint32_t i = 0; i < 5000; i++)
        domt_send_notice(system_, maker, &note_type, &i);
    DOMT_WAIT_FOR(10, atomic_load(&notes) == 5000);
    ck_assert_int_eq(atomic_load(&last), 4999);
    domt_end_system(system_);
    ck_assert_uint_eq(atomic_load(&stopped), 1);
}

DOMT_TEST(detached_actor_that_blocks_holds_up_nobody_else)
{
    start_system_with_maker(&loner, 4);
    hold_handler_of_second_actor();
    domus_address other = domt_spawn(system_, 0, &loner, NULL);
    uint32_t number = 1;
    domt_send_notice(system_, other, &note_type, &number);
    DOMT_WAIT_FOR(10, atomic_load(&notes) == 1);
    atomic_store(&hold, false);
    domt_end_system(system_);
    ck_assert_uint_eq(atomic_load(&stopped), 3);
}

DOMT_TEST(threads_of_detached_actors_are_bounded_and_reused)
{
    start_system_with_maker(&loner, 1);
    domt_send_notice(system_, maker, &spawn_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&last_error) == -EAGAIN);
    for (uint32_t i = 1; i <= 20; i++) {
        domt_send_notice(system_, maker, &stop_type, NULL);
        DOMT_WAIT_FOR(10, atomic_load(&stopped) == i);
        /* repeat, because a thread tells a little later that it is free for another detached actor
         */
        do {
            atomic_store(&last_error, 1);
            domt_send_notice(system_, maker, &spawn_type, NULL);
            DOMT_WAIT_FOR(10, atomic_load(&last_error) != 1);
        } while (atomic_load(&last_error) == -EAGAIN);
        DOMT_WAIT_FOR(10, atomic_load(&mounted) == i + 1);
        ck_assert_uint_eq(atomic_load(&threads[i]), atomic_load(&threads[0]));
    }
    domt_end_system(system_);
}

DOMT_TEST(receive_that_returns_takes_the_urgent_first_and_the_rest_in_order)
{
    start_system_with_maker(&receiver, 4);
    for (uint32_t i = 0; i < 1000; i++) {
        domt_send_notice(system_, maker, &note_type, &i);
        if (i % 10 == 0) {
            uint32_t urgent = 1000000;
            domt_send_notice(system_, maker, &urgent_type, &urgent);
        }
    }
    DOMT_WAIT_FOR(10, atomic_load(&notes) == 1100);
    uint32_t number = 7;
    domt_send_notice(system_, maker, &question_type, &number);
    DOMT_WAIT_FOR(10, atomic_load(&answers) == 1);
    ck_assert_int_eq(atomic_load(&last), 7);
    ck_assert_uint_eq(atomic_load(&wrong), 0);
    domt_end_system(system_);
    /* the receive has ended with an error because the actor was stopped */
    ck_assert_int_eq(atomic_load(&last_error), -ECANCELED);
    ck_assert_uint_eq(atomic_load(&stopped), 1);
}

DOMT_TEST(stop_after_mail_ends_a_receive_that_returns_behind_what_came_before)
{
    start_system_with_maker(&receiver, 4);
    for (uint32_t i = 0; i < 100; i++)
        domt_send_notice(system_, maker, &note_type, &i);
    domt_send_notice(system_, maker, &stop_after_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&stopped) == 1);
    ck_assert_uint_eq(atomic_load(&notes), 100);
    ck_assert_int_eq(atomic_load(&last_error), -ECANCELED);
    domt_end_system(system_);
}

DOMT_TEST(stop_names_a_detached_actor_that_does_not_return)
{
    start_system_with_maker(&loner, 4);
    hold_handler_of_second_actor();
    domt_pause_ns(5 * DOMT_MS);
    ck_assert_int_eq(domus_system_stop(system_), -ETIMEDOUT);
    ck_assert_msg(strstr(domus_system_left(system_), "a handler of loner") != NULL, "%s",
                  domus_system_left(system_));
    atomic_store(&hold, false);
    ck_assert_int_eq(domus_system_stop(system_), 0);
    domus_system_free(system_);
}

/* The second actor is abandoned because its handler did not return in time, so its on_stop runs on
 * the thread of the stop. The on_stop of the first one has run by then, or runs there too if its
 * thread got no CPU for all this time. */
DOMT_TEST(on_stop_of_an_actor_that_is_left_cannot_stop_the_system)
{
    start_system_with_maker(&loner, 4);
    hold_handler_of_second_actor();
    ck_assert_int_eq(domus_system_stop(system_), -ETIMEDOUT);
    ck_assert_uint_le(atomic_load(&stopped), 1);
    atomic_store(&stops_all, true);
    atomic_store(&hold, false);
    ck_assert_int_eq(domus_system_stop(system_), 0);
    ck_assert_uint_eq(atomic_load(&stopped), 2);
    ck_assert_int_eq(atomic_load(&stop_said), -EDEADLK);
    domus_system_free(system_);
}

/* --- a cancel while it receives --------------------------------------------------------------- */

static domus_address detached;
static domus_conversation asking;
static domus_kept kept;
static _Atomic uint32_t keeps, pauses;
static _Atomic int work_error, kept_error;

static const domus_type work_type = {.name = "work"};
static const domus_type part_type = {.name = "part"};
static const domus_type pause_type = {.name = "pause"};
static const domus_type done_type = {.name = "done"};
static const domus_type give_up_type = {.name = "give up"};
static const domus_type *const done_types[] = {&done_type, NULL};
static const domus_pattern done = {.types = done_types};

/* --- the detached actor ----------------------------------------------------------------------- */

static int return_error_of_part_ask(domus_stack *stack, void *self, const domus_answer *answer)
{
    return answer->error;
}

static int on_work_ask_for_part(domus_stack *stack, void *self, const void *nothing)
{
    return domus_ask(stack, detached, &part_type, NULL, return_error_of_part_ask);
}

static int on_part_keep_ask(domus_stack *stack, void *self, const void *nothing)
{
    int error = domus_keep(stack, &kept);

    atomic_fetch_add(&keeps, 1);
    return error;
}

static int on_pause_receive_and_answer_kept_ask(domus_stack *stack, void *self, const void *nothing)
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
    .on = (const domus_on[]){{&work_type, on_work_ask_for_part, 0},
                             {&part_type, on_part_keep_ask, 0},
                             {&pause_type, on_pause_receive_and_answer_kept_ask, 0},
                             {0}}};

/* --- who asks it, and gives up ---------------------------------------------------------------- */

static int record_error_of_work(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_store(&work_error, answer->error);
    return 0;
}

static int ask_for_work(domus_stack *stack, void *self, const void *nothing)
{
    ck_assert_int_eq(domus_conversation_of(stack, &asking), 0);
    return domus_ask(stack, detached, &work_type, NULL, record_error_of_work);
}

static int cancel_ask_for_work(domus_stack *stack, void *self, const void *nothing)
{
    return domus_cancel(stack, asking);
}

static const domus_behaviour asker = {
    .name = "asker",
    .on = (const domus_on[]){
        {&go_type, ask_for_work, 0}, {&give_up_type, cancel_ask_for_work, 0}, {0}}};

DOMT_TEST(cancel_reaches_what_an_actor_that_receives_has_asked_of_itself)
{
    domus_config config = domt_config_of_threads(1);

    config.detached.threads_max = 1;
    domus_system *system = domt_start_system(&config);
    detached = domt_spawn_detached(system, &worker);
    domus_address one = domt_spawn(system, 0, &asker, NULL);
    domt_send_notice(system, one, &go_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&keeps) == 1);
    domt_send_notice(system, detached, &pause_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&pauses) == 1);
    domt_send_notice(system, one, &give_up_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&work_error) == -ECANCELED);
    domt_send_notice(system, detached, &done_type, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&pauses) == 2);
    domt_end_system(system);
    ck_assert_int_eq(atomic_load(&kept_error), -ENOENT);
}

DOMT_SUITE(60)
