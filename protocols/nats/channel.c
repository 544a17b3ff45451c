/* The channel of a connection: it agrees with the server on how to talk, and handles the server's
 * messages.
 *
 * The server speaks first. Until then the pipeline accepts only INFO; after it, the pipeline is
 * changed to one with the limits of the options, and with TLS before it if the options have a
 * front. No byte may follow INFO before that change, because somebody who cannot speak TLS could
 * have added it. */
#include "protocols/nats/state.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

const domus_type domi_nats_tick_type = {.name = "nats tick"};

static const domus_nats_stage_options greeting = {
    .line_max = 1024, .payload_max = 1024, .headers_max = 1024};
static const domus_pipeline_stage greeting_stages[] = {{&domus_nats_stage, &greeting},
                                                       {NULL, NULL}};
/* Bytes of a line of the protocol, at most. A server accepts a line of 4 KiB from a publisher by
 * default, and adds the number of the subscription. */
#define LINE_MAX 32768u

static const domus_pipeline greeting_pipeline = {.stages = greeting_stages};

/* Reset the client's connection with an error, if there is a connection. Returns 0. */
static int reset_connection_with_error(domus_stack *stack, domi_nats_client *client, int error)
{
    if (client->channel != NULL)
        (void)domus_channel_reset(stack, client->channel, error);
    return 0;
}

/* --- pings to the server ---------------------------------------------------------------------- */

int domi_nats_ping_or_reconnect_at_tick(domus_stack *stack, void *self, const void *payload)
{
    domi_nats_client *client = self;

    (void)payload;
    if (!domi_nats_is_logged_in(client))
        return client->phase == DOMI_NATS_IDLE && domus_now_ns(stack) >= client->connect_ns
                   ? domi_nats_connect_to_some_server(stack, client)
                   : 0;
    if (client->first != NULL || !domi_nats_are_subscriptions_renewed(client))
        domi_nats_arm_pump_of_waiting_messages(stack, client);
    if (client->unanswered >= client->options.pings_missed_max) {
        client->counted.stale++;
        return reset_connection_with_error(stack, client, -ETIMEDOUT);
    }
    if (domi_nats_send_ping(stack, client) == 0)
        client->unanswered++;
    return 0;
}

/* --- the greeting of the server --------------------------------------------------------------- */

/* Store in the client what the server's INFO says of the server. */
static void store_info_of_server(domus_stack *stack, domi_nats_client *client,
                                 const domus_nats_server_info *info)
{
    client->max_payload = info->max_payload;
    client->has_headers = info->headers;
    client->has_jetstream = info->jetstream;
    memcpy(client->server_name, info->server_name, sizeof client->server_name);
    memcpy(client->version, info->version, sizeof client->version);
    memcpy(client->nonce, info->nonce, sizeof client->nonce);
    if (!client->options.ignores_others)
        domi_nats_add_servers_of_info(client, info);
    if (info->lame_duck) {
        domi_nats_server *server = &client->servers[client->server];
        server->out_until_ns = domus_now_ns(stack) + client->options.backoff_max_ns;
        client->is_lame = true;
        domi_nats_send_event_to_user(stack, client, DOMUS_NATS_LAME_DUCK, 0, server->text);
    }
}

/* Change the channel to the pipeline of the client's options, with TLS in front if these require
 * it. */
static int change_pipeline_to_tls_and_nats(domus_stack *stack, domi_nats_client *client)
{
    const domus_pipeline_stage *front = client->options.front;
    bool is_upgrade = front != NULL && !client->options.tls_first;
    uint32_t count = 0;

    client->stage_options = (domus_nats_stage_options){.line_max = LINE_MAX,
                                                       .payload_max = client->options.payload_max,
                                                       .headers_max = client->options.payload_max};
    for (; is_upgrade && front->stage != NULL; front++)
        client->stages[count++] = *front;
    client->stages[count++] = (domus_pipeline_stage){&domus_nats_stage, &client->stage_options};
    client->stages[count] = (domus_pipeline_stage){NULL, NULL};
    client->pipeline = (domus_pipeline){.stages = client->stages};
    return domus_channel_set_pipeline(stack, client->channel, &client->pipeline,
                                      is_upgrade ? DOMUS_PIPELINE_CLEAN : 0);
}

/* Handle the first INFO of the server: check its demands, change the pipeline, and begin the
 * login. */
