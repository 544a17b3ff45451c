/* This file has the table of the Savina rows, and the formulas of their results and numbers of
 * messages. */
#include "bench/savina_rows.h"

#include <stdlib.h>
#include <string.h>

#define WORKERS   60u
#define ACTORS    120u
#define CONSUMERS 40u
#define NODES     100u
#define BANK      UINT64_C(1000000000)
#define SLEEPERS  1000u

const struct savina_row savina_rows[SAVINA_ROWS] = {
    {.name = "pingpong",
     .size_long = 1000000,
     .size_short = 200000,
     .parameters = "round trips",
     .in_flight = "1",
     .goal = 10},
    {.name = "counting",
     .size_long = 1000000,
     .size_short = 500000,
     .parameters = "increments, windows of 1,000",
     .in_flight = "2,000",
     .under_way = 2000,
     .parallel = true,
     .goal = 5},
    {.name = "fjthrput",
     .size_long = 10000,
     .size_short = 5000,
     .parameters = "messages to each of 60 actors",
     .in_flight = "6,000",
     .under_way = 6000,
     .parallel = true,
     .goal = 5},
    {.name = "fjcreate",
     .size_long = 40000,
     .size_short = 20000,
     .parameters = "actors, one message and its answer each",
     .in_flight = "1,000",
     .parallel = true,
     .goal = 2,
     .goal_pool = 1.3},
    {.name = "threadring",
     .size_long = 1000000,
     .size_short = 400000,
     .parameters = "passes of one token round 100 actors",
     .in_flight = "1",
     .goal = 10},
    {.name = "chameneos",
     .size_long = 200000,
     .size_short = 50000,
     .parameters = "meetings of 100 creatures",
     .in_flight = "100",
     .under_way = 100,
     .parallel = true,
     .goal = 5},
    {.name = "big",
     .size_long = 20000,
     .size_short = 2000,
     .parameters = "pings from each of 120 actors",
     .in_flight = "120",
     .under_way = 120,
     .parallel = true,
     .goal = 5},
    {.name = "bndbuffer",
     .size_long = 1000,
     .size_short = 200,
     .parameters = "items of each of 40 producers, 40 consumers, 50 places",
     .in_flight = "90",
     .parallel = true,
     .goal = 2},
    {.name = "banking",
     .size_long = 50000,
     .size_short = 20000,
     .parameters = "transfers between 1,000 accounts",
     .in_flight = "1,000 transfers",
     .parallel = true,
     .goal = 2,
     .goal_pool = 1.3},
    {.name = "fib",
     .size_long = 25,
     .size_short = 22,
     .parameters = "the number; an actor per call",
     .in_flight = "no bound",
     .parallel = true,
     .goal = 2,
     .goal_pool = 1.3},
    {.name = "quicksort",
     .size_long = 1000000,
     .size_short = 200000,
     .parameters = "integers, an actor per part, cut above 2,048",
     .in_flight = "no bound",
     .parallel = true,
     .bare = true,
     .goal = 2},
    {.name = "skynet",
     .size_long = 1000000,
     .size_short = 100000,
     .parameters = "leaves, ten branches",
     .in_flight = "no bound",
     .parallel = true,
     .goal = 2,
     .goal_pool = 1.3},
    {.name = "mailbox",
     .size_long = 1000000,
     .size_short = 500000,
     .parameters = "messages of 20 senders to one receiver",
     .in_flight = "10,000",
     .under_way = 10000,
     .parallel = true,
     .goal = 5},
    {.name = "wake",
     .kind = SAVINA_LATENCY,
     .size_long = 2000,
     .size_short = 200,
     .parameters = "asks from a foreign thread, 1 ms of quiet before each",
     .in_flight = "1",
     .from_outside = true,
     .goal = 2},
    {.name = "idle",
     .kind = SAVINA_CPU,
     .size_long = 10,
     .size_short = 1,
     .parameters = "seconds in which 1,000 actors wait",
     .in_flight = "0"},
    {.name = "fair",
     .kind = SAVINA_LATENCY,
     .size_long = 2000,
     .size_short = 500,
     .parameters = "asks, 1 ms apart, beside an actor whose mailbox is always full",
     .in_flight = "a full mailbox",
     .domus_only = true},
};

const struct savina_row *savina_find_row_by_name(const char *name)
{
    for (size_t i = 0; i < SAVINA_ROWS; i++) {
        if (strcmp(savina_rows[i].name, name) == 0)
            return &savina_rows[i];
    }
    return NULL;
}

static uint64_t compute_fibonacci(uint64_t n)
{
    uint64_t before = 0;
    uint64_t last = 1;

    for (uint64_t i = 1; i < n; i++) {
        uint64_t next = before + last;
        before = last;
        last = next;
    }
    return last;
}

static int compare_values(const void *left_, const void *right_)
{
    uint32_t left = *(const uint32_t *)left_;
    uint32_t right = *(const uint32_t *)right_;

    return (left > right) - (left < right);
}

/* Draw the values of quicksort, sort them, and return their sum; this is done once for each size.
 * Returns 0 if there is no memory; no sum of many values is 0. */
static uint64_t compute_expected_sum_of_quicksort(uint64_t size)
{
    uint32_t *values = malloc((size_t)size * sizeof *values);
    uint32_t seed = 1;
    uint32_t sum = 0;

    if (values == NULL)
        return 0;
    for (uint64_t i = 0; i < size; i++) {
        seed ^= seed << 13;
        seed ^= seed >> 17;
        seed ^= seed << 5;
        values[i] = seed;
    }
    qsort(values, (size_t)size, sizeof *values, compare_values);
    for (uint64_t i = 0; i < size; i++)
        sum += (uint32_t)(i % 7) * values[i];
    free(values);
    return sum;
}

/* Returns the number of actors in a tree with `leaves` leaves and ten children at each branch. */
static uint64_t count_tree_actors(uint64_t leaves)
{
    uint64_t actors = 1;

    for (; leaves > 1; leaves /= 10)
        actors += leaves;
    return actors;
}

uint64_t savina_expected_result_of_round(const struct savina_row *row, uint64_t size)
{
    const struct {
        const char *name;
        uint64_t result;
    } others[] = {
        {"fjthrput", WORKERS * size},      {"threadring", size % NODES},
        {"chameneos", 2 * size},           {"big", ACTORS * size},
        {"bndbuffer", CONSUMERS * size},   {"banking", BANK},
        {"skynet", size * (size - 1) / 2}, {"idle", SLEEPERS},
    };

    if (strcmp(row->name, "fib") == 0)
        return compute_fibonacci(size);
    if (strcmp(row->name, "quicksort") == 0)
        return compute_expected_sum_of_quicksort(size);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (strcmp(row->name, others[i].name) == 0)
            return others[i].result;
    }
    return size;
}

uint64_t savina_message_count_of_round(const struct savina_row *row, uint64_t size)
{
    const struct {
        const char *name;
        uint64_t messages;
    } rows[] = {
        {"pingpong", 2 * size},
        {"counting", size},
        {"fjthrput", WORKERS * size},
        {"fjcreate", 2 * size},
        {"threadring", size},
        {"chameneos", 4 * size},
        {"big", 2 * ACTORS * size},
        {"bndbuffer", 4 * CONSUMERS * size},
        {"banking", 4 * size},
        {"skynet", 2 * count_tree_actors(size)},
        {"mailbox", size},
        {"wake", 2 * size},
    };

    if (strcmp(row->name, "fib") == 0)
        return 2 * (2 * compute_fibonacci(size) - 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(row->name, rows[i].name) == 0)
            return rows[i].messages;
    }
    return 0;
}
