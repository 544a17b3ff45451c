/* runtime/outside/seat.c: how outsiders end: by themselves, by others, and with the system; which
 * thread may use one; and their turns. */
#include "tests/runtime/outsiders.h"

#include "base/memory.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static domus_system *system_;
static domus_outsider *self_;
static domus_address peer;

static void start_system_with_outsider(uint32_t threads)
{
    domus_config config = domt_config_of_threads(threads);
    config.detached.threads_max = 4;
    config.shutdown.actor_timeout_ns = 200 * DOMT_MS;
    system_ = domt_start_system(&config);
    peer = domt_spawn(system_, 0, &domt_peer, NULL);
    self_ = domt_attach_outsider(system_);
}

/* --- who may use it ----------------------------------------------------------------------------
 */

static int fail_test_if_turn_begins(domus_stack *stack, void *argument)
{
    ck_abort_msg("a turn that must not be");
    return 0;
}

/* Check that each verb of outsiders returns this error. */
static void expect_each_verb_returns(int error)
{
    uint32_t number = 0;
    domus_outside_message message;
    domus_watch watch = {0};
    uint64_t released = atomic_load(&domt_released);

    ck_assert_int_eq(domus_outsider_notice(self_, peer, &domt_number_type, &number), error);
    ck_assert_int_eq(domus_outsider_ask(self_, peer, &domt_owner_type, &number, 0, NULL), error);
    ck_assert_int_eq(domus_outsider_ask_add(self_, peer, &domt_owner_type, &number, 0, 0), error);
    ck_assert_uint_eq(atomic_load(&domt_released), released + 2);
    ck_assert_int_eq(domus_outside_receive(self_, NULL, DOMUS_FOR_EVER, &message), error);
    ck_assert_int_eq(domus_outsider_reply(self_, &domt_number_type, &number), error);
    ck_assert_int_eq(domus_outsider_fail(self_, -EDOM), error);
    ck_assert_int_eq(domus_outsider_take(self_), error);
    ck_assert_int_eq(domus_outsider_watch(self_, peer, NULL), error);
    ck_assert_int_eq(domus_outsider_unwatch(self_, watch), error);
    ck_assert_int_eq(domus_outsider_act(self_, fail_test_if_turn_begins, NULL), error);
}

static void *use_outsider_on_other_thread(void *nothing)
{
    expect_each_verb_returns(-EPERM);
    ck_assert_int_eq(domus_outside_detach(self_), -EPERM);
    return nothing;
}

