/* The pool: the actor of a database on one thread, its connections, and its queries.
 *
 * A query is a record of an ask that the pool keeps. It waits in the pool until a connection takes
 * it, and stands in the line of that connection until the server has answered it:
 *
 *     WAITS -> PREPARES -> RUNS -> answered      (a statement that is new to the connection)
 *     WAITS -> RUNS -> answered
 *
 * The first of a line is the one whose results come now. All behind it were sent, too, each with a
 * sync of its own, so that the failure of one is not that of another.
 *
 * A connection is free, or has a line, or is held: by a transaction, by rows, by a copy, or by the
 * subscribers of notifications.
 *
 *     STARTING -> CONNECTING <-> STEPPING -> READY
 *        every phase -> gone; with a helper thread under way -> DEAD -> gone
 *
 * A step of a connect may resolve a name, read certificates, or compute the answer to a challenge,
 * so each is done on a helper thread (STARTING, STEPPING), and between two of them the pool waits
 * for the socket (CONNECTING). Everything else is done by the thread of the pool, and never blocks.
 */
#ifndef DOMI_PROTOCOLS_PG_H
#define DOMI_PROTOCOLS_PG_H

#include <domus/blocking.h>
#include <domus/descriptor.h>
#include <domus/pg.h>
#include <domus/sql_driver.h>
#include <domus/supervise.h>
#include <domus/timer.h>

#include <errno.h>
#include <libpq-fe.h>

#define DOMI_PG_CONNECTIONS_MAX 64u
#define DOMI_PG_LISTENER        DOMI_PG_CONNECTIONS_MAX /* the slot of the one that listens */
#define DOMI_PG_SLOTS           (DOMI_PG_CONNECTIONS_MAX + 1)

#define DOMI_PG_LOOK_NS   UINT64_C(5000000)    /* at least, between two looks at what is late */
#define DOMI_PG_CANCEL_NS UINT64_C(5000000000) /* for a cancel to end a query */

/* A statement whose results had no more rows and bytes is read without the care for large ones. */
#define DOMI_PG_SMALL_ROWS  16u
#define DOMI_PG_SMALL_BYTES 4096u
#define DOMI_PG_READ        65536u /* bytes that libpq takes from a socket at a time, about */

#define DOMI_PG_NAME_SIZE 40u /* bytes of the name of a statement, with a zero at its end */

/* The types that have a form of their own here; the numbers are those of pg_type. */
enum {
    DOMI_PG_BOOL = 16,
    DOMI_PG_BYTEA = 17,
    DOMI_PG_NAME = 19,
    DOMI_PG_INT8 = 20,
    DOMI_PG_INT2 = 21,
    DOMI_PG_INT4 = 23,
    DOMI_PG_TEXT = 25,
    DOMI_PG_JSON = 114,
    DOMI_PG_FLOAT4 = 700,
    DOMI_PG_FLOAT8 = 701,
    DOMI_PG_BPCHAR = 1042,
    DOMI_PG_VARCHAR = 1043,
};

/* A statement that is prepared on a connection. */
typedef struct domi_pg_statement {
    const domus_sql_statement *of;
    char name[DOMI_PG_NAME_SIZE];     /* at the server */
    struct domi_pg_statement *bucket; /* the next one with the same hash */
    struct domi_pg_statement *newer;  /* used later than this one */
    struct domi_pg_statement *older;  /* used before this one */
    uint32_t params;                  /* that it takes */
    bool is_ready;                    /* it was described */
    bool is_binary;                   /* all columns are read in binary */
    bool is_small;                    /* its last result was */
    Oid types[];                      /* of its parameters: there is room for those of its text */
} domi_pg_statement;

/* The statements of a connection (statements.c). */
typedef struct domi_pg_statements {
    domi_pg_statement **buckets;
    uint32_t buckets_count; /* a power of two; 0: none yet */
    uint32_t count;
    uint64_t named; /* names that were given */
    domi_pg_statement *newest;
    domi_pg_statement *oldest;
} domi_pg_statements;

typedef enum domi_pg_job {
    DOMI_PG_QUERY,    /* a result that comes whole */
    DOMI_PG_ROWS,     /* rows in pieces */
    DOMI_PG_SCRIPT,   /* several statements, without a result */
    DOMI_PG_BEGIN,    /* the begin of a transaction */
    DOMI_PG_END,      /* its end */
    DOMI_PG_COPY_IN,  /* bytes to the server */
    DOMI_PG_COPY_OUT, /* bytes from the server */
    DOMI_PG_LISTEN,   /* a LISTEN, on the connection for that */
    DOMI_PG_ASIDE,    /* a command of the pool itself, which nobody has asked for */
} domi_pg_job;

