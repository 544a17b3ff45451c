/* A database is opened by the driver of its scheme, with options within their ranges; failures have
 * an errno and texts that are safe to print; the answer of another actor is told from that of a
 * database. */
#include "tests/support/suite.h"

#include <domus/domus.h>
#include <domus/sql_driver.h>
#include <domus/testkit.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* How the actor of the test's driver answers each message: with a result, a failure, another type,
 * or an errno. */
enum { RESULT, FAILURE, WRONG_TYPE, ERRNO };

struct stand {
    domus_sql_settings settings;
    uint32_t zero;
};

static int says;
static uint64_t asked_transaction;
static domus_sql_options seen;

static int answer_query_as_told(domus_stack *stack, void *self, const void *payload)
{
    const struct stand *stand = self;
    const domus_sql_request *request = payload;

    ck_assert_uint_eq(stand->zero, 0);
    seen = stand->settings.options;
    asked_transaction = request->transaction;
    switch (says) {
    case RESULT:
        return domus_reply(stack, &domus_sql_result_type, &(domus_sql_result){.affected = 3});
    case FAILURE: {
        domus_sql_error failure =
            domus_sql_error_make(domus_sql_errno("23505"), "23505", "%s is there", "it");
        return domus_reply(stack, &domus_sql_error_type, &failure);
    }
    case WRONG_TYPE:
        return domus_reply(stack, &domus_sql_begun_type, &(domus_sql){.transaction = 5});
    default:
        return -ENOBUFS;
    }
}

static const domus_behaviour stand_behaviour = {
    .name = "stand",
    .kind = DOMUS_STATE,
    .state_size = sizeof(struct stand),
    .on = (const domus_on[]){{.type = &domus_sql_query_type, .handle = answer_query_as_told}, {0}},
};

static int check_options_of_driver(const domus_sql_settings *settings, char *error,
                                   size_t error_size)
{
    if (strstr(settings->url, "wrong") == NULL)
        return 0;
    snprintf(error, error_size, "it is wrong");
    return -EINVAL;
}

static const char *const schemes[] = {"stand", "st", NULL};
static const domus_sql_driver driver = {.name = "stand",
                                        .schemes = schemes,
                                        .check = check_options_of_driver,
                                        .behaviour = &stand_behaviour};
static const domus_sql_driver *const drivers[] = {&driver, NULL};

/* --- checks ----------------------------------------------------------------------------------- */

static const struct {
    domus_sql_options options;
    const char *words; /* words in the error of these options; NULL: they are right */
} options[] = {
    {{.connections_max = 1}, NULL},
    {{.connections_max = 64}, NULL},
    {{.connections_max = 65}, "connections_max: 65 is not in 1..64"},
    {{.connections_min = 4}, NULL},
    {{.connections_min = 5}, "connections_min: 5 is more than connections_max, 4"},
    {{.connections_min = 5, .connections_max = 5}, NULL},
    {{.queue_max = 1000000}, NULL},
    {{.queue_max = 1000001}, "queue_max: 1000001 is not in 1..1000000"},
    {{.statements_max = 65536}, "statements_max: 65536 is not in 1..65535"},
    {{.result_max = 1023}, "result_max: 1023 is not in 1024..1073741824"},
    {{.piece_size = 1048577}, "piece_size: 1048577 is not in 1024..1048576"},
    {{.wait_ns = 999999}, "wait_ns: 999999 is not in 1000000..3600000000000"},
    {{.timeout_ns = 86400000000001},
     "timeout_ns: 86400000000001 is not in 1000000..86400000000000"},
    {{.connect_timeout_ns = 1}, "connect_timeout_ns: 1 is not in 1000000..3600000000000"},
    {{.idle_ns = 1}, "idle_ns: 1 is not in 1000000..86400000000000"},
    {{.transaction_idle_ns = 1}, "transaction_idle_ns: 1 is not in 1000000..86400000000000"},
    {{.backoff_min_ns = 3600000000000}, NULL},
    {{.backoff_max_ns = 1}, "backoff_max_ns: 1 is not in 1000000..3600000000000"},
};

DOMT_TEST(options_out_of_range_are_refused)
{
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        domus_sql_options of = options[i].options;
        char error[128] = "";

        of.drivers = drivers;
        int result = domus_sql_check("stand:x", &of, error, sizeof error);
        ck_assert_msg(result == (options[i].words != NULL ? -EINVAL : 0) &&
                          strcmp(error, options[i].words != NULL ? options[i].words : "") == 0,
                      "row %zu: %d, %s", i, result, error);
    }
}

static const struct {
    const char *url;
    const char *words; /* words in the error of this url; NULL: the url is right */
} urls[] = {
    {"stand:", NULL},
    {"st:x", NULL},
    {"stan:x", "no driver for the scheme \"stan\""},
    {"STAND:x", "no driver for the scheme \"STAND\""},
    {"secret", "no driver for the scheme \"\""},
    {"", "no driver for the scheme \"\""},
    {"stand:wrong", "it is wrong"},
};

