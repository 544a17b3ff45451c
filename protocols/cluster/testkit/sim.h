/* The parts of a simulated cluster (domus/testkit_cluster.h), and the functions that its files call
 * of each other.
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
 *   faults.c      legs that are cut, slow and lossy
 *   notes.c       the trace, the counts, random numbers
 *
 * Memory comes from malloc, and not from a kit, because messages outlive the kit of their
 * publisher.
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

/* A message on the simulated servers. Its texts end with zeros, and lie one after the other in
 * `bytes`. */
typedef struct domi_sim_message {
    uint32_t references;
    /* node of the message's publisher; DOMUS_EVERY: the message comes from the buckets */
    uint32_t node;
    /* number of the message in what the observer is told (domus_testkit_happening) */
    uint64_t number;
    const char *match; /* subject that is compared with patterns; mostly `subject` */
    const char *subject;
    const char *reply; /* reply subject of the message; "": none */
    const char *headers;
    const char *payload;
    uint32_t headers_size;
    uint32_t payload_size;
    uint16_t status; /* status in the message's headers; 0: none */
    bool is_answer;  /* the message is an answer of the buckets to a request */
    char bytes[];
} domi_sim_message;

/* The parts of which domi_sim_message_new() makes a message. Texts have sizes, as they may be
 * slices. */
typedef struct domi_sim_parts {
    const char *subject;
    const char *reply;
    const char *match; /* subject of the message that patterns are compared with; NULL: `subject` */
    const char *headers;
    const char *payload;
    uint32_t subject_size;
    uint32_t reply_size;
    uint32_t headers_size;
    uint32_t payload_size;
    uint16_t status;
} domi_sim_parts;

/* Make a message, which has one user. Returns NULL without memory. */
domi_sim_message *domi_sim_message_new(const domi_sim_parts *parts);
domi_sim_message *domi_sim_message_keep(domi_sim_message *message);
void domi_sim_message_drop(domi_sim_message *message);

/* Returns the bytes of a message's headers and payload. */
static inline uint32_t domi_sim_message_size(const domi_sim_message *message)
{
    return message->headers_size + message->payload_size;
}

/* Returns whether the bytes are a valid subject: tokens of printable characters with "." between
 * them, none of which is empty. With `wildcards` only the last token may be ">". */
bool domi_sim_is_valid_subject(const char *text, size_t size, bool wildcards);

/* Returns whether the bytes are a valid name of a queue group. */
bool domi_sim_is_valid_queue_name(const char *text, size_t size);

/* Find a header by its name in a block of headers. Returns the size of its value; -1 if it is
 * missing. */
int64_t domi_sim_find_header(const char *headers, uint32_t size, const char *name,
                             const char **ret_value);

/* --- legs (legs.c) ---------------------------------------------------------------------------- */

typedef enum domi_sim_kind {
    DOMI_SIM_HELLO = 1, /* packet: a client wants a connection */
    DOMI_SIM_WELCOME,   /* packet: the server has connected the client */
    /* packet with `message`, from a server for the client's subscription `number` */
    DOMI_SIM_MESSAGE,
    /* packet with subject and queue group in `message`, with `number` and `limit` */
    DOMI_SIM_SUBSCRIBE,
    DOMI_SIM_UNSUBSCRIBE, /* packet: the subscription `number` ends after `limit` messages */
    DOMI_SIM_PING,
    DOMI_SIM_PONG,
    DOMI_SIM_CLOSE,       /* packet: the other side has ended the connection, because of `error` */
    DOMI_SIM_INTEREST,    /* packet on a route: the subscription `interest` has begun */
    DOMI_SIM_NO_INTEREST, /* packet on a route: the subscription `interest` has ended */
    /* packet on a route: `message` for `interest`, or for another member of its queue group */
    DOMI_SIM_PICK,
    DOMI_SIM_REQUEST, /* packet on a route: `message` for the buckets */
} domi_sim_kind;

typedef struct domi_sim_packet {
    struct domi_sim_packet *next;
    domi_sim_message *message;   /* message that the packet carries; NULL: none */
    domi_sim_interest *interest; /* subscription that the packet names; NULL: none */
    uint64_t due_ns;
    uint64_t number;
    uint64_t limit;
    domi_sim_kind kind;
    int error;
} domi_sim_packet;

