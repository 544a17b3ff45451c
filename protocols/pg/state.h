/* The pool: the actor of a database on one thread, its connections, and its queries.
 *
 * A query is a record of an ask that the pool keeps. It waits in the pool until a connection takes
 * it, and stands in the line of that connection until the server has answered it:
 *
 *     WAITS -> PREPARES -> RUNS -> answered      (a statement that is new to the connection)
 *     WAITS -> RUNS -> answered
 *
 * The first of a line is the one whose results come now. All behind it were sent, too, each with a
 * sync of its own, so that the failure of one is not that of another. Reads that have waited are
 * joined: they share a sync, and those that the server skips behind a failure are sent again.
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
#ifndef DOMI_PROTOCOLS_PG_STATE_H
#define DOMI_PROTOCOLS_PG_STATE_H

#include <domus/blocking.h>
#include <domus/descriptor.h>
#include <domus/pg.h>
#include <domus/sql_driver.h>
#include <domus/supervise.h>
#include <domus/timer.h>

#include <errno.h>
#include <libpq-fe.h>

#define DOMI_PG_CONNECTIONS_MAX 64u
/* the slot of the connection that listens for notifications, behind those of all other
 * connections */
#define DOMI_PG_LISTENER DOMI_PG_CONNECTIONS_MAX
#define DOMI_PG_SLOTS    (DOMI_PG_CONNECTIONS_MAX + 1)

/* ns between two checks of a pool for late queries, at least */
#define DOMI_PG_LOOK_NS UINT64_C(5000000)
/* ns in which a cancel must have ended its query; after them the connection is closed */
#define DOMI_PG_CANCEL_NS UINT64_C(5000000000)
/* ns after which a cancel without effect is repeated */
#define DOMI_PG_AGAIN_NS UINT64_C(100000000)

/* The signals that one cancel causes at the server: it sends two to the process of the session, one
 * to the process itself and one to its group, in which it is alone. */
#define DOMI_PG_SIGNALS 2u

/* Cancels of a pool that may be under way at the same time. A server that hangs does not answer
 * them, and each holds a helper thread of this process until then. */
#define DOMI_PG_CANCELS_MAX 1u

/* Time in ms after which a server that runs a query checks whether its client is still connected
 * (PostgreSQL 14). */
#define DOMI_PG_LOOKS_FOR_CLIENT "5000"

/* How often a query that may be done twice is sent again after a lost connection. There is a limit,
 * because a server that ends may take the next connection with it. */
#define DOMI_PG_REPEATS_MAX 3u

/* Bounds of a small result. If the last result of a statement had no more rows and bytes, its next
 * one is read as a whole, without the care for large results. */
#define DOMI_PG_SMALL_ROWS  256u
#define DOMI_PG_SMALL_BYTES 65536u
#define DOMI_PG_READ        65536u /* bytes that libpq reads from a socket at a time, about */
/* bytes that a server may send before its connection is ready for queries */
#define DOMI_PG_GREETING (1u << 20)
/* bytes that a server may send while no query is under way, if result_max is less */
#define DOMI_PG_UNASKED 65536u

#define DOMI_PG_NAME_SIZE 40u /* bytes of the name of a prepared statement, with its zero byte */

/* Types of PostgreSQL that are converted here; the numbers are those of its table pg_type. Values
 * of all other types are texts. */
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

/* A statement that a connection has prepared at the server. */
typedef struct domi_pg_statement {
    const domus_sql_statement *of;
    char name[DOMI_PG_NAME_SIZE];     /* name of the prepared statement at the server */
    struct domi_pg_statement *bucket; /* the next statement in this bucket of the hash table */
    /* the statement whose last use came next after that of this one */
    struct domi_pg_statement *newer;
    /* the statement whose last use came next before that of this one */
    struct domi_pg_statement *older;
    uint32_t params; /* number of parameters that the statement takes */
    bool is_ready;   /* the server has described the statement: its parameters and columns */
    bool is_binary;  /* all columns of the statement's result are read in binary */
    bool is_small;   /* the last result of the statement was small (DOMI_PG_SMALL_ROWS) */
    Oid types[];     /* types of the statement's parameters, as many as its text has */
} domi_pg_statement;

/* The statements that a connection has prepared (statements.c). */
typedef struct domi_pg_statements {
    domi_pg_statement **buckets;
    /* number of buckets of the hash table, a power of two; 0: there are none yet */
    uint32_t buckets_count;
    uint32_t count;
    /* how many names of statements this connection has used; each name has its number */
    uint64_t named;
    domi_pg_statement *newest;
    domi_pg_statement *oldest;
} domi_pg_statements;

