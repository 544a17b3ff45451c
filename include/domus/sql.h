/* SQL: one set of verbs for several databases (libdomus-sql). The library of a database has a
 * driver: domus/sqlite.h for SQLite, domus/pg.h for PostgreSQL. docs/sql.md is the manual.
 *
 *     static const domus_sql_statement find = {.text = "SELECT id, title FROM todo WHERE id = $1"};
 *     static const domus_sql_driver *const drivers[] = {&domus_sqlite_driver, &domus_pg_driver,
 *                                                       NULL};
 *
 *     domus_sql_options options = {.drivers = drivers};
 *     error = domus_sql_open(stack, "sqlite:todo.db", &options, &self->database);
 *     ...
 *     return domus_sql_query(stack, self->database, &find, DOMUS_SQL_VALUES(domus_sql_int(7)),
 *                            found);
 *
 *     static int found(domus_stack *stack, void *self, const domus_answer *answer)
 *     {
 *         const domus_sql_result *rows;
 *         int error = domus_sql_result_of(answer, &rows);
 *         if (error != 0)
 *             return error;
 *         if (rows->rows == 0)
 *             ... there is no such todo ...
 *         domus_sql_value title = domus_sql_cell(rows, 0, 1);
 *         ...
 *     }
 *
 * **A database** is an actor, or one on each thread behind one address, that has connections. The
 * verbs are asks to it, so actors of any thread use it, and a test may put an actor of its own in
 * its place (domus/sql_driver.h has the messages). A query goes to a connection that is free. While
 * all are busy up to `queue_max` queries wait, for `wait_ns` at most; one more fails with -ENOBUFS.
 *
 * **Statements** are constants of the program. Each connection prepares one at its first use, and
 * keeps it. Parameters are $1, $2 and so on, in any order, in all databases.
 *
 * **Results** come whole, up to `result_max` bytes, or in pieces (domus_sql_rows()): then the
 * database sends no faster than the rows are read.
 *
 * **A transaction** holds its connection (domus_sql_begin()). It is rolled back if it is not ended
 * within `transaction_idle_ns` of its last verb, and when the actor that has begun it ends.
 *
 * **Failures.** A verb that the database has refused is answered by a domus_sql_error, with the
 * SQLSTATE. domus_sql_result_of() makes an errno of it, as of all other failures:
 *
 *   -EEXIST     a unique constraint (SQLSTATE 23505)
 *   -EPERM      any other integrity constraint (23)
 *   -EINVAL     wrong data, a wrong statement or number of parameters (22, 42, 07)
 *   -EACCES     not allowed (28, 42501)
 *   -EAGAIN     lost a race to another transaction (40, 55P03): try the whole one again
 *   -EROFS      the database may only be read (25006)
 *   -ETIMEDOUT  the deadline, or `timeout_ns`, has passed; the query is cancelled at the database,
 *               but it may have been done before the cancel came
 *   -ENOSPC     the database has too little of something, such as memory or disk (53)
 *   -EFBIG      the result has more than `result_max` bytes (-EMSGSIZE: the parameters do)
 *   -ENOBUFS    `queue_max` queries wait, or `queue_bytes_max` bytes of them
 *   -EBUSY      no connection was free within `wait_ns`
 *   -ENOTCONN   there is no connection to the database; the query was not sent
 *   -EPIPE      the connection broke, or the database ended it; the query may have been done
 *   -ESTALE     the transaction, or the rows, are over
 *   -EIO        anything else
 *
 * Thread-safety: functions with a stack only from within a handler, with its stack. Others may be
 * called by any thread, for values of its own. */
#ifndef DOMUS_SQL_H
#define DOMUS_SQL_H

#include <domus/conversation.h>
#include <domus/slice.h>

#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- values ----------------------------------------------------------------------------------- */