typedef enum domi_pg_stage {
    DOMI_PG_WAITS,
    DOMI_PG_PREPARES,
    DOMI_PG_RUNS,
} domi_pg_stage;

typedef struct domi_pg_query {
    struct domi_pg_query *next;
    domus_kept kept;
    uint64_t until_ns;    /* in the pool: when it has waited enough; then: when it is cancelled */
    uint64_t deadline_ns; /* of the ask; 0: none */
    uint64_t affected;
    domi_pg_statement *statement;
    domus_sql_builder builder;
    uint32_t reads;      /* from the socket, since the last result */
    uint64_t read_bytes; /* of these, as far as they were counted */
    uint8_t job;         /* domi_pg_job */
    uint8_t stage;       /* domi_pg_stage */
    uint8_t described;   /* results of PREPARES that have come */
    bool is_answered;    /* the ask is over, and the rest is thrown away */
    bool is_late;        /* it is over because its time was */
    bool is_small;       /* it is read without single rows */
    bool is_repeated;    /* it was sent again */
    bool is_repaired;    /* its statement was prepared anew */
    bool has_failed;     /* `failure` is set */
    bool commits;        /* of DOMI_PG_END */
    bool has_copied;     /* the server has begun a copy */
    bool is_stale;       /* it has failed because its statement is not what the server has */
    bool is_dropped;     /* what comes of it is thrown away */
    bool is_cancelled;   /* the server was told to cancel it */
    bool is_rollback;    /* the server has answered so */
    const char *command; /* of DOMI_PG_BEGIN and DOMI_PG_END: a constant */
    domus_address owner; /* who has asked for rows, a copy or a transaction */
    domus_sql_request request;
    domus_sql_error failure;
} domi_pg_query;

/* Queries in their order. */
typedef struct domi_pg_line {
    domi_pg_query *first;
    domi_pg_query *last;
    uint32_t count;
} domi_pg_line;

typedef enum domi_pg_phase {
    DOMI_PG_STARTING,
    DOMI_PG_CONNECTING,
    DOMI_PG_STEPPING,
    DOMI_PG_READY,
    DOMI_PG_DEAD,
} domi_pg_phase;

typedef enum domi_pg_flow {
    DOMI_PG_NO_FLOW,
    DOMI_PG_FLOWS_ROWS,
    DOMI_PG_FLOWS_IN,
    DOMI_PG_FLOWS_OUT,
} domi_pg_flow;

typedef struct domi_pg_connection {
    PGconn *pg;
    uint64_t serial; /* among all connections of the pool */
    uint64_t token;  /* of chance: names of statements differ from those of other clients */
    uint32_t slot;
    uint8_t phase; /* domi_pg_phase */
    bool is_free;  /* in the list of the pool */
    bool is_watched;
    bool wants_out;     /* the watch is for POLLOUT, too */
    bool has_pipeline;  /* libpq is in pipeline mode */
    bool is_cancelled;  /* a cancel is wanted or under way: nothing new is sent */
    bool is_preparing;  /* a query in its line is in PREPARES: no other one comes behind it */
    bool is_used;       /* a query was answered on it */
    bool was_cancelled; /* a cancel was sent once, which may hit a later query */
    uint32_t helpers;   /* jobs on helper threads, which use this record */
    PostgresPollingStatusType poll;
    domus_fd_watch watch;
    struct domi_pg_connection *next; /* of those that are free, used last first */
    uint64_t until_ns; /* of a connect; of a free one: when it is closed; of a cancel: of that */
    PGcancel *cancel;
    domi_pg_line line;
    domi_pg_statements statements;

    /* The transaction that holds it. */
    bool in_transaction;     /* from the begin that was sent, to the end that was answered */
    uint64_t transaction;    /* its number; 0: none, or it is over */
    uint64_t idle_ns;        /* when it, or the flow, has been idle for too long */
    domi_pg_line todo;       /* queries of the transaction that were not sent */
    domus_sql_error failure; /* the first one in it; `error` of 0: none */

    /* Rows or a copy, which hold it or its transaction. */
    uint8_t flow;        /* domi_pg_flow */
    bool flow_is_paused; /* a piece is full, and nobody has fetched it */
    bool flow_is_over;   /* the server has sent or taken all */
    bool has_reader;     /* `reader` waits */
    domus_kept reader;   /* an ask for the next piece, or that a piece be taken */
    uint64_t flow_number;
    domus_appender piece; /* of a copy from the server */
    bool copies;          /* the bytes of a copy come, and not results */

    domus_watch owner_watch; /* of the transaction, or of the flow without one */
    domus_address owner;
    bool has_owner;
} domi_pg_connection;

