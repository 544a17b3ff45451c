/* The client: an actor, and the channel of its connection, which shares its state.
 *
 * The client takes the verbs, has the subscriptions, keeps what waits, and connects. The channel
 * has the asks that are with the server: it keeps them, because it hears the answers, and an ask is
 * answered by the actor that keeps it. Both run on one thread, one at a time.
 *
 *     IDLE -> CONNECTING -> GREETED -> LOGIN -> READY
 *      ^        |             |          |        |
 *      +--------+-------------+----------+--------+  the connection has failed, or is gone
 *
 * CONNECTING: a connect is under way, or the server has said nothing yet. GREETED: INFO was read,
 * and the pipeline changes. LOGIN: CONNECT and a ping were sent. READY: the ping was answered. */
#ifndef DOMI_PROTOCOLS_NATS_STATE_H
#define DOMI_PROTOCOLS_NATS_STATE_H

#include "protocols/nats/nats.h"

#include <domus/conversation.h>
#include <domus/supervise.h>
#include <domus/timer.h>

/* Bytes that are queued on a connection before further messages wait in the client, where they
 * outlive the connection. */
#define DOMI_NATS_WINDOW (512u * 1024)

#define DOMI_NATS_INBOX_SIZE 30u /* "_INBOX.", 22 characters of chance, "." */
#define DOMI_NATS_TOKEN_SIZE 12u /* of a request: its slot and generation in hex */
#define DOMI_NATS_REPLY_SIZE (DOMI_NATS_INBOX_SIZE + DOMI_NATS_TOKEN_SIZE)
#define DOMI_NATS_INBOX      0u /* the number of the subscription to the inbox */

#define DOMI_NATS_NONE UINT32_MAX /* no place */

#define DOMI_NATS_LOOK_NS UINT64_C(10000000) /* between two looks for asks that are over */

typedef enum domi_nats_phase {
    DOMI_NATS_IDLE,
    DOMI_NATS_CONNECTING,
    DOMI_NATS_GREETED,
    DOMI_NATS_LOGIN,
    DOMI_NATS_READY,
} domi_nats_phase;

/* A server that is known. */
typedef struct domi_nats_server {
    char text[DOMUS_NATS_SERVER_SIZE]; /* as domus_connect() takes it */
    bool is_told;                      /* by INFO, and not by the options */
    uint32_t failures;                 /* in a row */
    uint64_t out_until_ns;             /* the time until which the server is left out */
} domi_nats_server;

/* An ask that is with the server, kept by the channel. */
typedef struct domi_nats_slot {
    domus_kept kept;
    uint64_t deadline_ns;
    uint64_t ping;       /* of a flush: the number of the ping; of a request: 0 */
    uint32_t generation; /* the number in the ask's token; counts the asks of this slot */
    uint32_t next;       /* the next free slot, or the next flush */
    bool is_used;
} domi_nats_slot;

/* A message that waits: one that is published, or an ask, which is kept by the client. */
typedef struct domi_nats_waiting {
    struct domi_nats_waiting *next;
    struct domi_nats_waiting **before; /* what points to it */
    struct domi_nats_waiting *next_ask;
    struct domi_nats_waiting **before_ask;
    bool is_ask;
    uint64_t bytes; /* bytes that count against the limit */
    domus_kept kept;
    uint64_t deadline_ns;
    domus_nats_publish publish; /* of an ask: not there */
} domi_nats_waiting;

typedef struct domi_nats_subscription {
    char *subject; /* and the queue group behind its zero, in one block; NULL: a free place */
    char *queue;   /* NULL: none */
    domus_address to;
    domus_watch watch;
    uint64_t tag;
    uint64_t messages_max;
    uint64_t delivered;
    uint64_t delivered_before; /* on connections before this one */
    uint32_t generation;
    uint32_t next;     /* the next free place, or the next finished one */
    uint32_t of_owner; /* the next one whose subscriber has the same hash */
    bool is_finished;  /* no message is delivered any more; the client frees it soon */
} domi_nats_subscription;