typedef enum domus_sql_kind {
    DOMUS_SQL_NULL,
    DOMUS_SQL_BOOL, /* a boolean; SQLite has no such type: its results have an integer, 0 or 1 */
    DOMUS_SQL_INTEGER,
    DOMUS_SQL_REAL,
    DOMUS_SQL_TEXT,  /* UTF-8; also all types without a kind: numeric, timestamps, uuid, json */
    DOMUS_SQL_BYTES, /* bytes: bytea of PostgreSQL, BLOB of SQLite */
} domus_sql_kind;

/* A value: a parameter, or a cell of a result. It does not own its text or bytes: the verb copies
 * those of a parameter, and those of a cell are valid as long as the result is. Behind the bytes of
 * a cell there is a zero, which is not counted. */
typedef struct domus_sql_value {
    union {
        bool boolean;
        int64_t integer;
        double real;
        const void *bytes; /* the bytes of a text (DOMUS_SQL_TEXT) or of bytes */
    } as;
    uint32_t size; /* number of these bytes, for a text or for bytes */
    uint8_t kind;  /* kind of the value, a domus_sql_kind */
    uint8_t reserved[3];
} domus_sql_value;

static inline domus_sql_value domus_sql_null(void)
{
    domus_sql_value value;

    memset(&value, 0, sizeof value);
    return value;
}

static inline domus_sql_value domus_sql_bool(bool boolean)
{
    domus_sql_value value = domus_sql_null();

    value.as.boolean = boolean;
    value.kind = DOMUS_SQL_BOOL;
    return value;
}

static inline domus_sql_value domus_sql_int(int64_t integer)
{
    domus_sql_value value = domus_sql_null();

    value.as.integer = integer;
    value.kind = DOMUS_SQL_INTEGER;
    return value;
}

static inline domus_sql_value domus_sql_real(double real)
{
    domus_sql_value value = domus_sql_null();

    value.as.real = real;
    value.kind = DOMUS_SQL_REAL;
    return value;
}

/* Returns a value of `size` bytes, up to DOMUS_SQL_VALUE_MAX. */
static inline domus_sql_value domus_sql_bytes(const void *bytes, size_t size)
{
    domus_sql_value value = domus_sql_null();

    value.as.bytes = bytes;
    value.size = size <= UINT32_MAX ? (uint32_t)size : UINT32_MAX; /* too long: queries refuse it */
    value.kind = DOMUS_SQL_BYTES;
    return value;
}

static inline domus_sql_value domus_sql_text_of(const char *text, size_t size)
{
    domus_sql_value value = domus_sql_bytes(text, size);

    value.kind = DOMUS_SQL_TEXT;
    return value;
}

/* Returns the value of a text that ends with a zero; NULL becomes the value NULL. */
static inline domus_sql_value domus_sql_text(const char *text)
{
    return text != NULL ? domus_sql_text_of(text, strlen(text)) : domus_sql_null();
}

#define DOMUS_SQL_VALUE_MAX      (UINT32_C(1) << 26) /* most bytes of all parameters of a query */
#define DOMUS_SQL_PARAMETERS_MAX 256u                /* most parameters of a query */

/* The two arguments `values` and `count` of a query, as in DOMUS_SQL_VALUES(domus_sql_int(7)). */
#define DOMUS_SQL_VALUES(...)                                                                      \
    (const domus_sql_value[]){__VA_ARGS__},                                                        \
        (uint32_t)(sizeof((const domus_sql_value[]){__VA_ARGS__}) / sizeof(domus_sql_value))

/* --- a database ------------------------------------------------------------------------------- */

/* A handle of a database, or of a transaction in it. It owns nothing, and may be copied. */
typedef struct domus_sql {
    domus_address at;
    uint64_t transaction; /* number of the transaction; 0: each query is a transaction of its own */
} domus_sql;

typedef struct domus_sql_driver domus_sql_driver;

