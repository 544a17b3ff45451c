/* The servers that a client knows, and which one it connects to next: any that is not left out. A
 * server that has failed is left out for a time that doubles with each failure in a row; the time
 * is a random part between a half and the whole, so that many clients do not come back at the same
 * moment. A server that does not know the user is left out for the longest time at once. */
#include "protocols/nats/state.h"

#include <domus/connect.h>
#include <domus/spawn.h>

#include <errno.h>
#include <string.h>

const domus_type domi_nats_connect_type = {.name = "nats connects"};
const domus_type domi_nats_late_type = {.name = "nats is late", .size = sizeof(uint64_t)};

/* --- the list --------------------------------------------------------------------------------- */

static bool text_begins_with(const char *text, size_t size, const char *begin)
{
    return size >= strlen(begin) && memcmp(text, begin, strlen(begin)) == 0;
}

/* Find a place for one more server in the client's table: a new place, or that of a failed server
 * which only INFO has named. */
static domi_nats_server *find_place_for_server(domi_nats_client *client)
{
    if (client->servers_count < DOMUS_NATS_SERVERS_MAX)
        return &client->servers[client->servers_count++];
    for (uint32_t i = 0; i < client->servers_count; i++) {
        if (client->servers[i].is_told && client->servers[i].failures != 0 && i != client->server)
            return &client->servers[i];
    }
    return NULL;
}

/* Remove the scheme, such as "nats://", from a server's text. Returns 0; -EINVAL for the scheme of
 * TLS if the client has no front, because the connection would not be encrypted. */
static int remove_scheme_of_address(const domi_nats_client *client, const char **text, size_t *size)
{
    size_t length = 0;

    if (text_begins_with(*text, *size, "nats://"))
        length = strlen("nats://");
    else if (text_begins_with(*text, *size, "tls://"))
        length = strlen("tls://");
    if (length == strlen("tls://") && client->options.front == NULL)
        return -EINVAL;
    *text += length;
    *size -= length;
    return 0;
}

/* Returns whether an address has a port. In an IPv6 address the port stands behind the bracket. */
static bool has_address_port(const char *text, size_t size)
{
    const char *bracket = memrchr(text, ']', size);
    size_t before = bracket != NULL ? (size_t)(bracket - text) : 0;

    return memchr(text + before, ':', size - before) != NULL;
}

/* Returns whether a text is a valid port number. */
static bool is_port_number(const char *text)
{
    unsigned port = 0;

    for (size_t i = 0; text[i] != '\0'; i++) {
        if (i == 5 || text[i] < '0' || text[i] > '9')
            return false;
        port = port * 10 + (unsigned)(text[i] - '0');
    }
    return port >= 1 && port <= 65535;
}

/* Returns whether an address with a port is "HOST:PORT", "[v6]:PORT", or "unix:PATH". A server
 * named by INFO may not be the latter, because the sender of INFO must not choose a socket of this
 * machine. */
static bool is_valid_server_address(const char *text, bool is_told)
{
    const char *colon = strrchr(text, ':');

    if (text_begins_with(text, strlen(text), "unix:"))
        return text[5] != '\0' && !is_told;
    if (colon == text || !is_port_number(colon + 1))
        return false;
    return text[0] == '[' ? colon[-1] == ']' && colon > text + 2 : strchr(text, ':') == colon;
}

int domi_nats_add_server(domi_nats_client *client, const char *text, size_t size, bool is_told)
{
    domi_nats_server made = {.is_told = is_told};

    while (size != 0 && *text == ' ')
        text++, size--;
    while (size != 0 && text[size - 1] == ' ')
        size--;
    int error = remove_scheme_of_address(client, &text, &size);
    if (error != 0 || size == 0)
        return -EINVAL;
    const char *port = has_address_port(text, size) ? "" : ":4222";
    if (size + strlen(port) >= sizeof made.text)
        return -E2BIG;
    for (size_t i = 0; i < size; i++) {
        if (text[i] <= ' ' || text[i] > '~' || text[i] == '@')
            return -EINVAL;
    }
    memcpy(made.text, text, size);
    memcpy(made.text + size, port, strlen(port));
    if (!is_valid_server_address(made.text, is_told))
        return -EINVAL;
    for (uint32_t i = 0; i < client->servers_count; i++) {
        if (strcmp(client->servers[i].text, made.text) == 0)
            return 0;
    }
    domi_nats_server *server = find_place_for_server(client);
    if (server == NULL)
        return -E2BIG;
    *server = made;
    return 0;
}

