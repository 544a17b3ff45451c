/* The client: an actor, and the channel of its connection, which shares its state.
 *
 * The client handles the asks and notices of users, has the subscriptions, keeps messages that
 * wait, and connects. The channel keeps the asks that are with the server, because it receives the
 * answers, and only the actor that keeps an ask can answer it. Both run on one thread, one at a
 * time.
 *
 *   IDLE -> CONNECTING -> GREETED -> LOGIN -> READY
 *    ^        |             |          |        |
 *    +--------+-------------+----------+--------+  the connection has failed, or is gone
 *
 * CONNECTING: a connect is under way, or the server has sent nothing yet. GREETED: INFO was read,
 * and the pipeline changes. LOGIN: CONNECT and a ping were sent. READY: the ping was answered. */
#ifndef DOMI_PROTOCOLS_NATS_STATE_H
#define DOMI_PROTOCOLS_NATS_STATE_H

#include "protocols/nats/nats.h"

#include <domus/conversation.h>
#include <domus/supervise.h>
#include <domus/timer.h>

/* Bytes that may be queued on a connection; further messages wait in the client, where they survive
 * the connection. */
#define DOMI_NATS_WINDOW (512u * 1024)

#define DOMI_NATS_INBOX_SIZE 30u /* bytes of "_INBOX.", 22 random characters, and "." */
/* characters of a request's token: its slot and generation, in hexadecimal */
#define DOMI_NATS_TOKEN_SIZE 12u
#define DOMI_NATS_REPLY_SIZE (DOMI_NATS_INBOX_SIZE + DOMI_NATS_TOKEN_SIZE)
#define DOMI_NATS_INBOX      0u /* the number of the subscription to the inbox */

#define DOMI_NATS_NONE UINT32_MAX /* a place or server that does not exist */

#define DOMI_NATS_LOOK_NS UINT64_C(10000000) /* ns between two checks for late asks */

typedef enum domi_nats_phase {
    DOMI_NATS_IDLE,
    DOMI_NATS_CONNECTING,
    DOMI_NATS_GREETED,
    DOMI_NATS_LOGIN,
    DOMI_NATS_READY,
} domi_nats_phase;

/* A server that the client knows. */
typedef struct domi_nats_server {
    char text[DOMUS_NATS_SERVER_SIZE]; /* the server as domus_connect() takes it */
    bool is_told;                      /* the server was named by INFO, not by the options */
    uint32_t failures;                 /* failures in a row */
    uint64_t out_until_ns;             /* the time until which the server is left out */
} domi_nats_server;

/* An ask that is with the server, kept by the channel. */
typedef struct domi_nats_slot {
    domus_kept kept;
    uint64_t deadline_ns;
    uint64_t ping; /* number of the ping of a flush; 0 for a request */
    /* number of this ask among the asks of the slot; it is a part of the token */
    uint32_t generation;
    uint32_t next; /* the next free slot, or the slot of the next flush */
    bool is_used;
} domi_nats_slot;

/* A message that waits: a publication, or an ask, which the client keeps. */
typedef struct domi_nats_waiting {
    struct domi_nats_waiting *next;
    struct domi_nats_waiting **before; /* the pointer that points to this entry */
    struct domi_nats_waiting *next_ask;
    struct domi_nats_waiting **before_ask;
    bool is_ask;
    uint64_t bytes; /* bytes that count against the limit of waiting messages */
    domus_kept kept;
    uint64_t deadline_ns;
    domus_nats_publish publish; /* the publication; empty for an ask */
} domi_nats_waiting;

typedef struct domi_nats_subscription {
    /* the subject, followed by its zero and the queue group, in one block; NULL: a free place */
    char *subject;
    char *queue; /* the queue group; NULL: there is none */
    domus_address to;
    domus_watch watch;
    uint64_t tag;
    uint64_t messages_max;
    uint64_t delivered;
    uint64_t delivered_before; /* messages that were delivered on earlier connections */
    uint32_t generation;
    uint32_t next;     /* the next free place, or the next subscription that has ended */
    uint32_t of_owner; /* the next subscription whose subscriber has the same hash */
    bool is_finished;  /* no message is delivered any more; the client frees the place soon */
} domi_nats_subscription;