static int check_first_info_and_begin_login(domus_stack *stack, domi_nats_client *client,
                                            const domus_nats_server_info *info)
{
    bool has_front = client->options.front != NULL;

    if (has_front && !client->options.tls_first && !info->tls_required && !info->tls_available)
        /* the server offers no TLS, or an attacker in between has removed that offer from INFO */
        return -EACCES;
    if (!has_front && info->tls_required)
        return -EPROTONOSUPPORT;
    if (client->seed[0] != '\0' && info->nonce[0] == '\0')
        return -EACCES;
    client->phase = DOMI_NATS_GREETED;
    int error = change_pipeline_to_tls_and_nats(stack, client);
    return error != 0 ? error : domus_later(stack);
}

static int store_info_of_server_and_log_in_once(domus_stack *stack, void *self, const void *payload)
{
    domi_nats_client *client = self;
    domus_nats_server_info info;
    int error = domus_nats_info_read(payload, &info);

    if (error != 0)
        return reset_connection_with_error(stack, client, error);
    store_info_of_server(stack, client, &info);
    if (client->phase == DOMI_NATS_CONNECTING)
        error = check_first_info_and_begin_login(stack, client, &info);
    return error != 0 ? reset_connection_with_error(stack, client, error) : 0;
}

static int send_connect_and_ping(domus_stack *stack, domi_nats_client *client)
{
    char key[DOMUS_NATS_NKEY_SIZE], signature[DOMUS_NATS_SIGNATURE_SIZE];
    domus_nats_connect connect = {
        .name = client->name[0] != '\0' ? client->name : NULL,
        .user = client->has_user ? client->user : NULL,
        .password = client->has_user ? client->password : NULL,
        .token = client->token[0] != '\0' ? client->token : NULL,
        .tls = client->options.front != NULL,
        .no_echo = client->options.no_echo,
        .headers = client->has_headers,
    };

    if (client->seed[0] != '\0') {
        int error =
            domus_nats_sign(client->seed, client->nonce, strlen(client->nonce), key, signature);
        if (error != 0)
            return error;
        connect.signature = signature;
        if (client->jwt[0] != '\0')
            connect.jwt = client->jwt;
        else
            connect.nkey = key;
    }
    return domus_channel_send(stack, client->channel, &domus_nats_connect_type, &connect);
}

/* Send CONNECT and a ping to log in, once the pipeline was changed. */
static int send_connect_after_pipeline_change(domus_stack *stack, void *self, const void *payload)
{
    domi_nats_client *client = self;

    (void)payload;
    if (client->phase != DOMI_NATS_GREETED || client->channel == NULL)
        return 0;
    int error = send_connect_and_ping(stack, client);
    if (error == -EBUSY)
        return domus_later(stack);
    if (error == 0)
        error = domi_nats_send_ping(stack, client);
    if (error != 0)
        return reset_connection_with_error(stack, client, error);
    client->phase = DOMI_NATS_LOGIN;
    return 0;
}

/* --- the accepted connection ------------------------------------------------------------------ */

/* Take the connection into use, because the server has accepted the login. */
static void begin_to_use_accepted_connection(domus_stack *stack, domi_nats_client *client)
{
    const domus_nats_sub inbox = {.number = DOMI_NATS_INBOX, .subject = client->inbox};

    int error = domus_channel_send(stack, client->channel, &domus_nats_sub_type, &inbox);
    if (error != 0) {
        (void)reset_connection_with_error(stack, client, error);
        return;
    }
    client->phase = DOMI_NATS_READY;
    client->was_ready = true;
    client->begun_ns = domus_now_ns(stack);
    client->counted.connects++;
    client->counted.reconnects += client->counted.connects > 1;
    client->renewed = client->draining ? client->places_used : 0;
    /* while the client drains, a new connection has no subscriptions, so none of them must be
     * ended */
    client->drain_place = client->renewed;
    domi_nats_send_event_to_user(stack, client, DOMUS_NATS_CONNECTED, 0,
                                 client->servers[client->server].text);
    /* Waiting asks are kept by the client's actor, so only that actor can send them. If this notice
     * to it is refused, the next tick of the channel sends them. */
    client->is_pumping = domus_notice(stack, client->self, &domi_nats_pump_type, NULL) == 0;
}

static int count_pong_and_answer_its_flushes(domus_stack *stack, void *self, const void *payload)
{
    domi_nats_client *client = self;

    (void)payload;
    client->unanswered = 0;
    /* a PONG without a ping is the server's error, and is ignored */
    if (client->pongs == client->pings)
        return 0;
    client->pongs++;
    if (client->measured != 0 && client->pongs >= client->measured) {
        client->counted.rtt_ns = domus_now_ns(stack) - client->measured_ns;
        client->counted.rtt_ns += client->counted.rtt_ns == 0;
        client->measured = 0;
    }
    if (client->phase == DOMI_NATS_LOGIN)
        begin_to_use_accepted_connection(stack, client);
    domi_nats_answer_flushes(stack, client);
    return 0;
}

