/* The parts of a simulated cluster (domus/testkit_cluster.h), and the doors between its files.
 *
 *   clock.c       drives kits and legs on one time line
 *   nodes.c       nodes: crash, start, suspend
 *   message.c     messages; patterns of subjects
 *   legs.c        queues of packets that take time
 *   client*.c     the actor that plays a client
 *   connection.c  connections, as a server sees them
 *   server.c      subscriptions, and which of them gets a message
 *   routes.c      legs between servers, and what they tell each other
 *   servers.c     servers that stop; routes that are cut
 *   store*.c      buckets, and the requests of JetStream
 *   faults.c      what is cut, slow and lossy
 *   notes.c       the trace, the counts, chance
 *
 * Memory is that of malloc, and not of a kit: messages outlive the kit of their publisher.
 *
 * Thread-safety: one thread at a time for each cluster, which is also that of its kits' steps. */
#ifndef DOMI_CLUSTER_TESTKIT_SIM_H
#define DOMI_CLUSTER_TESTKIT_SIM_H

#include <domus/testkit_cluster.h>

typedef struct domus_testkit_cluster domi_sim;
typedef struct domi_sim_node domi_sim_node;
typedef struct domi_sim_client domi_sim_client;
typedef struct domi_sim_connection domi_sim_connection;
typedef struct domi_sim_interest domi_sim_interest;
typedef struct domi_sim_bucket domi_sim_bucket;

#define DOMI_SIM_NEVER UINT64_MAX

/* --- messages (message.c) --------------------------------------------------------------------- */

/* A message as servers see it. Its texts end with zeros, and lie in `bytes` one behind the other.
 */
typedef struct domi_sim_message {
    uint32_t references;
    uint32_t node;     /* the node of the publisher; DOMUS_EVERY: the buckets */
    uint64_t number;   /* of domus_testkit_happening */
    const char *match; /* the subject that patterns are held against; mostly `subject` */
    const char *subject;
    const char *reply; /* "": none */
    const char *headers;
    const char *payload;
    uint32_t headers_size;
    uint32_t payload_size;
    uint16_t status; /* of the headers; 0: none */
    bool is_answer;  /* the buckets answer with it */
    char bytes[];
} domi_sim_message;

/* The parts of a message that is made. Texts have sizes, since they may be slices. */
typedef struct domi_sim_parts {
    const char *subject;
    const char *reply;
    const char *match; /* NULL: the subject */
    const char *headers;
    const char *payload;
    uint32_t subject_size;
    uint32_t reply_size;
    uint32_t headers_size;
    uint32_t payload_size;
    uint16_t status;
} domi_sim_parts;

/* Make a message with one reference. Returns NULL without memory. */
domi_sim_message *domi_sim_message_new(const domi_sim_parts *parts);
domi_sim_message *domi_sim_message_keep(domi_sim_message *message);
void domi_sim_message_drop(domi_sim_message *message);

/* Bytes of headers and payload. */
static inline uint32_t domi_sim_message_size(const domi_sim_message *message)
{
    return message->headers_size + message->payload_size;
}

/* Returns whether these bytes are a subject, with wildcards if that is said. */
bool domi_sim_is_subject(const char *text, size_t size, bool wildcards);

/* Returns whether these bytes are a queue group. */
bool domi_sim_is_word(const char *text, size_t size);

/* Find a header of a block. Returns its size, and -1 if there is none. */
int64_t domi_sim_find_header(const char *headers, uint32_t size, const char *name,
                             const char **ret_value);

/* --- legs (legs.c) ---------------------------------------------------------------------------- */