/* Defaults of fields of domus_sql_options: a 0 in the field means this value. */
#define DOMUS_SQL_CONNECTIONS_MAX  4u
#define DOMUS_SQL_QUEUE_MAX        1024u
#define DOMUS_SQL_QUEUE_BYTES_MAX  (UINT64_C(64) << 20)
#define DOMUS_SQL_WAIT             UINT64_C(5000000000)
#define DOMUS_SQL_TIMEOUT          UINT64_C(30000000000)
#define DOMUS_SQL_CONNECT_TIMEOUT  UINT64_C(10000000000)
#define DOMUS_SQL_IDLE             UINT64_C(60000000000)
#define DOMUS_SQL_TRANSACTION_IDLE UINT64_C(10000000000)
#define DOMUS_SQL_BACKOFF_MIN      UINT64_C(100000000)
#define DOMUS_SQL_BACKOFF_MAX      UINT64_C(10000000000)
#define DOMUS_SQL_RESULT_MAX       (UINT32_C(16) << 20)
#define DOMUS_SQL_PIECE            65536u
#define DOMUS_SQL_STATEMENTS_MAX   256u
#define DOMUS_SQL_PIPELINE_MAX     1u
#define DOMUS_SQL_TOGETHER_MAX     16u

/* Options of a database. All fields but `drivers` may be 0. Connections are counted for each
 * thread with PostgreSQL, and for the process with SQLite. */
typedef struct domus_sql_options {
    const domus_sql_driver *const *drivers; /* drivers to choose from, up to a NULL */
    uint32_t connections_min; /* connections that are kept, 0..connections_max; 0: none */
    uint32_t connections_max; /* most connections at a time, 1..64; 0 means 4 */
    uint32_t queue_max;       /* most queries that wait, 1..1,000,000; 0 means 1,024 */
    /* most prepared statements of a connection, 1..65535; 0 means 256. The oldest one goes */
    uint32_t statements_max;
    uint32_t result_max; /* most bytes of a whole result, 1 KiB..1 GiB; 0 means 16 MiB */
    /* bytes of a piece of rows, 1 KiB..1 MiB; 0: 64 KiB. A larger row, up to result_max, is one */
    uint32_t piece_size;
    uint64_t wait_ns;            /* longest wait of a query for a connection, 1 ms..1 h; 0: 5 s */
    uint64_t timeout_ns;         /* longest time of a query once begun, 1 ms..24 h; 0 means 30 s */
    uint64_t connect_timeout_ns; /* longest time of one connect, 1 ms..1 h; 0: 10 s */
    /* idle time after which connections beyond connections_min are closed, 1 ms..24 h; 0: 60 s */
    uint64_t idle_ns;
    /* time without a verb after which a transaction is ended, 1 ms..24 h; 0 means 10 s */
    uint64_t transaction_idle_ns;
    uint64_t backoff_min_ns; /* first wait after a failed connect, 1 ms..1 h; 0 means 100 ms */
    uint64_t backoff_max_ns; /* longest such wait, backoff_min_ns..1 h; 0: 10 s */
    /* Most queries that are sent on one connection before the first of them is answered, 1..64; 0:
     * 1. With more, a query goes behind others when all connections are busy, instead of waiting.
     * PostgreSQL only, for queries outside of transactions. */
    uint32_t pipeline_max;
    /* Most queries that only read (`reads`) and are sent together, when they have waited for a
     * connection, 1..64; 0: 16. All are sent at the cost of one. PostgreSQL only. */
    uint32_t together_max;
    /* Most bytes of texts and long parameters of queries that wait in one queue, for a connection
     * or of a transaction. 1 KiB..1 TiB; 0: 64 MiB. One more fails with -ENOBUFS. */
    uint64_t queue_bytes_max;
} domus_sql_options;

