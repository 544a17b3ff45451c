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

/* Bytes that may be queued on a client's connection; further messages wait in the client, where
 * they survive the connection. */
#define DOMI_NATS_WINDOW (512u * 1024)

/* bytes of an inbox's subject: "_INBOX.", 22 random characters, and "." */
#define DOMI_NATS_INBOX_SIZE 30u
/* characters of the token in a request's reply subject: its slot and generation, in hexadecimal */
#define DOMI_NATS_TOKEN_SIZE 12u
#define DOMI_NATS_REPLY_SIZE (DOMI_NATS_INBOX_SIZE + DOMI_NATS_TOKEN_SIZE)
/* the number of the client's subscription to its own inbox, to which answers come */
#define DOMI_NATS_INBOX 0u

#define DOMI_NATS_NONE UINT32_MAX /* no place, slot or server */

/* ns between two checks for asks whose deadline has passed, at least */
#define DOMI_NATS_LOOK_NS UINT64_C(10000000)

typedef enum domi_nats_phase {
    DOMI_NATS_IDLE,
    DOMI_NATS_CONNECTING,
    DOMI_NATS_GREETED,
    DOMI_NATS_LOGIN,
    DOMI_NATS_READY,
} domi_nats_phase;

/* A server that the client may connect to. */
typedef struct domi_nats_server {
    char text[DOMUS_NATS_SERVER_SIZE]; /* the server's address as domus_connect() takes it */
    bool is_told;          /* the server was named by a server's INFO, and not by the options */
    uint32_t failures;     /* number of failures of this server in a row */
    uint64_t out_until_ns; /* the time until which this server is left out when one is chosen */
} domi_nats_server;

/* An ask (request or flush) that was sent to the server, kept by the channel until its answer
 * comes. */
typedef struct domi_nats_slot {
    domus_kept kept;
    uint64_t deadline_ns;
    uint64_t ping; /* for a flush, the number of its ping; 0 for a request */
    /* number of this ask among all asks that the slot has had; a part of the request's token */
    uint32_t generation;
    uint32_t next; /* the next free slot, or the slot of the next flush */
    bool is_used;
} domi_nats_slot;

/* A message that waits in the client until it can be sent: a publication, or an ask, which the
 * client keeps. */
typedef struct domi_nats_waiting {
    struct domi_nats_waiting *next;
    struct domi_nats_waiting **before; /* the pointer in the queue that points to this message */
    struct domi_nats_waiting *next_ask;
    struct domi_nats_waiting **before_ask;
    bool is_ask;
    uint64_t bytes; /* bytes by which this message counts against the limit of waiting messages */
    domus_kept kept;
    uint64_t deadline_ns;
    domus_nats_publish publish; /* the message to publish; for an ask it is empty */
} domi_nats_waiting;

typedef struct domi_nats_subscription {
    /* the subject with its zero byte, and the queue group behind it, in one block; NULL: a free
     * place */
    char *subject;
    char *queue; /* the name of the queue group, within `subject`; NULL: there is none */
    domus_address to;
    domus_watch watch;
    uint64_t tag;
    uint64_t messages_max;
    uint64_t delivered;
    /* number of messages of this subscription that were delivered on earlier connections */
    uint64_t delivered_before;
    uint32_t generation;
    /* the place of the next free entry, or of the next subscription that has ended */
    uint32_t next;
    uint32_t of_owner; /* the place of the next subscription whose subscriber has the same hash */
    /* the subscription has ended: nothing is delivered, and the client frees it soon */
    bool is_finished;
} domi_nats_subscription;