typedef enum domi_sim_kind {
    DOMI_SIM_HELLO = 1,   /* a client wants a connection */
    DOMI_SIM_WELCOME,     /* it has one */
    DOMI_SIM_MESSAGE,     /* `message`; from a server with `number`, the subscription */
    DOMI_SIM_SUBSCRIBE,   /* `message` has subject and queue group; `number`; `limit` */
    DOMI_SIM_UNSUBSCRIBE, /* `number`; `limit` */
    DOMI_SIM_PING,
    DOMI_SIM_PONG,
    DOMI_SIM_CLOSE,       /* the other side has ended the connection because of `error` */
    DOMI_SIM_INTEREST,    /* on routes: `interest` is there */
    DOMI_SIM_NO_INTEREST, /* it has ended */
    DOMI_SIM_PICK,        /* `message` is for `interest`, or another one of its queue group */
    DOMI_SIM_REQUEST,     /* `message` is for the buckets */
} domi_sim_kind;

typedef struct domi_sim_packet {
    struct domi_sim_packet *next;
    domi_sim_message *message;   /* NULL: none */
    domi_sim_interest *interest; /* NULL: none */
    uint64_t due_ns;
    uint64_t number;
    uint64_t limit;
    domi_sim_kind kind;
    int error;
} domi_sim_packet;

/* How a leg is, which several connections share. */
typedef struct domi_sim_way {
    uint64_t latency_ns;
    uint64_t jitter_ns;
    uint32_t loss_ppm;
    uint32_t cut; /* 0, or a domus_testkit_cut */
} domi_sim_way;

/* A queue of packets. The first one is due first, whatever the jitter. */
typedef struct domi_sim_leg {
    domi_sim_packet *head;
    domi_sim_packet *tail;
    const domi_sim_way *way;
    uint64_t last_ns; /* when the last packet is due */
    uint64_t bytes;   /* of messages */
} domi_sim_leg;

/* Bytes that a message counts on a leg and in a buffer, as domus_nats_options.buffer_max has it. */
#define DOMI_SIM_OVERHEAD 320u

/* Make a packet, which keeps `message`. Returns NULL without memory, and notes it. */
domi_sim_packet *domi_sim_packet_new(domi_sim *sim, domi_sim_kind kind, domi_sim_message *message);
void domi_sim_packet_free(domi_sim_packet *packet);

/* Append a packet as it is, or take the first one away. */
void domi_sim_append(domi_sim_leg *leg, domi_sim_packet *packet);
domi_sim_packet *domi_sim_pop(domi_sim_leg *leg);

/* When the first packet comes; DOMI_SIM_NEVER. */
uint64_t domi_sim_leg_due(const domi_sim_leg *leg);

/* A loss: whose it is, and why. */
typedef struct domi_sim_loss {
    domus_testkit_fate fate;
    uint32_t node;
    const char *why;
} domi_sim_loss;

/* Send a packet, which is consumed, also if it is NULL; or lose it. */
void domi_sim_send(domi_sim *sim, domi_sim_leg *leg, domi_sim_packet *packet, domi_sim_loss loss);

/* Lose all packets, or only the messages. */
void domi_sim_lose_all(domi_sim *sim, domi_sim_leg *leg, domi_sim_loss loss);
void domi_sim_lose_messages(domi_sim *sim, domi_sim_leg *leg, domi_sim_loss loss);

/* --- notes (notes.c) -------------------------------------------------------------------------- */

/* Draw a number below `n`, which is not 0. */
uint64_t domi_sim_draw(domi_sim *sim, uint64_t n);

/* Draw whether something happens, of this probability. */
bool domi_sim_chance(domi_sim *sim, uint32_t ppm);

