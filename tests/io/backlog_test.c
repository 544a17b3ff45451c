/* io/acceptors/backlog.c: connections that wait to be accepted when the system drains are handed
 * over, or counted. */
#include "io/acceptors/listen.h"
#include "io/acceptors/serve.h"

#include "base/memory.h"
#include "house/family/life.h"
#include "tests/io/bed.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAITING     5
#define WAITING_MAX 40

static domt_bed bed;
static domus_address address;
static int listener;
static int waiting[WAITING_MAX];
static int waiting_count;

static void begin(void)
{
    ck_assert_int_eq(domt_bed_start(&bed), 0);
    domi_acceptor *acceptor = domi_memory_new(sizeof *acceptor + sizeof acceptor->targets[0]);
    acceptor->target_count = 1;
    acceptor->targets[0] = (domi_acceptor_target){bed.actor, &bed.io};
    listener = domi_acceptor_listen(&bed.io, "127.0.0.1:0",
                                    &(domi_listen_plan){.backlog = WAITING_MAX}, NULL);
    ck_assert_int_ge(listener, 0);
    acceptor->fd = listener;
    ck_assert_int_eq(
        domi_house_spawn(&bed.manager, &bed.manager, &domi_acceptor_behaviour, &acceptor, &address),
        0);
    domt_bed_turn(&bed);
}

static void end(void)
{
    (void)domi_house_stop(&bed.manager, address);
    domt_bed_settle(&bed);
    ck_assert_int_lt(fcntl(listener, F_GETFD), 0);
    domt_bed_end(&bed);
}

/* Each has sent a byte, and its connection is in the backlog. */
static void let_wait(int count)
{
    struct sockaddr_in at;
    socklen_t size = sizeof at;

    waiting_count = count;
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&at, &size), 0);
    for (int i = 0; i < count; i++) {
        waiting[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(connect(waiting[i], (struct sockaddr *)&at, sizeof at), 0);
        ck_assert_int_eq(send(waiting[i], "w", 1, 0), 1);
    }
}

static void let_some_wait(void)
{
    let_wait(WAITING);
}

static void end_waiting(void)
{
    end();
    for (int i = 0; i < waiting_count; i++)
        close(waiting[i]);
}