/* Returns whether `server` is among the urls that INFO lists. */
static bool is_server_named_by_info(const domus_nats_server_info *info, const char *server)
{
    for (uint32_t i = 0; i < info->urls; i++) {
        if (strcmp(info->url[i], server) == 0)
            return true;
    }
    return false;
}

void domi_nats_add_servers_of_info(domi_nats_client *client, const domus_nats_server_info *info)
{
    for (uint32_t i = client->servers_count; i-- > 0 && info->urls != 0;) {
        const domi_nats_server *server = &client->servers[i];
        if (!server->is_told || server->failures == 0 || i == client->server ||
            is_server_named_by_info(info, server->text))
            continue;
        client->servers[i] = client->servers[--client->servers_count];
        if (client->server == client->servers_count)
            client->server = i;
    }
    for (uint32_t i = 0; i < info->urls; i++)
        (void)domi_nats_add_server(client, info->url[i], strlen(info->url[i]), true);
}

/* Returns the client's next random number, by the generator splitmix64. */
uint64_t domi_nats_next_random_number(domi_nats_client *client)
{
    uint64_t bits = client->random += UINT64_C(0x9e3779b97f4a7c15);

    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    return bits ^ (bits >> 31);
}

/* Leave a server out of the choice of servers for a time, because it has failed. */
static void leave_server_out_for_backoff(domi_nats_client *client, domi_nats_server *server,
                                         uint64_t now_ns, bool is_longest)
{
    uint64_t time_ns = client->options.backoff_min_ns;
    uint64_t most_ns = client->options.backoff_max_ns;

    for (uint32_t i = 0; i < server->failures && time_ns < most_ns; i++)
        time_ns *= 2;
    if (time_ns > most_ns || is_longest)
        time_ns = most_ns;
    if (server->failures < UINT32_MAX)
        server->failures++;
    server->out_until_ns =
        now_ns + time_ns / 2 + domi_nats_next_random_number(client) % (time_ns / 2 + 1);
}

void domi_nats_leave_failed_server_out(domi_nats_client *client, uint64_t now_ns, int error)
{
    domi_nats_server *server = &client->servers[client->server];
    bool has_lived =
        client->was_ready && now_ns - client->begun_ns >= client->options.backoff_max_ns;

    if (!client->was_ready)
        client->counted.failures++;
    if (!has_lived)
        leave_server_out_for_backoff(client, server, now_ns, error == -EACCES);
    else
        server->failures = 0;
    if (client->is_lame &&
        /* a server that is about to stop announces this, and closes its connections some time
         * later */
        client->servers_count > 1)
        server->out_until_ns = now_ns + client->options.backoff_max_ns;
}

uint32_t domi_nats_count_servers_left_out(const domi_nats_client *client, uint64_t now_ns)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < client->servers_count; i++)
        count += client->servers[i].out_until_ns > now_ns;
    return count;
}

/* Choose at random one of the servers that are not left out. Returns DOMI_NATS_NONE if all are left
 * out; then `ret_until_ns` gets the time at which the first one comes back. */
static uint32_t choose_random_server_not_left_out(domi_nats_client *client, uint64_t now_ns,
                                                  uint64_t *ret_until_ns)
{
    uint32_t chosen = DOMI_NATS_NONE, there = 0;

    *ret_until_ns = UINT64_MAX;
    for (uint32_t i = 0; i < client->servers_count; i++) {
        uint64_t until_ns = client->servers[i].out_until_ns;
        if (until_ns > now_ns) {
            if (until_ns < *ret_until_ns)
                *ret_until_ns = until_ns;
        } else if (domi_nats_next_random_number(client) % ++there == 0) {
            chosen = i;
        }
    }
    return chosen;
}

