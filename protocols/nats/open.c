/* The function that opens a client, and how the client's options are read and checked. */
#include "protocols/nats/state.h"

#include <domus/spawn.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <openssl/rand.h>

#define HOUR_NS UINT64_C(3600000000000)
#define MS      UINT64_C(1000000)

/* Bytes that may wait to be sent on a connection. The client itself queues at most the window and
 * one message. Beyond SEND_HIGH nothing is read from the server, and only answers to its pings are
 * added. */
#define SEND_HIGH (2u * DOMI_NATS_WINDOW)
#define SEND_MAX  (UINT64_C(2) * DOMUS_NATS_PAYLOAD_LIMIT)

/* Copy a text of the options into the client. Returns 0; -E2BIG; -EINVAL for a text that cannot be
 * written as JSON in CONNECT. */
static int copy_text_of_option(char *to, size_t room, const char *text)
{
    size_t size = text != NULL ? strnlen(text, room) : 0;

    if (size == room)
        return -E2BIG;
    if (size != 0)
        memcpy(to, text, size);
    to[size] = '\0';
    return domi_nats_is_utf8(to) ? 0 : -EINVAL;
}

static int copy_all_texts_of_options(const domus_nats_options *options, domi_nats_client *client)
{
    int error = copy_text_of_option(client->name, sizeof client->name, options->name);

    if (error == 0)
        error = copy_text_of_option(client->user, sizeof client->user, options->user);
    if (error == 0)
        error = copy_text_of_option(client->password, sizeof client->password, options->password);
    if (error == 0)
        error = copy_text_of_option(client->token, sizeof client->token, options->token);
    if (error == 0)
        error = copy_text_of_option(client->seed, sizeof client->seed, options->nkey_seed);
    if (error == 0)
        error = copy_text_of_option(client->jwt, sizeof client->jwt, options->jwt);
    client->has_user = options->user != NULL;
    return error;
}

/* Check that the client's options name at most one way to log in. */
static int check_that_one_login_is_given(const domus_nats_options *options)
{
    char key[DOMUS_NATS_NKEY_SIZE];
    int ways = (options->user != NULL) + (options->token != NULL) + (options->nkey_seed != NULL);

    if (ways > 1 || (options->password != NULL && options->user == NULL) ||
        (options->jwt != NULL && options->nkey_seed == NULL))
        return -EINVAL;
    return options->nkey_seed != NULL ? domus_nats_sign(options->nkey_seed, NULL, 0, key, NULL) : 0;
}

/* Read the list of servers in the options. If a server is invalid, `ret_wrong` points to its text
 * in the list. */
static int read_list_of_servers(const char *servers, domi_nats_client *client,
                                const char **ret_wrong)
{
    *ret_wrong = servers;
    if (servers == NULL)
        return -EINVAL;
    for (bool more = true; more;) {
        size_t size = strcspn(servers, ",");
        if (client->servers_count == DOMUS_NATS_SERVERS_MAX)
            return -E2BIG;
        *ret_wrong = servers;
        int error = domi_nats_add_server(client, servers, size, false);
        if (error != 0)
            return error;
        more = servers[size] == ',';
        servers += size + 1;
    }
    return 0;
}

static uint64_t number_or_default(uint64_t value, uint64_t preset)
{
    return value != 0 ? value : preset;
}