DOMT_TEST(outsider_is_for_its_own_thread)
{
    pthread_t thread;
    int status;
    domus_outsider *none = NULL;

    start_system_with_outsider(1);
    ck_assert_int_eq(pthread_create(&thread, NULL, use_outsider_on_other_thread, NULL), 0);
    pthread_join(thread, NULL);
    pid_t child = fork();
    if (child == 0) {
        expect_each_verb_returns(-ECHILD);
        ck_assert_int_eq(domus_outside_detach(self_), -ECHILD);
        ck_assert_int_eq(domus_outside_attach(system_, NULL, &none), -ECHILD);
        _exit(42);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    ck_assert_int_eq(domus_outside_detach(self_), 0);
    /* no thread is this outsider any more, so another thread gets other errors */
    use_outsider_on_other_thread(NULL);
    ck_assert_int_eq(domus_outside_detach(NULL), 0);
    domt_end_system(system_);
}

static int use_outsider_within_turn(domus_stack *stack, void *argument)
{
    domus_outsider *none = NULL;

    expect_each_verb_returns(-EDEADLK);
    ck_assert_int_eq(domus_outside_detach(self_), -EDEADLK);
    ck_assert_int_eq(domus_outside_attach(system_, NULL, &none), -EDEADLK);
    ck_assert_int_eq(domus_system_stop(system_), -EDEADLK);
    ck_assert(domus_address_equals(domus_self(stack), domus_outsider_address(self_)));
    return 0;
}

DOMT_TEST(calls_of_outsiders_are_refused_within_their_turn)
{
    start_system_with_outsider(1);
    ck_assert_int_eq(domus_outsider_act(self_, use_outsider_within_turn, NULL), 0);
    ck_assert_int_eq(domus_outside_detach(self_), 0);
    domt_end_system(system_);
}

DOMT_TEST(outsiders_are_bounded_and_seats_are_used_again)
{
    domus_outsider *outsiders[5];
    const domus_outsider_options named = {.name = "thread"};
    domus_address found;

    start_system_with_outsider(1);
    ck_assert_int_eq(domus_outside_detach(self_), 0);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 4; i++)
            outsiders[i] = domt_attach_outsider(system_);
        ck_assert_int_eq(domus_outside_attach(system_, NULL, &outsiders[4]), -EAGAIN);
        for (int i = 0; i < 4; i++)
            ck_assert_int_eq(domus_outside_detach(outsiders[i]), 0);
    }
    ck_assert_int_eq(domus_outside_attach(system_, &named, &outsiders[0]), 0);
    ck_assert_int_eq(domus_outside_find(system_, "thread", &found), 0);
    ck_assert(domus_address_equals(found, domus_outsider_address(outsiders[0])));
    ck_assert_int_eq(domus_outside_attach(system_, &named, &outsiders[1]), -EEXIST);
    ck_assert_int_eq(domus_outside_detach(outsiders[0]), 0);
    ck_assert_int_eq(domus_outside_find(system_, "thread", &found), -ENOENT);
    domt_end_system(system_);
}

/* --- turns -------------------------------------------------------------------------------------
 */

static const domus_type tick_type = {.name = "tick", .size = sizeof(uint32_t)};

static int spawn_actor_and_arm_timer(domus_stack *stack, void *argument)
{
    uint32_t number = 5;
    ck_assert_int_eq(domus_after(stack, DOMT_MS, &tick_type, &number, NULL), 0);
    return domus_spawn(stack, &domt_peer, NULL, argument);
}

static int keep_ask_of_outsider(domus_stack *stack, void *kept)
{
    return domus_keep(stack, kept);
}

static int answer_kept_ask(domus_stack *stack, void *kept)
{
    uint32_t number = 77;
    return domus_kept_reply(stack, *(domus_kept *)kept, &domt_number_type, &number);
}

static _Atomic uint32_t resumed;

static int record_answer_of_ask(domus_stack *stack, void *self, const domus_answer *answer)
{
    if (answer->error == 0)
        atomic_store(&resumed, *(const uint32_t *)answer->payload);
    else /* the last ask is cancelled if the outsider detaches before its answer has come */
        ck_assert_int_eq(answer->error, -ECANCELED);
    return 0;
}

static int ask_peer_in_turn(domus_stack *stack, void *argument)
{
    uint32_t number = 9;
    return domus_ask(stack, peer, &domt_number_type, &number, record_answer_of_ask);
}

static int fail_turn_with_exdev(domus_stack *stack, void *argument)
{
    return -EXDEV;
}