/* Open the database that `url` names, by the driver that has its scheme: as children of the running
 * actor, or of nobody. `url` and `options` are copied. Nothing is connected yet: that a file cannot
 * be opened, or a server not be reached, is the error of queries. domus_stop() of the address
 * closes it.
 *
 * Thread-safety: domus_outside_sql_open() any thread but those of the system, once it was started.
 * Returns 0; -EINVAL for a wrong text or option, and when no driver has the scheme
 * (domus_sql_check() has the words); -ENOMEM; and as domus_spawn_many(). */
DOMUS_API int domus_sql_open(domus_stack *stack, const char *url, const domus_sql_options *options,
                             domus_sql *ret_sql);
struct domus_system;
DOMUS_API int domus_outside_sql_open(struct domus_system *system, const char *url,
                                     const domus_sql_options *options, domus_sql *ret_sql);

/* Check whether a database could be opened with a url and options; nothing is opened. `error` gets
 * one line that says what is wrong, without a password. Returns 0; -EINVAL. */
DOMUS_API int domus_sql_check(const char *url, const domus_sql_options *options, char *error,
                              size_t error_size);

/* --- queries ---------------------------------------------------------------------------------- */

/* A statement. It has to stay as it is for the life of the program, because connections know it by
 * its address. */
typedef struct domus_sql_statement {
    const char *text;    /* text of one statement, with $1, $2, ... for its parameters */
    uint64_t timeout_ns; /* time of such a query, 1 ms..24 h; 0: the database's timeout_ns */
    /* Whether the query may be done again: it is sent up to 3 times more if its connection breaks
     * outside of a transaction. */
    bool repeatable;
    /* Whether the query only reads, calls nothing that writes, and is quick. Such queries are
     * repeatable; those that wait for a connection of PostgreSQL are sent together: in one
     * transaction, answered when the last is done. Behind one that fails they are sent again. */
    bool reads;
} domus_sql_statement;

/* A result of a query. The message owns it. */
typedef struct domus_sql_result {
    domus_slice cells; /* bytes for the library alone, as the next field is */
    domus_slice bytes;
    uint64_t affected; /* number of rows that the query has inserted, updated or deleted */
    uint32_t rows;
    uint16_t columns;
    bool last; /* whether no other piece of the rows follows this one */
    uint8_t reserved;
} domus_sql_result;

/* The type of results. Its `release` frees the rows. */
DOMUS_API extern const domus_type domus_sql_result_type;

#define DOMUS_SQL_NAME_SIZE 64u /* size in bytes of a name in an error, with a zero at its end */

/* The words of a database about a failure. All texts are cut where they do not fit, and bytes that
 * do not print are "?". Do not show it to strangers. */
typedef struct domus_sql_error {
    int error;         /* negative errno of the failure, as the head of this header lists them */
    uint32_t position; /* place of the error in the statement in characters, from 1; 0: not known */
    char sqlstate[8];  /* SQLSTATE, five letters and digits; "": an error of the library */
    char message[256];
    char detail[256];
    char constraint[DOMUS_SQL_NAME_SIZE]; /* constraint's name; "": not known, as in the next two */
    char table[DOMUS_SQL_NAME_SIZE];
    char column[DOMUS_SQL_NAME_SIZE];
} domus_sql_error;

DOMUS_API extern const domus_type domus_sql_error_type;

/* Run a statement, and suspend until its result is there, whole. `values` are copied.
 *
 * `then` gets an answer for domus_sql_result_of().
 * Returns as domus_ask(); -EINVAL for more than DOMUS_SQL_PARAMETERS_MAX values or a wrong kind;
 * -EMSGSIZE for more than DOMUS_SQL_VALUE_MAX bytes. */
DOMUS_API int domus_sql_query(domus_stack *stack, domus_sql sql,
                              const domus_sql_statement *statement, const domus_sql_value *values,
                              uint32_t count, domus_resumed *then);

/* Run a statement as one of several things to wait for, as domus_ask_add() does. */
DOMUS_API int domus_sql_query_add(domus_stack *stack, domus_sql sql,
                                  const domus_sql_statement *statement,
                                  const domus_sql_value *values, uint32_t count, uint64_t tag);