typedef enum domi_pg_job {
    DOMI_PG_QUERY,    /* job: a query whose result is answered as a whole */
    DOMI_PG_ROWS,     /* job: a query whose rows are answered in pieces */
    DOMI_PG_SCRIPT,   /* job: a script of several statements, which has no result */
    DOMI_PG_BEGIN,    /* job: the command that begins a transaction */
    DOMI_PG_END,      /* job: the command that ends a transaction */
    DOMI_PG_COPY_IN,  /* job: a copy of bytes to the server */
    DOMI_PG_COPY_OUT, /* job: a copy of bytes from the server */
    DOMI_PG_LISTEN,   /* job: a LISTEN on the listening connection, for which an asker waits */
    DOMI_PG_ASIDE,    /* job: a command of the pool itself, for which no asker waits */
} domi_pg_job;

typedef enum domi_pg_stage {
    DOMI_PG_WAITS,
    DOMI_PG_PREPARES,
    DOMI_PG_RUNS,
} domi_pg_stage;

typedef struct domi_pg_query {
    struct domi_pg_query *next;
    domus_kept kept;
    /* before the query is sent: time at which it has waited too long; then: time at which it is
     * cancelled */
    uint64_t until_ns;
    uint64_t deadline_ns; /* deadline of the ask for this query; 0: none */
    uint64_t affected;
    domi_pg_statement *statement;
    domus_sql_builder builder;
    uint32_t reads;      /* number of reads from the socket since the last result of this query */
    uint64_t read_bytes; /* bytes of these reads, as far as they were counted */
    uint8_t job;         /* domi_pg_job: what the query is */
    uint8_t stage;       /* domi_pg_stage: how far the query is */
    /* how many results of the preparation have come, in the stage DOMI_PG_PREPARES */
    uint8_t described;
    bool is_answered; /* the query's ask was answered, and the rest of the results is discarded */
    bool is_late;     /* the time of this query is over, and it has failed by that */
    bool is_small;   /* the query's result is read as a whole, because it is expected to be small */
    uint8_t repeats; /* how often the query was sent again because its connection was lost */
    /* the query's statement was prepared once more, because the server did not know it any more */
    bool is_repaired;
    bool has_failed; /* the query has failed, and `failure` says how */
    bool is_told;    /* `failure` was reported by the server, so the server knows of it */
    bool commits;    /* the DOMI_PG_END is a commit, and no rollback */
    bool has_copied; /* the server has begun the copy */
    /* the query has failed because the statement at the server is gone or has changed */
    bool is_stale;
    bool is_dropped;   /* all further results of this query are discarded */
    bool is_cancelled; /* a cancel of this query is under way, or was sent to the server */
    bool is_rollback;  /* the server's last tag for this query was ROLLBACK */
    bool is_begin;     /* the server's tags say that this query has begun a transaction */
    bool has_ended;    /* the server's tags say that this query has ended its transaction */
    /* the query has no sync of its own; it shares that of the next query in the line */
    bool is_joined;
    bool has_result; /* a result has come for this query, which has no sync of its own */
    /* the server has skipped this query, because one before it with the same sync has failed */
    bool is_skipped;
    bool is_optional;      /* the DOMI_PG_ASIDE may fail without harm to the connection */
    const char *command;   /* text of the command of a DOMI_PG_BEGIN or DOMI_PG_END, a constant */
    uint64_t subscription; /* number of the subscription that this DOMI_PG_LISTEN makes */
    domus_address owner;   /* the actor that has asked for the rows, the copy or the transaction */
    domus_sql_request request;
    domus_sql_error failure;
} domi_pg_query;

