/* domus/cluster.h: actors of two nodes send messages to each other by the same functions as within
 * one node. */
#include "tests/cluster/pair.h"

#include <errno.h>
#include <time.h>

static uint64_t monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * DOMT_SECOND + (uint64_t)now.tv_nsec;
}

static void wait_for_count(_Atomic uint64_t *count, uint64_t least)
{
    /* for at most 40 s, on a busy machine */
    for (int i = 0; i < 8000 && atomic_load(count) < least; i++)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    ck_assert_uint_ge(atomic_load(count), least);
}

DOMT_TEST(asks_are_answered_by_the_other_node)
{
    for (uint32_t threads = 1; threads <= 2; threads++) {
        domt_pair_open_nodes(threads, NULL);
        domus_address worker = domt_spawn_worker_on_b();
        for (uint64_t i = 0; i < 100; i++) {
            uint64_t value;
            ck_assert_int_eq(
                domt_ask_from_node_a(worker, &domt_twice_type, i, 5 * DOMT_SECOND, &value), 0);
            ck_assert_uint_eq(value, 2 * i);
        }
        ck_assert_uint_ge(domt_read_info_of_b().sent, 101);
        ck_assert_uint_ge(domt_read_info_of_b().received, 101);
        domt_pair_close_nodes();
    }
}

/* Ask a worker without an outsider, so that the asker has no address. */
DOMT_TEST(a_foreign_thread_is_answered)
{
    domt_read_number_of_key number = {.value = 21}, answer = {.value = 0};
    domus_outside_reply reply = {.buffer = &answer, .size = sizeof answer};

    domt_pair_open_nodes(2, NULL);
    domus_address worker = domt_spawn_worker_on_b();
    ck_assert_int_eq(domus_outside_ask(domt_systems[0], worker, &domt_twice_type, &number,
                                       5 * DOMT_SECOND, &reply),
                     0);
    ck_assert_uint_eq(answer.value, 42);
    domt_pair_close_nodes();
}

DOMT_TEST(notices_come_in_order)
{
    domt_pair_open_nodes(2, NULL);
    domus_address worker = domt_spawn_worker_on_b();
    for (uint64_t i = 0; i < 20000; i++) {
        const domt_read_number_of_key number = {.value = i};
        int error;
        while ((error = domus_outsider_notice(domt_user, worker, &domt_tell_type, &number)) ==
               -ENOBUFS)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        ck_assert_int_eq(error, 0);
    }
    wait_for_count(&domt_told, 20000);
    ck_assert_uint_eq(atomic_load(&domt_disorder), 0);
    domt_pair_close_nodes();
}

DOMT_TEST(senders_are_answered_and_passed_on_to)
{
    uint64_t value;
    domus_outside_message message;

    domt_pair_open_nodes(2, NULL);
    domus_address first = domt_spawn_worker_on_b(), second = domt_spawn_worker_on_b();
    ck_assert_int_eq(domt_ask_from_node_a_about(first, &domt_pass_type, second, &value), 0);
    ck_assert_uint_eq(value, 42);
    const domt_read_number_of_key number = {.value = 7};
    ck_assert_int_eq(domus_outsider_notice(domt_user, first, &domt_back_type, &number), 0);
    ck_assert_int_eq(domus_outside_receive(domt_user, NULL, 5 * DOMT_SECOND, &message), 0);
    ck_assert_ptr_eq(message.type, &domt_number_type);
    ck_assert_uint_eq(((const domt_read_number_of_key *)message.payload)->value, 7);
    ck_assert(domus_address_equals(message.sender, first));
    ck_assert(
        domus_address_equals(((const domt_read_number_of_key *)message.payload)->about, first));
    domt_pair_close_nodes();
}

DOMT_TEST(an_ask_fails_within_its_time)
{
    domt_pair_open_nodes(2, NULL);
    domus_address worker = domt_spawn_worker_on_b();
    uint64_t begin_ns = monotonic_ns();
    ck_assert_int_eq(domt_ask_from_node_a(worker, &domt_hold_type, 0, 100 * DOMT_MS, NULL),
                     -ETIMEDOUT);
    ck_assert_uint_lt(monotonic_ns() - begin_ns, 5 * DOMT_SECOND);
    ck_assert_int_eq(domt_ask_from_node_a(worker, &domt_secret_type, 0, DOMT_SECOND, NULL),
                     -ENOENT);
    ck_assert_int_eq(domt_ask_from_node_a(worker, &domt_number_type, 0, DOMT_SECOND, NULL),
                     -EOPNOTSUPP);
    domt_pair_close_nodes();
}