typedef struct domi_nats_client {
    /* Settings, with the defaults filled in. Its texts are NULL, except `front`. */
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
    uint32_t server; /* of the connection, or of the last one */
    uint64_t random;
    char inbox[DOMI_NATS_INBOX_SIZE + 2]; /* with a star at its end, which is no part of a reply */

    /* The pipeline behind INFO. */
    domus_nats_stage_options stage_options;
    domus_pipeline_stage stages[DOMUS_FRONT_MAX + 2];
    domus_pipeline pipeline;

    /* The connection. */
    domi_nats_phase phase;
    domus_address self;     /* of the client */
    domus_channel *channel; /* from on_open to on_close */
    domus_address connection;
    uint64_t connect_ns; /* in IDLE: when the next connect is due */
    uint64_t epoch;      /* counts connects, so that old timers are known */
    uint64_t begun_ns;   /* when the connect was begun, and then when the server has accepted */
    int error;           /* why the last connection has ended */
    bool was_ready;
    bool is_lame; /* the server of the connection has said that it is about to stop */
    bool is_pumping;
    uint32_t max_payload;
    bool has_headers;
    bool has_jetstream;
    char nonce[128];
    char server_name[64];
    char version[32];
    uint64_t pings; /* sent on this connection */
    uint64_t pongs;
    uint32_t unanswered; /* pings of the interval since the last answer */
    uint64_t measured;   /* the ping by which the round trip is measured; 0: none */
    uint64_t measured_ns;

    uint64_t forwarded; /* bytes of requests that the channel has not handled yet */

    /* Asks with the server. */
    domi_nats_slot *slots;
    uint32_t slots_count;
    uint32_t slots_used;
    uint32_t free_slot;
    uint32_t first_flush; /* in the order of their pings */
    uint32_t last_flush;
    uint64_t expire_ns; /* when the slots are looked at next; 0: not */
    domus_timer expire;

    /* Messages that wait. */
    domi_nats_waiting *first;
    domi_nats_waiting **end; /* the link at which the next entry is put */
    domi_nats_waiting *first_ask;
    domi_nats_waiting **end_of_asks; /* the link at which the next entry is put */
    uint32_t waiting;
    uint32_t waiting_asks;
    uint64_t waiting_bytes;
    uint64_t look_ns; /* when the asks that wait are looked at next; 0: not */
    domus_timer look;

    /* Subscriptions. */
    domi_nats_subscription *subscriptions;
    uint32_t *owners; /* the first subscription of each hash */
    uint32_t places;  /* of both */
    uint32_t places_used;
    uint32_t subscriptions_count;
    uint32_t free_place;
    uint32_t finished; /* the first one that the client has to free */
    uint32_t renewed;  /* places below this were told to the server */

    /* The drain. */
    bool drains_soon; /* the mark of the drain is under way, or has come */
    bool draining;
    bool drain_is_asked;
    domus_kept drain;
    uint64_t drain_until_ns;
    uint32_t drain_place; /* places below this were unsubscribed */
    uint64_t drain_ping;  /* behind the last one; 0: not sent */
    uint64_t drain_epoch; /* the connection of that ping */

    domus_nats_status counted;
} domi_nats_client;

/* --- client.c --------------------------------------------------------------------------------- */

extern const domus_behaviour domi_nats_client_behaviour;

/* --- send.c ----------------------------------------------------------------------------------- */

/* Whether the server of the connection has accepted this client. */
static inline bool domi_nats_is_ready(const domi_nats_client *client)
{
    return client->phase == DOMI_NATS_READY && client->channel != NULL;
}

/* Whether the connection takes more now. Requests on their way to the channel count, too. */
static inline bool domi_nats_has_room(const domi_nats_client *client)
{
    return domus_channel_queued(client->channel) + client->forwarded < DOMI_NATS_WINDOW;
}

/* Whether a message may be sent now: all before it were. */
bool domi_nats_may_send(const domi_nats_client *client);

/* Let the ask at hand fail, or count the notice at hand as refused. Returns 0. */
int domi_nats_refuse(domus_stack *stack, domi_nats_client *client, int error);

/* Whether the server of the connection takes a message. Returns 0 or an error. */
int domi_nats_fits(const domi_nats_client *client, const domus_nats_publish *publish);

/* Send a message whose form is right. Returns 0 or an error. */
int domi_nats_send(domus_stack *stack, domi_nats_client *client, const domus_nats_publish *publish);

/* Send a ping. Returns 0, or an error. */
int domi_nats_ping(domus_stack *stack, domi_nats_client *client);

/* --- servers.c -------------------------------------------------------------------------------- */