/* Run a statement whose text is made at run time, which is copied and not kept prepared. Words of
 * users belong into `values`, never into the text.
 *
 * A text, a statement or a script must not begin or end a transaction by itself: BEGIN and COMMIT
 * are domus_sql_begin() and domus_sql_commit(). SQLite refuses it. With PostgreSQL it fails with
 * -EINVAL when it is done: a transaction that it has begun is rolled back, and one that it has
 * ended is over. With a `pipeline_max` above 1, queries of others behind it fail with -EPIPE. */
DOMUS_API int domus_sql_query_text(domus_stack *stack, domus_sql sql, const char *text,
                                   const domus_sql_value *values, uint32_t count,
                                   domus_resumed *then);

/* Run several statements without parameters, with ';' between them, as one transaction of its own
 * (or in that of `sql`). `then` gets an empty result. The text is copied.
 * Returns as domus_ask(); -EMSGSIZE for more than DOMUS_SQL_VALUE_MAX bytes. */
DOMUS_API int domus_sql_script(domus_stack *stack, domus_sql sql, const char *text,
                               domus_resumed *then);

/* Take the result out of the answer to a verb. Returns 0, and `ret_result` gets the result, which
 * is valid as the payload of the answer is (domus_take_answer() keeps it); or the negative errno of
 * the failure (domus/sql.h lists them); -EPROTO for an answer that is none of a database. */
DOMUS_API int domus_sql_result_of(const domus_answer *answer, const domus_sql_result **ret_result);

/* Returns the words of the database about a failure; NULL if the answer is none, or has an errno
 * alone. They are valid as the payload of the answer is. */
DOMUS_API const domus_sql_error *domus_sql_error_of(const domus_answer *answer);

/* Write the words of the database to the log, as an error, if the answer has some: they are nothing
 * for strangers. Returns `error`. */
DOMUS_API int domus_sql_fail(domus_stack *stack, int error, const domus_answer *answer);

/* --- cells ------------------------------------------------------------------------------------ */

/* Returns the value in a row and a column, both counted from 0; NULL outside of the result. Its
 * text and bytes lie in the result. */
DOMUS_API domus_sql_value domus_sql_cell(const domus_sql_result *result, uint32_t row,
                                         uint32_t column);

/* Returns the value in a row and a column as a slice of the result, without a copy:
 * domus_slice_keep() makes an owner of it. Empty for a value that is neither text nor bytes. */
DOMUS_API domus_slice domus_sql_slice(const domus_sql_result *result, uint32_t row,
                                      uint32_t column);

/* Read a cell of a result as a value of a C type. Integers are read from integers, booleans, reals
 * without a fraction, and texts that are numbers; booleans from integers and from "t" and "f", too;
 * reals from all numbers. domus_sql_get_text() copies text or a number with a zero at its end.
 *
 * Returns 0; -ENODATA for NULL; -ENOENT outside of the result; -EINVAL for another kind; -ERANGE
 * for a number, and -EMSGSIZE for a text, that does not fit. Then `ret_value` is as it was. */
DOMUS_API int domus_sql_get_int(const domus_sql_result *result, uint32_t row, uint32_t column,
                                int64_t *ret_value);
DOMUS_API int domus_sql_get_bool(const domus_sql_result *result, uint32_t row, uint32_t column,
                                 bool *ret_value);
DOMUS_API int domus_sql_get_real(const domus_sql_result *result, uint32_t row, uint32_t column,
                                 double *ret_value);
DOMUS_API int domus_sql_get_text(const domus_sql_result *result, uint32_t row, uint32_t column,
                                 char *ret_text, size_t text_size);

/* Returns the name of a column, with a zero, valid as long as the result; NULL outside of it.
 * domus_sql_column() returns the number of the first column of a name, or -ENOENT. */