typedef struct domi_nats_client {
    /* The settings, with zeros replaced by defaults. Their texts are NULL, except `front`. */
    domus_nats_options options;
    domus_channel_options channel_options;
    char name[DOMUS_NATS_NAME_SIZE];
    char user[DOMUS_NATS_SECRET_SIZE];
    char password[DOMUS_NATS_SECRET_SIZE];
    char token[DOMUS_NATS_SECRET_SIZE];
    char seed[64];
    char jwt[DOMUS_NATS_JWT_SIZE];
    bool has_user;

    domi_nats_server servers[DOMUS_NATS_SERVERS_MAX];
    uint32_t servers_count;
    uint32_t server; /* server of the current connection, or of the last one */
    uint64_t random;
    /* the subject of the inbox, with a star at its end for the subscription */
    char inbox[DOMI_NATS_INBOX_SIZE + 2];

    /* The pipeline that follows the first INFO. */
    domus_nats_stage_options stage_options;
    domus_pipeline_stage stages[DOMUS_FRONT_MAX + 2];
    domus_pipeline pipeline;

    /* The connection. */
    domi_nats_phase phase;
    domus_address self;     /* address of the client */
    domus_channel *channel; /* the channel, from on_open to on_close */
    domus_address connection;
    uint64_t connect_ns; /* in IDLE: time of the next connect */
    uint64_t epoch;      /* number of connects so far, by which old timers are recognized */
    /* time at which the connect began; later, at which the server has accepted */
    uint64_t begun_ns;
    int error; /* error that ended the last connection */
    bool was_ready;
    bool is_lame; /* the server has announced that it will stop */
    bool is_pumping;
    uint32_t max_payload;
    bool has_headers;
    bool has_jetstream;
    char nonce[128];
    char server_name[64];
    char version[32];
    uint64_t pings; /* pings sent on this connection */
    uint64_t pongs;
    uint32_t unanswered; /* pings of the interval that were sent since the last answer */
    uint64_t measured;   /* number of the ping whose round trip is measured; 0: none */
    uint64_t measured_ns;

    /* bytes of requests that were forwarded and not yet handled by the channel */
    uint64_t forwarded;

    /* Asks with the server. */
    domi_nats_slot *slots;
    uint32_t slots_count;
    uint32_t slots_used;
    uint32_t free_slot;
    uint32_t first_flush; /* slots of flushes in the order of their pings */
    uint32_t last_flush;
    uint64_t expire_ns; /* time at which the slots are checked next; 0: no timer is set */
    domus_timer expire;

    /* Messages that wait. */
    domi_nats_waiting *first;
    domi_nats_waiting **end; /* the pointer to which the next entry is linked */
    domi_nats_waiting *first_ask;
    domi_nats_waiting **end_of_asks; /* the pointer to which the next ask is linked */
    uint32_t waiting;
    uint32_t waiting_asks;
    uint64_t waiting_bytes;
    uint64_t look_ns; /* time at which waiting asks are checked next; 0: no timer is set */
    domus_timer look;

    /* Subscriptions. */
    domi_nats_subscription *subscriptions;
    uint32_t *owners; /* the first subscription of each hash */
    uint32_t places;  /* number of places in `subscriptions` and `owners` */
    uint32_t places_used;
    uint32_t subscriptions_count;
    uint32_t free_place;
    uint32_t finished; /* the first ended subscription that the client has to free */
    uint32_t renewed;  /* subscriptions at places below this were sent to the server */

    /* The drain. */
    bool drains_soon; /* the notice that begins the drain is under way, or has come */
    bool draining;
    bool drain_is_asked;
    domus_kept drain;
    uint64_t drain_until_ns;
    uint32_t drain_place; /* subscriptions at places below this were ended at the server */
    uint64_t drain_ping;  /* number of the ping behind the last unsubscribe; 0: not sent */
    uint64_t drain_epoch; /* number of the connection of that ping */

    domus_nats_status counted;
} domi_nats_client;

/* --- client.c --------------------------------------------------------------------------------- */

extern const domus_behaviour domi_nats_client_behaviour;

/* --- send.c ----------------------------------------------------------------------------------- */

/* Returns whether the server of the connection has accepted this client. */
static inline bool domi_nats_is_ready(const domi_nats_client *client)
{
    return client->phase == DOMI_NATS_READY && client->channel != NULL;
}

/* Returns whether the connection accepts more bytes now; requests on their way to the channel
 * count, too. */
static inline bool domi_nats_has_room(const domi_nats_client *client)
{
    return domus_channel_queued(client->channel) + client->forwarded < DOMI_NATS_WINDOW;
}

/* Returns whether a message may be sent now: no earlier message may be waiting. */
bool domi_nats_may_send(const domi_nats_client *client);

/* Fail the current ask, or count the current notice as refused. Returns 0. */
int domi_nats_refuse(domus_stack *stack, domi_nats_client *client, int error);

/* Check whether the server accepts a message of this kind and size. Returns 0 or a negative
 * errno. */
int domi_nats_fits(const domi_nats_client *client, const domus_nats_publish *publish);

/* Send a message that was checked. Returns 0 or a negative errno. */
int domi_nats_send(domus_stack *stack, domi_nats_client *client, const domus_nats_publish *publish);

/* Send a ping to the server. Returns 0 or a negative errno. */
int domi_nats_ping(domus_stack *stack, domi_nats_client *client);

/* --- servers.c -------------------------------------------------------------------------------- */

/* Read a server, the `size` bytes at `text`, and add it. Returns 0; -EINVAL; -E2BIG. */
int domi_nats_add_server(domi_nats_client *client, const char *text, size_t size, bool is_told);