DOMT_TEST(turn_of_an_outsider_may_use_the_verbs_of_actors)
{
    domus_address child;
    domus_outside_message message;
    domus_kept kept;

    start_system_with_outsider(2);
    ck_assert_int_eq(domus_outsider_act(self_, spawn_actor_and_arm_timer, &child), 0);
    ck_assert_uint_eq(domt_receive_number(self_, &tick_type, &message), 5);
    ck_assert_int_eq(message.kind, DOMUS_OUTSIDE_EVENT);
    ck_assert_int_eq(domus_outsider_take(self_), 0);

    domt_send_poke_to_peer(system_, peer, domus_outsider_address(self_), 1, 1, true);
    (void)domt_receive_number(self_, &domt_number_type, &message);
    ck_assert_int_eq(domus_outsider_act(self_, keep_ask_of_outsider, &kept), 0);
    ck_assert_int_eq(domus_outsider_fail(self_, -EDOM), -EALREADY);
    ck_assert_int_eq(domus_outside_receive(self_, NULL, 0, &message), -ETIMEDOUT);
    ck_assert_int_eq(domus_outsider_act(self_, answer_kept_ask, &kept), 0);
    DOMT_WAIT_FOR(10, atomic_load(&domt_answers) == 1);
    ck_assert_uint_eq(atomic_load(&domt_answer_sum), 77);

    ck_assert_int_eq(domus_outsider_act(self_, ask_peer_in_turn, NULL), 0);
    while (atomic_load(&resumed) == 0)
        (void)domus_outside_receive(self_, NULL, DOMT_MS, &message);
    ck_assert_uint_eq(atomic_load(&resumed), 10);
    ck_assert_int_eq(domus_outsider_act(self_, fail_turn_with_exdev, NULL), -EXDEV);
    /* a turn that has failed does not end the outsider */
    ck_assert_int_eq(domus_outsider_act(self_, ask_peer_in_turn, NULL), 0);

    ck_assert_uint_eq(atomic_load(&domt_stopped), 0);
    ck_assert_int_eq(domus_outside_detach(self_), 0);
    /* the child of the outsider ends, although no thread waits for that */
    DOMT_WAIT_FOR(10, atomic_load(&domt_stopped) == 1);
    self_ = domt_attach_outsider(system_);
    ck_assert_int_eq(domus_outside_detach(self_), 0);
    domt_end_system(system_);
}

/* --- stops -------------------------------------------------------------------------------------
 */

DOMT_TEST(outsider_that_is_stopped_is_told_so)
{
    domus_outside_message message;
    uint32_t number = 1;

    start_system_with_outsider(1);
    ck_assert_int_eq(
        domus_outsider_notice(self_, domus_outsider_address(self_), &domt_number_type, &number), 0);
    ck_assert_int_eq(domus_outside_stop_after_mail(system_, domus_outsider_address(self_)), 0);
    (void)domt_receive_number(self_, &domt_number_type, &message);
    ck_assert_int_eq(domus_outside_receive(self_, NULL, DOMUS_FOR_EVER, &message), -ECANCELED);
    ck_assert_int_eq(domus_outside_detach(self_), 0);

    self_ = domt_attach_outsider(system_);
    domt_send_poke_to_peer(system_, peer, domus_outsider_address(self_), 0, 0, false);
    ck_assert_int_eq(domus_outsider_ask(self_, peer, &domt_number_type, &number, 0, NULL), 0);
    ck_assert_int_eq(domus_outside_stop(system_, domus_outsider_address(self_)), 0);
    ck_assert_int_eq(domus_outside_receive(self_, NULL, DOMUS_FOR_EVER, &message), -ECANCELED);
    DOMT_WAIT_FOR(10, atomic_load(&domt_downs) == 1);
    ck_assert_int_eq(domus_outside_receive(self_, NULL, DOMUS_FOR_EVER, &message), -ECANCELED);
    ck_assert_int_eq(domus_outsider_notice(self_, peer, &domt_number_type, &number), -ESTALE);
    ck_assert_int_eq(domus_outsider_ask(self_, peer, &domt_number_type, &number, 0, NULL),
                     -ECANCELED);
    ck_assert_int_eq(domus_outsider_act(self_, fail_test_if_turn_begins, NULL), -ESTALE);
    ck_assert_int_eq(domus_outside_detach(self_), 0);
    domt_end_system(system_);
}

static _Atomic uint32_t inside;
static _Atomic int said[2];

/* Wait in a receive, or in an ask to an actor that does not answer, until that wait is ended from
 * outside. */
