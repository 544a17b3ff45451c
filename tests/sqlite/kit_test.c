/* protocols/sqlite in a test kit: a service with a database in memory is tested with its real
 * statements, in virtual time. */
#include "tests/support/kits.h"
#include "tests/support/suite.h"

#include <domus/sqlite.h>
#include <domus/testkit.h>

#include <errno.h>

#define SECOND UINT64_C(1000000000)

/* --- a service: a list of things to do -------------------------------------------------------- */

struct todo {
    domus_sql database;
};

static const domus_type add_type = {.name = "add", .size = sizeof(int64_t)};
static const domus_type count_type = {.name = "count"};
static const domus_type number_type = {.name = "number", .size = sizeof(int64_t)};

static const domus_sql_migration steps[] = {
    {.name = "todo", .text = "CREATE TABLE todo (id INTEGER PRIMARY KEY, n INTEGER UNIQUE)"},
    {.name = "done", .text = "ALTER TABLE todo ADD COLUMN done INTEGER NOT NULL DEFAULT 0"},
    {.name = NULL},
};
static const domus_sql_statement put = {.text = "INSERT INTO todo (n) VALUES ($1) RETURNING id"};
static const domus_sql_statement count = {.text = "SELECT count(*) FROM todo WHERE done = $1"};

static int migrated(domus_stack *stack, void *self, const domus_answer *answer)
{
    const domus_sql_result *result;
    int error = domus_sql_result_of(answer, &result);

    ck_assert_int_eq(error, 0);
    ck_assert_uint_eq(result->affected, 2);
    return 0;
}

static int on_mount(domus_stack *stack, void *self)
{
    static const domus_sql_driver *const drivers[] = {&domus_sqlite_driver, NULL};
    const domus_sql_options options = {.drivers = drivers, .transaction_idle_ns = 5 * SECOND};
    struct todo *todo = self;
    int error = domus_sql_open(stack, "sqlite::memory:", &options, &todo->database);

    return error != 0 ? error : domus_sql_migrate(stack, todo->database, steps, migrated);
}

static int answer_with_number(domus_stack *stack, void *self, const domus_answer *answer)
{
    const domus_sql_result *result;
    int error = domus_sql_result_of(answer, &result);
    int64_t number = 0;

    if (error == 0)
        error = domus_sql_get_int(result, 0, 0, &number);
    return error != 0 ? error : domus_reply(stack, &number_type, &number);
}

static int on_add(domus_stack *stack, void *self, const void *payload)
{
    return domus_sql_query(stack, ((struct todo *)self)->database, &put,
                           DOMUS_SQL_VALUES(domus_sql_int(*(const int64_t *)payload)),
                           answer_with_number);
}

static int on_count(domus_stack *stack, void *self, const void *payload)
{
    return domus_sql_query(stack, ((struct todo *)self)->database, &count,
                           DOMUS_SQL_VALUES(domus_sql_bool(false)), answer_with_number);
}

static const domus_behaviour todo_behaviour = {
    .name = "todo",
    .state_size = sizeof(struct todo),
    .on = (const domus_on[]){{&add_type, on_add, 0}, {&count_type, on_count, 0}, {NULL, NULL, 0}},
    .on_mount = on_mount,
};

/* --- tests ------------------------------------------------------------------------------------ */

