/* This bench measures SQLite behind the verbs of domus/sql.h, beside bare calls of sqlite3 on one
 * thread: writes, each of which is answered when it is on the disk, and reads by key, for different
 * numbers of actors that ask at a time. Rows `bare_group_N` are bare writes with N in a
 * transaction: what a program can do that knows beforehand which writes come together, and as
 * durable. The last rows have 16 actors that read and 16 that write; their figure is how long the
 * longest of their queries took, while the WAL was copied to the file many times. Rows that begin
 * with `normal_` are with synchronous=normal, which does not wait for the disk.
 *
 * bench_sqlite [DIRECTORY [SECONDS]]: the file is made in DIRECTORY (/tmp); a row takes SECONDS
 * (2). stdout: lines `name value unit`. */
#include <domus/domus.h>
#include <domus/sqlite.h>

#include <errno.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ROWS 100000

static const char schema[] = "CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT NOT NULL)";
static const char fill[] =
    "WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 100000) "
    "INSERT INTO t SELECT n, 'a word of the row ' || n FROM r";
static const char put_text[] = "INSERT INTO t (word) VALUES ($1)";
static const char get_text[] = "SELECT id, word FROM t WHERE id = $1";
static const domus_sql_statement put = {.text = put_text};
static const domus_sql_statement get = {.text = get_text};

static char path[512], url[600];
static double seconds = 2;

static _Noreturn void exit_with_error(const char *what)
{
    fprintf(stderr, "sqlite: %s\n", what);
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void remove_file(void)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    char name[600];

    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(name, sizeof name, "%s%s", path, ends[i]);
        (void)unlink(name);
    }
}

/* --- domus ------------------------------------------------------------------------------------ */

/* The load of all actors of one kind (readers or writers), and the counts of their queries. */
struct load {
    domus_sql sql;
    bool writes;
    _Atomic uint64_t done;
    _Atomic uint64_t longest_ns;
    _Atomic bool ends;
};

struct asker {
    struct load *load;
    uint64_t seed;
};

static const domus_type go_type = {.name = "go"};

static domus_resumed count_answer_and_ask_again;

static int send_query_of_asker(domus_stack *stack, struct asker *asker)
{
    struct load *load = asker->load;

    *(uint64_t *)domus_frame(stack) = now_ns();
    if (load->writes)
        return domus_sql_query(stack, load->sql, &put,
                               DOMUS_SQL_VALUES(domus_sql_text("a word of the row")),
                               count_answer_and_ask_again);
    asker->seed = asker->seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return domus_sql_query(
        stack, load->sql, &get,
        DOMUS_SQL_VALUES(domus_sql_int(1 + (int64_t)((asker->seed >> 33) % ROWS))),
        count_answer_and_ask_again);
}

static int count_answer_and_ask_again(domus_stack *stack, void *self, const domus_answer *answer)
{
    struct asker *asker = self;
    struct load *load = asker->load;
    uint64_t took = now_ns() - *(uint64_t *)domus_frame(stack);
    const domus_sql_result *result;

    int error = domus_sql_result_of(answer, &result);
    const domus_sql_error *failure = domus_sql_error_of(answer);

    if (error != 0 && atomic_load(&load->ends))
        return 0;
    if (error != 0 || (!load->writes && result->rows != 1))
        exit_with_error(failure != NULL ? failure->message : strerror(-error));
    if (took > atomic_load(&load->longest_ns))
        atomic_store(&load->longest_ns, took);
    atomic_fetch_add(&load->done, 1);
    return atomic_load(&load->ends) ? 0 : send_query_of_asker(stack, asker);
}

static int send_first_query_of_asker(domus_stack *stack, void *self, const void *payload)
{
    (void)payload;
    return send_query_of_asker(stack, self);
}

static const domus_behaviour asker_behaviour = {
    .name = "asker",
    .state_size = sizeof(struct asker),
    .on = (const domus_on[]){{&go_type, send_first_query_of_asker, sizeof(uint64_t)},
                             {NULL, NULL, 0}},
};

static void spawn_asker_with_parallel_queries(domus_system *system, struct load *load,
                                              uint32_t askers)
{
    struct asker state = {.load = load, .seed = 42};
    domus_address address;

    if (domus_outside_spawn(system, &asker_behaviour, &state, &address) != 0)
        exit_with_error("no asker");
    for (uint32_t i = 0; i < askers; i++) {
        if (domus_outside_notice(system, address, &go_type, NULL) != 0)
            exit_with_error("no notice");
    }
}

static void wait_for_seconds(double time)
{
    struct timespec pause = {(time_t)time, (long)((time - (double)(time_t)time) * 1e9)};

    (void)nanosleep(&pause, NULL);
}