static void *wait_until_ended_from_outside(void *asks)
{
    domus_outsider *outsider = domt_attach_outsider(system_);
    domus_outside_message message;
    uint32_t number = 0;
    int result;

    atomic_fetch_add(&inside, 1);
    if (asks != NULL)
        result = domus_outsider_ask(outsider, *(domus_address *)asks, &domt_number_type, &number,
                                    DOMUS_OUTSIDE_ASK_MAX_NS, NULL);
    else
        result = domus_outside_receive(outsider, NULL, DOMUS_FOR_EVER, &message);
    atomic_store(&said[asks != NULL], result);
    ck_assert_int_eq(domus_outside_detach(outsider), 0);
    return NULL;
}

DOMT_TEST(stop_of_the_system_ends_waits_and_the_thread_that_stops)
{
    pthread_t threads[2];

    start_system_with_outsider(2);
    domus_address silent = domus_outsider_address(self_);
    ck_assert_int_eq(pthread_create(&threads[0], NULL, wait_until_ended_from_outside, NULL), 0);
    ck_assert_int_eq(pthread_create(&threads[1], NULL, wait_until_ended_from_outside, &silent), 0);
    DOMT_WAIT_FOR(10, atomic_load(&inside) == 2);
    ck_assert_int_eq(domus_system_stop(system_), 0);
    ck_assert_str_eq(domus_system_left(system_), "");
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(atomic_load(&said[0]), -ESHUTDOWN);
    /* the ask ends with -ESTALE if the asked actor ended before the outsider was told of the stop,
     * and else with -ESHUTDOWN */
    int asked = atomic_load(&said[1]);
    ck_assert(asked == -ESHUTDOWN || asked == -ESTALE);
    ck_assert_int_eq(domus_outside_detach(self_), -EPERM);
    domus_system_free(system_);
}

static _Atomic bool go_on;

/* Attach, and then use no verb of outsiders until the system has stopped. */
static void *stay_attached_without_verbs(void *nothing)
{
    domus_outside_message message;

    self_ = domt_attach_outsider(system_);
    domt_send_poke_to_peer(system_, peer, domus_outsider_address(self_), 1, 1, true);
    (void)domt_receive_number(self_, &domt_number_type, &message);
    uint32_t number = 0;
    ck_assert_int_eq(
        domus_outsider_notice(self_, domus_outsider_address(self_), &domt_owner_type, &number), 0);
    (void)domt_receive_number(self_, &domt_owner_type, &message);
    ck_assert_int_eq(domus_outsider_ask_add(self_, peer, &domt_other_type, &number, 0, 0), 0);
    atomic_store(&inside, 1);
    while (!atomic_load(&go_on))
        domt_pause_ns(DOMT_MS);
    /* the payload of the received message can still be read */
    ck_assert_uint_eq(*(const uint32_t *)message.payload, 0);
    ck_assert_int_eq(domus_outside_receive(self_, NULL, DOMUS_FOR_EVER, &message), -ESHUTDOWN);
    ck_assert_int_eq(domus_outsider_reply(self_, &domt_number_type, &number), -ESHUTDOWN);
    ck_assert_int_eq(domus_outsider_notice(self_, peer, &domt_number_type, &number), -ESHUTDOWN);
    ck_assert_int_eq(domus_outsider_act(self_, fail_test_if_turn_begins, NULL), -ESHUTDOWN);
    ck_assert_int_eq(domus_outside_detach(self_), 0);
    ck_assert_int_eq(domus_outside_detach(self_), -EPERM);
    return nothing;
}

DOMT_TEST(system_stops_though_an_outsider_makes_no_more_calls)
{
    pthread_t thread;
    domus_outsider *none = NULL;

    start_system_with_outsider(2);
    ck_assert_int_eq(domus_outside_detach(self_), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, stay_attached_without_verbs, NULL), 0);
    DOMT_WAIT_FOR(10, atomic_load(&inside) == 1);
    uint64_t before_ns = domt_now_ns();
    ck_assert_int_eq(domus_system_stop(system_), 0);
    ck_assert_uint_ge(domt_now_ns() - before_ns, 200 * DOMT_MS);
    ck_assert_uint_lt(domt_now_ns() - before_ns, 5000 * DOMT_MS);
    ck_assert_ptr_nonnull(strstr(domus_system_left(system_), "outsider"));
    ck_assert_int_eq(domus_outside_attach(system_, NULL, &none), -ESHUTDOWN);
    atomic_store(&go_on, true);
    pthread_join(thread, NULL);
    domus_system_free(system_);
    /* the message that the thread had received, and the answer to its ask */
    ck_assert_uint_eq(atomic_load(&domt_released), 2);
}

