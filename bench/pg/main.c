/* The client of the bench pg: reads of one row by its key, as `pgbench -S` does, on one thread,
 * with as many reads under way as there are connections, or more.
 *
 * pg_domus URL CONNECTIONS SECONDS ROWS [READERS]
 *
 * stdout: number of queries in the measured seconds, and CPU time of a query in ns, user and system
 * time apart. */
#include <domus/domus.h>
#include <domus/pg.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static const domus_sql_statement find = {
    .text = "SELECT abalance FROM pgbench_accounts WHERE aid = $1", .reads = true};
static const domus_type begin_type = {.name = "begin"};

static domus_sql database;
static uint64_t rows_count = 100000;
static _Atomic uint64_t queries, errors;
static _Atomic bool is_over;

struct reader {
    uint64_t chance;
};

static domus_resumed count_result_and_ask_again;

static int send_query_of_asker(domus_stack *stack, struct reader *reader)
{
    reader->chance = reader->chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    int64_t row = 1 + (int64_t)((reader->chance >> 33) % rows_count);
    return domus_sql_query(stack, database, &find, DOMUS_SQL_VALUES(domus_sql_int(row)),
                           count_result_and_ask_again);
}

static int count_result_and_ask_again(domus_stack *stack, void *self, const domus_answer *answer)
{
    const domus_sql_result *rows;
    int64_t balance;
    int error = domus_sql_result_of(answer, &rows);

    if (error == 0)
        error = domus_sql_get_int(rows, 0, 0, &balance);
    if (error != 0)
        atomic_fetch_add_explicit(&errors, 1, memory_order_relaxed);
    /* a load and a store are enough, because only this thread writes the count */
    atomic_store_explicit(&queries, atomic_load_explicit(&queries, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    return atomic_load_explicit(&is_over, memory_order_relaxed) ? 0
                                                                : send_query_of_asker(stack, self);
}

static int send_first_query_of_asker(domus_stack *stack, void *self, const void *payload)
{
    (void)payload;
    return send_query_of_asker(stack, self);
}

static const domus_behaviour reader = {
    .name = "reader",
    .state_size = sizeof(struct reader),
    .on = (const domus_on[]){{&begin_type, send_first_query_of_asker, 0}, {NULL, NULL, 0}},
};

static uint64_t read_cpu_time(const struct timeval *time)
{
    return (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_usec * 1000;
}

static void sleep_seconds(unsigned seconds)
{
    nanosleep(&(struct timespec){.tv_sec = (time_t)seconds}, NULL);
}

static domus_system *start_actors_that_read(const char *url, uint32_t connections)
{
    static const domus_sql_driver *const drivers[] = {&domus_pg_driver, NULL};
    domus_sql_options options = {.drivers = drivers, .connections_max = connections};
    domus_system *system = NULL;
    domus_config config;
    char error[200] = "";

    domus_config_init(&config);
    config.system.threads = 1;
    if (domus_system_new(&config, error, sizeof error, &system) != 0 ||
        domus_system_start(system) != 0 ||
        domus_outside_sql_open(system, url, &options, &database) != 0) {
        fprintf(stderr, "pg_domus: cannot begin: %s\n", error);
        exit(1);
    }
    return system;
}

int main(int count, char **arguments)
{
    struct rusage before, after;

    if (count < 5) {
        fprintf(stderr, "usage: pg_domus URL CONNECTIONS SECONDS ROWS [READERS]\n");
        return 2;
    }
    uint32_t connections = (uint32_t)strtoul(arguments[2], NULL, 10);
    uint32_t readers = count > 5 ? (uint32_t)strtoul(arguments[5], NULL, 10) : connections;
    unsigned seconds = (unsigned)strtoul(arguments[3], NULL, 10);
    rows_count = strtoull(arguments[4], NULL, 10);
    domus_system *system = start_actors_that_read(arguments[1], connections);
    for (uint32_t i = 0; i < readers; i++) {
        struct reader state = {.chance = i + 1};
        domus_address address;
        if (domus_outside_spawn(system, &reader, &state, &address) != 0 ||
            domus_outside_notice(system, address, &begin_type, NULL) != 0)
            return 1;
    }
    sleep_seconds(1);
    uint64_t first = queries;
    getrusage(RUSAGE_SELF, &before);
    sleep_seconds(seconds);
    uint64_t done = queries - first;
    getrusage(RUSAGE_SELF, &after);
    uint64_t failed = atomic_load(&errors);
    atomic_store(&is_over, true);
    domus_system_stop(system);
    domus_system_free(system);
    if (done == 0 || failed != 0) {
        fprintf(stderr, "pg_domus: %llu errors\n", (unsigned long long)failed);
        return 1;
    }
    printf("queries %llu user_ns %llu system_ns %llu\n", (unsigned long long)done,
           (unsigned long long)((read_cpu_time(&after.ru_utime) - read_cpu_time(&before.ru_utime)) /
                                done),
           (unsigned long long)((read_cpu_time(&after.ru_stime) - read_cpu_time(&before.ru_stime)) /
                                done));
    return 0;
}