/* Let `readers` and `writers` actors ask the database at the same time, and print what they did. */
static void run_readers_and_writers(const char *name, const char *parameters, uint32_t readers,
                                    uint32_t writers)
{
    static const domus_sql_driver *const drivers[] = {&domus_sqlite_driver, NULL};
    const domus_sql_options options = {.drivers = drivers};
    struct load reads = {.writes = false}, writes = {.writes = true};
    domus_system *system;
    domus_config config;
    char error[256];

    domus_config_init(&config);
    config.system.cpus = "none";
    (void)snprintf(url, sizeof url, "sqlite:%s%s", path, parameters);
    if (domus_system_new(&config, error, sizeof error, &system) != 0 ||
        domus_system_start(system) != 0)
        exit_with_error("no system");
    if (domus_outside_sql_open(system, url, &options, &reads.sql) != 0)
        exit_with_error("no database");
    writes.sql = reads.sql;
    spawn_asker_with_parallel_queries(system, &reads, readers);
    spawn_asker_with_parallel_queries(system, &writes, writers);
    wait_for_seconds(0.3);
    uint64_t begun = now_ns(), before = atomic_load(&reads.done) + atomic_load(&writes.done);
    wait_for_seconds(seconds);
    uint64_t count = atomic_load(&reads.done) + atomic_load(&writes.done) - before;
    double took = (double)(now_ns() - begun) / 1e9;
    if (readers != 0 && writers != 0) {
        printf("%s_read_longest %.1f ms\n", name, (double)atomic_load(&reads.longest_ns) / 1e6);
        printf("%s_write_longest %.1f ms\n", name, (double)atomic_load(&writes.longest_ns) / 1e6);
        printf("%s_reads %.0f /s\n", name, (double)atomic_load(&reads.done) / (took + 0.3));
        printf("%s_writes %.0f /s\n", name, (double)atomic_load(&writes.done) / (took + 0.3));
    } else {
        printf("%s %.0f /s\n", name, (double)count / took);
    }
    (void)fflush(stdout);
    atomic_store(&reads.ends, true);
    atomic_store(&writes.ends, true);
    (void)domus_system_stop(system);
    domus_system_free(system);
}

/* --- bare ------------------------------------------------------------------------------------- */

static sqlite3 *open_bare_database(const char *synchronous)
{
    char text[128];
    sqlite3 *handle;

    if (sqlite3_open(path, &handle) != SQLITE_OK)
        exit_with_error("the file cannot be opened");
    (void)snprintf(text, sizeof text, "PRAGMA journal_mode=WAL; PRAGMA synchronous=%s",
                   synchronous);
    (void)sqlite3_exec(handle, text, NULL, NULL, NULL);
    return handle;
}

/* Run bare calls of sqlite3 with `group` queries in one transaction; 1: each query is a transaction
 * by itself. */
static void run_bare_queries(const char *name, const char *synchronous, bool writes, uint32_t group)
{
    sqlite3 *handle = open_bare_database(synchronous);
    uint64_t begun = now_ns(), count = 0, seed = 42;
    sqlite3_stmt *statement;

    if (sqlite3_prepare_v2(handle, writes ? put_text : get_text, -1, &statement, NULL) != SQLITE_OK)
        exit_with_error("the statement cannot be prepared");
    while ((double)(now_ns() - begun) < seconds * 1e9) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        if (group > 1 && count % group == 0 &&
            sqlite3_exec(handle, count == 0 ? "BEGIN" : "COMMIT; BEGIN", NULL, NULL, NULL) !=
                SQLITE_OK)
            exit_with_error("a bare transaction has failed");
        if (writes)
            (void)sqlite3_bind_text(statement, 1, "a word of the row", -1, SQLITE_STATIC);
        else
            (void)sqlite3_bind_int64(statement, 1, 1 + (int64_t)((seed >> 33) % ROWS));
        if (sqlite3_step(statement) != (writes ? SQLITE_DONE : SQLITE_ROW))
            exit_with_error("a bare query has failed");
        (void)sqlite3_reset(statement);
        count++;
    }
    printf("%s %.0f /s\n", name, (double)count / ((double)(now_ns() - begun) / 1e9));
    (void)fflush(stdout);
    (void)sqlite3_finalize(statement);
    (void)sqlite3_close(handle);
}

int main(int argc, char **argv)
{
    static const uint32_t askers[] = {1, 16, 64, 256};
    char name[64];

    (void)snprintf(path, sizeof path, "%s/domus-bench-%d.db", argc > 1 ? argv[1] : "/tmp",
                   (int)getpid());
    if (argc > 2)
        seconds = strtod(argv[2], NULL);
    remove_file();
    sqlite3 *handle = open_bare_database("NORMAL");
    if (sqlite3_exec(handle, schema, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(handle, fill, NULL, NULL, NULL) != SQLITE_OK)
        exit_with_error("the table cannot be made");
    (void)sqlite3_close(handle);
    run_bare_queries("bare_write", "FULL", true, 1);
    run_bare_queries("bare_normal_write", "NORMAL", true, 1);
    run_bare_queries("bare_read", "FULL", false, 1);
    for (size_t i = 0; i < sizeof askers / sizeof askers[0]; i++) {
        (void)snprintf(name, sizeof name, "write_%u", askers[i]);
        run_readers_and_writers(name, "", 0, askers[i]);
        (void)snprintf(name, sizeof name, "bare_group_%u", askers[i]);
        run_bare_queries(name, "FULL", true, askers[i]);
        (void)snprintf(name, sizeof name, "normal_write_%u", askers[i]);
        run_readers_and_writers(name, "?synchronous=normal", 0, askers[i]);
        (void)snprintf(name, sizeof name, "read_%u", askers[i]);
        run_readers_and_writers(name, "", askers[i], 0);
    }
    run_readers_and_writers("both", "", 16, 16);
    run_readers_and_writers("normal_both", "?synchronous=normal", 16, 16);
    remove_file();
    return 0;
}
