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
/* the slot of the connection that listens */
#define DOMI_PG_LISTENER DOMI_PG_CONNECTIONS_MAX
#define DOMI_PG_SLOTS    (DOMI_PG_CONNECTIONS_MAX + 1)

/* ns between two checks for late queries, at least */
#define DOMI_PG_LOOK_NS   UINT64_C(5000000)
#define DOMI_PG_CANCEL_NS UINT64_C(5000000000) /* ns that a cancel has to end a query */
#define DOMI_PG_AGAIN_NS  UINT64_C(100000000)  /* ns between two cancels of one query */

/* The signals that one cancel causes: the server sends two to the process of the session, one to
 * the process and one to its group, in which it is alone. */
#define DOMI_PG_SIGNALS 2u

/* Cancels of a pool that may be under way. A server that hangs does not answer them, and each holds
 * a helper thread of the process until then. */
#define DOMI_PG_CANCELS_MAX 1u

/* Time in ms after which a server that runs a query checks whether its client is still connected
 * (PostgreSQL 14). */
#define DOMI_PG_LOOKS_FOR_CLIENT "5000"

/* Times that a query which may be done twice is sent again: a server that ends may end the next
 * connection, too. */
#define DOMI_PG_REPEATS_MAX 3u

/* Bounds of a small result: a statement whose last result had no more rows and bytes is read as a
 * whole, without the care for large results. */
#define DOMI_PG_SMALL_ROWS  256u
#define DOMI_PG_SMALL_BYTES 65536u
#define DOMI_PG_READ        65536u     /* bytes that libpq takes from a socket at a time, about */
#define DOMI_PG_GREETING    (1u << 20) /* bytes that a server may send until it is ready */
/* bytes that may come behind an answer, if result_max is less */
#define DOMI_PG_UNASKED 65536u

#define DOMI_PG_NAME_SIZE 40u /* bytes of the name of a statement, with a zero at its end */

/* Types that are converted here; the numbers are those of the table pg_type. All others are
 * texts. */
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
    char name[DOMI_PG_NAME_SIZE];     /* name of the statement at the server */
    struct domi_pg_statement *bucket; /* the next statement with the same hash */
    struct domi_pg_statement *newer;  /* the statement that was used next after this one */
    struct domi_pg_statement *older;  /* the statement that was used last before this one */
    uint32_t params;                  /* parameters that the statement takes */
    bool is_ready;                    /* the server has described the statement */
    bool is_binary;                   /* all columns are read in binary */
    bool is_small;                    /* the last result of the statement was small */
    Oid types[];                      /* types of its parameters, as many as its text has */
} domi_pg_statement;

/* The statements of a connection (statements.c). */
typedef struct domi_pg_statements {
    domi_pg_statement **buckets;
    uint32_t buckets_count; /* number of buckets, a power of two; 0: there are none yet */
    uint32_t count;
    uint64_t named; /* names of statements that were used so far */
    domi_pg_statement *newest;
    domi_pg_statement *oldest;
} domi_pg_statements;

typedef enum domi_pg_job {
    DOMI_PG_QUERY,    /* a query whose result comes as a whole */
    DOMI_PG_ROWS,     /* a query whose rows come in pieces */
    DOMI_PG_SCRIPT,   /* several statements, without a result */
    DOMI_PG_BEGIN,    /* the begin of a transaction */
    DOMI_PG_END,      /* the end of a transaction */
    DOMI_PG_COPY_IN,  /* a copy of bytes to the server */
    DOMI_PG_COPY_OUT, /* a copy of bytes from the server */
    DOMI_PG_LISTEN,   /* a LISTEN, on the listening connection */
    DOMI_PG_ASIDE,    /* a command of the pool itself, for which nobody waits */
} domi_pg_job;

typedef enum domi_pg_stage {
    DOMI_PG_WAITS,
    DOMI_PG_PREPARES,
    DOMI_PG_RUNS,
} domi_pg_stage;

typedef struct domi_pg_query {
    struct domi_pg_query *next;
    domus_kept kept;
    /* in the pool: time at which it has waited too long; in a line: time at which it is
     * cancelled */
    uint64_t until_ns;
    uint64_t deadline_ns; /* deadline of its ask; 0: none */
    uint64_t affected;
    domi_pg_statement *statement;
    domus_sql_builder builder;
    uint32_t reads;      /* reads from the socket since the last result */
    uint64_t read_bytes; /* bytes that these reads brought, as far as they were counted */
    uint8_t job;         /* domi_pg_job */
    uint8_t stage;       /* domi_pg_stage */
    uint8_t described;   /* results of PREPARES that have come */
    bool is_answered;    /* the ask was answered, and the rest of the results is discarded */
    bool is_late;        /* the query has failed because its time was over */
    bool is_small;       /* the result is read as a whole, not by single rows */
    uint8_t repeats;     /* how often it was sent again because its connection was lost */
    bool is_repaired;    /* its statement was prepared again after the server did not know it */
    bool has_failed;     /* `failure` is set */
    bool is_told;        /* `failure` comes from the server, so the server knows of it */
    bool commits;        /* the DOMI_PG_END is a commit */
    bool has_copied;     /* the server has begun a copy */
    /* the query has failed because the server's statement is gone or has changed */
    bool is_stale;
    bool is_dropped;   /* all its results are discarded */
    bool is_cancelled; /* a cancel of the query was sent to the server */
    bool is_rollback;  /* the server's tag was ROLLBACK */
    bool is_begin;     /* the server's tags say that a transaction was begun */
    bool has_ended;    /* the server's tags say that the transaction of the query was ended */
    /* the query has no sync of its own, but that of the next query in the line */
    bool is_joined;
    bool has_result; /* a result of this joined query has come */
    /* the server did not run the query, because one before the same sync has failed */
    bool is_skipped;
    bool is_optional;      /* the DOMI_PG_ASIDE may fail without harm */
    const char *command;   /* the command of a DOMI_PG_BEGIN or DOMI_PG_END, a constant */
    uint64_t subscription; /* number of the subscription that the DOMI_PG_LISTEN makes */
    domus_address owner;   /* the actor that has asked for rows, a copy or a transaction */
    domus_sql_request request;
    domus_sql_error failure;
} domi_pg_query;