DOMUS_API const char *domus_sql_column_name(const domus_sql_result *result, uint32_t column);
DOMUS_API int domus_sql_column(const domus_sql_result *result, const char *name);

/* Read `count` rows, from `row` on, into structs that lie behind each other, by a table of fields
 * (domus/json.h), each of which is the column of its name. So one table reads what comes over HTTP,
 * writes it, and reads it from the database. BOOL, INT, UINT, REAL and TEXT are copied; STRING and
 * RAW point into the result, and are valid as long as that; a WORD is stored as its text. A column
 * that no field names is passed over. NULL is an absent field if the row is `nullable` or notes
 * its presence (DOMUS_JSON_HAS()), as null is in JSON.
 *
 * Returns 0; -ENOENT for rows that are not there, and for a field without a column; -ENODATA for
 * NULL in a field that has to have a value; -EINVAL for another kind; -ERANGE and -EMSGSIZE for a
 * value beyond the bounds of its field, -ERANGE also for a word that is none; -EOPNOTSUPP for lists
 * and objects. With an error the structs may hold anything. */
struct domus_json_table;
DOMUS_API int domus_sql_read(const domus_sql_result *result, uint32_t row, uint32_t count,
                             const struct domus_json_table *table, void *ret_values);

/* --- rows in pieces --------------------------------------------------------------------------- */

/* A cursor: rows in pieces. It holds a connection until they are read to the end, or closed. */
typedef struct domus_sql_cursor {
    domus_address at;
    uint64_t number;
} domus_sql_cursor;

DOMUS_API extern const domus_type domus_sql_cursor_type;

/* Run a statement whose rows are read by domus_sql_fetch(). `then` gets an answer for
 * domus_sql_cursor_of() as soon as the database has begun to answer. A cursor that is not read for
 * `transaction_idle_ns`, or whose owner has ended, is closed. Returns as domus_sql_query(). */
DOMUS_API int domus_sql_rows(domus_stack *stack, domus_sql sql,
                             const domus_sql_statement *statement, const domus_sql_value *values,
                             uint32_t count, domus_resumed *then);
DOMUS_API int domus_sql_cursor_of(const domus_answer *answer, domus_sql_cursor *ret_cursor);

/* Read the next rows, `piece_size` bytes or more, and suspend. The last piece has `last` set, and
 * may have no rows; the cursor is closed with it, and after any error. `then` gets an answer for
 * domus_sql_result_of(), with -EBUSY when another read of these rows waits. Returns as domus_ask().
 */
DOMUS_API int domus_sql_fetch(domus_stack *stack, domus_sql_cursor cursor, domus_resumed *then);

/* Close rows before their end: the database cancels the query. Returns as domus_notice(). */
DOMUS_API int domus_sql_close_rows(domus_stack *stack, domus_sql_cursor cursor);

/* --- transactions ----------------------------------------------------------------------------- */

typedef enum domus_sql_isolation {
    DOMUS_SQL_ISOLATION_DEFAULT, /* read committed in PostgreSQL, serializable in SQLite */
    DOMUS_SQL_REPEATABLE_READ,
    DOMUS_SQL_SERIALIZABLE,
} domus_sql_isolation;

typedef struct domus_sql_begin_options {
    domus_sql_isolation isolation;
    bool reads_only; /* whether statements that write fail with -EROFS */
} domus_sql_begin_options;

/* Begin a transaction, and suspend. `then` gets an answer for domus_sql_transaction_of(). The verbs
 * with that domus_sql are done in it, one after the other, on one connection; queries with the
 * domus_sql of the database are not part of it. After a failure of a statement all further ones
 * fail with -EINVAL (25P02), in SQLite, too, until the transaction is rolled back. That holds for
 * every failure, also for those that the database does not know of: a result that is too large, a
 * wrong number of parameters, a full queue, a time-out, an answer that came too late. `options` may
 * be NULL. Returns as domus_ask(); -EINVAL within a transaction. */