/* Read a server, the `size` bytes at `text`, and add it. Returns 0; -EINVAL; -E2BIG. */
int domi_nats_add_server(domi_nats_client *client, const char *text, size_t size, bool is_told);

/* Add the servers that INFO names. One that has failed, and that only an earlier INFO has named, is
 * forgotten. */
void domi_nats_take_urls(domi_nats_client *client, const domus_nats_server_info *info);

/* A number of chance that need not be secret. */
uint64_t domi_nats_draw(domi_nats_client *client);

/* Connect now to a server that is not left out, or when one is not any more. */
int domi_nats_connect(domus_stack *stack, domi_nats_client *client);

/* The connection is gone, or could not be had: its server is left out for a time. */
void domi_nats_blame(domi_nats_client *client, uint64_t now_ns, int error);

uint32_t domi_nats_count_left_out(const domi_nats_client *client, uint64_t now_ns);

/* Handlers of the client. */
extern const domus_type domi_nats_connect_type; /* an event: connect */
extern const domus_type domi_nats_late_type;    /* an event: the server has had its time */
domus_handler domi_nats_on_connect, domi_nats_on_late;

/* --- channel.c -------------------------------------------------------------------------------- */

extern const domus_behaviour domi_nats_channel_behaviour;

/* Look whether the server still answers, once in each interval. */
extern const domus_type domi_nats_tick_type;
domus_handler domi_nats_on_tick;

/* --- asks.c ----------------------------------------------------------------------------------- */

/* An ask at the client: pass it on to the channel, or let it wait. */
domus_handler domi_nats_on_request, domi_nats_on_flush, domi_nats_on_flush_mark;
extern const domus_type domi_nats_flush_mark_type;

/* Asks at the channel, which sends and keeps them. Also an event, which looks for asks that are
 * late. */
domus_handler domi_nats_at_request, domi_nats_at_flush, domi_nats_on_expire;
extern const domus_type domi_nats_expire_type;

/* The message at hand, which has come for the inbox, answers a request. */
int domi_nats_answer(domus_stack *stack, domi_nats_client *client,
                     const domus_nats_message *message);

/* Flushes whose ping is answered are done. */
void domi_nats_answer_flushes(domus_stack *stack, domi_nats_client *client);

/* The connection is gone: what was sent fails. */
void domi_nats_fail_asks(domus_stack *stack, domi_nats_client *client);

/* --- waiting.c -------------------------------------------------------------------------------- */

/* Let the message at hand wait, or an ask that was kept. Return 0; -ENOBUFS; -ENOMEM. */
int domi_nats_put_aside(domus_stack *stack, domi_nats_client *client,
                        const domus_nats_publish *publish);
int domi_nats_put_ask_aside(domus_stack *stack, domi_nats_client *client, domus_kept kept,
                            uint64_t deadline_ns, uint64_t bytes);

/* An event, and a notice of the channel: send what waits, as far as the connection takes it, and go
 * on when it takes more. */
extern const domus_type domi_nats_pump_type;
/* Let the pump run soon, unless it does or will. */
void domi_nats_wake_pump(domus_stack *stack, domi_nats_client *client);
domus_handler domi_nats_on_pump;

/* An event: asks that have waited too long fail. */
extern const domus_type domi_nats_look_type;
domus_handler domi_nats_on_look_at_waiting;

void domi_nats_drop_waiting(domi_nats_client *client);

/* --- subscriptions.c -------------------------------------------------------------------------- */

domus_handler domi_nats_on_subscribe, domi_nats_on_unsubscribe, domi_nats_on_tidy;
extern const domus_type domi_nats_tidy_type;

/* The message at hand is for a subscription. Returns 0. */
int domi_nats_deliver(domus_stack *stack, domi_nats_client *client,
                      const domus_nats_message *message);

/* An actor has ended: so have its subscriptions. */
void domi_nats_forget_owner(domus_stack *stack, domi_nats_client *client, domus_address who);

/* Tell a new connection of the next subscription. Returns 0 when it was told; or an error. */
int domi_nats_renew(domus_stack *stack, domi_nats_client *client);
static inline bool domi_nats_is_renewed(const domi_nats_client *client)
{
    return client->renewed >= client->places_used;
}

/* Tell the server that the subscription at this place is no longer wanted. */
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