/* Add a line to the trace. */
void domi_sim_note(domi_sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Count the fate of a message and tell the observer. */
void domi_sim_tell(domi_sim *sim, const domi_sim_message *message, domus_testkit_fate fate,
                   uint32_t node);

/* Count and note a loss. */
void domi_sim_lose(domi_sim *sim, const domi_sim_message *message, domi_sim_loss loss);

/* Say what went wrong. Returns `error`. */
int domi_sim_fail(domi_sim *sim, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* --- nodes and clients ------------------------------------------------------------------------ */

#define DOMI_SIM_NAME 32u

struct domi_sim_node {
    domi_sim *sim;
    domus_testkit *kit; /* NULL: crashed */
    char name[DOMI_SIM_NAME];
    domus_config config;
    bool has_config;
    void (*on_stopped)(void *context, uint32_t node);
    void *context;
    bool suspended;
    uint32_t index;
    uint64_t begin_ns; /* of the cluster, at which the clock of the node showed `local_ns` */
    uint64_t local_ns;
    uint64_t rate;            /* ns of the node in a million of the cluster */
    uint64_t due_ns;          /* of the cluster, when the kit has something to do; DOMI_SIM_NEVER */
    uint64_t barred_ns;       /* until then no server accepts its clients */
    domi_sim_client *clients; /* in the order in which they were made */
    domi_sim_client *last_client;
    domi_sim_way ways[DOMUS_TESTKIT_SERVERS_MAX][2]; /* to the server, and from it */
};

enum { DOMI_SIM_UP, DOMI_SIM_DOWN };

/* A subscription of a client. */
typedef struct domi_sim_subscription {
    struct domi_sim_subscription *next;
    uint64_t number;
    uint64_t tag;
    uint64_t limit;       /* messages; 0: no end */
    uint64_t told;        /* messages that have come */
    uint64_t told_before; /* messages of `told` that earlier connections have brought */
    domus_address to;
    domi_sim_message *what; /* its subject, and as its reply the queue group */
} domi_sim_subscription;

/* A request or flush that is under way. */
typedef struct domi_sim_slot {
    domus_kept kept;
    uint64_t deadline_ns; /* of the node's clock */
    uint64_t ping;        /* of a flush: the number of its ping, once that is sent; 0: none */
    uint32_t generation;
    uint32_t next_free;
    bool is_used;
    bool is_flush;
    bool is_sent;
} domi_sim_slot;

typedef enum domi_sim_state {
    DOMI_SIM_ALONE = 0, /* waits until `retry_ns` */
    DOMI_SIM_TRYING,    /* until `retry_ns` */
    DOMI_SIM_CONNECTED,
} domi_sim_state;

#define DOMI_SIM_NO_SLOT    UINT32_MAX
#define DOMI_SIM_INBOX_SIZE 32u

struct domi_sim_client {
    domi_sim_client *next;
    domi_sim_node *node;
    uint32_t gateway;
    bool is_over;  /* its actor has ended, or its node has crashed */
    bool is_woken; /* its actor has been told to look at what came */
    bool is_draining;
    domi_sim_state state;
    domus_address self;
    domus_address events;
    domi_sim_connection *connection; /* with TRYING and CONNECTED */
    domi_sim_leg came;               /* packets that its actor has not seen */
    domi_sim_leg waiting;            /* packets that no leg has taken */
    domi_sim_subscription *subscriptions;
    domi_sim_subscription *last_subscription;
    uint32_t subscription_count;
    uint64_t next_number;
    domi_sim_slot *slots;
    uint32_t slot_count;
    uint32_t slots_used;
    uint32_t free_slot;
    uint64_t expire_ns; /* the first deadline of a slot, or before */
    uint64_t retry_ns;
    uint64_t ping_ns;
    uint64_t drain_ns; /* when a drain is given up; DOMI_SIM_NEVER */
    uint64_t backoff_ns;
    uint64_t pings;
    uint64_t pongs;
    uint64_t drain_ping; /* the pong of which says that all was sent; 0: none */
    bool is_drained;     /* a drain has ended, and the actor with it */
    uint64_t pinged_ns;
    uint64_t tick_ping; /* the first ping of the interval that was not answered */
    uint32_t unanswered;
    uint64_t armed_ns;
    domus_timer timer;
    domus_kept *drains; /* asks for a drain */
    uint32_t drain_count;
    domus_nats_status counted;
    char inbox[DOMI_SIM_INBOX_SIZE]; /* "_INBOX.0123456789ab." */
};

/* Format and arguments of a client's name. */
#define DOMI_SIM_CLIENT          "%s/%u"
#define DOMI_SIM_CLIENT_OF(from) (from)->node->name, (from)->gateway

/* A node whose kit runs; NULL with an error that was noted. */
domi_sim_node *domi_sim_node_of(domi_sim *sim, uint32_t node);

/* Convert times between the cluster and a node (clock.c). The second one rounds up. */
uint64_t domi_sim_local(const domi_sim_node *node, uint64_t cluster_ns);
uint64_t domi_sim_global(const domi_sim_node *node, uint64_t local_ns);

/* Let a kit catch up with the cluster, and take its steps. Returns as domus_testkit_run(). */
int domi_sim_catch_up(domi_sim_node *node);

/* Cut a client off for good: its connection ends, nothing of it is heard. `silent`: no server is
 * told. Its memory stays until the end of the cluster. */
void domi_sim_client_end(domi_sim_client *client, bool silent);
void domi_sim_client_free(domi_sim_client *client);

/* Send what waits, as far as the leg takes it. */
void domi_sim_pump(domi_sim_client *client);

/* Wake the actors of clients that have something to see. */
void domi_sim_wake_clients(domi_sim_node *node);

/* --- connections (connection.c) --------------------------------------------------------------- */

struct domi_sim_connection {
    domi_sim_connection *next;
    domi_sim_client *client;
    uint32_t server;
    domi_sim_leg up;
    domi_sim_leg down;
    uint64_t heard_ns; /* when the server has heard the client last */
    bool client_open;
    bool server_open; /* the server has accepted it, and not closed it */
    bool is_slow;     /* too much waits for the client, so the server is about to close it */
};

/* Begin a connection: the client says hello. Returns NULL without memory. */
domi_sim_connection *domi_sim_connect(domi_sim_client *client, uint32_t server);

/* A side closes. The client's loses what was under way to it, and with `abrupt` also what it has
 * sent; the server's loses both. */
void domi_sim_client_close(domi_sim_connection *connection, bool abrupt, bool silent);
void domi_sim_server_close(domi_sim_connection *connection, int error, const char *why);

/* The first packet of a leg comes. */
void domi_sim_arrive_up(domi_sim_connection *connection);
void domi_sim_arrive_down(domi_sim_connection *connection);

/* Close connections of silent and of slow clients. */
void domi_sim_close_stale(domi_sim *sim);
/* When the next one may be stale. */
uint64_t domi_sim_stale_due(const domi_sim *sim);

/* Free connections that both sides have closed. */
void domi_sim_reap_connections(domi_sim *sim);

/* --- servers (server.c, routes.c) ------------------------------------------------------------- */

/* A subscription at a server. */
struct domi_sim_interest {
    domi_sim_interest *next;
    domi_sim_connection *connection; /* NULL: it has ended */
    domi_sim_message *what;          /* its subject, and as its reply the queue group */
    uint64_t number;
    uint64_t limit;
    uint64_t sent;
    uint32_t server;
    uint32_t known;   /* servers that know it, as bits */
    uint32_t packets; /* packets that name this interest */
};

/* A message has come to a server, from a client (`from`), or from the buckets (NULL). The buckets
 * may have taken it. */
void domi_sim_arrived(domi_sim *sim, uint32_t server, domi_sim_message *message,
                      domi_sim_connection *from, bool is_taken);

/* A message has come over a route: for all, or for one of a queue group. */
void domi_sim_routed(domi_sim *sim, uint32_t server, domi_sim_message *message,
                     domi_sim_interest *pick);

void domi_sim_subscribed(domi_sim_connection *connection, const domi_sim_packet *packet);
void domi_sim_unsubscribed(domi_sim_connection *connection, const domi_sim_packet *packet);
/* End all subscriptions of a connection. */
void domi_sim_forget(domi_sim_connection *connection);
/* Free those that have ended and that nobody knows. */
void domi_sim_reap_interests(domi_sim *sim);

/* Returns whether a server knows a subscription with this subject: the same until `known_changes`
 * is another number. */
bool domi_sim_is_heard(const domi_sim *sim, uint32_t server, const char *subject);

typedef struct domi_sim_route {
    domi_sim_leg leg;
    domi_sim_way way;
    uint64_t cut_ns; /* since when it is cut */
    bool broken;
} domi_sim_route;

/* Tell the other servers of a subscription, or that it has ended. */
void domi_sim_spread(domi_sim *sim, domi_sim_interest *interest, domi_sim_kind kind);
/* Send over a route. */
void domi_sim_send_over(domi_sim *sim, uint32_t from, uint32_t to, domi_sim_packet *packet);
/* The first packet of a route comes. */
void domi_sim_arrive_route(domi_sim *sim, uint32_t from, uint32_t to);
void domi_sim_break_route(domi_sim *sim, uint32_t one, uint32_t other);
/* Let two servers tell each other all that they have, if nothing keeps them apart. */
void domi_sim_mend_route(domi_sim *sim, uint32_t one, uint32_t other);
/* Returns whether two servers hear each other. */
bool domi_sim_is_routed(const domi_sim *sim, uint32_t one, uint32_t other);
/* Break routes that are cut for too long, and say when the next one is. */
void domi_sim_break_routes(domi_sim *sim);
uint64_t domi_sim_routes_due(const domi_sim *sim);

/* --- buckets (store.c, store_api.c, store_watch.c) -------------------------------------------- */

typedef struct domi_sim_store {
    domi_sim_bucket *buckets;
    domi_sim_leg leg; /* requests that the leader works on */
    domi_sim_way way;
    domus_testkit_store_faults faults;
    uint32_t leader;    /* DOMUS_EVERY: none */
    uint64_t ready_ns;  /* without a leader: the time at which one may be elected */
    uint64_t consumers; /* made so far; names them */
} domi_sim_store;

/* Returns whether a message is for the buckets. */
bool domi_sim_is_for_store(const domi_sim *sim, const char *subject);
/* A message for the buckets has come to a server. Returns false if nobody hears it. */
bool domi_sim_store_take(domi_sim *sim, uint32_t server, domi_sim_message *message);
/* It has come to the leader, or to whoever was it. */
void domi_sim_store_put(domi_sim *sim, uint32_t server, domi_sim_message *message);
/* The leader has done with the first request of its leg. */
void domi_sim_store_arrive(domi_sim *sim);
/* Look whether the leader is still one, and elect another. */
void domi_sim_elect(domi_sim *sim);
/* Send what watches are owed: entries, heartbeats. */
void domi_sim_store_tick(domi_sim *sim);
uint64_t domi_sim_store_due(const domi_sim *sim);
void domi_sim_store_free(domi_sim *sim);

/* --- the whole -------------------------------------------------------------------------------- */

typedef struct domi_sim_line {
    char text[DOMUS_TESTKIT_CLUSTER_LINE_BYTES];
} domi_sim_line;

struct domus_testkit_cluster {
    domus_testkit_cluster_options options; /* with the defaults filled in */
    uint64_t now_ns;
    uint64_t random;
    int failed;    /* an error in the middle of things, such as -ENOMEM */
    bool stepping; /* a kit takes steps */
    bool ending;
    uint32_t node_count;
    domi_sim_node *nodes[DOMUS_TESTKIT_NODES_MAX];
    uint32_t client_count;
    bool running[DOMUS_TESTKIT_SERVERS_MAX];
    domi_sim_route routes[DOMUS_TESTKIT_SERVERS_MAX][DOMUS_TESTKIT_SERVERS_MAX];
    domi_sim_connection *connections; /* in the order in which they were begun */
    domi_sim_connection *last_connection;
    domi_sim_interest *interests;
    domi_sim_interest *last_interest;
    uint64_t known_changes; /* of `known` of all interests */
    domi_sim_store store;
    uint64_t numbers; /* messages so far */
    domus_testkit_cluster_counts counts;
    domus_testkit_observer *observer;
    void *observer_context;
    domi_sim_line *lines;
    uint64_t line_count;
    uint64_t digest;
    char *text; /* the text of the whole trace */
    char error[DOMUS_TESTKIT_TEXT_MAX];
};

#endif