typedef struct domi_nats_client {
    /* The options of the user, with zeros replaced by defaults. Their texts are NULL, except
     * `front`; copies of them follow. */
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
    uint32_t server; /* index of the server of the current connection, or of the last one */
    uint64_t random;
    /* the subject of the inbox, with a star at its end, for which the client subscribes */
    char inbox[DOMI_NATS_INBOX_SIZE + 2];

    /* The pipeline to which a connection changes after the server's first INFO. */
    domus_nats_stage_options stage_options;
    domus_pipeline_stage stages[DOMUS_FRONT_MAX + 2];
    domus_pipeline pipeline;

    /* The state of the current connection, and of the client's attempts to connect. */
    domi_nats_phase phase;
    domus_address self;     /* address of the client's actor */
    domus_channel *channel; /* the connection's channel, from on_open to on_close; otherwise NULL */
    domus_address connection;
    uint64_t connect_ns; /* in the phase IDLE: time at which the client connects next */
    /* number of connects so far; a timer of an earlier connect is recognized by it */
    uint64_t epoch;
    /* time at which the current connect began; once the server has accepted the login, time of
     * that */
    uint64_t begun_ns;
    int error; /* error that has ended the client's last connection */
    bool was_ready;
    bool is_lame; /* the server of the connection has announced that it will stop */
    bool is_pumping;
    uint32_t max_payload;
    bool has_headers;
    bool has_jetstream;
    char nonce[128];
    char server_name[64];
    char version[32];
    uint64_t pings; /* number of pings that were sent on this connection */
    uint64_t pongs;
    uint32_t unanswered; /* number of regular pings sent since the server's last answer */
    uint64_t measured;   /* number of the ping whose round-trip time is being measured; 0: none */
    uint64_t measured_ns;

    /* bytes of requests that were forwarded to the channel, which has not handled them yet */
    uint64_t forwarded;

    /* Asks that were sent to the server, in slots. */
    domi_nats_slot *slots;
    uint32_t slots_count;
    uint32_t slots_used;
    uint32_t free_slot;
    /* the slots of flushes are a list in the order of their pings, from first_flush to
     * last_flush */
    uint32_t first_flush;
    uint32_t last_flush;
    /* time at which the slots are checked next for late asks; 0: no timer is set */
    uint64_t expire_ns;
    domus_timer expire;

    /* The queue of messages that wait until they can be sent. */
    domi_nats_waiting *first;
    domi_nats_waiting **end; /* the pointer to which the next waiting message is linked */
    domi_nats_waiting *first_ask;
    domi_nats_waiting **end_of_asks; /* the pointer to which the next waiting ask is linked */
    uint32_t waiting;
    uint32_t waiting_asks;
    uint64_t waiting_bytes;
    /* time at which waiting asks are checked next for late ones; 0: no timer is set */
    uint64_t look_ns;
    domus_timer look;

    /* The client's table of subscriptions. */
    domi_nats_subscription *subscriptions;
    /* for each hash of a subscriber: the place of the first of its subscriptions */
    uint32_t *owners;
    uint32_t places; /* number of places in `subscriptions` and in `owners` */
    uint32_t places_used;
    uint32_t subscriptions_count;
    uint32_t free_place;
    uint32_t finished; /* place of the first ended subscription that the client has to free */
    /* subscriptions at places below this were sent to the server of this connection */
    uint32_t renewed;

    /* The drain of the client (drain.c). */
    bool drains_soon; /* the client has sent itself the notice that begins the drain */
    bool draining;
    bool drain_is_asked;
    domus_kept drain;
    uint64_t drain_until_ns;
    uint32_t drain_place; /* the server was told to end the subscriptions at places below this */
    /* number of the ping behind the last unsubscribe; 0: this ping was not sent */
    uint64_t drain_ping;
    /* value of `epoch` when `drain_ping` was sent, which tells its connection */
    uint64_t drain_epoch;

    domus_nats_status counted;
} domi_nats_client;

/* --- client.c --------------------------------------------------------------------------------- */

extern const domus_behaviour domi_nats_client_behaviour;

/* --- send.c ----------------------------------------------------------------------------------- */

/* Returns whether the client has a connection whose server has accepted its login. */
static inline bool domi_nats_is_logged_in(const domi_nats_client *client)
{
    return client->phase == DOMI_NATS_READY && client->channel != NULL;
}

/* Returns whether the connection accepts more bytes now. Requests that were forwarded to the
 * channel count as queued, too. */
static inline bool domi_nats_has_send_window_room(const domi_nats_client *client)
{
    return domus_channel_queued(client->channel) + client->forwarded < DOMI_NATS_WINDOW;
}

/* Returns whether the client may send a message now; that is not so while earlier messages wait. */
bool domi_nats_may_send_without_queue(const domi_nats_client *client);

/* Fail the current ask with `error`, or count the current notice as refused. Returns 0. */
int domi_nats_count_and_fail_current_ask(domus_stack *stack, domi_nats_client *client, int error);

/* Check whether the server of the connection accepts this message: its size, and headers if it has
 * some. Returns 0 or a negative errno. */
int domi_nats_check_against_server_limits(const domi_nats_client *client,
                                          const domus_nats_publish *publish);

/* Send a message that was checked to the server. Returns 0 or a negative errno. */
int domi_nats_send_publish(domus_stack *stack, domi_nats_client *client,
                           const domus_nats_publish *publish);

/* Send a ping to the server. Returns 0 or a negative errno. */
int domi_nats_send_ping(domus_stack *stack, domi_nats_client *client);

/* --- servers.c -------------------------------------------------------------------------------- */

/* Read the address of a server, the `size` bytes at `text`, and add the server to the client's
 * table. Returns 0; -EINVAL; -E2BIG. */
int domi_nats_add_server(domi_nats_client *client, const char *text, size_t size, bool is_told);

/* Add the servers that INFO names to the client's table. A failed server that only an earlier INFO
 * has named is removed. */
void domi_nats_add_servers_of_info(domi_nats_client *client, const domus_nats_server_info *info);

/* Returns a random number of the client, for uses that need no secret. */
uint64_t domi_nats_next_random_number(domi_nats_client *client);

/* Connect the client to a server that is not left out, now, or as soon as there is one. */
int domi_nats_connect_to_some_server(domus_stack *stack, domi_nats_client *client);

/* Leave the current server out of the choice for a time, because its connection was lost or could
 * not be made. */
void domi_nats_leave_failed_server_out(domi_nats_client *client, uint64_t now_ns, int error);