/* One direction between a node and a server, whose properties all connections share. */
typedef struct domi_sim_way {
    uint64_t latency_ns;
    uint64_t jitter_ns;
    uint32_t loss_ppm;
    uint32_t cut; /* kind of the cut of this direction (domus_testkit_cut); 0: it is not cut */
} domi_sim_way;

/* A queue of packets under way. They become due in the order in which they were sent, despite
 * jitter. */
typedef struct domi_sim_leg {
    domi_sim_packet *head;
    domi_sim_packet *tail;
    const domi_sim_way *way;
    uint64_t last_ns; /* time at which the newest packet of the queue is due */
    uint64_t bytes;   /* bytes of the messages in the queue of packets */
} domi_sim_leg;

/* Bytes that each message adds to its size on a leg and in a buffer, as for
 * domus_nats_options.buffer_max. */
#define DOMI_SIM_OVERHEAD 320u

/* Make a packet, which keeps `message`. Returns NULL without memory, and records the error. */
domi_sim_packet *domi_sim_packet_new(domi_sim *sim, domi_sim_kind kind, domi_sim_message *message);
void domi_sim_packet_free(domi_sim_packet *packet);

/* Append a packet to a leg without delay or loss; remove the first packet of a leg. */
void domi_sim_append_packet_to_leg(domi_sim_leg *leg, domi_sim_packet *packet);
domi_sim_packet *domi_sim_take_first_packet_of_leg(domi_sim_leg *leg);

/* Returns the time at which the first packet of a leg is due; DOMI_SIM_NEVER if it has none. */
uint64_t domi_sim_due_time_of_leg(const domi_sim_leg *leg);

/* How messages are lost: their fate, the node that is told of it, and the reason. */
typedef struct domi_sim_loss {
    domus_testkit_fate fate;
    uint32_t node;
    const char *why;
} domi_sim_loss;

/* Send a packet over a leg, or lose it by chance or by a cut. The packet is consumed; it may be
 * NULL. */
void domi_sim_send_or_lose_packet(domi_sim *sim, domi_sim_leg *leg, domi_sim_packet *packet,
                                  domi_sim_loss loss);

/* Lose all packets of a leg; lose only those that carry messages. */
void domi_sim_lose_packets_of_leg(domi_sim *sim, domi_sim_leg *leg, domi_sim_loss loss);
void domi_sim_lose_messages_of_leg(domi_sim *sim, domi_sim_leg *leg, domi_sim_loss loss);

/* --- notes (notes.c) -------------------------------------------------------------------------- */

/* Draw a random number below `n`, which must not be 0. */
uint64_t domi_sim_draw_number_below(domi_sim *sim, uint64_t n);

/* Draw whether something happens whose probability is `ppm` millionths. */
bool domi_sim_draw_whether_happens(domi_sim *sim, uint32_t ppm);