/* --- connecting ------------------------------------------------------------------------------- */

/* Set the timer on which the client connects after `delay_ns`. */
static void arm_timer_to_connect(domus_stack *stack, domi_nats_client *client, uint64_t delay_ns)
{
    client->phase = DOMI_NATS_IDLE;
    client->connect_ns = domus_now_ns(stack) + delay_ns;
    /* if no timer can be set, the client's next tick connects */
    (void)domus_after(stack, delay_ns, &domi_nats_connect_type, NULL, NULL);
}

/* Handle that an attempt to connect has failed before there was a connection: report it, and choose
 * the next server. */
static void report_failed_connect_and_choose_next(domus_stack *stack, domi_nats_client *client,
                                                  int error)
{
    client->was_ready = false;
    domi_nats_leave_failed_server_out(client, domus_now_ns(stack), error);
    domi_nats_send_event_to_user(stack, client, DOMUS_NATS_FAILED, error,
                                 client->servers[client->server].text);
    arm_timer_to_connect(stack, client, 0);
}

static int watch_made_connection_or_choose_next(domus_stack *stack, void *self,
                                                const domus_answer *answer)
{
    domi_nats_client *client = self;

    if (answer->error == -ECANCELED) /* the client is stopping, so it makes no further connect */
        return 0;
    if (answer->error != 0) {
        report_failed_connect_and_choose_next(stack, client, answer->error);
        return 0;
    }
    const domus_connected *connected = answer->payload;
    client->connection = connected->channel;
    uint64_t epoch = client->epoch, passed_ns = domus_now_ns(stack) - client->begun_ns;
    uint64_t time_ns = client->options.connect_timeout_ns;
    if (domus_watch_actor(stack, client->connection, NULL) != 0 ||
        domus_after(stack, passed_ns < time_ns ? time_ns - passed_ns : 0, &domi_nats_late_type,
                    &epoch, NULL) != 0) {
        /* without a watch nobody would report the end of this connection, so the connection is
         * stopped */
        (void)domus_stop(stack, client->connection);
        report_failed_connect_and_choose_next(stack, client, -ENOMEM);
    }
    return 0;
}

int domi_nats_connect_at_timer_if_idle(domus_stack *stack, void *self, const void *payload)
{
    domi_nats_client *client = self;

    (void)payload;
    if (client->phase != DOMI_NATS_IDLE)
        return 0;
    return domi_nats_connect_to_some_server(stack, client);
}

int domi_nats_connect_to_some_server(domus_stack *stack, domi_nats_client *client)
{
    const domus_connect_options options = {
        .timeout_ns = client->options.connect_timeout_ns,
        .channel = &client->channel_options,
        .front = client->options.tls_first ? client->options.front : NULL};
    uint64_t now_ns = domus_now_ns(stack), until_ns;
    uint32_t server = choose_random_server_not_left_out(client, now_ns, &until_ns);

    if (server == DOMI_NATS_NONE) {
        arm_timer_to_connect(stack, client, until_ns - now_ns);
        return 0;
    }
    client->server = server;
    client->phase = DOMI_NATS_CONNECTING;
    client->connection = (domus_address){NULL, 0};
    client->error = 0;
    client->was_ready = false;
    client->is_lame = false;
    client->epoch++;
    client->begun_ns = now_ns;
    int result = domus_connect(stack, client->servers[server].text, &options,
                               watch_made_connection_or_choose_next);
    if (result < 0) {
        report_failed_connect_and_choose_next(stack, client, result);
        return 0;
    }
    return result;
}

/* Give up a connection if the server has not accepted the client's login in time. */
int domi_nats_reset_channel_of_late_login(domus_stack *stack, void *self, const void *payload)
{
    domi_nats_client *client = self;
    uint64_t epoch;

    memcpy(&epoch, payload, sizeof epoch);
    if (epoch == client->epoch && client->phase != DOMI_NATS_READY && client->channel != NULL)
        (void)domus_channel_reset(stack, client->channel, -ETIMEDOUT);
    return 0;
}
