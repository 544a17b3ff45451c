/* PostgreSQL for domus/sql.h (libdomus-pg, over libpq). docs/pg.md is the manual.
 *
 *     static const domus_sql_driver *const drivers[] = {&domus_pg_driver, NULL};
 *
 *     domus_sql_open(stack, "postgresql://shop@db.example/shop", &options, &self->database);
 *
 * The url is one of libpq: hosts, TLS, passwords and service files are as its manual says. Names
 * are resolved, and files read, on helper threads (domus/blocking.h). */
#ifndef DOMUS_PG_H
#define DOMUS_PG_H

#include <domus/sql.h>

#ifdef __cplusplus
extern "C" {
#endif

struct domus_sql_driver;

/* The driver, for urls that begin with "postgresql:" or "postgres:". Its name is "postgresql". */
DOMUS_API extern const struct domus_sql_driver domus_pg_driver;

/* --- notifications ---------------------------------------------------------------------------- */

/* size in bytes of the name of a channel of NOTIFY, with a zero at its end */
#define DOMUS_PG_CHANNEL_SIZE 64u
/* most subscriptions that all actors of a thread have together */
#define DOMUS_PG_SUBSCRIPTIONS_MAX 4096u

/* The payload of a notice to each subscriber of a channel: a notification (NOTIFY). */
typedef struct domus_pg_notification {
    domus_slice payload; /* payload of the NOTIFY, up to 7,999 bytes; the message owns it */
    char channel[DOMUS_PG_CHANNEL_SIZE];
    int32_t pid; /* process id of the backend of PostgreSQL that has sent the notification */
    /* number of notifications that the subscriber's mailbox has refused since the last one that
     * came */
    uint32_t lost;
    /* Whether the connection was lost and is there again, so that notifications may be missing.
     * There is no payload then. */
    bool is_gap;
} domus_pg_notification;

DOMUS_API extern const domus_type domus_pg_notification_type;

/* Subscribe the running actor to a channel, and suspend until the server listens. The subscription
 * ends with domus_pg_unlisten(), or with the actor; an actor that subscribes twice gets everything
 * twice. Each thread with subscribers has one connection for that, beside those of its pool. While
 * it cannot be had, it is tried again with the back-off of the options, and subscriptions stay.
 *
 * `then` gets an answer for domus_sql_result_of(): -ENOBUFS for one subscription too many; -EBUSY
 * or -ENOTCONN when the server does not listen yet after `wait_ns`, and -ETIMEDOUT when it takes
 * longer than `timeout_ns` or the deadline (the subscription stays in these three cases);
 * -ECANCELED when domus_pg_unlisten() has ended the subscription meanwhile; that of the server when
 * it refuses to listen (there is no subscription then).
 * Returns as domus_ask(); -EINVAL for an empty or too long name. */
DOMUS_API int domus_pg_listen(domus_stack *stack, domus_sql sql, const char *channel,
                              domus_resumed *then);

/* End the subscriptions of the running actor to a channel, on whatever thread it has made them, and
 * suspend until that is done. Notifications in its mailbox still come. `then` gets an answer for
 * domus_sql_result_of(). Returns as domus_pg_listen(). */
DOMUS_API int domus_pg_unlisten(domus_stack *stack, domus_sql sql, const char *channel,
                                domus_resumed *then);

/* --- copies ----------------------------------------------------------------------------------- */

/* A copy holds a connection, or that of its transaction, as rows do: it is closed when it is not
 * used for `transaction_idle_ns`, and when its owner ends. domus_sql_close_rows() ends a copy
 * before its end; a copy to the server is undone then. */

#define DOMUS_PG_WRITE_MAX (UINT32_C(1) << 24) /* most bytes of one write of a copy */

/* Begin a copy to the server, such as "COPY todo (title) FROM STDIN", or from it, such as "COPY
 * todo TO STDOUT". `then` gets an answer for domus_sql_cursor_of(). Returns as domus_sql_script().
 */
DOMUS_API int domus_pg_copy_in(domus_stack *stack, domus_sql sql, const char *text,
                               domus_resumed *then);
DOMUS_API int domus_pg_copy_out(domus_stack *stack, domus_sql sql, const char *text,
                                domus_resumed *then);

/* Write bytes, in pieces of any size up to DOMUS_PG_WRITE_MAX, and suspend until the kernel has
 * them. Wrong bytes are told by the end. `then` gets an answer for
 * domus_sql_result_of(), with -EBUSY when another write waits.
 *
 * Ownership: the ask owns the bytes, unless this returns a negative errno.
 * Returns as domus_ask(); -EMSGSIZE. */
DOMUS_API int domus_pg_copy_write(domus_stack *stack, domus_sql_cursor copy, domus_slice bytes,
                                  domus_resumed *then);

/* End a copy to the server, of which all was written. `then` gets an answer for
 * domus_sql_result_of(), whose `affected` counts the rows. Returns as domus_ask(). */
DOMUS_API int domus_pg_copy_end(domus_stack *stack, domus_sql_cursor copy, domus_resumed *then);

/* A piece of a copy from the server: its next bytes, `piece_size` of them or more. */
typedef struct domus_pg_piece {
    domus_slice bytes; /* bytes of the piece of the copy, which the message owns */
    bool last;         /* whether this piece is the last one of the copy */
} domus_pg_piece;

DOMUS_API extern const domus_type domus_pg_piece_type;

/* Read the next piece of a copy from the server, and suspend. `then` gets an answer for
 * domus_pg_piece_of(), with -EBUSY when another read waits. Returns as domus_ask(). */
DOMUS_API int domus_pg_copy_read(domus_stack *stack, domus_sql_cursor copy, domus_resumed *then);
DOMUS_API int domus_pg_piece_of(const domus_answer *answer, const domus_pg_piece **ret_piece);

/* --- messages --------------------------------------------------------------------------------- */

/* The payload of asks to listen and to unlisten, for actors that stand in for a database in
 * tests. */
typedef struct domus_pg_channel {
    /* address of the database, because an actor may have asked several of its pools */
    domus_address at;
    char name[DOMUS_PG_CHANNEL_SIZE];
} domus_pg_channel;

/* The payload of an ask to write bytes for a copy to the server that was begun. */
typedef struct domus_pg_write {
    domus_sql_cursor copy;
    domus_slice bytes;
} domus_pg_write;

/* ask to subscribe to a channel; payload: a domus_pg_channel */
DOMUS_API extern const domus_type domus_pg_listen_type;
/* ask to end subscriptions to a channel; payload: a domus_pg_channel */
DOMUS_API extern const domus_type domus_pg_unlisten_type;
/* ask to begin a copy to the server; payload: a domus_sql_request */
DOMUS_API extern const domus_type domus_pg_copy_in_type;
/* ask to begin a copy from the server; payload: a domus_sql_request */
DOMUS_API extern const domus_type domus_pg_copy_out_type;
/* ask to write bytes of a copy; payload: a domus_pg_write */
DOMUS_API extern const domus_type domus_pg_copy_write_type;
/* ask to end a copy to the server; payload: a domus_sql_cursor */
DOMUS_API extern const domus_type domus_pg_copy_end_type;
/* ask for the next piece of a copy; payload: a domus_sql_cursor */
DOMUS_API extern const domus_type domus_pg_copy_read_type;

#ifdef __cplusplus
}
#endif

#endif
