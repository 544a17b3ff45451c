/* actors_threads ring|ring_shuffled SIZE THREADS: the ring with a thread of the kernel for each
 * process, and without actors.
 *
 * Each mailbox is a mutex, a condition variable and some places. The ring, the tokens and the
 * checks are those of bench/actors/ring.c, the passes are fewer: the main thread makes all threads,
 * tells each its next, and waits until each has handled that; then ten tokens begin as far apart as
 * they can, each with its number of passes, and it is checked where each ends. If the kernel makes
 * no more threads, the program says how many it has made, lets them end, and fails; it prints no
 * figures then. THREADS is the number of CPUs, which bench/support/command.h has set. */
#include "bench/actors/ring_numbers.h"
#include "bench/support/command.h"
#include "bench/support/measure.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

/* places in the mailbox of a process: one for each token, because all of them may wait there, and
 * for its first message */
#define PLACES     16u
#define WARM_BYTES 8192u

#define FUTEX_PLACES_MIN 16u
#define FUTEX_PLACES_MAX 65536u

#ifndef PR_FUTEX_HASH /* headers that are older than the running kernel may lack this option */
#define PR_FUTEX_HASH           78
#define PR_FUTEX_HASH_SET_SLOTS 1
#endif

enum kind { NEXT, TOKEN, END };

struct message {
    enum kind kind;
    /* for a NEXT the place of the next process; for a TOKEN the passes that it has left */
    uint64_t number;
};

struct process {
    pthread_mutex_t mutex;
    pthread_cond_t filled;
    struct message mail[PLACES];
    uint32_t first;
    uint32_t count;
    /* index of the process to which tokens are passed; only this process's thread uses it */
    uint64_t next;
    pthread_t thread;
};

static struct {
    struct process *processes;
    uint64_t size;
    uint64_t each; /* number of passes that each token makes in the ring */
    /* the processes in the order of the ring, against the direction in which tokens go */
    uint32_t *order;

    /* The fields from here on are guarded by `mutex`; the main thread waits for both counts. */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint64_t ready;
    uint32_t home; /* number of tokens that have made all their passes */
    uint64_t ends[RING_TOKENS];
} ring = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static _Noreturn void exit_with_error(const char *what, int status)
{
    fprintf(stderr, "actors_threads: %s\n", what);
    _Exit(status);
}

/* --- processes -------------------------------------------------------------------------------- */

static void put_message_into_mailbox(uint64_t to, struct message message)
{
    struct process *process = &ring.processes[to];

    pthread_mutex_lock(&process->mutex);
    if (process->count == PLACES)
        exit_with_error("wrong result: a mailbox is full", COMMAND_WRONG);
    process->mail[(process->first + process->count++) % PLACES] = message;
    pthread_cond_signal(&process->filled);
    pthread_mutex_unlock(&process->mutex);
}

static struct message take_message_from_mailbox(struct process *process)
{
    pthread_mutex_lock(&process->mutex);
    while (process->count == 0)
        pthread_cond_wait(&process->filled, &process->mutex);
    struct message message = process->mail[process->first];
    process->first = (process->first + 1) % PLACES;
    process->count--;
    pthread_mutex_unlock(&process->mutex);
    return message;
}

static void report_process_ready(void)
{
    pthread_mutex_lock(&ring.mutex);
    if (++ring.ready == ring.size)
        pthread_cond_signal(&ring.changed);
    pthread_mutex_unlock(&ring.mutex);
}

static void report_token_end(uint64_t place)
{
    pthread_mutex_lock(&ring.mutex);
    ring.ends[ring.home++] = place;
    if (ring.home == RING_TOKENS)
        pthread_cond_signal(&ring.changed);
    pthread_mutex_unlock(&ring.mutex);
}

static void *run_thread_of_process(void *process_)
{
    struct process *self = process_;

    for (;;) {
        struct message message = take_message_from_mailbox(self);
        if (message.kind == END)
            return NULL;
        if (message.kind == NEXT) {
            self->next = message.number;
            report_process_ready();
        } else if (message.number == 0) {
            report_token_end((uint64_t)(self - ring.processes));
        } else {
            put_message_into_mailbox(self->next, (struct message){TOKEN, message.number - 1});
        }
    }
}

/* --- the main thread -------------------------------------------------------------------------- */

static uint64_t get_process_at_place(uint64_t place)
{
    return ring.order[place];
}

static void end_processes(uint64_t made)
{
    for (uint64_t i = 0; i < made; i++)
        put_message_into_mailbox(i, (struct message){END, 0});
    for (uint64_t i = 0; i < made; i++)
        pthread_join(ring.processes[i].thread, NULL);
}

static void make_processes(void)
{
    pthread_attr_t attributes;

    if (pthread_attr_init(&attributes) != 0 ||
        pthread_attr_setstacksize(&attributes, RING_STACK_BYTES) != 0)
        exit_with_error("no attributes of a thread", EXIT_FAILURE);
    for (uint64_t i = 0; i < ring.size; i++) {
        struct process *process = &ring.processes[i];
        int error = pthread_mutex_init(&process->mutex, NULL);
        if (error == 0)
            error = pthread_cond_init(&process->filled, NULL);
        if (error == 0)
            error = pthread_create(&process->thread, &attributes, run_thread_of_process, process);
        if (error == 0)
            continue;
        end_processes(i);
        fprintf(stderr, "actors_threads: %" PRIu64 " threads, and then: %s\n", i, strerror(error));
        exit(EXIT_FAILURE);
    }
    pthread_attr_destroy(&attributes);
}