/* A subscription to a channel (listen.c). */
typedef struct domi_pg_subscription {
    struct domi_pg_subscription *next;
    domus_address to;
    domus_watch watch;
    uint32_t lost; /* notifications that the mailbox has refused since the last one */
    char channel[DOMUS_PG_CHANNEL_SIZE];
} domi_pg_subscription;

typedef struct domi_pg_pool {
    domus_sql_settings settings; /* first, as domus_sql_driver says */
    domus_address self;
    domi_pg_connection *connections[DOMI_PG_SLOTS];
    int fds[DOMI_PG_SLOTS]; /* of those that are watched; -1 otherwise */
    uint32_t count;         /* of connections, without the listener and the dead */
    uint32_t connecting;    /* of these that are not ready */
    domi_pg_connection *free;
    domi_pg_line waiting;
    domi_pg_query *spare; /* records that are not in use */
    uint32_t spares;
    uint64_t serial; /* of the last connection, transaction or flow */

    uint32_t failures;      /* of connects in a row */
    uint64_t connect_ns;    /* the next connect is made no sooner */
    uint64_t down_since_ns; /* no connection was there since, and a connect has failed; 0: not so */
    domus_sql_error down;   /* why */

    uint64_t look_ns; /* when the timer is due; 0: it is not armed */
    domus_timer look;
    char *scratch; /* for parameters */
    size_t scratch_size;

    domi_pg_subscription *subscriptions;
    uint32_t subscriptions_count;
    domi_pg_line listening; /* queries that wait for the listener */
    uint32_t listener_failures;
    uint64_t listen_ns; /* the listener connects no sooner */
    bool listener_was_ready;

    domus_sql_status counted;
} domi_pg_pool;

/* --- query.c: records ------------------------------------------------------------------------- */

/* Make a record. NULL: there is no memory. */
domi_pg_query *domi_pg_query_new(domi_pg_pool *pool, domi_pg_job job);
void domi_pg_query_free(domi_pg_pool *pool, domi_pg_query *query);
void domi_pg_query_spares_free(domi_pg_pool *pool);

/* Keep the ask at hand for a new record. Returns 0, or what the handler returns. */
int domi_pg_query_keep(domus_stack *stack, domi_pg_pool *pool, domi_pg_job job,
                       const domus_sql_request *request, domi_pg_query **ret_query);

void domi_pg_line_add(domi_pg_line *line, domi_pg_query *query);
void domi_pg_line_add_first(domi_pg_line *line, domi_pg_query *query);
domi_pg_query *domi_pg_line_take(domi_pg_line *line);

/* Answer the ask, once. The query then only waits for what the server still has to say. Returns 0;
 * or an error if nobody waits for the answer any more. */
int domi_pg_answer(domus_stack *stack, domi_pg_pool *pool, domi_pg_query *query,
                   const domus_type *type, const void *payload);
void domi_pg_fail(domus_stack *stack, domi_pg_pool *pool, domi_pg_query *query, int error);
void domi_pg_fail_with(domus_stack *stack, domi_pg_pool *pool, domi_pg_query *query,
                       const domus_sql_error *failure);

/* --- pool.c: which connection does what ------------------------------------------------------- */

/* Give a query of no transaction to a connection, or let it wait, or refuse it. */
void domi_pg_put(domus_stack *stack, domi_pg_pool *pool, domi_pg_query *query);

/* Something of a connection has ended: send what is next in its transaction, or roll back what
 * nobody ends, or let it be free. False: the connection is lost. */
bool domi_pg_settle(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);

/* Let those who wait have connections, and make more if they need some. */
void domi_pg_serve(domus_stack *stack, domi_pg_pool *pool);

void domi_pg_unlist_free(domi_pg_pool *pool, domi_pg_connection *connection);

/* Fail those who wait, if no connection could be had for long. Returns whether that is so. */
bool domi_pg_is_down(domus_stack *stack, domi_pg_pool *pool);

/* A connection that is free is closed. */
void domi_pg_close(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);