static int stay_in_turn_until_allowed(domus_stack *stack, void *argument)
{
    atomic_store(&inside, 1);
    while (!atomic_load(&go_on))
        domt_pause_ns(DOMT_MS);
    return 0;
}

static void *take_turn_until_allowed(void *nothing)
{
    domus_outsider *outsider = domt_attach_outsider(system_);
    ck_assert_int_eq(domus_outsider_act(outsider, stay_in_turn_until_allowed, NULL), 0);
    ck_assert_int_eq(domus_outside_detach(outsider), 0);
    return nothing;
}

DOMT_TEST(stop_names_a_turn_of_an_outsider_that_does_not_return)
{
    pthread_t thread;

    start_system_with_outsider(1);
    ck_assert_int_eq(pthread_create(&thread, NULL, take_turn_until_allowed, NULL), 0);
    DOMT_WAIT_FOR(10, atomic_load(&inside) == 1);
    ck_assert_int_eq(domus_system_stop(system_), -ETIMEDOUT);
    ck_assert_ptr_nonnull(strstr(domus_system_left(system_), "outsider"));
    atomic_store(&go_on, true);
    pthread_join(thread, NULL);
    ck_assert_int_eq(domus_system_stop(system_), 0);
    domus_system_free(system_);
}

/* --- memory ------------------------------------------------------------------------------------
 */

/* Attach an outsider and use each of its verbs, while an allocation fails. Returns the first error,
 * or 0. */
static int use_each_verb_once(void)
{
    domus_outsider *outsider;
    domus_outside_message message;
    uint32_t number = 0;
    int result = domus_outside_attach(system_, NULL, &outsider);

    if (result != 0)
        return result;
    domus_address here = domus_outsider_address(outsider);
    if ((result = domus_outsider_notice(outsider, here, &domt_number_type, &number)) == 0)
        (void)domt_receive_number(outsider, &domt_number_type, &message);
    int asked = domus_outsider_ask(outsider, here, &domt_number_type, &number, DOMT_MS, NULL);
    if (asked != -EDEADLK)
        result = asked;
    if ((asked = domus_outsider_ask_add(outsider, here, &domt_owner_type, &number, 0, 3)) == 0) {
        asked = domus_outside_receive(outsider, NULL, 10 * DOMT_MS, &message);
        if (asked == 0 && message.kind == DOMUS_OUTSIDE_ASK)
            (void)domus_outsider_reply(outsider, &domt_number_type, &number);
        asked = domus_outside_receive(outsider, NULL, 10 * DOMT_MS, &message);
    }
    result = result == 0 ? asked : result;
    int watched = domus_outsider_watch(outsider, (domus_address){here.house, 0}, NULL);
    if (watched == 0)
        (void)domt_receive_number(outsider, &domus_down_type, &message);
    ck_assert_int_eq(domus_outside_detach(outsider), 0);
    return result == 0 ? watched : result;
}

DOMT_TEST(outsiders_survive_failed_allocations)
{
    int result = -ENOMEM;
    uint32_t failed = 0;
    int64_t count = 0;

    start_system_with_outsider(1);
    ck_assert_int_eq(domus_outside_detach(self_), 0);
    for (; count < 200; count++) {
        domi_memory_fail_allocation_after(count, 0);
        result = use_each_verb_once();
        domi_memory_fail_allocation_after(-1, 0);
        failed += result != 0;
    }
    ck_assert_int_eq(result, 0);
    ck_assert_uint_gt(failed, 0);
    domt_end_system(system_);
}

DOMT_SUITE(60)