/* Add the servers that INFO names. A failed server that only an earlier INFO has named is
 * removed. */
void domi_nats_take_urls(domi_nats_client *client, const domus_nats_server_info *info);

/* Returns a random number, which need not be secret. */
uint64_t domi_nats_draw(domi_nats_client *client);

/* Connect to a server that is not left out, now, or as soon as there is one. */
int domi_nats_connect(domus_stack *stack, domi_nats_client *client);

/* Leave the server out for a time, because its connection was lost or could not be made. */
void domi_nats_blame(domi_nats_client *client, uint64_t now_ns, int error);

uint32_t domi_nats_count_left_out(const domi_nats_client *client, uint64_t now_ns);

/* Handlers of the client's timers. */
extern const domus_type domi_nats_connect_type; /* an event: the client connects */
/* an event: the time of the server to accept the client is over */
extern const domus_type domi_nats_late_type;
domus_handler domi_nats_on_connect, domi_nats_on_late;

/* --- channel.c -------------------------------------------------------------------------------- */

extern const domus_behaviour domi_nats_channel_behaviour;

/* An event, once in each interval: check whether the server still answers. */
extern const domus_type domi_nats_tick_type;
domus_handler domi_nats_on_tick;

/* --- asks.c ----------------------------------------------------------------------------------- */

/* Handlers of asks in the client, which forward them to the channel or let them wait. */
domus_handler domi_nats_on_request, domi_nats_on_flush, domi_nats_on_flush_mark;
extern const domus_type domi_nats_flush_mark_type;

/* Handlers of asks in the channel, which sends and keeps them; and of an event that checks for late
 * asks. */
domus_handler domi_nats_at_request, domi_nats_at_flush, domi_nats_on_expire;
extern const domus_type domi_nats_expire_type;

/* Answer a request with the current message, which has come to the inbox. */
int domi_nats_answer(domus_stack *stack, domi_nats_client *client,
                     const domus_nats_message *message);

/* Answer the flushes whose ping was answered. */
void domi_nats_answer_flushes(domus_stack *stack, domi_nats_client *client);

/* Fail all asks that were sent, because the connection is lost. */
void domi_nats_fail_asks(domus_stack *stack, domi_nats_client *client);

/* --- waiting.c -------------------------------------------------------------------------------- */

/* Put the current message, or a kept ask, into the queue of those that wait. Return 0; -ENOBUFS;
 * -ENOMEM. */
int domi_nats_put_aside(domus_stack *stack, domi_nats_client *client,
                        const domus_nats_publish *publish);
int domi_nats_put_ask_aside(domus_stack *stack, domi_nats_client *client, domus_kept kept,
                            uint64_t deadline_ns, uint64_t bytes);

/* An event, and a notice of the channel, on which the client sends the messages that wait, as many
 * as the connection accepts, and later the rest. */
extern const domus_type domi_nats_pump_type;
/* Make the client send waiting messages soon, unless it does so already. */
void domi_nats_wake_pump(domus_stack *stack, domi_nats_client *client);
domus_handler domi_nats_on_pump;

/* An event on which asks that have waited too long fail. */
extern const domus_type domi_nats_look_type;
domus_handler domi_nats_on_look_at_waiting;

void domi_nats_drop_waiting(domi_nats_client *client);

/* --- subscriptions.c -------------------------------------------------------------------------- */

domus_handler domi_nats_on_subscribe, domi_nats_on_unsubscribe, domi_nats_on_tidy;
extern const domus_type domi_nats_tidy_type;

/* Deliver the current message to the subscriber of its subscription. Returns 0. */
int domi_nats_deliver(domus_stack *stack, domi_nats_client *client,
                      const domus_nats_message *message);

/* End the subscriptions of an actor that has ended. */
void domi_nats_forget_owner(domus_stack *stack, domi_nats_client *client, domus_address who);

/* Send the next subscription to the server of a new connection. Returns 0 when it was sent; or a
 * negative errno. */
int domi_nats_renew(domus_stack *stack, domi_nats_client *client);
static inline bool domi_nats_is_renewed(const domi_nats_client *client)
{
    return client->renewed >= client->places_used;
}

/* Tell the server that the subscription at this place has ended. */
int domi_nats_tell_end(domus_stack *stack, domi_nats_client *client, uint32_t place);

void domi_nats_drop_subscriptions(domi_nats_client *client);

/* --- report.c --------------------------------------------------------------------------------- */

void domi_nats_report(domus_stack *stack, const domi_nats_client *client,
                      domus_nats_happening happening, int error, const char *text);

/* --- look.c ----------------------------------------------------------------------------------- */

domus_handler domi_nats_on_look;

/* --- drain.c ---------------------------------------------------------------------------------- */

domus_handler domi_nats_on_drain, domi_nats_on_drain_mark, domi_nats_on_drain_step;
extern const domus_type domi_nats_drain_mark_type;
extern const domus_type domi_nats_drain_step_type;

#endif