/* Returns whether an error text of the server says that the server does not know the user, or not
 * any more. A subject in the text, which stands in double quotes, is ignored, because it may
 * contain any words. */
static bool is_text_of_login_error(const char *text)
{
    size_t size = strcspn(text, "\"");
    char words[DOMUS_NATS_TEXT_SIZE];

    memcpy(words, text, size);
    words[size] = '\0';
    return strcasestr(words, "authorization") != NULL ||
           strcasestr(words, "authentication") != NULL;
}

static int report_error_and_reset_if_login_failed(domus_stack *stack, void *self,
                                                  const void *payload)
{
    domi_nats_client *client = self;
    const domus_nats_error *error = payload;
    int reason = is_text_of_login_error(error->text) ? -EACCES : 0;

    client->counted.errors++;
    domi_nats_send_event_to_user(stack, client, DOMUS_NATS_ERROR, reason, error->text);
    if (client->phase != DOMI_NATS_READY)
        return reset_connection_with_error(stack, client, reason != 0 ? reason : -ECONNREFUSED);
    if (reason != 0)
        return reset_connection_with_error(stack, client, reason);
    return 0;
}

static int deliver_message_to_asker_or_subscriber(domus_stack *stack, void *self,
                                                  const void *payload)
{
    domi_nats_client *client = self;
    const domus_nats_message *message = payload;

    client->counted.in_messages++;
    client->counted.in_bytes += (uint64_t)message->headers_size + message->payload_size;
    return message->subscription == DOMI_NATS_INBOX
               ? domi_nats_answer_request_of_message(stack, client, message)
               : domi_nats_deliver_to_subscriber(stack, client, message);
}

/* --- life ------------------------------------------------------------------------------------- */

static int set_channel_of_client_at_open(domus_stack *stack, void *self, const void *payload)
{
    domi_nats_client *client = self;
    const domus_channel_event *event = payload;

    (void)stack;
    if (client->channel != NULL || client->phase != DOMI_NATS_CONNECTING)
        return -EALREADY; /* this cannot happen, because a client has one connection at a time */
    client->channel = event->channel;
    client->pings = client->pongs = client->measured = 0;
    client->unanswered = 0;
    client->is_pumping = false;
    client->forwarded = 0;
    client->expire_ns = 0;
    return 0;
}

/* Handle the end of the server's bytes: the server has closed the connection, so nothing that is
 * sent now would be read. */
static int reset_connection_at_end_of_server(domus_stack *stack, void *self, const void *payload)
{
    (void)payload;
    return reset_connection_with_error(stack, self, -ECONNRESET);
}

static int fail_asks_of_closed_channel(domus_stack *stack, void *self, const void *payload)
{
    domi_nats_client *client = self;
    const domus_channel_event *event = payload;

    if (event->channel != client->channel)
        return 0;
    const domi_nats_state *state =
        domus_channel_stage_state(stack, event->channel, &domus_nats_stage);
    client->error = event->error != 0                     ? event->error
                    : state != NULL && state->failed != 0 ? state->failed
                                                          : -ECONNRESET;
    client->counted.lost_bytes += domus_channel_queued(event->channel);
    client->channel = NULL;
    domi_nats_fail_all_asks_in_slots(stack, client);
    return 0;
}

static const domus_on rows[] = {
    {&domus_nats_request_type, domi_nats_send_request_in_channel, 0},
    {&domus_nats_flush_type, domi_nats_send_ping_of_flush_in_channel, 0},
    {&domi_nats_expire_type, domi_nats_fail_late_asks_at_timer, 0},
    {&domus_later_type, send_connect_after_pipeline_change, 0},
    {NULL, NULL, 0},
};

static const domus_on_peer peer_rows[] = {
    {.type = &domus_nats_message_type, .handle = deliver_message_to_asker_or_subscriber},
    {.type = &domus_nats_pong_type, .handle = count_pong_and_answer_its_flushes},
    {.type = &domus_nats_info_type, .handle = store_info_of_server_and_log_in_once},
    {.type = &domus_nats_error_type, .handle = report_error_and_reset_if_login_failed},
    {.type = NULL},
};

const domus_behaviour domi_nats_channel_behaviour = {
    .name = "nats connection",
    .kind = DOMUS_CHANNELS,
    .shares_state = true,
    .pipeline = &greeting_pipeline,
    .on = rows,
    .on_peer = peer_rows,
    .on_open = {set_channel_of_client_at_open, 0},
    .on_end = {reset_connection_at_end_of_server, 0},
    .on_close = {fail_asks_of_closed_channel, 0},
};