static domus_down heard;

static void expect_down_of_actor(domus_address who, int reason)
{
    domus_outside_message message;

    ck_assert_int_eq(domus_outside_receive(domt_user, NULL, 5 * DOMT_SECOND, &message), 0);
    ck_assert_ptr_eq(message.type, &domus_down_type);
    heard = *(const domus_down *)message.payload;
    ck_assert(domus_address_equals(heard.who, who));
    ck_assert_int_eq(heard.reason, reason);
}

DOMT_TEST(watches_hear_of_ends)
{
    domt_pair_open_nodes(2, NULL);
    domus_address worker = domt_spawn_worker_on_b(), other = domt_spawn_worker_on_b();
    ck_assert_int_eq(domus_outsider_watch(domt_user, worker, NULL), 0);
    const domt_read_number_of_key none = {.value = 0};
    ck_assert_int_eq(domt_ask_from_node_a(worker, &domt_twice_type, 1, DOMT_SECOND, NULL), 0);
    ck_assert_int_eq(domus_outsider_notice(domt_user, worker, &domt_end_type, &none), 0);
    expect_down_of_actor(worker, 0);
    ck_assert_int_eq(domt_ask_from_node_a(worker, &domt_twice_type, 1, DOMT_SECOND, NULL), -ESTALE);
    ck_assert_int_eq(domus_outsider_watch(domt_user, worker, NULL), 0);
    expect_down_of_actor(worker, -ESTALE);
    ck_assert_int_eq(domus_outsider_watch(domt_user, other, NULL), 0);
    ck_assert_int_eq(domus_outside_stop(domt_systems[0], other), 0);
    expect_down_of_actor(other, 0);
    domt_pair_close_nodes();
}

DOMT_TEST(a_node_that_is_silent_is_down)
{
    domt_pair_open_nodes(1, NULL);
    domus_address worker = domt_spawn_worker_on_b();
    ck_assert_int_eq(domus_outsider_watch(domt_user, worker, NULL), 0);
    ck_assert_int_eq(domt_ask_from_node_a(worker, &domt_twice_type, 1, DOMT_SECOND, NULL), 0);
    domt_pair_end_node_b(false);
    uint64_t begin_ns = monotonic_ns();
    expect_down_of_actor(worker, -EHOSTDOWN);
    ck_assert_uint_lt(monotonic_ns() - begin_ns, 2 * DOMT_SECOND);
    ck_assert_int_eq(domt_ask_from_node_a(worker, &domt_twice_type, 1, DOMT_SECOND, NULL),
                     -EHOSTDOWN);
    domt_pair_begin_node_b();
    for (int i = 0; i < 1000; i++) { /* repeats until the earlier start of node b has ended */
        if (domt_ask_from_node_a(worker, &domt_twice_type, 1, DOMT_SECOND, NULL) == -ESTALE)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    ck_assert_int_eq(domt_ask_from_node_a(worker, &domt_twice_type, 1, DOMT_SECOND, NULL), -ESTALE);
    domt_pair_wait_for_state_of_b(DOMUS_NODE_UP);
    ck_assert_int_eq(
        domt_ask_from_node_a(domt_spawn_worker_on_b(), &domt_twice_type, 1, DOMT_SECOND, NULL), 0);
    domt_pair_close_nodes();
}

DOMT_TEST(a_node_that_leaves_has_ended_at_once)
{
    static const domus_cluster_options slow = {.heartbeat_ns = 2000 * DOMT_MS,
                                               .down_after_ns = 20000 * DOMT_MS};

    domt_pair_open_nodes(2, &slow);
    domus_address worker = domt_spawn_worker_on_b();
    ck_assert_int_eq(domus_outsider_watch(domt_user, worker, NULL), 0);
    ck_assert_int_eq(domt_ask_from_node_a(worker, &domt_twice_type, 1, DOMT_SECOND, NULL), 0);
    domt_pair_end_node_b(true);
    expect_down_of_actor(worker, -EHOSTDOWN);
    ck_assert_int_eq(domt_ask_from_node_a(worker, &domt_twice_type, 1, DOMT_SECOND, NULL), -ESTALE);
    domt_pair_close_nodes();
}

DOMT_SUITE(60)