/* A list of queries, which are served in its order. */
typedef struct domi_pg_line {
    domi_pg_query *first;
    domi_pg_query *last;
    uint32_t count;
    uint64_t bytes; /* bytes of the queries' texts and parameters that have pages of their own */
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

typedef struct domi_pg_pool domi_pg_pool;
typedef struct domi_pg_connection domi_pg_connection;

/* Functions that files of this folder call although they are defined in files above these: the end
 * of a connection, for instance, and its next step concern all files. actor.c fills the table. */
typedef struct domi_pg_doors {
    void (*lose)(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                 const char *words);
    bool (*settle)(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
    void (*serve)(domus_stack *stack, domi_pg_pool *pool);
    void (*put)(domus_stack *stack, domi_pg_pool *pool, domi_pg_query *query);
    bool (*take)(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
    bool (*finish)(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
    bool (*drop_flow)(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection,
                      int error);
    void (*listener_ready)(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
    void (*listener_lost)(domus_stack *stack, domi_pg_pool *pool);
    bool (*copy_give)(domus_stack *stack, domi_pg_connection *connection, domi_pg_query *query,
                      bool is_last);
    bool (*copy_abort)(domus_stack *stack, domi_pg_pool *pool, domi_pg_connection *connection);
} domi_pg_doors;

struct domi_pg_connection {
    const domi_pg_doors *doors;
    PGconn *pg;
    uint64_t serial; /* number of this connection, which grows with each connection of the pool */
    /* a random number in names of prepared statements, so that they differ from those of other
     * clients */
    uint64_t token;
    uint32_t slot;
    uint8_t phase; /* domi_pg_phase: how far the connection is */
    bool is_free;  /* the connection is in the pool's list of free connections */
    bool is_watched;
    bool wants_out;    /* the socket is watched for output, too, and not only for input */
    bool has_pipeline; /* libpq is in pipeline mode on this connection */
    /* a cancel on this connection is wanted or under way, so nothing new is sent */
    bool is_cancelled;
    /* the cancel on this connection waits until that of another connection is over */
    bool awaits_cancel;
    /* a cancel of the first query of the line was begun, whether it has had an effect or not */
    bool was_told;
    bool has_late; /* a query of the line has not been answered within its time */
    /* the server was asked to check now and then for its client (DOMI_PG_LOOKS_FOR_CLIENT) */
    bool was_asked;
    /* a query in the line is in the stage DOMI_PG_PREPARES, so no other one may be added */
    bool is_preparing;
    bool is_used; /* a query was answered on this connection, so the connect counts as no failure */
    uint8_t strays;   /* number of cancel signals that have ended no query yet, and still may */
    uint32_t helpers; /* number of jobs on helper threads that use this record now */
    /* bytes that came since the last query was sent or the last notification was read */
    uint64_t unasked;
    PostgresPollingStatusType poll;
    domus_fd_watch watch;
    /* the next free connection of the pool, whose last use was before that of this one */
    struct domi_pg_connection *next;
    /* time at which a connect fails, a free connection is closed, or a connection is closed because
     * its cancel had no effect */
    uint64_t until_ns;
    uint64_t again_ns; /* time at which a cancel of the first query is repeated */
    PGcancel *cancel;
    domi_pg_line line;
    domi_pg_statements statements;

    /* The transaction that holds this connection. */
    /* true from the sending of the transaction's begin until its end was answered */
    bool in_transaction;
    uint64_t transaction; /* number of the transaction; 0: there is none, or it is over */
    /* time at which the owner has not used the transaction, the rows or the copy for too long */
    uint64_t idle_ns;
    domi_pg_line todo; /* queries of the transaction that were not sent to the server yet */
    /* the first failure in the transaction; its `error` is 0 if there was none */
    domus_sql_error failure;
    bool is_spoiled; /* a query of the transaction has failed, and the server does not know of it */

    /* The flow: rows in pieces, or a copy, which holds the connection or its transaction. */
    uint8_t flow;        /* domi_pg_flow: which kind of flow there is */
    bool flow_is_paused; /* reading is paused, because a piece is full and nobody has fetched it */
    bool flow_is_over; /* the server has sent all rows or bytes of the flow, or has received all */
    bool has_reader;   /* `reader` is an ask that waits for an answer */
    /* the ask for the flow's next piece, or the ask whose piece of a copy is being sent */
    domus_kept reader;
    uint64_t flow_number;
    domus_appender piece; /* bytes of a copy out that were not fetched yet */
    bool copies;          /* the server sends the bytes of a copy now, and no results */

    /* watch on the actor that owns the transaction, or the flow if that is in no transaction */
    domus_watch owner_watch;
    domus_address owner;
    bool has_owner;
};

/* A subscription of an actor to a channel of notifications (listen.c). */
typedef struct domi_pg_subscription {
    struct domi_pg_subscription *next;
    uint64_t number;
    domus_address to;
    domus_watch watch;
    uint32_t lost; /* number of notifications that the mailbox has refused since it took one */
    char channel[DOMUS_PG_CHANNEL_SIZE];
} domi_pg_subscription;

struct domi_pg_pool {
    /* this is the first member, because domus_sql_driver requires that */
    domus_sql_settings settings;
    const domi_pg_doors *doors;
    domus_address self;
    domi_pg_connection *connections[DOMI_PG_SLOTS];
    int fds[DOMI_PG_SLOTS]; /* for each slot, the descriptor that is watched; -1: none */
    uint32_t count; /* number of the pool's connections, without the listening one and dead ones */
    uint32_t connecting; /* how many of the `count` connections are not ready */
    uint32_t cancels;    /* number of cancels of the pool that are under way on helper threads */
    domi_pg_connection *free;
    domi_pg_line waiting;
    domi_pg_query *spare; /* unused records of queries, kept for the next ones */
    uint32_t spares;
    uint64_t serial; /* the last number that was given to a connection, a transaction or a flow */

    uint32_t failures;   /* number of failed connects of the pool in a row */
    uint64_t connect_ns; /* earliest time of the pool's next connect */
    /* time since which the pool has no connection because a connect failed; 0: it has one */
    uint64_t down_since_ns;
    domus_sql_error down; /* why the pool has no connection */

    uint64_t look_ns; /* time for which the pool's timer is set; 0: it is not set */
    domus_timer look;
    char *scratch; /* memory into which the parameters of a query are written */
    size_t scratch_size;

    domi_pg_subscription *subscriptions;
    uint32_t subscriptions_count;
    domi_pg_line listening; /* asks for a LISTEN that wait for the listening connection */
    uint32_t listener_failures;
    uint64_t listen_ns; /* earliest time of the next connect for the listening connection */
    bool listener_was_ready;
    bool tells_gap; /* the subscribers will be told of a gap once the server listens again */

    domus_sql_status counted;
};

#endif
