/* The bare limit of a wake-up: two threads, each asleep in a ring of its own until its eventfd is
 * written to, as the park of a thread of domus is, with nothing around it.
 *
 * The ring is set up as those of domus are: one issuer, completions brought by the enter that
 * waits, the ring's descriptor registered. One multishot poll watches the eventfd, which is never
 * read: each write fires it. */
#include "bench/limits.h"

#include "bench/support/measure.h"

#include <liburing.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define UNTIMED_ROUNDS 1000

struct side {
    /* number of the newest turn that was passed to this thread */
    _Alignas(128) _Atomic uint64_t ball;
    int wake_fd;
    int cpu;
    struct side *other;
    pthread_barrier_t *start;
    uint64_t rounds;
    uint64_t elapsed_ns;
    bool serves;
    struct io_uring ring;
    pthread_t thread;
};

static _Noreturn void exit_with_error(const char *what)
{
    fprintf(stderr, "limits: parked ping-pong: %s\n", what);
    exit(EXIT_FAILURE);
}

static void arm_poll_of_eventfd(struct side *side)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&side->ring);

    if (sqe == NULL)
        exit_with_error("no submission entry");
    io_uring_prep_poll_multishot(sqe, side->wake_fd, POLLIN);
}

/* Sleep until the ball has come to this side with the turn `turn`. acquire: pairs with the release
 * in pass_ball_to_other_side(). */
static void sleep_in_ring_until_ball_comes(struct side *side, uint64_t turn)
{
    struct io_uring_cqe *cqe;

    while (atomic_load_explicit(&side->ball, memory_order_acquire) != turn) {
        if (io_uring_submit_and_wait(&side->ring, 1) < 0)
            exit_with_error("the ring does not wait");
        while (io_uring_peek_cqe(&side->ring, &cqe) == 0) {
            if ((cqe->flags & IORING_CQE_F_MORE) == 0)
                arm_poll_of_eventfd(side);
            io_uring_cqe_seen(&side->ring, cqe);
        }
    }
}

static void pass_ball_to_other_side(struct side *side, uint64_t turn)
{
    atomic_store_explicit(&side->other->ball, turn, memory_order_release);
    if (eventfd_write(side->other->wake_fd, 1) != 0)
        exit_with_error("no wake-up");
}

static void *run_thread_of_ping_pong_side(void *side_)
{
    struct side *side = side_;
    struct io_uring_params params = {.flags = IORING_SETUP_SINGLE_ISSUER |
                                              IORING_SETUP_DEFER_TASKRUN |
                                              IORING_SETUP_COOP_TASKRUN};
    uint64_t began_ns = 0;

    if (measure_pin_thread_to_cpu(side->cpu) != 0 ||
        io_uring_queue_init_params(16, &side->ring, &params) != 0 ||
        io_uring_register_ring_fd(&side->ring) != 1)
        exit_with_error("no ring, or no such CPU");
    arm_poll_of_eventfd(side);
    pthread_barrier_wait(side->start);
    for (uint64_t i = 0; i < side->rounds; i++) {
        if (i == UNTIMED_ROUNDS)
            began_ns = measure_now_ns();
        if (side->serves)
            pass_ball_to_other_side(side, 2 * i + 1);
        sleep_in_ring_until_ball_comes(side, side->serves ? 2 * i + 2 : 2 * i + 1);
        if (!side->serves)
            pass_ball_to_other_side(side, 2 * i + 2);
    }
    side->elapsed_ns = measure_now_ns() - began_ns;
    io_uring_queue_exit(&side->ring);
    return NULL;
}

double limit_measure_parked_ping_pong(uint64_t rounds, int cpu_a, int cpu_b)
{
    static struct side sides[2];
    const int cpus[] = {cpu_a, cpu_b};
    pthread_barrier_t start;

    if (rounds == 0)
        exit_with_error("of nothing");
    pthread_barrier_init(&start, NULL, 2);
    for (int i = 0; i < 2; i++) {
        sides[i] = (struct side){.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                                 .cpu = cpus[i],
                                 .other = &sides[1 - i],
                                 .start = &start,
                                 .rounds = rounds + UNTIMED_ROUNDS,
                                 .serves = i == 0};
        if (sides[i].wake_fd < 0)
            exit_with_error("no eventfd");
    }
    for (int i = 0; i < 2; i++) {
        if (pthread_create(&sides[i].thread, NULL, run_thread_of_ping_pong_side, &sides[i]) != 0)
            exit_with_error("no thread");
    }
    for (int i = 0; i < 2; i++)
        pthread_join(sides[i].thread, NULL);
    for (int i = 0; i < 2; i++)
        close(sides[i].wake_fd);
    pthread_barrier_destroy(&start);
    if (atomic_load_explicit(&sides[0].ball, memory_order_relaxed) != 2 * sides[0].rounds)
        exit_with_error("wrong count");
    return (double)sides[0].elapsed_ns / (double)rounds / 2;
}