static int run_seed(uint64_t seed, void *context)
{
    domus_testkit *kit = domt_kit_new(NULL, seed);
    domus_address todo;
    domus_probe *probe;
    int64_t number, seven = 7;

    ck_assert_int_eq(domus_outside_spawn(domus_testkit_system(kit), &todo_behaviour, NULL, &todo),
                     0);
    ck_assert_int_eq(domus_probe_new(kit, &probe), 0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    for (int64_t i = 1; i <= 3; i++) {
        ck_assert_int_eq(domus_probe_ask(probe, todo, &add_type, &i), 0);
        ck_assert_int_eq(domus_probe_expect(probe, &number_type, SECOND, &number), 0);
        ck_assert_int_eq(number, i);
    }
    /* two items with the same number, of which the second one conflicts */
    ck_assert_int_eq(domus_probe_ask(probe, todo, &add_type, &seven), 0);
    ck_assert_int_eq(domus_probe_expect(probe, &number_type, SECOND, &number), 0);
    ck_assert_int_eq(domus_probe_ask(probe, todo, &add_type, &seven), 0);
    ck_assert_int_eq(domus_probe_expect_error(probe, -EEXIST, SECOND), 0);
    ck_assert_int_eq(domus_probe_ask(probe, todo, &count_type, NULL), 0);
    ck_assert_int_eq(domus_probe_expect(probe, &number_type, SECOND, &number), 0);
    ck_assert_int_eq(number, 4);
    ck_assert_int_eq(domus_testkit_stop(kit), 0);
    domus_testkit_free(kit);
    return 0;
}

DOMT_TEST(service_with_a_database_runs_in_a_kit)
{
    uint64_t seed;

    ck_assert_int_eq(domus_testkit_sweep(1, domt_more_if_long(50), run_seed, NULL, &seed), 0);
}

/* A transaction that is not ended is over at its time-out, which is virtual here. */
DOMT_TEST(times_are_those_of_the_kit)
{
    static const domus_sql_driver *const drivers[] = {&domus_sqlite_driver, NULL};
    const domus_sql_options options = {
        .drivers = drivers, .wait_ns = 60 * SECOND, .transaction_idle_ns = 3600 * SECOND};
    domus_sql_begin_options begin = {.reads_only = false};
    domus_testkit *kit = domt_kit_new(NULL, 1);
    domus_sql database, one;
    domus_probe *probe;

    ck_assert_int_eq(
        domus_outside_sql_open(domus_testkit_system(kit), "sqlite::memory:", &options, &database),
        0);
    ck_assert_int_eq(domus_probe_new(kit, &probe), 0);
    ck_assert_int_eq(domus_probe_ask(probe, database.at, &domus_sql_begin_type, &begin), 0);
    ck_assert_int_eq(domus_probe_expect(probe, &domus_sql_begun_type, SECOND, &one), 0);
    ck_assert_int_eq(domus_probe_ask(probe, database.at, &domus_sql_begin_type, &begin), 0);
    ck_assert_int_eq(domus_probe_expect_nothing(probe, 59 * SECOND), 0);
    ck_assert_int_eq(domus_probe_expect_error(probe, -EBUSY, 2 * SECOND), 0);
    ck_assert_int_eq(domus_testkit_advance(kit, 3601 * SECOND), 0);
    ck_assert_int_eq(domus_probe_ask(probe, database.at, &domus_sql_begin_type, &begin), 0);
    ck_assert_int_eq(domus_probe_expect(probe, &domus_sql_begun_type, SECOND, &one), 0);
    domus_testkit_free(kit);
}

/* A file needs helper threads, which a kit does not have. */
DOMT_TEST(file_in_a_kit_is_refused)
{
    static const domus_sql_driver *const drivers[] = {&domus_sqlite_driver, NULL};
    const domus_sql_options options = {.drivers = drivers};
    domus_sql_begin_options begin = {.reads_only = false};
    domus_testkit *kit = domt_kit_new(NULL, 1);
    domus_sql database;
    domus_probe *probe;

    ck_assert_int_eq(domus_outside_sql_open(domus_testkit_system(kit), "sqlite:/tmp/never.db",
                                            &options, &database),
                     0);
    ck_assert_int_eq(domus_probe_new(kit, &probe), 0);
    ck_assert_int_eq(domus_probe_ask(probe, database.at, &domus_sql_begin_type, &begin), 0);
    ck_assert_int_eq(domus_probe_expect_error(probe, -EOPNOTSUPP, SECOND), 0);
    domus_testkit_free(kit);
}

DOMT_SUITE(60)