static void connect_processes(void)
{
    for (uint64_t i = 0; i < ring.size; i++)
        put_message_into_mailbox(
            get_process_at_place(i),
            (struct message){NEXT, get_process_at_place((i == 0 ? ring.size : i) - 1)});
}

/* Returns the process at which the token must end that begins at this place of the ring. */
static uint64_t get_process_where_token_must_end(uint64_t place)
{
    return get_process_at_place((place + ring.size - ring.each % ring.size) % ring.size);
}

/* Check that each token has ended at its right process, and no two tokens at the same one. */
static void check_ends_of_tokens(void)
{
    bool seen[RING_TOKENS] = {false};

    for (uint32_t i = 0; i < RING_TOKENS; i++) {
        uint32_t token = 0;
        while (token < RING_TOKENS &&
               (seen[token] ||
                ring.ends[i] != get_process_where_token_must_end(token * ring.size / RING_TOKENS)))
            token++;
        if (token == RING_TOKENS)
            exit_with_error("wrong result: where a token ended", COMMAND_WRONG);
        seen[token] = true;
    }
}

static void start_tokens_and_wait(void)
{
    uint64_t began_cpu_ns = measure_process_cpu_ns();
    uint64_t began_ns = measure_now_ns();

    for (uint64_t i = 0; i < RING_TOKENS; i++)
        put_message_into_mailbox(get_process_at_place(i * ring.size / RING_TOKENS),
                                 (struct message){TOKEN, ring.each});
    pthread_mutex_lock(&ring.mutex);
    while (ring.home < RING_TOKENS)
        pthread_cond_wait(&ring.changed, &ring.mutex);
    pthread_mutex_unlock(&ring.mutex);
    printf("passes %" PRIu64 "\n", ring.each * RING_TOKENS);
    printf("seconds %.9f\n", (double)(measure_now_ns() - began_ns) / 1e9);
    printf("cpu_seconds %.9f\n", (double)(measure_process_cpu_ns() - began_cpu_ns) / 1e9);
    check_ends_of_tokens();
}

static void start_processes(void)
{
    uint64_t began_ns = measure_now_ns();

    make_processes();
    connect_processes();
    pthread_mutex_lock(&ring.mutex);
    while (ring.ready < ring.size)
        pthread_cond_wait(&ring.changed, &ring.mutex);
    pthread_mutex_unlock(&ring.mutex);
    printf("startup_seconds %.9f\n", (double)(measure_now_ns() - began_ns) / 1e9);
}

/* Touch as much memory as the threads' stacks will use, as all contenders do before their clock
 * starts. */
static void touch_and_free_memory_of_stacks_size(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        exit_with_error("no memory", EXIT_FAILURE);
    memset(memory, 1, bytes);
    munmap(memory, bytes);
}

/* Give the process as many places for futexes as it has threads. A kernel since 6.16 gives it 16,
 * or 4 for each CPU, if nobody asks; a wake-up then looks through a large part of all threads that
 * wait, and a pass in a ring of 10,000 took ten times as long. An older kernel has one table for
 * all processes, and refuses this. */
static void enlarge_futex_table(uint64_t size)
{
    unsigned long places = FUTEX_PLACES_MIN;

    while (places < size && places < FUTEX_PLACES_MAX)
        places *= 2;
    (void)prctl(PR_FUTEX_HASH, PR_FUTEX_HASH_SET_SLOTS, places, 0, 0);
}

static void run_ring_of_threads(size_t size, bool shuffled)
{
    ring.size = size;
    ring.each = (size > RING_PASSES_THREADS ? size : RING_PASSES_THREADS) / RING_TOKENS;
    ring.processes = calloc(size, sizeof *ring.processes);
    ring.order = malloc(size * sizeof *ring.order);
    if (ring.processes == NULL || ring.order == NULL)
        exit_with_error("no memory", EXIT_FAILURE);
    for (uint64_t i = 0; i < size; i++)
        ring.order[i] = (uint32_t)i;
    if (shuffled)
        ring_shuffle_order(ring.order, size);
    touch_and_free_memory_of_stacks_size(size * WARM_BYTES);
    enlarge_futex_table(size);
    start_processes();
    start_tokens_and_wait();
    end_processes(size);
    free(ring.order);
    free(ring.processes);
}

int main(int argc, char **argv)
{
    bool shuffled = argc == 4 && strcmp(argv[1], "ring_shuffled") == 0;
    bool known = shuffled || (argc == 4 && strcmp(argv[1], "ring") == 0);
    uint64_t size = known ? strtoull(argv[2], NULL, 10) : 0;

    if (size == 0 || size > UINT32_MAX || size > SIZE_MAX / WARM_BYTES ||
        strtoull(argv[3], NULL, 10) == 0) {
        fprintf(stderr, "usage: actors_threads ring|ring_shuffled SIZE THREADS\n");
        return 2;
    }
    run_ring_of_threads((size_t)size, shuffled);
    return 0;
}