DOMUS_API int domus_sql_begin(domus_stack *stack, domus_sql sql,
                              const domus_sql_begin_options *options, domus_resumed *then);
DOMUS_API int domus_sql_transaction_of(const domus_answer *answer, domus_sql *ret_sql);

/* End a transaction, and suspend until that is done: a commit that is answered without an error is
 * durable as far as the database is. A commit of a transaction in which a statement has failed
 * fails with that error, and is a rollback. `then` gets an answer for domus_sql_result_of(): -EPIPE
 * and -ETIMEDOUT of a commit mean that nobody knows whether it was done, -ESTALE that it was not.
 * In a conversation whose deadline has passed, or that was cancelled, both roll back, and nobody
 * waits for that. */
DOMUS_API int domus_sql_commit(domus_stack *stack, domus_sql sql, domus_resumed *then);
DOMUS_API int domus_sql_rollback(domus_stack *stack, domus_sql sql, domus_resumed *then);

/* --- migrations ------------------------------------------------------------------------------- */

/* A step of a schema. The rows of a table are done in their order, each once for a database and as
 * one transaction, and are noted in the table "domus_migrations" of the database. The last row has
 * a NULL name. */
typedef struct domus_sql_migration {
    const char *name; /* name of the step, up to 127 bytes; it must not change */
    const char *text; /* SQL statements of the step, with ';' between them */
    /* The statements for the driver of this name, if they differ there; NULL: `text` is for all. */
    const char *sqlite;
    const char *postgresql;
} domus_sql_migration;

#define DOMUS_SQL_MIGRATIONS_MAX 1024u

/* Do the steps that are not noted yet, and suspend until all are done. Programs that do this at a
 * time wait for each other. `then` gets an answer for domus_sql_result_of(), whose `affected`
 * counts what was done: -EINVAL when the database has a step that the table has not, or in another
 * order. `migrations` has to stay valid. Returns as domus_ask(). */
DOMUS_API int domus_sql_migrate(domus_stack *stack, domus_sql sql,
                                const domus_sql_migration *migrations, domus_resumed *then);

/* Do what domus_sql_migrate() does, from a foreign thread: it blocks, for `timeout_ns` at most (0:
 * 10 s). `words` get what the database says of a failure, cut, or nothing. Thread-safety: as
 * domus_outside_ask(). Returns 0; as domus_outside_ask(); as domus_sql_result_of(). */
DOMUS_API int domus_outside_sql_migrate(struct domus_system *system, domus_sql sql,
                                        const domus_sql_migration *migrations, uint64_t timeout_ns,
                                        char *words, size_t words_size);

/* --- the state of a database ------------------------------------------------------------------ */

typedef struct domus_sql_status {
    uint32_t connections; /* connections of the database that are open now */
    uint32_t connecting;  /* connections that are being made, or wait for the end of a back-off */
    uint32_t busy;        /* connections that have a query, a transaction or rows now */
    uint32_t waiting;     /* queries that wait for a connection now */
    uint64_t connects;    /* connections that the database has made so far */
    uint64_t failures;    /* connects that have failed, and connections that broke */
    uint64_t queries;     /* queries that were answered, with a result or an error */
    uint64_t errors;      /* queries that failed with an error of the database */
    uint64_t timeouts;    /* queries that failed with -ETIMEDOUT */
    uint64_t refused;     /* queries that failed with -ENOBUFS or -EBUSY */
    uint64_t prepares;    /* statements that connections have prepared */
    uint64_t repeated;    /* queries that were sent again after a failure that was not theirs */
} domus_sql_status;

/* The type of an ask without a payload to the address of a database, and of its answer, a
 * domus_sql_status of the asker's thread. */
DOMUS_API extern const domus_type domus_sql_look_type;
DOMUS_API extern const domus_type domus_sql_status_type;

#ifdef __cplusplus
}
#endif

#endif
