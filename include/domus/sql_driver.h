/* Drivers of databases: what the library of one implements, for domus/sql.h.
 *
 * A driver opens a database: an address that takes the messages below. Each is an ask, unless it
 * says notice, and is answered by a domus_sql_result, a domus_sql_cursor, a domus_sql, or a
 * domus_sql_error, or fails with an errno of domus/sql.h. A test may put an actor of its own there.
 *
 * Thread-safety: the functions here may be called by any thread, for values of its own. */
#ifndef DOMUS_SQL_DRIVER_H
#define DOMUS_SQL_DRIVER_H

#include <domus/sql.h>

#ifdef __cplusplus
extern "C" {
#endif

/* size in bytes of the url of a database, with a zero at its end */
#define DOMUS_SQL_URL_SIZE 1024u

/* The url and the options by which a database is opened. */
typedef struct domus_sql_settings {
    const domus_sql_driver *driver;
    domus_sql_options options; /* options of the database, in which only connections_min may be 0 */
    char url[DOMUS_SQL_URL_SIZE];
} domus_sql_settings;

struct domus_sql_driver {
    /* name of the driver in domus_sql_migration: "sqlite" or "postgresql" */
    const char *name;
    /* schemes of the urls that the driver knows, in small letters, up to a NULL */
    const char *const *schemes;
    /* A function that checks whether `url` and the options, which are in their ranges, can be
     * right. Returns 0; or -EINVAL, and `error` gets one line, without a password. */
    int (*check)(const domus_sql_settings *settings, char *error, size_t error_size);
    /* The actor that takes the messages. Its state begins with a domus_sql_settings, and is zero
     * behind it when it is mounted. */
    const domus_behaviour *behaviour;
    bool per_thread; /* whether a database has one actor on each thread, behind one address */
};

/* --- requests --------------------------------------------------------------------------------- */

/* Bytes of parameters that need no page. */
#define DOMUS_SQL_INLINE 128u

/* A statement with its parameters, as it travels: domus_sql_request_make() makes it. The functions
 * below get its parts. */
typedef struct domus_sql_request {
    /* statement to be run; NULL: `text` is run, and not kept prepared */
    const domus_sql_statement *statement;
    domus_slice text;     /* text of SQL, which ends with a zero that counts */
    domus_slice more;     /* bytes of those parameters that do not fit into `bytes` */
    uint64_t transaction; /* number of the transaction, as in domus_sql */
    uint32_t count;       /* number of the request's parameters */
    uint32_t size;        /* number of bytes of `bytes` in use */
    /* bytes of short parameters, which are read where they lie, so this is aligned */
    uint64_t bytes[DOMUS_SQL_INLINE / sizeof(uint64_t)];
} domus_sql_request;

/* Pack a request. One of `statement` and `text` is NULL.
 *
 * Ownership: the request owns its slices, until a message owns it.
 * Returns 0; -EINVAL, -EMSGSIZE as domus_sql_query(); -ENOMEM. */
DOMUS_API int domus_sql_request_make(domus_sql sql, const domus_sql_statement *statement,
                                     const char *text, const domus_sql_value *values,
                                     uint32_t count, domus_sql_request *ret_request);

/* Returns the text of a request's statement, which ends with a zero. */
DOMUS_API const char *domus_sql_request_text(const domus_sql_request *request);

/* Returns where a text of SQL goes on behind blanks, comments and empty statements. A comment
 * without an end goes to the end of the text. */
DOMUS_API const char *domus_sql_skip_blanks(const char *text);

/* Returns a parameter of a request, counted from 0; NULL outside of the request. Its text and bytes
 * are valid as long as the request stays where it is. */
DOMUS_API domus_sql_value domus_sql_request_value(const domus_sql_request *request, uint32_t index);

/* the type of an ask to run a statement; payload: a domus_sql_request of domus_sql_query() */
DOMUS_API extern const domus_type domus_sql_query_type;
/* the type of an ask for a cursor; payload: a domus_sql_request of domus_sql_rows() */
DOMUS_API extern const domus_type domus_sql_rows_type;
/* the type of an ask to run a script; payload: a domus_sql_request, the text alone */
DOMUS_API extern const domus_type domus_sql_script_type;

/* The types of an ask for the next rows of a cursor, and of a notice that no more are wanted. */
/* ask for the next rows; payload: a domus_sql_cursor */
DOMUS_API extern const domus_type domus_sql_fetch_type;
/* notice that closes the cursor; payload: a domus_sql_cursor */
DOMUS_API extern const domus_type domus_sql_close_type;

/* ask to begin a transaction; payload: a domus_sql_begin_options */
DOMUS_API extern const domus_type domus_sql_begin_type;
/* answer to an ask to begin a transaction; payload: a domus_sql */
DOMUS_API extern const domus_type domus_sql_begun_type;

/* The payload of an ask to end a transaction. */
typedef struct domus_sql_end {
    uint64_t transaction;
    bool commits;
} domus_sql_end;

DOMUS_API extern const domus_type domus_sql_end_type;
/* The type of a notice with a domus_sql, whose transaction is to be rolled back, and nobody waits
 * for that. */
DOMUS_API extern const domus_type domus_sql_abandon_type;

/* The type of an ask without a payload, for domus_sql_migrate(): which driver the database has. The
 * answer has a const domus_sql_driver * as its payload. */
DOMUS_API extern const domus_type domus_sql_who_type;
DOMUS_API extern const domus_type domus_sql_driver_type;

/* --- results ---------------------------------------------------------------------------------- */

/* A result that is being built, row by row. `{.bytes_max = result_max}` begins a builder; its
 * fields are for the library alone. */
typedef struct domus_sql_builder {
    domus_appender cells;
    domus_appender bytes;
    uint32_t bytes_max; /* most bytes of the result; 0: DOMUS_SLICE_MAX */
    uint32_t added;     /* number of cells that were added, and of names before them */
    uint32_t columns;
    bool begun; /* whether the number of the result's columns is known */
} domus_sql_builder;

/* Set the number of columns of a result, and then add the name of each, in order. */
DOMUS_API int domus_sql_build_columns(domus_sql_builder *builder, uint32_t columns);
DOMUS_API int domus_sql_build_name(domus_sql_builder *builder, const char *name);

/* Add the next cell, row by row, from the left. For a text or bytes that the driver writes itself,
 * domus_sql_build_room() returns a pointer to the room, valid until the next call; NULL is an
 * error, which domus_sql_build_end() returns. Return 0; -EFBIG beyond the bound; -ENOMEM; -EINVAL
 * for a call out of order. After an error nothing is added any more. */
DOMUS_API int domus_sql_build_cell(domus_sql_builder *builder, const domus_sql_value *value);
DOMUS_API char *domus_sql_build_room(domus_sql_builder *builder, domus_sql_kind kind,
                                     uint32_t size);

/* Returns the number of bytes that a builder has so far: a piece is sent when there are enough. */
DOMUS_API uint32_t domus_sql_built_size(const domus_sql_builder *builder);

/* End a builder: it is as new, with the same bound, without columns. Its last row has to be whole
 * (-EINVAL). Returns 0, or the first error of the calls before; then nothing is left to free. */
DOMUS_API int domus_sql_build_end(domus_sql_builder *builder, domus_sql_result *ret_result);
DOMUS_API void domus_sql_build_drop(domus_sql_builder *builder);

/* --- reals ------------------------------------------------------------------------------------ */

#define DOMUS_SQL_REAL_SIZE 32u /* size in bytes of a real as text, with a zero at its end */

/* Write a real with as few digits as give the same one when they are read, and with a point in
 * every locale; or "inf", "-inf" or "nan". */
DOMUS_API void domus_sql_real_write(double real, char ret_text[DOMUS_SQL_REAL_SIZE]);

/* Read a text as strtod(3) does in the locale "C". `ret_end` gets where the number ends. */
DOMUS_API double domus_sql_real_read(const char *text, char **ret_end);

/* --- failures --------------------------------------------------------------------------------- */

/* Returns the errno for a SQLSTATE, as domus/sql.h lists them; -EIO for a SQLSTATE that is not
 * listed. */
DOMUS_API int domus_sql_errno(const char *sqlstate);

/* Make an error of the library itself, with an errno and the words of printf(3). */
DOMUS_API domus_sql_error domus_sql_error_make(int error, const char *sqlstate, const char *format,
                                               ...) __attribute__((format(printf, 3, 4)));

/* Copy a text of a database into a field of an error: cut, with a blank for the end of a line
 * and a tab, and "?" for what else does not print. NULL is the empty text. */
DOMUS_API void domus_sql_error_text(char *field, size_t field_size, const char *text);

#ifdef __cplusplus
}
#endif

#endif