/* A list of queries in their order. */
typedef struct domi_pg_line {
    domi_pg_query *first;
    domi_pg_query *last;
    uint32_t count;
    uint64_t bytes; /* bytes of texts and parameters that have pages of their own */
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

/* Functions that are called from files below those which define them: the end of a connection and
 * the next step of one concern all files. actor.c fills the table. */
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
    uint64_t serial; /* number of the connection among all connections of the pool */
    /* a random number, so that names of statements differ from those of other clients */
    uint64_t token;
    uint32_t slot;
    uint8_t phase; /* domi_pg_phase */
    bool is_free;  /* the connection is in the pool's list of free ones */
    bool is_watched;
    bool wants_out;     /* the socket is also watched for POLLOUT */
    bool has_pipeline;  /* libpq is in pipeline mode */
    bool is_cancelled;  /* a cancel is wanted or under way: nothing new is sent */
    bool awaits_cancel; /* the cancel waits until that of another connection is over */
    /* a cancel of the first query was begun, whether it has had an effect or not */
    bool was_told;
    bool has_late; /* the time of a query in the line is over */
    /* the server was asked to check for its client (DOMI_PG_LOOKS_FOR_CLIENT) */
    bool was_asked;
    bool is_preparing; /* a query in the line is in PREPARES, so no other one may be added */
    bool is_used;      /* a query was answered on this connection */
    uint8_t strays;   /* signals of a cancel that have hit nothing yet, and may hit a later query */
    uint32_t helpers; /* jobs on helper threads, which use this record */
    uint64_t unasked; /* bytes that came since the last query was sent or notification read */
    PostgresPollingStatusType poll;
    domus_fd_watch watch;
    struct domi_pg_connection *next; /* the next free connection, which was used before this one */
    /* time at which a connect fails, a free connection is closed, or a cancel without effect
     * closes it */
    uint64_t until_ns;
    uint64_t again_ns; /* time at which the first query is cancelled once more */
    PGcancel *cancel;
    domi_pg_line line;
    domi_pg_statements statements;

    /* The transaction that holds the connection. */
    bool in_transaction;  /* true from when its begin is sent until its end is answered */
    uint64_t transaction; /* number of the transaction; 0: there is none, or it is over */
    /* time at which the transaction or the flow has been idle for too long */
    uint64_t idle_ns;
    domi_pg_line todo; /* queries of the transaction that were not sent yet */
    /* the first failure in the transaction; `error` is 0 if there was none */
    domus_sql_error failure;
    bool is_spoiled; /* a query has failed, and the server does not know of it */

    /* The rows or the copy that holds the connection or its transaction. */
    uint8_t flow;        /* domi_pg_flow */
    bool flow_is_paused; /* a piece is full, and nobody has fetched it */
    bool flow_is_over;   /* the server has sent all its rows or bytes, or has received all */
    bool has_reader;     /* `reader` is an ask that waits */
    domus_kept reader;   /* the ask for the next piece, or the ask whose piece is being sent */
    uint64_t flow_number;
    domus_appender piece; /* bytes of a copy from the server that were not fetched yet */
    bool copies;          /* bytes of a copy come from the server, not results */

    domus_watch owner_watch; /* watch on the owner of the transaction, or of a flow without one */
    domus_address owner;
    bool has_owner;
};

/* A subscription to a channel (listen.c). */
typedef struct domi_pg_subscription {
    struct domi_pg_subscription *next;
    uint64_t number;
    domus_address to;
    domus_watch watch;
    uint32_t lost; /* notifications that the mailbox has refused since the last one it took */
    char channel[DOMUS_PG_CHANNEL_SIZE];
} domi_pg_subscription;

struct domi_pg_pool {
    domus_sql_settings settings; /* first member, as domus_sql_driver requires */
    const domi_pg_doors *doors;
    domus_address self;
    domi_pg_connection *connections[DOMI_PG_SLOTS];
    int fds[DOMI_PG_SLOTS]; /* descriptors that are watched, by slot; -1: none */
    uint32_t count;         /* number of connections, without the listening one and dead ones */
    uint32_t connecting;    /* connections of `count` that are not ready */
    uint32_t cancels;       /* cancels that are under way on helper threads */
    domi_pg_connection *free;
    domi_pg_line waiting;
    domi_pg_query *spare; /* unused records of queries */
    uint32_t spares;
    uint64_t serial; /* number of the last connection, transaction or flow */

    uint32_t failures;   /* failed connects in a row */
    uint64_t connect_ns; /* earliest time of the next connect */
    /* time since which there is no connection, after a failed connect; 0: there is one */
    uint64_t down_since_ns;
    domus_sql_error down; /* why */

    uint64_t look_ns; /* time for which the timer is set; 0: it is not set */
    domus_timer look;
    char *scratch; /* memory into which parameters are written */
    size_t scratch_size;

    domi_pg_subscription *subscriptions;
    uint32_t subscriptions_count;
    domi_pg_line listening; /* queries that wait for the listener */
    uint32_t listener_failures;
    uint64_t listen_ns; /* earliest time of the listening connection's next connect */
    bool listener_was_ready;
    bool tells_gap; /* the subscribers are told of a gap once the connection listens again */

    domus_sql_status counted;
};

#endif