/* --- lose.c ----------------------------------------------------------------------------------- */

/* Make a query as it was before it was sent. */
void domi_pg_rewind(domi_pg_query *query);

/* A connection, or a connect, has come to its end: what is under way fails or is repeated. `words`
 * may be NULL. */
void domi_pg_lose(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                  const char *words);

/* --- late.c: time ----------------------------------------------------------------------------- */

extern const domus_type domi_pg_look_type;
domus_handler domi_pg_on_late;
/* Look at what is late at this time. */
void domi_pg_look_at(domus_stack *stack, domi_pg_pool *pool, uint64_t time_ns);

/* --- connect.c -------------------------------------------------------------------------------- */

#define DOMI_PG_FRAME 16u                  /* bytes of the frames of these two */
extern const domus_type domi_pg_step_type; /* a notice to oneself: do the next step */
domus_handler domi_pg_on_step;
/* Begin a connect in a free slot. */
int domi_pg_connect(domus_stack *stack, domi_pg_pool *pool, uint32_t slot);
/* The socket of a connect is ready. */
void domi_pg_step(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
/* Watch the socket, also for POLLOUT. Returns 0 or an error. */
int domi_pg_watch(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                  bool wants_out);
void domi_pg_unwatch(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
/* Close, and free the record unless a helper thread uses it. */
void domi_pg_connection_free(domi_pg_pool *pool, domi_pg_connection *connection);
domi_pg_connection *domi_pg_find(const domi_pg_pool *pool, uint32_t slot, uint64_t serial);

/* --- listen.c --------------------------------------------------------------------------------- */

/* The connection that listens is there, or is gone. */
void domi_pg_listener_ready(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
void domi_pg_listener_lost(domus_stack *stack, domi_pg_pool *pool);
/* Hand out the notifications that have come. False: the connection is gone. */
bool domi_pg_listener_take(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
/* Make the connection if somebody needs it. */
void domi_pg_listener_look(domus_stack *stack, domi_pg_pool *pool);
void domi_pg_forget_subscriber(domus_stack *stack, domi_pg_pool *pool, domus_address who);
void domi_pg_subscriptions_free(domi_pg_pool *pool);
void domi_pg_close_listener(domus_stack *stack, domi_pg_pool *pool);
domus_handler domi_pg_on_listen, domi_pg_on_unlisten;

/* --- settings.c ------------------------------------------------------------------------------- */

int domi_pg_check(const domus_sql_settings *settings, char *error, size_t error_size);
/* Begin a connect. NULL: there is no memory. It may block. */
PGconn *domi_pg_open(const domus_sql_settings *settings);

/* --- cancel.c --------------------------------------------------------------------------------- */

extern const domus_type domi_pg_cancel_type;
domus_handler domi_pg_on_cancel;
/* Cancel at the server what the first of the line does. */
void domi_pg_cancel(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);

/* --- send.c ----------------------------------------------------------------------------------- */

/* Put a query into the line of a connection, and send it. False: the connection is lost. */
bool domi_pg_run(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                 domi_pg_query *query);
/* Send what libpq has queued. False: the connection is lost. */
bool domi_pg_flush(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
/* A query has become the first of its line: say how its result is read. */
void domi_pg_begin_first(domi_pg_connection *connection);
/* Send a command that the pool itself has for a connection. False: the connection is lost. */
bool domi_pg_say(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                 const char *command);

/* --- parameters.c ----------------------------------------------------------------------------- */

typedef struct domi_pg_parameters {
    const char *values[DOMUS_SQL_PARAMETERS_MAX];
    int sizes[DOMUS_SQL_PARAMETERS_MAX];
    int formats[DOMUS_SQL_PARAMETERS_MAX];
} domi_pg_parameters;

/* Write the parameters of a request as libpq takes them; they are valid until the next call. With
 * no statement all types are the server's choice. Returns 0; -EINVAL; -ENOMEM. */
int domi_pg_parameters_write(domi_pg_pool *pool, const domus_sql_request *request,
                             const domi_pg_statement *statement, domi_pg_parameters *parameters);

/* --- statements.c ----------------------------------------------------------------------------- */

domi_pg_statement *domi_pg_statement_find(domi_pg_statements *statements,
                                          const domus_sql_statement *of);
/* Add one. NULL: there is no memory. */
domi_pg_statement *domi_pg_statement_add(domi_pg_statements *statements,
                                         const domus_sql_statement *of, uint32_t params,
                                         uint64_t token);
void domi_pg_statement_remove(domi_pg_statements *statements, domi_pg_statement *statement);
void domi_pg_statements_drop(domi_pg_statements *statements);

/* --- cells.c ---------------------------------------------------------------------------------- */

bool domi_pg_is_binary(Oid type);
/* Add the rows of a part of a result. Returns 0, or the error of the builder. */
int domi_pg_build(domus_sql_builder *builder, const PGresult *rows);
uint64_t domi_pg_affected(PGresult *result);

/* --- failure.c -------------------------------------------------------------------------------- */

void domi_pg_read_failure(const PGresult *result, domus_sql_error *ret_failure);

/* --- take.c: what the server says ------------------------------------------------------------- */

domus_handler domi_pg_on_ready;
/* Take the results that are there. False: the connection is lost. */
bool domi_pg_take(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
/* The first of the line is over at the server. False: the connection is lost. */
bool domi_pg_finish(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);

/* --- asks.c ----------------------------------------------------------------------------------- */

domus_handler domi_pg_on_query, domi_pg_on_rows, domi_pg_on_script, domi_pg_on_who, domi_pg_on_look;

/* --- transaction.c ---------------------------------------------------------------------------- */

domus_handler domi_pg_on_begin, domi_pg_on_end;
/* Give a query to its transaction, or let it fail. */
void domi_pg_put_inside(domus_stack *stack, domi_pg_pool *pool, domi_pg_query *query);
/* Send the next query of a transaction. False: the connection is lost. */
bool domi_pg_go_on(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
/* The begin or end was answered by the server. */
void domi_pg_has_begun(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                       domi_pg_query *query);
void domi_pg_has_ended(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                       domi_pg_query *query);
/* Let a transaction be over that nobody ends; domi_pg_settle() rolls it back. */
void domi_pg_abandon(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
/* Watch the owner of a transaction or flow, and no more. */
int domi_pg_own(domus_stack *stack, domi_pg_connection *connection, domus_address owner);
void domi_pg_disown(domus_stack *stack, domi_pg_connection *connection);
domus_handler domi_pg_on_down;

/* --- rows.c ----------------------------------------------------------------------------------- */

domus_handler domi_pg_on_fetch, domi_pg_on_close;
/* Rows have come. */
void domi_pg_rows_take(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                       domi_pg_query *query, const PGresult *rows);
/* The server has sent all of a flow. Returns whether the query is over, because nobody has to read.
 */
bool domi_pg_flow_end(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                      domi_pg_query *query);
/* The ask at hand reads the next piece of a flow. Returns as a handler. */
int domi_pg_flow_read(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
/* Begin a flow: its number is the answer. Returns false if nobody wants it any more. */
bool domi_pg_flow_begin(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                        domi_pg_query *query, domi_pg_flow flow);
void domi_pg_flow_clear(domus_stack *stack, domi_pg_connection *connection);
domi_pg_connection *domi_pg_find_flow(const domi_pg_pool *pool, uint64_t number);
/* A piece of rows or of a copy is full, and nobody reads: let the server wait. */
void domi_pg_pause(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
/* Throw the rest of rows or of a copy away, and let its reader fail. False: the connection is lost.
 */
bool domi_pg_drop_flow(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                       int error);

/* --- copy.c ----------------------------------------------------------------------------------- */

domus_handler domi_pg_on_copy_in, domi_pg_on_copy_out, domi_pg_on_copy_write, domi_pg_on_copy_end,
    domi_pg_on_copy_read;
/* The server is ready for a copy, or begins one. False: the connection is lost. */
bool domi_pg_copy_begin(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                        domi_pg_query *query, const PGresult *result);
/* Take bytes of a copy. Returns whether it is over, and its result comes. */
bool domi_pg_copy_take(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
/* All that was queued has left: so the writer goes on. */
void domi_pg_copy_flushed(domus_stack *stack, domi_pg_connection *connection);
/* Let the server throw a copy away. False: the connection is lost. */
bool domi_pg_copy_abort(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
/* Give the reader what there is. Returns whether it took it. */
bool domi_pg_copy_give(domus_stack *stack, domi_pg_connection *connection, domi_pg_query *query,
                       bool is_last);

/* A new number for a transaction or a flow, which has the slot of its connection. */
static inline uint64_t domi_pg_number(domi_pg_pool *pool, const domi_pg_connection *connection)
{
    return ++pool->serial << 8 | connection->slot;
}

#endif
