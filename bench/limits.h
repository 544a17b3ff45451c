/* The bare C limits of message passing on this machine, which domus is held against.
 *
 * Each limit does the least that any actor library must do for a message, without houses, leases
 * and a scheduler. An envelope has 32 bytes. Each limit checks its own result: a wrong count, or a
 * CPU that does not exist, prints a line and ends the process with status 1.
 *
 * Thread-safety: one call at a time. The first two run on the calling thread, which they do not
 * pin; the others run on pinned threads of their own while the caller sleeps. */
#ifndef DOMUS_BENCH_LIMITS_H
#define DOMUS_BENCH_LIMITS_H

#include <stdint.h>

#define LIMIT_SENDERS_MAX 64
#define LIMIT_BATCH       1024

/* Two actors on one thread answer each other `messages` times. For each message: take an envelope
 * from a free list, append it to a queue, queue the actor, take both off, dispatch through a
 * pointer, free. Returns messages per second. */
double limit_measure_ping_pong(uint64_t messages);

/* One actor counts messages that come in batches of LIMIT_BATCH, on one thread. Returns messages
 * per second. */
double limit_measure_counting(uint64_t messages);

/* Two spinning threads hand one cache line to and fro `rounds` times. Returns nanoseconds one
 * way. */
double limit_measure_cross_ping_pong(uint64_t rounds, int cpu_a, int cpu_b);

/* Two threads hand a turn to and fro `rounds` times, and each sleeps until the other one wakes it:
 * it waits in a ring that polls an eventfd (limit_parked.c). Returns nanoseconds one way. */
double limit_measure_parked_ping_pong(uint64_t rounds, int cpu_a, int cpu_b);

/* `senders` threads push `messages` envelopes in all, which were made beforehand, on one lock-free
 * stack. The receiver takes the whole stack whenever it is not empty. cpus[0] is the receiver's
 * CPU, cpus[i] the i-th sender's. Returns messages per second. */
double limit_measure_many_senders_to_one(uint64_t messages, int senders, const int *cpus);

/* One thread passes `messages` messages by value to another one, through a ring of slots of 64
 * bytes (limit_ring.c), at most `under_way` at a time. cpus[0] is the receiver's CPU, cpus[1] the
 * sender's. Returns messages per second. */
double limit_measure_ring_of_two_threads(uint64_t messages, uint64_t under_way, const int *cpus);

#endif