uint32_t domi_nats_count_servers_left_out(const domi_nats_client *client, uint64_t now_ns);

/* Timers of the client, and their handlers. */
extern const domus_type domi_nats_connect_type; /* the event on which the client connects */
/* the event that the server's time to accept the login is over */
extern const domus_type domi_nats_late_type;
domus_handler domi_nats_connect_at_timer_if_idle, domi_nats_reset_channel_of_late_login;

/* --- channel.c -------------------------------------------------------------------------------- */

extern const domus_behaviour domi_nats_channel_behaviour;

/* The event, once in each ping interval, on which the channel checks whether the server still
 * answers. */
extern const domus_type domi_nats_tick_type;
domus_handler domi_nats_ping_or_reconnect_at_tick;

/* --- asks.c ----------------------------------------------------------------------------------- */

/* Handlers of requests and flushes in the client's actor, which forwards them to the channel or
 * lets them wait. */
domus_handler domi_nats_forward_or_queue_request, domi_nats_keep_flush_and_send_mark,
    domi_nats_forward_flush_behind_its_mark;
extern const domus_type domi_nats_flush_mark_type;

/* Handlers of requests and flushes in the channel, which sends and keeps them, and of the event on
 * which it checks for late ones. */
domus_handler domi_nats_send_request_in_channel, domi_nats_send_ping_of_flush_in_channel,
    domi_nats_fail_late_asks_at_timer;
extern const domus_type domi_nats_expire_type;

/* Answer the request to which the current message, which has come to the client's inbox,
 * belongs. */
int domi_nats_answer_request_of_message(domus_stack *stack, domi_nats_client *client,
                                        const domus_nats_message *message);

/* Answer the flushes whose ping the server has answered. */
void domi_nats_answer_flushes(domus_stack *stack, domi_nats_client *client);

/* Fail all requests and flushes that were sent to the server, because the connection is lost. */
void domi_nats_fail_all_asks_in_slots(domus_stack *stack, domi_nats_client *client);

/* --- waiting.c -------------------------------------------------------------------------------- */

/* Put the current message, or a kept ask, into the queue of messages that wait until they can be
 * sent. Return 0; -ENOBUFS; -ENOMEM. */
int domi_nats_queue_publish_to_wait(domus_stack *stack, domi_nats_client *client,
                                    const domus_nats_publish *publish);
int domi_nats_queue_ask_to_wait(domus_stack *stack, domi_nats_client *client, domus_kept kept,
                                uint64_t deadline_ns, uint64_t bytes);

/* An event, and a notice from the channel, on which the client sends as many waiting messages as
 * the connection accepts now, and the rest later. */
extern const domus_type domi_nats_pump_type;
/* Let the client's actor send waiting messages soon, unless it is doing so already. */
void domi_nats_arm_pump_of_waiting_messages(domus_stack *stack, domi_nats_client *client);
domus_handler domi_nats_send_waiting_of_logged_in;

/* The event on which waiting asks fail whose deadline has passed. */
extern const domus_type domi_nats_look_type;
domus_handler domi_nats_fail_late_waiting_asks;

void domi_nats_free_waiting_messages(domi_nats_client *client);

/* --- subscriptions.c -------------------------------------------------------------------------- */

domus_handler domi_nats_add_subscription_and_reply, domi_nats_limit_or_end_subscription,
    domi_nats_free_ended_subscriptions;
extern const domus_type domi_nats_tidy_type;

/* Deliver the current message to the actor that has subscribed to it. Returns 0. */
int domi_nats_deliver_to_subscriber(domus_stack *stack, domi_nats_client *client,
                                    const domus_nats_message *message);

/* End all subscriptions of a subscriber that has ended. */
void domi_nats_end_subscriptions_of_actor(domus_stack *stack, domi_nats_client *client,
                                          domus_address who);

/* Send the next subscription to the server of a new connection, which knows none. Returns 0 or a
 * negative errno. */
int domi_nats_renew_next_subscription(domus_stack *stack, domi_nats_client *client);
static inline bool domi_nats_are_subscriptions_renewed(const domi_nats_client *client)
{
    return client->renewed >= client->places_used;
}

/* Tell the server that the client's subscription at this place has ended. */
int domi_nats_send_unsub_of_subscription(domus_stack *stack, domi_nats_client *client,
                                         uint32_t place);

void domi_nats_free_all_subscriptions(domi_nats_client *client);

/* --- report.c --------------------------------------------------------------------------------- */

void domi_nats_send_event_to_user(domus_stack *stack, const domi_nats_client *client,
                                  domus_nats_happening happening, int error, const char *text);

/* --- look.c ----------------------------------------------------------------------------------- */

domus_handler domi_nats_reply_with_status_of_client;

/* --- drain.c ---------------------------------------------------------------------------------- */

domus_handler domi_nats_keep_drain_ask_and_send_mark, domi_nats_begin_drain_behind_its_mark,
    domi_nats_end_drain_if_done_or_late;
extern const domus_type domi_nats_drain_mark_type;
extern const domus_type domi_nats_drain_step_type;

#endif
