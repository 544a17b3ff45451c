/* Verbs on a channel that is closed, and stops and restarts while a channel parks: nothing of it
 * ends the process, and each conversation ends. */
#include "tests/runtime/misuse.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- verbs at the wrong time ------------------------------------------------------------------ */

static domus_channel *kept;

static int open_and_do_all_twice(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    domus_buffer *bytes;

    (void)domt_misuse_open(stack, self, payload);
    kept = event->channel;
    ck_assert_int_eq(domus_channel_pause(stack, event->channel), 0);
    ck_assert_int_eq(domus_channel_pause(stack, event->channel), 0);
    ck_assert_int_eq(domus_channel_resume(stack, event->channel), 0);
    ck_assert_int_eq(domus_channel_resume(stack, event->channel), 0);
    ck_assert_int_eq(domus_buffer_new(stack, 3, &bytes), 0);
    memcpy(domus_buffer_data(bytes), "abc", 3);
    ck_assert_int_eq(domus_channel_write(stack, event->channel, bytes), 0);
    ck_assert_int_eq(domus_channel_finish(stack, event->channel), 0);
    ck_assert_int_eq(domus_channel_finish(stack, event->channel), -EALREADY);
    ck_assert_int_eq(domus_buffer_new(stack, 3, &bytes), 0);
    ck_assert_int_eq(domus_channel_write(stack, event->channel, bytes), -EPIPE);
    ck_assert_int_eq(domus_channel_close(stack, event->channel), 0);
    ck_assert_int_eq(domus_channel_close(stack, event->channel), -EALREADY);
    ck_assert_int_eq(domus_channel_pause(stack, event->channel), -EPIPE);
    ck_assert_int_eq(domus_channel_resume(stack, event->channel), -EPIPE);
    return 0;
}

static int close_and_do_all(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    domus_buffer *bytes;
    domus_endpoint peer;

    ck_assert_int_eq(domus_channel_pause(stack, event->channel), -EPIPE);
    ck_assert_int_eq(domus_channel_resume(stack, event->channel), -EPIPE);
    ck_assert_int_eq(domus_channel_finish(stack, event->channel), -EALREADY);
    ck_assert_int_eq(domus_channel_close(stack, event->channel), -EALREADY);
    ck_assert_int_eq(domus_channel_reset(stack, event->channel, -EIO), 0);
    ck_assert_int_eq(domus_buffer_new(stack, 3, &bytes), 0);
    ck_assert_int_eq(domus_channel_write(stack, event->channel, bytes), -EPIPE);
    ck_assert_int_eq(domus_channel_peer(event->channel, &peer), -ENOTCONN);
    ck_assert_int_eq(domus_channel_local(event->channel, &peer), -ENOTCONN);
    ck_assert_int_eq(domus_stop(stack, domus_channel_address(event->channel)), 0);
    ck_assert_ptr_eq(domus_channel_running(stack), event->channel);
    domt_misuse_close(stack, self, payload);
    return 0;
}

static const domus_behaviour does_all = {
    .name = "does all",
    .kind = DOMUS_CHANNELS,
    .on_mount = domt_misuse_mount,
    .on_open = {open_and_do_all_twice, 0},
    .on_read = {domt_misuse_read, 0},
    .on_close = {close_and_do_all, 0},
};

DOMT_TEST(verbs_on_a_closed_channel_do_nothing)
{
    domt_misuse_begin(1);
    (void)domt_spawn(domt_misuse_system, 0, &does_all, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.listening) == 1);
    for (uint32_t i = 1; i <= 10; i++) {
        char bytes[8];
        int fd = domt_misuse_connect(&domt_misuse_seen.found);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(domt_misuse_receive(fd, bytes, sizeof bytes), 3);
        (void)close(fd);
        DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.closed) == i);
        ck_assert_int_eq(atomic_load(&domt_misuse_seen.last_error), 0);
    }
    domt_end(domt_misuse_system);
}

/* --- a stop while a channel parks ------------------------------------------------------------- */

static int read_slept(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_fetch_add(
        answer->error == -ECANCELED ? &domt_misuse_seen.cancelled : &domt_misuse_seen.slept, 1);
    return 0;
}

static int read_and_sleep(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    domus_buffer_free(event->bytes);
    return domus_sleep(stack, 300 * DOMT_MS, read_slept);
}