/* Replace zeros in the client's options by the defaults. */
static void fill_in_defaults_of_options(domus_nats_options *options)
{
    options->inflight_max =
        (uint32_t)number_or_default(options->inflight_max, DOMUS_NATS_INFLIGHT_MAX);
    options->subscriptions_max =
        (uint32_t)number_or_default(options->subscriptions_max, DOMUS_NATS_SUBSCRIPTIONS_MAX);
    options->payload_max =
        (uint32_t)number_or_default(options->payload_max, DOMUS_NATS_PAYLOAD_MAX);
    options->pings_missed_max =
        (uint32_t)number_or_default(options->pings_missed_max, DOMUS_NATS_PINGS_MISSED_MAX);
    options->buffer_max = number_or_default(options->buffer_max, DOMUS_NATS_BUFFER_MAX);
    options->request_timeout_ns =
        number_or_default(options->request_timeout_ns, DOMUS_NATS_REQUEST_TIMEOUT);
    options->connect_timeout_ns =
        number_or_default(options->connect_timeout_ns, DOMUS_NATS_CONNECT_TIMEOUT);
    options->drain_timeout_ns =
        number_or_default(options->drain_timeout_ns, DOMUS_NATS_DRAIN_TIMEOUT);
    options->backoff_min_ns = number_or_default(options->backoff_min_ns, DOMUS_NATS_BACKOFF_MIN);
    if (options->backoff_max_ns == 0)
        options->backoff_max_ns = options->backoff_min_ns > DOMUS_NATS_BACKOFF_MAX
                                      ? options->backoff_min_ns
                                      : DOMUS_NATS_BACKOFF_MAX;
    options->ping_interval_ns =
        number_or_default(options->ping_interval_ns, DOMUS_NATS_PING_INTERVAL);
}

static bool is_time_within_limits(uint64_t time_ns)
{
    return time_ns >= MS && time_ns <= HOUR_NS;
}

static bool are_numbers_of_options_valid(const domus_nats_options *options)
{
    return options->inflight_max <= 65536 && options->subscriptions_max <= 1048576 &&
           options->payload_max >= 1024 && options->payload_max <= DOMUS_NATS_PAYLOAD_LIMIT &&
           options->pings_missed_max <= 16 && options->buffer_max >= 4096 &&
           options->buffer_max <= UINT64_C(1) << 30 &&
           is_time_within_limits(options->request_timeout_ns) &&
           is_time_within_limits(options->connect_timeout_ns) &&
           is_time_within_limits(options->drain_timeout_ns) &&
           is_time_within_limits(options->backoff_min_ns) &&
           is_time_within_limits(options->backoff_max_ns) &&
           options->backoff_min_ns <= options->backoff_max_ns &&
           is_time_within_limits(options->ping_interval_ns);
}

/* Check the byte stages that the options put before the stage of NATS, such as TLS. */
static int check_front_stages(const domus_nats_options *options)
{
    const domus_pipeline_stage *stage = options->front;

    if (stage == NULL)
        return options->tls_first ? -EINVAL : 0;
    for (uint32_t i = 0; stage->stage != NULL; i++, stage++) {
        if (i == DOMUS_FRONT_MAX || stage->stage->wrap == NULL)
            return -EINVAL;
        int error = stage->stage->check != NULL ? stage->stage->check(stage->options) : 0;
        if (error != 0)
            return error;
    }
    return 0;
}

/* Set the options of the client's channels: those of the user, with bounds for what is queued. */
static int read_channel_options(domus_stack *stack, const domus_nats_options *options,
                                domi_nats_client *client)
{
    domus_channel_options *channel = &client->channel_options;

    if (options->channel != NULL)
        *channel = *options->channel;
    channel->send_high_bytes = SEND_HIGH;
    channel->send_low_bytes = DOMI_NATS_WINDOW;
    channel->send_max_bytes = SEND_MAX;
    return domus_channel_options_check(stack, channel, NULL, 0);
}

/* Draw the client's two random numbers: a secret one for the inbox, and one for the order of
 * servers. */
static int draw_random_numbers_of_client(domi_nats_client *client, uint64_t given)
{
    static const char characters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789AB";
    uint8_t bytes[DOMI_NATS_INBOX_SIZE - 8];

    client->random = given;
    if (given == 0 && (RAND_bytes(bytes, sizeof bytes) != 1 ||
                       RAND_bytes((uint8_t *)&client->random, sizeof client->random) != 1))
        return -EIO;
    for (size_t i = 0; i < sizeof bytes && given != 0; i++)
        bytes[i] = (uint8_t)domi_nats_next_random_number(client);
    memcpy(client->inbox, "_INBOX.", 7);
    for (size_t i = 0; i < sizeof bytes; i++)
        client->inbox[7 + i] = characters[bytes[i] & 63];
    client->inbox[DOMI_NATS_INBOX_SIZE - 1] = '.';
    client->inbox[DOMI_NATS_INBOX_SIZE] = '*';
    return 0;
}

