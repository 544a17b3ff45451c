/* savina_threads quicksort SIZE THREADS ROUNDS: the row quicksort with threads and without actors.
 *
 * The parts, the way to cut them and the sort of a small part are those of
 * bench/savina/quicksort.c. The threads share a stack of parts behind one mutex: each thread takes
 * a part, and cuts it or sorts it. So all threads have work whenever there are enough parts, and
 * nothing else stands between them: this is the best that actors can reach. The threads run before
 * the clock does, as the schedulers of the other contenders do. This program prints the same lines
 * as they do; the number of messages is what actors would need. */
#include "bench/support/command.h"
#include "bench/support/measure.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PART_MAX    2048u /* a part of at most so many elements is sorted and not cut */
#define PARTS_MAX   65536u
#define THREADS_MAX 64u

struct part {
    uint32_t *values;
    size_t count;
    uint64_t low; /* the values of this part are in low..high - 1 */
    uint64_t high;
};

/* The state of the sort. All fields are guarded by `mutex`, which also orders the accesses to the
 * elements. */
static struct {
    pthread_mutex_t mutex;
    /* signalled when there is a part to take, or when the threads have to end */
    pthread_cond_t work;
    pthread_cond_t ended; /* signalled when `open` has become 0, so the round is over */
    struct part waiting[PARTS_MAX];
    uint32_t count;
    /* number of parts that wait on the stack, or that a thread is cutting or sorting */
    uint32_t open;
    uint64_t parts; /* number of parts that this round has had so far */
    bool over;
} sort = {
    .mutex = PTHREAD_MUTEX_INITIALIZER,
    .work = PTHREAD_COND_INITIALIZER,
    .ended = PTHREAD_COND_INITIALIZER,
};

static _Noreturn void exit_with_error(const char *what, int status)
{
    fprintf(stderr, "savina_threads: %s\n", what);
    _Exit(status);
}

static int compare_values(const void *left_, const void *right_)
{
    uint32_t left = *(const uint32_t *)left_;
    uint32_t right = *(const uint32_t *)right_;

    return (left > right) - (left < right);
}

/* Move the elements below `middle` to the front of the values. Returns their number. */
static size_t partition_values(uint32_t *values, size_t count, uint64_t middle)
{
    size_t below = 0;

    for (size_t i = 0; i < count; i++) {
        uint32_t value = values[i];
        values[i] = values[below];
        values[below] = value;
        below += value < middle;
    }
    return below;
}

/* Put a part on the stack of parts. The caller has locked the mutex. */
static void push_part_to_sort_and_wake_thread(struct part part)
{
    if (sort.count == PARTS_MAX)
        exit_with_error("too many parts", EXIT_FAILURE);
    sort.waiting[sort.count++] = part;
    sort.open++;
    sort.parts++;
    pthread_cond_signal(&sort.work);
}

/* Cut a part into two, which are put on the stack, or sort it if it is small. The caller has not
 * locked the mutex; when this returns, it is locked. */
static void cut_or_sort_part(struct part part)
{
    if (part.count <= PART_MAX) {
        qsort(part.values, part.count, sizeof part.values[0], compare_values);
        pthread_mutex_lock(&sort.mutex);
        return;
    }
    uint64_t middle = part.low + (part.high - part.low) / 2;
    size_t below = partition_values(part.values, part.count, middle);
    pthread_mutex_lock(&sort.mutex);
    push_part_to_sort_and_wake_thread((struct part){part.values, below, part.low, middle});
    push_part_to_sort_and_wake_thread(
        (struct part){part.values + below, part.count - below, middle, part.high});
}

static void *sort_parts_until_end(void *nothing)
{
    pthread_mutex_lock(&sort.mutex);
    while (!sort.over) {
        if (sort.count == 0) {
            pthread_cond_wait(&sort.work, &sort.mutex);
            continue;
        }
        struct part part = sort.waiting[--sort.count];
        pthread_mutex_unlock(&sort.mutex);
        cut_or_sort_part(part);
        if (--sort.open == 0)
            pthread_cond_signal(&sort.ended);
    }
    pthread_mutex_unlock(&sort.mutex);
    return nothing;
}

static void draw_values_to_sort(uint32_t *values, size_t size)
{
    uint32_t seed = 1;

    for (size_t i = 0; i < size; i++) {
        seed ^= seed << 13;
        seed ^= seed >> 17;
        seed ^= seed << 5;
        values[i] = seed;
    }
}

/* Check that the elements are in order, and return the sum that all contenders print as the result.
 * Ends the process if an element is out of order. */
static uint32_t check_and_sum_sorted_values(const uint32_t *values, size_t size)
{
    uint32_t sum = 0;

    for (size_t i = 0; i < size; i++) {
        if (i > 0 && values[i] < values[i - 1])
            exit_with_error("wrong result: the order", COMMAND_WRONG);
        sum += (uint32_t)(i % 7) * values[i];
    }
    return sum;
}

static void run_round_of_sort(uint32_t *values, size_t size)
{
    uint64_t began_ns = measure_now_ns();

    pthread_mutex_lock(&sort.mutex);
    sort.parts = 0;
    push_part_to_sort_and_wake_thread((struct part){values, size, 0, UINT64_C(1) << 32});
    while (sort.open != 0)
        pthread_cond_wait(&sort.ended, &sort.mutex);
    pthread_mutex_unlock(&sort.mutex);
    printf("round_seconds %.9f\n", (double)(measure_now_ns() - began_ns) / 1e9);
}

static void run_and_print_rounds_of_sort(size_t size, uint64_t rounds)
{
    uint32_t *values = malloc(size * sizeof *values);
    uint32_t sum = 0;

    if (values == NULL)
        exit_with_error("no memory", EXIT_FAILURE);
    while (rounds-- > 0) {
        draw_values_to_sort(values, size);
        run_round_of_sort(values, size);
        sum = check_and_sum_sorted_values(values, size);
    }
    printf("messages %" PRIu64 "\nresult %" PRIu32 "\n", 2 * sort.parts, sum);
    free(values);
}

int main(int argc, char **argv)
{
    bool known = argc == 5 && strcmp(argv[1], "quicksort") == 0;
    uint64_t size = known ? strtoull(argv[2], NULL, 10) : 0;
    uint64_t threads = known ? strtoull(argv[3], NULL, 10) : 0;
    uint64_t rounds = known ? strtoull(argv[4], NULL, 10) : 0;
    pthread_t all[THREADS_MAX];

    if (size == 0 || size > SIZE_MAX / sizeof(uint32_t) || threads == 0 || threads > THREADS_MAX ||
        rounds == 0) {
        fprintf(stderr, "usage: savina_threads quicksort SIZE THREADS ROUNDS\n");
        return 2;
    }
    for (uint64_t i = 0; i < threads; i++) {
        if (pthread_create(&all[i], NULL, sort_parts_until_end, NULL) != 0)
            exit_with_error("no thread", EXIT_FAILURE);
    }
    run_and_print_rounds_of_sort((size_t)size, rounds);
    pthread_mutex_lock(&sort.mutex);
    sort.over = true;
    pthread_cond_broadcast(&sort.work);
    pthread_mutex_unlock(&sort.mutex);
    for (uint64_t i = 0; i < threads; i++)
        pthread_join(all[i], NULL);
    return 0;
}