/* Add a line to the trace of the simulated cluster. */
void domi_sim_add_line_to_trace(domi_sim *sim, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Count the fate of a message, and report it to the observer of the simulated cluster. */
void domi_sim_count_and_report_fate(domi_sim *sim, const domi_sim_message *message,
                                    domus_testkit_fate fate, uint32_t node);

/* Count the loss of a message, and write it into the trace. */
void domi_sim_count_lost_message(domi_sim *sim, const domi_sim_message *message,
                                 domi_sim_loss loss);

/* Record an error of the simulated cluster, and its text. Returns `error`. */
int domi_sim_record_error(domi_sim *sim, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* --- nodes and clients ------------------------------------------------------------------------ */

#define DOMI_SIM_NAME 32u

struct domi_sim_node {
    domi_sim *sim;
    domus_testkit *kit; /* the test kit of the node; NULL: the node has crashed */
    char name[DOMI_SIM_NAME];
    domus_config config;
    bool has_config;
    void (*on_stopped)(void *context, uint32_t node);
    void *context;
    bool suspended;
    uint32_t index;
    uint64_t begin_ns; /* time of the cluster at which the node's clock showed `local_ns` */
    uint64_t local_ns;
    uint64_t rate; /* ns that the node's clock moves in a million ns of the cluster */
    /* time of the cluster at which the node's kit has something to do next; DOMI_SIM_NEVER:
     * nothing */
    uint64_t due_ns;
    uint64_t barred_ns;       /* time until which no server accepts the node's clients */
    domi_sim_client *clients; /* clients on the node, in the order in which they were made */
    domi_sim_client *last_client;
    domi_sim_way ways[DOMUS_TESTKIT_SERVERS_MAX][2]; /* directions to each server, and from it */
};

enum { DOMI_SIM_UP, DOMI_SIM_DOWN };

/* A subscription of a simulated client, as the client knows it. */
typedef struct domi_sim_subscription {
    struct domi_sim_subscription *next;
    uint64_t number;
    uint64_t tag;
    uint64_t limit;       /* number of messages after which the subscription ends; 0: never */
    uint64_t told;        /* number of messages that the subscription has got */
    uint64_t told_before; /* number of messages in `told` that came over earlier connections */
    domus_address to;
    /* a message that has the subscription's subject, and its queue group as reply subject */
    domi_sim_message *what;
} domi_sim_subscription;

/* A request or flush of a client that waits for an answer. */
typedef struct domi_sim_slot {
    domus_kept kept;
    uint64_t deadline_ns; /* deadline of the request or flush, by the node's clock */
    uint64_t ping;        /* number of the ping that a flush has sent; 0: none yet */
    uint32_t generation;
    uint32_t next_free;
    bool is_used;
    bool is_flush;
    bool is_sent;
} domi_sim_slot;

typedef enum domi_sim_state {
    DOMI_SIM_ALONE = 0, /* the client has no connection; it tries again at `retry_ns` */
    DOMI_SIM_TRYING,    /* the client waits for the server's WELCOME, until `retry_ns` */
    DOMI_SIM_CONNECTED,
} domi_sim_state;

#define DOMI_SIM_NO_SLOT    UINT32_MAX
#define DOMI_SIM_INBOX_SIZE 32u

struct domi_sim_client {
    domi_sim_client *next;
    domi_sim_node *node;
    uint32_t gateway;
    bool is_over;  /* the client's actor has ended, or its node has crashed */
    bool is_woken; /* the client's actor was told to handle the packets in `came` */
    bool is_draining;
    domi_sim_state state;
    domus_address self;
    domus_address events;
    domi_sim_connection *connection; /* the client's connection, while TRYING or CONNECTED */
    domi_sim_leg came;               /* packets from the server that the actor has not handled */
    domi_sim_leg waiting;            /* packets that wait to be sent to the server */
    domi_sim_subscription *subscriptions;
    domi_sim_subscription *last_subscription;
    uint32_t subscription_count;
    uint64_t next_number;
    domi_sim_slot *slots;
    uint32_t slot_count;
    uint32_t slots_used;
    uint32_t free_slot;
    uint64_t expire_ns; /* time of the first deadline of a slot, or an earlier time */
    uint64_t retry_ns;
    uint64_t ping_ns;
    uint64_t drain_ns; /* time at which a drain is given up; DOMI_SIM_NEVER: there is none */
    uint64_t backoff_ns;
    uint64_t pings;
    uint64_t pongs;
    uint64_t drain_ping; /* number of the ping whose pong ends a drain, as all was sent; 0: none */
    bool is_drained;     /* a drain has ended, so the client's actor ends */
    uint64_t pinged_ns;
    uint64_t tick_ping; /* number of the first ping in a row that the server has not answered */
    uint32_t unanswered;
    uint64_t armed_ns;
    domus_timer timer;
    domus_kept *drains; /* asks to drain, which wait until the drain ends */
    uint32_t drain_count;
    domus_nats_status counted;
    /* subject of the client's inbox, such as "_INBOX.0123456789ab." */
    char inbox[DOMI_SIM_INBOX_SIZE];
};

/* Format and arguments of a client's name in the trace. */
#define DOMI_SIM_CLIENT          "%s/%u"
#define DOMI_SIM_CLIENT_OF(from) (from)->node->name, (from)->gateway

/* Returns the node with this number, if its kit runs; otherwise NULL, and an error is recorded. */
domi_sim_node *domi_sim_find_running_node(domi_sim *sim, uint32_t node);

/* Convert a time of the cluster to the node's clock, and back, rounded up (clock.c). */
uint64_t domi_sim_node_time_of_cluster_time(const domi_sim_node *node, uint64_t cluster_ns);
uint64_t domi_sim_cluster_time_of_node_time(const domi_sim_node *node, uint64_t local_ns);

/* Move the node's kit to the cluster's time, and run its steps. Returns as domus_testkit_run(). */
int domi_sim_run_kit_to_cluster_time(domi_sim_node *node);

/* End a client for good: its connection ends, and its messages are lost. `silent`: no server is
 * told. The client's memory stays until the cluster is freed. */
void domi_sim_client_end_for_good(domi_sim_client *client, bool silent);
void domi_sim_client_free(domi_sim_client *client);

/* Send the packets that wait at the client, as many as its connection accepts. */
void domi_sim_send_waiting_packets(domi_sim_client *client);

/* Wake the actors of the node's clients for which packets have come. */
void domi_sim_wake_clients_with_packets(domi_sim_node *node);

/* --- connections (connection.c) --------------------------------------------------------------- */

struct domi_sim_connection {
    domi_sim_connection *next;
    domi_sim_client *client;
    uint32_t server;
    domi_sim_leg up;
    domi_sim_leg down;
    uint64_t heard_ns; /* time at which the server last heard from the client */
    bool client_open;
    bool server_open; /* the server has accepted the connection, and has not closed it */
    bool is_slow;     /* too much waits for the client, so the server will close the connection */
};

/* Begin a connection to a server by the client's HELLO. Returns NULL without memory. */
domi_sim_connection *domi_sim_begin_connection(domi_sim_client *client, uint32_t server);

/* Close one side of a connection. When the client closes, packets to it are lost, and with `abrupt`
 * also its own; when the server closes, both are lost. */
void domi_sim_close_side_of_client(domi_sim_connection *connection, bool abrupt, bool silent);
void domi_sim_close_side_of_server(domi_sim_connection *connection, int error, const char *why);

/* Deliver the first packet that the client has sent; deliver the first that the server has sent. */
void domi_sim_deliver_packet_to_server(domi_sim_connection *connection);
void domi_sim_deliver_packet_to_client(domi_sim_connection *connection);

/* Close connections of clients that are silent or too slow, as servers do. */
void domi_sim_close_slow_or_silent_clients(domi_sim *sim);
/* Returns the time at which the next connection may have to be closed, because its client is silent
 * or slow. */
uint64_t domi_sim_due_time_of_stale_check(const domi_sim *sim);

/* Free connections that both sides have closed. */
void domi_sim_free_closed_connections(domi_sim *sim);

/* --- servers (server.c, routes.c) ------------------------------------------------------------- */

/* A subscription of a client, as the servers know it. */
struct domi_sim_interest {
    domi_sim_interest *next;
    /* connection of the client that has subscribed; NULL: the subscription has ended */
    domi_sim_connection *connection;
    /* a message that has the subscription's subject, and its queue group as reply subject */
    domi_sim_message *what;
    uint64_t number;
    uint64_t limit;
    uint64_t sent;
    uint32_t server;
    uint32_t known;   /* a bit for each server that knows the subscription */
    uint32_t packets; /* number of packets under way that name this subscription */
};

/* Handle a message that has come to a server from the client of connection `from`, or from the
 * buckets (NULL). It may be for the buckets themselves. */
void domi_sim_send_message_to_subscribers(domi_sim *sim, uint32_t server, domi_sim_message *message,
                                          domi_sim_connection *from, bool is_taken);

/* Handle a message that has come to a server over a route: for all subscriptions of its clients, or
 * for one of a queue group. */
void domi_sim_deliver_message_from_route(domi_sim *sim, uint32_t server, domi_sim_message *message,
                                         domi_sim_interest *pick);

void domi_sim_begin_server_subscription(domi_sim_connection *connection,
                                        const domi_sim_packet *packet);
void domi_sim_end_server_subscription(domi_sim_connection *connection,
                                      const domi_sim_packet *packet);
/* End all subscriptions that were made over a connection. */
void domi_sim_end_connection_subscriptions(domi_sim_connection *connection);
/* Free subscriptions that have ended, when no server knows them any more. */
void domi_sim_free_ended_subscriptions(domi_sim *sim);

/* Returns whether a server knows a subscription that matches this subject. The result stays the
 * same until `known_changes` changes. */
bool domi_sim_has_server_subscription(const domi_sim *sim, uint32_t server, const char *subject);

typedef struct domi_sim_route {
    domi_sim_leg leg;
    domi_sim_way way;
    uint64_t cut_ns; /* time since which the route between two servers is cut */
    bool broken;
} domi_sim_route;

/* Tell the other servers that a subscription has begun or ended. */
void domi_sim_tell_servers_subscription(domi_sim *sim, domi_sim_interest *interest,
                                        domi_sim_kind kind);
/* Send a packet over the route from one server to another. */
void domi_sim_send_packet_over_route(domi_sim *sim, uint32_t from, uint32_t to,
                                     domi_sim_packet *packet);
/* Deliver the first packet of the route from one server to another. */
void domi_sim_deliver_packet_of_route(domi_sim *sim, uint32_t from, uint32_t to);
void domi_sim_break_route(domi_sim *sim, uint32_t one, uint32_t other);
/* Let two servers tell each other all their subscriptions, unless their route is cut or one is
 * stopped. */
void domi_sim_reconnect_route(domi_sim *sim, uint32_t one, uint32_t other);
/* Returns whether two servers can reach each other over a route. */
bool domi_sim_can_servers_reach_each_other(const domi_sim *sim, uint32_t one, uint32_t other);
/* Break routes that were cut for too long; return the time at which the next packet on a route is
 * due or the next route breaks. */
void domi_sim_break_stale_routes(domi_sim *sim);
uint64_t domi_sim_due_time_of_next_route_event(const domi_sim *sim);

/* --- buckets (store.c, store_api.c, store_watch.c) -------------------------------------------- */

typedef struct domi_sim_store {
    domi_sim_bucket *buckets;
    domi_sim_leg leg; /* requests that the leader of the buckets works on */
    domi_sim_way way;
    domus_testkit_store_faults faults;
    uint32_t leader;   /* number of the server that leads the buckets; DOMUS_EVERY: none */
    uint64_t ready_ns; /* time at which a leader of the buckets may be elected, if there is none */
    /* number of consumers of all buckets so far, from which their names are made */
    uint64_t consumers;
} domi_sim_store;

/* Returns whether a subject is one of the buckets', so that its message goes to them. */
bool domi_sim_is_subject_of_store(const domi_sim *sim, const char *subject);
/* Handle a message for the buckets that has come to a server. Returns false if nobody receives
 * it. */
bool domi_sim_store_take_or_route_request(domi_sim *sim, uint32_t server,
                                          domi_sim_message *message);
/* Handle a request for the buckets that has come to the server which led them when it was sent. */
void domi_sim_store_lose_or_delay_request(domi_sim *sim, uint32_t server,
                                          domi_sim_message *message);
/* Finish the first request on which the leader of the buckets works. */
void domi_sim_store_serve_next_request(domi_sim *sim);
/* End the leadership of a server that reaches no majority any more, and elect another leader. */
void domi_sim_elect_leader_of_store(domi_sim *sim);
/* Send the entries and heartbeats that consumers owe to their subscribers now. */
void domi_sim_store_send_due_of_consumers(domi_sim *sim);
uint64_t domi_sim_store_next_due_time(const domi_sim *sim);
void domi_sim_store_free(domi_sim *sim);

/* --- the simulated cluster -------------------------------------------------------------------- */

typedef struct domi_sim_line {
    char text[DOMUS_TESTKIT_CLUSTER_LINE_BYTES];
} domi_sim_line;

struct domus_testkit_cluster {
    /* options of the simulated cluster, with zeros replaced by defaults */
    domus_testkit_cluster_options options;
    uint64_t now_ns;
    uint64_t random;
    int failed;    /* an error that has occurred while a step ran, such as -ENOMEM */
    bool stepping; /* a kit of a node is running its steps */
    bool ending;
    uint32_t node_count;
    domi_sim_node *nodes[DOMUS_TESTKIT_NODES_MAX];
    uint32_t client_count;
    bool running[DOMUS_TESTKIT_SERVERS_MAX];
    domi_sim_route routes[DOMUS_TESTKIT_SERVERS_MAX][DOMUS_TESTKIT_SERVERS_MAX];
    domi_sim_connection *connections; /* all connections, in the order in which they were begun */
    domi_sim_connection *last_connection;
    domi_sim_interest *interests;
    domi_sim_interest *last_interest;
    uint64_t known_changes; /* number of changes of `known`, over all subscriptions */
    domi_sim_store store;
    uint64_t numbers; /* number that the last message has got */
    domus_testkit_cluster_counts counts;
    domus_testkit_observer *observer;
    void *observer_context;
    domi_sim_line *lines;
    uint64_t line_count;
    uint64_t digest;
    char *text; /* text of the whole trace, while it is written */
    char error[DOMUS_TESTKIT_TEXT_MAX];
};

#endif