static void limit_descriptors(bool none_left)
{
    struct rlimit limit;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = none_left ? 3 : limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void begin_to_drain(void)
{
    domi_io_drain(&bed.io);
    ck_assert_uint_eq(bed.io.counters.listeners_open, 1);
    domt_fake_cancel_step(bed.fake);
    domt_bed_turn(&bed);
    domt_bed_turn(&bed);
}

DOMT_TEST(a_drain_hands_over_everybody_who_waits)
{
    domt_bed_init(&bed);
    bed.config.channel.connections_max = 1;
    begin();
    int early[2]; /* one is served, and one was accepted beyond the most connections */
    for (int i = 0; i < 2; i++) {
        int ours;
        domt_bed_pair(&ours, &early[i]);
        domt_fake_complete(bed.fake, domt_fake_find(bed.fake, DOMT_ACCEPT, listener), ours,
                           DOMI_MORE);
        domt_bed_turn(&bed);
    }
    ck_assert_uint_eq(bed.opened, 1);
    let_some_wait();
    domi_io_drain(&bed.io);
    if (domt_fake_find(bed.fake, DOMT_CANCEL, -1) != NULL)
        domt_fake_cancel_step(bed.fake);
    for (int i = 0; i < 3; i++)
        domt_bed_turn(&bed);
    ck_assert_uint_eq(bed.opened, 2 + WAITING);
    ck_assert_int_lt(fcntl(listener, F_GETFD), 0);
    ck_assert_uint_eq(bed.io.counters.listeners_open, 0);
    ck_assert_uint_eq(bed.io.turned_away, 0);
    close(early[0]);
    close(early[1]);
    end_waiting();
}

static void tries_again(bool late)
{
    domt_bed_init(&bed);
    begin();
    let_some_wait();
    limit_descriptors(true);
    domi_io_drain(&bed.io);
    /* The accept's own end says so too, and comes before the end of its cancel, or after it. */
    domt_op *accepting = domt_fake_find(bed.fake, DOMT_ACCEPT, listener);
    if (late)
        domt_fake_complete(bed.fake, domt_fake_find(bed.fake, DOMT_CANCEL, -1), -ENOENT, 0);
    domt_bed_turn(&bed);
    domt_fake_complete(bed.fake, accepting, -EMFILE, 0);
    domt_bed_turn(&bed);
    if (!late)
        domt_fake_complete(bed.fake, domt_fake_find(bed.fake, DOMT_CANCEL, -1), -ENOENT, 0);
    domt_bed_turn(&bed);
    ck_assert_uint_eq(bed.opened, 0);
    ck_assert_uint_eq(bed.io.counters.listeners_open, 1); /* the drain waits for it */
    limit_descriptors(false);
    domt_bed_pass(&bed, 12);
    domt_bed_turn(&bed);
    ck_assert_uint_eq(bed.opened, WAITING);
    ck_assert_uint_eq(bed.io.counters.listeners_open, 0);
    end_waiting();
}

DOMT_TEST(without_descriptors_a_drain_tries_again)
{
    tries_again(false);
    tries_again(true);
}

DOMT_TEST(who_waits_when_the_time_is_over_is_turned_away_and_counted)
{
    for (int without = 0; without < 2; without++) {
        domt_bed_init(&bed);
        begin();
        let_some_wait();
        limit_descriptors(true);
        begin_to_drain();
        limit_descriptors(without != 0);
        (void)domi_io_abort(&bed.io);
        if (without != 0) /* it cannot even be accepted: its bytes are not known */
            (void)domi_house_stop(&bed.manager, address);
        domt_bed_turn(&bed);
        limit_descriptors(false);
        ck_assert_uint_eq(bed.opened, 0);
        ck_assert_uint_eq(bed.io.turned_away, WAITING);
        ck_assert_uint_eq(bed.io.turned_away_bytes, without != 0 ? 0 : WAITING);
        ck_assert_uint_eq(bed.io.counters.listeners_open, 0);
        end_waiting();
    }
}

#define TURN 32u /* io.completionEntries */

static void begin_small(void)
{
    domt_bed_init(&bed);
    bed.config.io.ring_entries = 16;
    bed.config.io.completion_entries = TURN;
    begin();
    let_wait(WAITING_MAX);
}

DOMT_TEST(a_turn_of_a_drain_accepts_so_many_and_the_next_one_the_rest)
{
    begin_small();
    begin_to_drain();
    ck_assert_uint_eq(bed.opened, TURN);
    ck_assert_uint_eq(bed.io.counters.listeners_open, 1);
    domt_bed_pass(&bed, 2);
    domt_bed_turn(&bed);
    ck_assert_uint_eq(bed.opened, WAITING_MAX);
    ck_assert_uint_eq(bed.io.counters.listeners_open, 0);
    ck_assert_uint_eq(bed.io.turned_away, 0);
    end_waiting();
}

DOMT_TEST(a_turn_of_a_stop_turns_so_many_away_and_the_next_one_the_rest)
{
    begin_small();
    ck_assert_int_eq(domi_house_stop(&bed.manager, address), 0);
    domt_bed_turn(&bed);
    domt_fake_cancel_step(bed.fake);
    for (int i = 0; i < 3; i++)
        domt_bed_turn(&bed);
    ck_assert_uint_eq(bed.io.turned_away, TURN);
    ck_assert_uint_eq(bed.io.counters.listeners_open, 1);
    domt_bed_pass(&bed, 2);
    domt_bed_turn(&bed);
    ck_assert_uint_eq(bed.io.turned_away, WAITING_MAX);
    ck_assert_uint_eq(bed.io.counters.listeners_open, 0);
    ck_assert_uint_eq(bed.manager.births.houses, 1); /* the acceptor has ended */
    end_waiting();
}

DOMT_SUITE(20)