static const domus_behaviour parking = {
    .name = "parking",
    .kind = DOMUS_CHANNELS,
    .on = domt_misuse_rows,
    .on_mount = domt_misuse_mount,
    .on_open = {domt_misuse_open, 0},
    .on_read = {read_and_sleep, 0},
    .on_close = {domt_misuse_close, 0},
};
static const domus_behaviour parking_on_channel = {
    .name = "parking on",
    .kind = DOMUS_CHANNELS,
    .shares_state = true,
    .conversations_go_on = true,
    .on_open = {domt_misuse_open, 0},
    .on_read = {read_and_sleep, 0},
    .on_close = {domt_misuse_close, 0},
};
static const domus_behaviour parking_on = {
    .name = "owner of parking on",
    .kind = DOMUS_CHANNELS,
    .on = domt_misuse_rows,
    .on_mount = domt_misuse_mount,
    .channel = &parking_on_channel,
};

static void stop_while_parked(const domus_behaviour *behaviour)
{
    domt_misuse_begin(1);
    (void)domt_spawn(domt_misuse_system, 0, behaviour, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.listening) == 1);
    for (uint32_t i = 1; i <= 3; i++) {
        int fd = domt_misuse_connect(&domt_misuse_seen.found);
        char byte = 'x';
        ck_assert_int_eq(send(fd, &byte, 1, 0), 1);
        DOMT_WAIT_FOR(10, domt_profile_all(domt_misuse_system).received_bytes == i);
        ck_assert_int_eq(domus_outside_stop(domt_misuse_system, domt_misuse_seen.last_channel), 0);
        ck_assert_int_eq(domt_misuse_receive(fd, &byte, 1), 0);
        (void)close(fd);
        DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.closed) == i);
        DOMT_WAIT_FOR(
            10,
            atomic_load(&domt_misuse_seen.cancelled) + atomic_load(&domt_misuse_seen.slept) == i);
        DOMT_WAIT_FOR(10, domus_outside_notice(domt_misuse_system, domt_misuse_seen.last_channel,
                                               &domt_misuse_fail_type, NULL) == -ESTALE);
    }
    domt_end(domt_misuse_system);
}

DOMT_TEST(stop_of_a_parked_channel_closes_it)
{
    stop_while_parked(&parking);
}

DOMT_TEST(stop_of_a_parked_channel_whose_conversations_go_on_closes_it)
{
    stop_while_parked(&parking_on);
}

static const domus_supervision restarts = {.intensity = 1000, .otherwise = DOMUS_RESTART};
static domus_endpoint fixed;
static domus_address restarting;

/* The state that the channel shares must not be made anew while a conversation of it goes on. */
static _Atomic uint32_t mounts;
static int mount_parking(domus_stack *stack, void *self)
{
    int now = domus_listen(stack, &fixed, NULL, NULL, &fixed);
    atomic_fetch_add(&mounts, 1); /* only now: the test then connects to `fixed` */
    atomic_fetch_add(&domt_misuse_seen.listening, 1);
    return now;
}
static const domus_behaviour restarting_owner = {
    .name = "restarting owner",
    .kind = DOMUS_CHANNELS,
    .state_size = 64,
    .on = domt_misuse_rows,
    .on_mount = mount_parking,
    .channel = &parking_on_channel,
};
static int mount_parent_of_parking(domus_stack *stack, void *self)
{
    return domus_spawn(stack, &restarting_owner, NULL, &restarting);
}
static const domus_behaviour parent_of_parking = {
    .name = "parent of parking",
    .kind = DOMUS_CHANNELS,
    .on_mount = mount_parent_of_parking,
    .supervision = &restarts,
};

DOMT_TEST(restart_of_an_owner_ends_conversations_that_go_on)
{
    domt_misuse_begin(1);
    fixed = (domus_endpoint){.family = AF_INET, .size = 4, .bytes = {127, 0, 0, 1}};
    (void)domt_spawn(domt_misuse_system, 0, &parent_of_parking, NULL);
    DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.listening) == 1);
    for (uint32_t i = 1; i <= 6; i++) {
        int fd = domt_misuse_connect(&fixed);
        char byte = 'x';
        ck_assert_int_eq(send(fd, &byte, 1, 0), 1);
        DOMT_WAIT_FOR(10, domt_profile_all(domt_misuse_system).received_bytes == i);
        if (i % 2 == 0) { /* the connection is gone already */
            (void)close(fd);
            DOMT_WAIT_FOR(10, atomic_load(&domt_misuse_seen.closed) == i);
            fd = -1;
        }
        domt_notice(domt_misuse_system, restarting, &domt_misuse_fail_type, NULL);
        DOMT_WAIT_FOR(10, atomic_load(&mounts) == i + 1);
        ck_assert_uint_eq(
            atomic_load(&domt_misuse_seen.cancelled) + atomic_load(&domt_misuse_seen.slept), i);
        if (fd >= 0)
            (void)close(fd);
    }
    domt_end(domt_misuse_system);
}

DOMT_SUITE(60)