/* Clear a client, and copy the options to it. Returns whether the numbers of the options are
 * valid. */
static bool copy_options_to_cleared_client(const domus_nats_options *options,
                                           domi_nats_client *client)
{
    memset(client, 0, sizeof *client);
    client->options = *options;
    fill_in_defaults_of_options(&client->options);
    return are_numbers_of_options_valid(&client->options);
}

static int check_and_prepare_client(domus_stack *stack, const domus_nats_options *options,
                                    domi_nats_client *client)
{
    const char *wrong;

    if (!copy_options_to_cleared_client(options, client))
        return -EINVAL;
    int error = check_that_one_login_is_given(options);
    if (error == 0)
        error = check_front_stages(options);
    if (error == 0)
        error = copy_all_texts_of_options(options, client);
    if (error == 0)
        error = read_list_of_servers(options->servers, client, &wrong);
    if (error == 0)
        error = read_channel_options(stack, options, client);
    if (error == 0)
        error = draw_random_numbers_of_client(client, options->seed);
    client->options.servers = client->options.name = client->options.user = NULL;
    client->options.password = client->options.token = client->options.nkey_seed = NULL;
    client->options.jwt = NULL;
    client->options.channel = NULL;
    return error;
}

/* Returns a text for people that tells what is wrong with a server of the options. */
static const char *describe_fault_of_server(const domus_nats_options *options, int error,
                                            const char *server)
{
    if (server[0] == '\0')
        return "one is empty, or has a user with '@', whose place is not here";
    if (error == -E2BIG)
        return "more than 32 servers, or one that is too long";
    if (options->front == NULL && strncmp(server, "tls://", 6) == 0)
        return "it needs TLS, and there is none";
    return "it has to be HOST, HOST:PORT or [v6]:PORT";
}

static int check_all_options(const domus_nats_options *options, domi_nats_client *client,
                             char *error, size_t size)
{
    const char *wrong = "", *field = "options", *reason = "a number is out of its range";
    int result = copy_options_to_cleared_client(options, client) ? 0 : -EINVAL;

    if (result == 0 && (result = check_that_one_login_is_given(options)) != 0) {
        field = result == -EBADMSG ? "nkey_seed" : "user";
        reason = result == -EBADMSG ? "it is not the seed of a user"
                                    : "one of user, token and nkey_seed, with what belongs to it";
    } else if (result == 0 && (result = check_front_stages(options)) != 0) {
        field = "front";
        reason = "a stage is wrong";
    } else if (result == 0 && (result = copy_all_texts_of_options(options, client)) != 0) {
        field = "texts";
        reason = result == -E2BIG ? "one is too long" : "one is not UTF-8";
    } else if (result == 0 &&
               (result = read_list_of_servers(options->servers, client, &wrong)) != 0) {
        field = "servers";
        if (wrong == NULL || memchr(wrong, '@', strcspn(wrong, ",")) != NULL)
            /* the text of the server is not shown, because a password may stand before '@' */
            wrong = "";
        wrong += strspn(wrong, " ");
        if (wrong[0] == ',')
            wrong = "";
        reason = describe_fault_of_server(options, result, wrong);
    }
    if (result != 0 && size > 0)
        (void)snprintf(error, size, "%s: %s%.*s%s%s", field, wrong[0] != '\0' ? "'" : "",
                       (int)strcspn(wrong, ","), wrong, wrong[0] != '\0' ? "': " : "", reason);
    return result;
}

int domus_nats_check(const domus_nats_options *options, char *error, size_t error_size)
{
    domi_nats_client client;
    int result = check_all_options(options, &client, error, error_size);

    explicit_bzero(&client, sizeof client);
    return result;
}

int domus_nats_open(domus_stack *stack, const domus_nats_options *options,
                    domus_address *ret_client)
{
    domi_nats_client client;

    if (options == NULL)
        return -EINVAL;
    int error = check_and_prepare_client(stack, options, &client);
    if (error == 0)
        error = domus_spawn(stack, &domi_nats_client_behaviour, &client, ret_client);
    explicit_bzero(&client, sizeof client);
    return error;
}
