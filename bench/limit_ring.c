/* The bare limit of a ring by value: one thread fills slots of 64 bytes, and another one takes them
 * in their order, with nothing around it.
 *
 * Each slot is published at once by an exchange of its sequence, because a sender that looks at a
 * park word behind its put needs a full fence there. The receiver reads each message where it lies,
 * and tells after each look how many it has taken. The sender keeps at most `under_way` messages
 * that were not taken, and loads the receiver's number only when it seems to have so many.
 *
 * A receiver that looks at the next slot all the time takes its line from the sender that is about
 * to fill it. So it waits a little while for the slot some messages ahead, and then takes what is
 * there. This was the fastest of ten ways to wait, with 0 to 512 messages ahead, when 100 were
 * under way, and as fast as any with 2,000 and more. */
#include "bench/limits.h"

#include "bench/support/measure.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_MAX 64u /* messages that the receiver takes in one look, at most */
/* how often the receiver looks at the slot ahead before it takes what is there */
#define WAITS  64u
#define PAUSES 8 /* pauses of the receiver between two looks at the slot ahead */
/* how many slots ahead of the one that it fills the sender prefetches */
#define AHEAD 8u

struct slot {
    _Alignas(64) _Atomic uint64_t sequence; /* number of the message in this slot, plus 1 */
    uint64_t word[7];
};

static_assert(sizeof(struct slot) == 64, "a message is one cache line");

struct ring {
    /* number of messages that the receiver has taken so far */
    _Alignas(128) _Atomic uint64_t taken;
    _Alignas(128) struct slot *slots;
    uint64_t mask; /* number of slots, which is a power of two, minus one */
    uint64_t under_way;
    uint64_t messages;
    uint64_t sum;
    uint64_t elapsed_ns;
    int cpus[2]; /* cpus[0] is the receiver's CPU, cpus[1] the sender's */
    pthread_barrier_t start;
};

static _Noreturn void exit_with_error(const char *what)
{
    fprintf(stderr, "limits: ring: %s\n", what);
    exit(EXIT_FAILURE);
}

static void pin_and_wait_for_start(struct ring *ring, int cpu)
{
    if (measure_pin_thread_to_cpu(cpu) != 0)
        exit_with_error("no such CPU for this process");
    pthread_barrier_wait(&ring->start);
}

static inline struct slot *get_slot_of_message(const struct ring *ring, uint64_t number)
{
    return &ring->slots[number & ring->mask];
}

static void *send_all_messages(void *ring_)
{
    struct ring *ring = ring_;
    uint64_t taken = 0;

    pin_and_wait_for_start(ring, ring->cpus[1]);
    for (uint64_t number = 0; number < ring->messages; number++) {
        struct slot *slot = get_slot_of_message(ring, number);

        /* acquire: pairs with the release by which the receiver tells, after reading the slots, how
         * many it has taken. */
        while (number - taken >= ring->under_way)
            taken = atomic_load_explicit(&ring->taken, memory_order_acquire);
        __builtin_prefetch(get_slot_of_message(ring, number + AHEAD), 1);
        slot->word[0] = number;
        slot->word[1] = 1;
        slot->word[2] = 2;
        slot->word[3] = 3;
        (void)atomic_exchange_explicit(&slot->sequence, number + 1, memory_order_seq_cst);
    }
    return NULL;
}

static inline bool has_message_come(const struct ring *ring, uint64_t number)
{
    /* acquire: pairs with the exchange by which the sender publishes the slot, so that the words of
     * the message are seen. */
    return atomic_load_explicit(&get_slot_of_message(ring, number)->sequence,
                                memory_order_acquire) == number + 1;
}

static inline void pause_briefly(void)
{
    for (int i = 0; i < PAUSES; i++) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("isb");
#endif
    }
}

/* Wait until as many messages have come as one look may take, but only for a short time, because
 * fewer may be under way. */
static inline void wait_briefly_for_messages(const struct ring *ring, uint64_t number)
{
    uint64_t some = ring->under_way / 4 < LOOK_MAX ? ring->under_way / 4 : LOOK_MAX;

    if (some > ring->messages - number)
        some = ring->messages - number;
    for (uint32_t i = 0; some != 0 && i < WAITS && !has_message_come(ring, number + some - 1); i++)
        pause_briefly();
}

/* Take the messages that have come, at most LOOK_MAX. Returns the number of the next message to
 * take. */
static inline uint64_t take_messages_that_have_come(struct ring *ring, uint64_t number)
{
    uint64_t end = number + LOOK_MAX;

    for (; number < end && has_message_come(ring, number); number++) {
        const struct slot *slot = get_slot_of_message(ring, number);
        ring->sum += slot->word[0] + slot->word[1] + slot->word[2] + slot->word[3];
    }
    return number;
}

static void *receive_all_messages(void *ring_)
{
    struct ring *ring = ring_;

    pin_and_wait_for_start(ring, ring->cpus[0]);
    uint64_t start_ns = measure_now_ns();
    for (uint64_t number = 0; number < ring->messages;) {
        wait_briefly_for_messages(ring, number);
        uint64_t next = take_messages_that_have_come(ring, number);

        if (next != number)
            atomic_store_explicit(&ring->taken, next, memory_order_release);
        number = next;
    }
    ring->elapsed_ns = measure_now_ns() - start_ns;
    return NULL;
}

double limit_measure_ring_of_two_threads(uint64_t messages, uint64_t under_way, const int *cpus)
{
    struct ring ring = {.under_way = under_way, .messages = messages, .cpus = {cpus[0], cpus[1]}};
    uint64_t slots = LOOK_MAX;
    pthread_t threads[2];

    if (messages == 0 || under_way == 0 || under_way > UINT32_MAX)
        exit_with_error("messages out of range");
    while (slots < under_way)
        slots *= 2;
    ring.mask = slots - 1;
    ring.slots = aligned_alloc(128, (size_t)slots * sizeof *ring.slots);
    if (ring.slots == NULL)
        exit_with_error("out of memory");
    memset(ring.slots, 0, (size_t)slots * sizeof *ring.slots);
    pthread_barrier_init(&ring.start, NULL, 2);
    if (pthread_create(&threads[0], NULL, receive_all_messages, &ring) != 0 ||
        pthread_create(&threads[1], NULL, send_all_messages, &ring) != 0)
        exit_with_error("cannot start a thread");
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    pthread_barrier_destroy(&ring.start);
    free(ring.slots);
    if (ring.sum != messages * (messages - 1) / 2 + 6 * messages)
        exit_with_error("wrong sum");
    return (double)messages * 1e9 / (double)ring.elapsed_ns;
}