DOMT_TEST(driver_is_found_by_scheme_of_url)
{
    domus_sql_options of = {.drivers = drivers};
    static char url[DOMUS_SQL_URL_SIZE + 1];
    char error[128];

    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        error[0] = '\0';
        int result = domus_sql_check(urls[i].url, &of, error, sizeof error);
        ck_assert_msg(result == (urls[i].words != NULL ? -EINVAL : 0) &&
                          strcmp(error, urls[i].words != NULL ? urls[i].words : "") == 0,
                      "%s: %d, %s", urls[i].url, result, error);
    }
    memset(url, 'x', DOMUS_SQL_URL_SIZE);
    memcpy(url, "st:", 3);
    ck_assert_int_eq(domus_sql_check(url, &of, error, sizeof error), -EINVAL);
    ck_assert_str_eq(error, "the url has more than 1023 bytes");
    url[DOMUS_SQL_URL_SIZE - 1] = '\0';
    ck_assert_int_eq(domus_sql_check(url, &of, error, sizeof error), 0);
    of.drivers = NULL;
    ck_assert_int_eq(domus_sql_check("st:x", &of, error, sizeof error), -EINVAL);
}

/* --- failures --------------------------------------------------------------------------------- */

static const struct {
    const char *state;
    int error;
} states[] = {
    {"23505", -EEXIST}, {"23503", -EPERM},  {"22012", -EINVAL},    {"42501", -EACCES},
    {"42601", -EINVAL}, {"07001", -EINVAL}, {"25006", -EROFS},     {"25P02", -EINVAL},
    {"25001", -EIO},    {"28P01", -EACCES}, {"40001", -EAGAIN},    {"55P03", -EAGAIN},
    {"53300", -ENOSPC}, {"57P01", -EPIPE},  {"57014", -ECANCELED}, {"08006", -EPIPE},
    {"XX001", -EIO},    {"", -EIO},         {"2", -EIO},
};

DOMT_TEST(each_class_of_sqlstate_has_its_errno)
{
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
        ck_assert_int_eq(domus_sql_errno(states[i].state), states[i].error);
}

DOMT_TEST(texts_of_failures_are_cut_and_printable)
{
    char field[8];

    domus_sql_error_text(field, sizeof field, NULL);
    ck_assert_str_eq(field, "");
    domus_sql_error_text(field, sizeof field, "a\n\x1b[\t\x7f");
    ck_assert_str_eq(field, "a ?[ ?");
    domus_sql_error_text(field, sizeof field, "1234567");
    ck_assert_str_eq(field, "1234567");
    domus_sql_error_text(field, sizeof field, "12345678");
    ck_assert_str_eq(field, "1234567");
    domus_sql_error_text(field, sizeof field, "123456\xc3\xa4");
    ck_assert_str_eq(field, "123456");
    domus_sql_error_text(field, sizeof field, "12345\xc3\xa4");
    ck_assert_str_eq(field, "12345\xc3\xa4");
    domus_sql_error_text(field, sizeof field, "12345\xc3\xa4x");
    ck_assert_str_eq(field, "12345\xc3\xa4");
}

/* --- verbs ------------------------------------------------------------------------------------ */

static const domus_sql_statement statement = {.text = "SELECT 1"};

struct user {
    int result;
    uint64_t affected;
    char sqlstate[8];
};

static struct user user;

static int read_result_of_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    const domus_sql_result *result = NULL;
    const domus_sql_error *failure = domus_sql_error_of(answer);
    domus_sql_cursor cursor;

    ck_assert_int_lt(domus_sql_cursor_of(answer, &cursor), 0);
    user.result = domus_sql_result_of(answer, &result);
    user.affected = result != NULL ? result->affected : 0;
    snprintf(user.sqlstate, sizeof user.sqlstate, "%s", failure != NULL ? failure->sqlstate : "");
    return domus_stop(stack, domus_self(stack));
}

static int mount_driver_of_test(domus_stack *stack, void *self)
{
    domus_sql_options of = {.drivers = drivers, .queue_max = 5};
    domus_sql sql, transaction;

    ck_assert_int_eq(domus_sql_open(stack, "wrong:x", &of, &sql), -EINVAL);
    ck_assert_int_eq(domus_sql_open(stack, "stand:wrong", &of, &sql), -EINVAL);
    ck_assert_int_eq(domus_sql_open(stack, "stand:x", &of, &sql), 0);
    transaction = (domus_sql){sql.at, 6};
    ck_assert_int_eq(domus_sql_begin(stack, transaction, NULL, read_result_of_answer), -EINVAL);
    return domus_sql_query(stack, transaction, &statement, NULL, 0, read_result_of_answer);
}

static const domus_behaviour user_behaviour = {
    .name = "user", .kind = DOMUS_STATE, .on_mount = mount_driver_of_test};

DOMT_TEST(answer_of_wrong_type_is_an_error)
{
    static const int results[] = {0, -EEXIST, -EPROTO, -ENOBUFS};

    for (says = RESULT; says <= ERRNO; says++) {
        domus_testkit *kit;
        domus_address address;
        char error[128];

        user = (struct user){.result = 1};
        ck_assert_int_eq(domus_testkit_new(NULL, 1, error, sizeof error, &kit), 0);
        ck_assert_int_eq(
            domus_outside_spawn(domus_testkit_system(kit), &user_behaviour, NULL, &address), 0);
        ck_assert_int_eq(domus_testkit_run(kit), 0);
        ck_assert_int_eq(user.result, results[says]);
        ck_assert_uint_eq(user.affected, says == RESULT ? 3 : 0);
        ck_assert_str_eq(user.sqlstate, says == FAILURE ? "23505" : "");
        ck_assert_uint_eq(asked_transaction, 6);
        ck_assert_uint_eq(seen.queue_max, 5);
        ck_assert_uint_eq(seen.connections_max, DOMUS_SQL_CONNECTIONS_MAX);
        ck_assert_uint_eq(seen.timeout_ns, DOMUS_SQL_TIMEOUT);
        domus_testkit_free(kit);
    }
}

DOMT_SUITE(20)
