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
#define DOMI_PG_LISTENER        DOMI_PG_CONNECTIONS_MAX /* the slot of the one that listens */
#define DOMI_PG_SLOTS           (DOMI_PG_CONNECTIONS_MAX + 1)

#define DOMI_PG_LOOK_NS   UINT64_C(5000000)    /* at least, between two looks at what is late */
#define DOMI_PG_CANCEL_NS UINT64_C(5000000000) /* for a cancel to end a query */
#define DOMI_PG_AGAIN_NS  UINT64_C(100000000)  /* between two cancels of one query */

/* The server tells the process of a session of a cancel by two signals, one behind the other: to
 * the process, and to the group of which it is the only one. */
#define DOMI_PG_SIGNALS 2u

/* Cancels of a pool that are under way. A server that hangs does not answer them, and each holds a
 * helper thread of the process as long. */
#define DOMI_PG_CANCELS_MAX 1u

/* A server that runs a query looks so often, in ms, whether its client is there (PostgreSQL 14). */
#define DOMI_PG_LOOKS_FOR_CLIENT "5000"

/* How often a query that may be done twice is sent again: a server that ends may end the next
 * connection, too. */
#define DOMI_PG_REPEATS_MAX 3u

/* A statement whose results had no more rows and bytes is read without the care for large ones. */
#define DOMI_PG_SMALL_ROWS  256u
#define DOMI_PG_SMALL_BYTES 65536u
#define DOMI_PG_READ        65536u     /* bytes that libpq takes from a socket at a time, about */
#define DOMI_PG_GREETING    (1u << 20) /* bytes that a server may send until it is ready */
#define DOMI_PG_UNASKED     65536u     /* or behind an answer, if result_max is less */

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
    uint32_t params;                  /* parameters that the statement takes */
    bool is_ready;                    /* the server has described the statement */
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
    uint32_t reads;        /* from the socket, since the last result */
    uint64_t read_bytes;   /* bytes that these reads brought, as far as they were counted */
    uint8_t job;           /* domi_pg_job */
    uint8_t stage;         /* domi_pg_stage */
    uint8_t described;     /* results of PREPARES that have come */
    bool is_answered;      /* the ask is over, and the rest is thrown away */
    bool is_late;          /* the query is over because its time was */
    bool is_small;         /* the result is read as a whole, not by single rows */
    uint8_t repeats;       /* how often it was sent again because its connection was lost */
    bool is_repaired;      /* its statement was prepared anew */
    bool has_failed;       /* `failure` is set */
    bool is_told;          /* `failure` is the server's, which knows of it */
    bool commits;          /* of DOMI_PG_END */
    bool has_copied;       /* the server has begun a copy */
    bool is_stale;         /* it has failed because its statement is not what the server has */
    bool is_dropped;       /* what comes of it is thrown away */
    bool is_cancelled;     /* the server was told to cancel it */
    bool is_rollback;      /* the server has answered so */
    bool is_begin;         /* or that it has begun a transaction */
    bool has_ended;        /* or that it has ended the transaction in which it was */
    bool is_joined;        /* no sync is behind it, but the next query of the line */
    bool has_result;       /* of those that are joined: a result has come */
    bool is_skipped;       /* the server has not done it, because one before its sync has failed */
    bool is_optional;      /* of DOMI_PG_ASIDE: its failure does no harm */
    const char *command;   /* of DOMI_PG_BEGIN and DOMI_PG_END: a constant */
    uint64_t subscription; /* of DOMI_PG_LISTEN: the number of that which it makes */
    domus_address owner;   /* who has asked for rows, a copy or a transaction */
    domus_sql_request request;
    domus_sql_error failure;
} domi_pg_query;

/* Queries in their order. */
typedef struct domi_pg_line {
    domi_pg_query *first;
    domi_pg_query *last;
    uint32_t count;
    uint64_t bytes; /* of their texts and parameters that have pages of their own */
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

/* Functions that files below those which have them call: the end of a connection, and what is next
 * on one, concern all. actor.c fills the table. */
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
    uint64_t serial; /* among all connections of the pool */
    uint64_t token;  /* of chance: names of statements differ from those of other clients */
    uint32_t slot;
    uint8_t phase; /* domi_pg_phase */
    bool is_free;  /* in the list of the pool */
    bool is_watched;
    bool wants_out;     /* the watch is for POLLOUT, too */
    bool has_pipeline;  /* libpq is in pipeline mode */
    bool is_cancelled;  /* a cancel is wanted or under way: nothing new is sent */
    bool awaits_cancel; /* the connection waits until the cancel of another one is over */
    bool was_told;      /* a cancel of the first of the line has begun, with effect or without */
    bool has_late;      /* the time of a query in its line is over */
    bool was_asked;     /* to look for its client, as DOMI_PG_LOOKS_FOR_CLIENT says */
    bool is_preparing;  /* a query in its line is in PREPARES: no other one comes behind it */
    bool is_used;       /* a query was answered on it */
    uint8_t strays;   /* signals of a cancel that have hit nothing yet, and may hit a later query */
    uint32_t helpers; /* jobs on helper threads, which use this record */
    uint64_t unasked; /* bytes that came since a query was sent or a notification taken */
    PostgresPollingStatusType poll;
    domus_fd_watch watch;
    struct domi_pg_connection *next; /* of those that are free, used last first */
    uint64_t until_ns; /* of a connect; of a free one: when it is closed; of a cancel: of that */
    uint64_t again_ns; /* when the first of the line is cancelled once more */
    PGcancel *cancel;
    domi_pg_line line;
    domi_pg_statements statements;

    /* The transaction that holds it. */
    bool in_transaction;     /* from the begin that was sent, to the end that was answered */
    uint64_t transaction;    /* its number; 0: none, or it is over */
    uint64_t idle_ns;        /* when it, or the flow, has been idle for too long */
    domi_pg_line todo;       /* queries of the transaction that were not sent */
    domus_sql_error failure; /* the first one in it; `error` of 0: none */
    bool is_spoiled;         /* a query has failed of which the server does not know that */

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
};

/* A subscription to a channel (listen.c). */
typedef struct domi_pg_subscription {
    struct domi_pg_subscription *next;
    uint64_t number;
    domus_address to;
    domus_watch watch;
    uint32_t lost; /* notifications that the mailbox has refused since the last one */
    char channel[DOMUS_PG_CHANNEL_SIZE];
} domi_pg_subscription;

struct domi_pg_pool {
    domus_sql_settings settings; /* first, as domus_sql_driver says */
    const domi_pg_doors *doors;
    domus_address self;
    domi_pg_connection *connections[DOMI_PG_SLOTS];
    int fds[DOMI_PG_SLOTS]; /* of those that are watched; -1 otherwise */
    uint32_t count;         /* of connections, without the listener and the dead */
    uint32_t connecting;    /* connections of `count` that are not ready */
    uint32_t cancels;       /* cancels that are under way on helper threads */
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
    bool tells_gap; /* to the subscribers, once the listener listens */

    domus_sql_status counted;
};

#endif
