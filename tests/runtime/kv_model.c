/* The model of a client's keys in a store, and the commands about these keys;
 * tests/runtime/kv_model.h has the contract. */
#include "tests/runtime/kv_model.h"
#include "tests/support/suite.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- commands: strings ------------------------------------------------------------------------ */

static void send_set_command(domt_sweep *sweep, domt_kv_client *client, uint32_t key)
{
    domt_kv_text value = domt_kv_make_random_value(sweep);
    uint32_t kind = domt_kv_draw_below(sweep, 5);
    bool model_has_key = client->strings[key].bytes != NULL;

    domt_kv_begin_command(client, kind < 3 ? 3 : 4, kind == 2 ? "GETSET" : "set");
    domt_kv_write_key(client, key);
    domt_kv_write_text(client, &value);
    if (kind >= 3)
        domt_kv_write_argument(client, kind == 3 ? "NX" : "xx", 2);
    if (kind == 2)
        domt_kv_expect_text(client, &client->strings[key]);
    if (kind < 3 || model_has_key == (kind == 4)) {
        if (kind != 2)
            domt_kv_expect_format(client, "+OK\r\n");
        domt_kv_text_set(&client->strings[key], value);
    } else {
        domt_kv_expect_null(client);
        free(value.bytes);
    }
}

static void send_append_command(domt_sweep *sweep, domt_kv_client *client, uint32_t key)
{
    domt_kv_text value = domt_kv_make_random_value(sweep);
    domt_kv_text *to = &client->strings[key];

    domt_kv_begin_command(client, 3, "APPEND");
    domt_kv_write_key(client, key);
    domt_kv_write_text(client, &value);
    to->bytes = realloc(to->bytes, to->size + value.size + 1);
    ck_assert_ptr_nonnull(to->bytes);
    memcpy(to->bytes + to->size, value.bytes, value.size);
    to->size += value.size;
    free(value.bytes);
    domt_kv_expect_format(client, ":%zu\r\n", to->size);
}

static void send_get_command(domt_sweep *sweep, domt_kv_client *client, uint32_t key)
{
    bool is_length = domt_kv_draw_below(sweep, 3) == 0;

    domt_kv_begin_command(client, 2, is_length ? "STRLEN" : "GET");
    domt_kv_write_key(client, key);
    if (is_length)
        domt_kv_expect_format(client, ":%zu\r\n", client->strings[key].size);
    else
        domt_kv_expect_text(client, &client->strings[key]);
}

/* Send an MGET of several keys, which lie on several shards. */
static void send_mget_command(domt_kv_client *client, uint32_t count)
{
    domt_kv_begin_command(client, count + 1, "mget");
    domt_kv_expect_format(client, "*%" PRIu32 "\r\n", count);
    for (uint32_t i = 0; i < count; i++) {
        domt_kv_write_key(client, i % DOMT_KV_KEYS);
        if (i % DOMT_KV_KEYS < 4) {
            domt_kv_expect_text(client, &client->strings[i % DOMT_KV_KEYS]);
        } else if (i % DOMT_KV_KEYS == 4 && client->has_count) {
            char digits[24];
            int size = snprintf(digits, sizeof digits, "%" PRId64, client->count);
            domt_kv_expect_format(client, "$%d\r\n%s\r\n", size, digits);
        } else {
            domt_kv_expect_null(client);
        }
    }
}

static void send_mset_command(domt_sweep *sweep, domt_kv_client *client)
{
    domt_kv_begin_command(client, 5, "MSET");
    for (uint32_t key = 0; key < 2; key++) {
        domt_kv_text value = domt_kv_make_random_value(sweep);
        domt_kv_write_key(client, key);
        domt_kv_write_text(client, &value);
        domt_kv_text_set(&client->strings[key], value);
    }
    domt_kv_expect_format(client, "+OK\r\n");
}

static bool model_has_key(const domt_kv_client *client, uint32_t key)
{
    const bool others[] = {client->has_count, client->elements_count != 0,
                           client->fields[0].bytes != NULL || client->fields[1].bytes != NULL ||
                               client->fields[2].bytes != NULL || client->fields[3].bytes != NULL};

    return key < 4 ? client->strings[key].bytes != NULL : others[key - 4];
}

static void forget_key_in_model(domt_kv_client *client, uint32_t key)
{
    if (key < 4)
        domt_kv_text_clear(&client->strings[key]);
    if (key == 4)
        client->has_count = false;
    while (key == 5 && client->elements_count != 0)
        domt_kv_text_clear(&client->elements[--client->elements_count]);
    for (uint32_t i = 0; key == 6 && i < DOMT_KV_FIELDS; i++)
        domt_kv_text_clear(&client->fields[i]);
}

/* Send a DEL or an EXISTS of some keys, and expect the number of keys that exist. */
static void send_del_or_exists(domt_sweep *sweep, domt_kv_client *client)
{
    uint32_t from = domt_kv_draw_below(sweep, DOMT_KV_KEYS);
    uint32_t count = 1 + domt_kv_draw_below(sweep, 4);
    bool deletes = domt_kv_draw_below(sweep, 2) == 0;
    uint32_t there = 0;

    domt_kv_begin_command(client, count + 1, deletes ? "DEL" : "EXISTS");
    for (uint32_t i = 0; i < count; i++) {
        uint32_t key = (from + i) % DOMT_KV_KEYS;
        domt_kv_write_key(client, key);
        there += model_has_key(client, key);
        if (deletes)
            forget_key_in_model(client, key);
    }
    domt_kv_expect_format(client, ":%" PRIu32 "\r\n", there);
}

/* --- commands: numbers, lists, hashes --------------------------------------------------------- */

static void send_incrby_command(domt_sweep *sweep, domt_kv_client *client)
{
    int64_t by = (int64_t)domt_kv_draw_below(sweep, 1000) - 500;
    char text[24];

    domt_kv_begin_command(client, 3, "INCRBY");
    domt_kv_write_key(client, 4);
    domt_kv_write_argument(client, text, (size_t)snprintf(text, sizeof text, "%" PRId64, by));
    client->count = (client->has_count ? client->count : 0) + by;
    client->has_count = true;
    domt_kv_expect_format(client, ":%" PRId64 "\r\n", client->count);
}

static void send_incr_of_common_counter(domt_kv_client *client, domt_kv_counter *counter)
{
    if (counter->sent == DOMT_KV_COUNTED)
        return;
    domt_kv_begin_command(client, 2, "INCR");
    domt_kv_write_argument(client, "common", 6);
    domt_kv_expect_format(client, "%c", DOMT_KV_A_NUMBER);
    counter->sent++;
}

static void send_list_push(domt_sweep *sweep, domt_kv_client *client)
{
    domt_kv_text value = domt_kv_make_random_value(sweep);
    bool at_head = domt_kv_draw_below(sweep, 2) == 0;
    uint32_t count = client->elements_count++;

    domt_kv_begin_command(client, 3, at_head ? "LPUSH" : "RPUSH");
    domt_kv_write_key(client, 5);
    domt_kv_write_text(client, &value);
    if (at_head)
        memmove(client->elements + 1, client->elements, count * sizeof client->elements[0]);
    client->elements[at_head ? 0 : count] = value;
    domt_kv_expect_format(client, ":%" PRIu32 "\r\n", count + 1);
}

static void send_list_pop(domt_kv_client *client)
{
    domt_kv_begin_command(client, 2, "LPOP");
    domt_kv_write_key(client, 5);
    domt_kv_expect_text(
        client, &(domt_kv_text){client->elements_count != 0 ? client->elements[0].bytes : NULL,
                                client->elements[0].size});
    if (client->elements_count == 0)
        return;
    domt_kv_text_clear(&client->elements[0]);
    client->elements_count--;
    memmove(client->elements, client->elements + 1,
            client->elements_count * sizeof client->elements[0]);
    client->elements[client->elements_count] = (domt_kv_text){NULL, 0};
}

static void send_list_range(domt_kv_client *client)
{
    domt_kv_begin_command(client, 4, "LRANGE");
    domt_kv_write_key(client, 5);
    domt_kv_write_argument(client, "0", 1);
    domt_kv_write_argument(client, "-1", 2);
    domt_kv_expect_format(client, "*%" PRIu32 "\r\n", client->elements_count);
    for (uint32_t i = 0; i < client->elements_count; i++)
        domt_kv_expect_text(client, &client->elements[i]);
}

static void send_hash_command(domt_sweep *sweep, domt_kv_client *client)
{
    uint32_t kind = domt_kv_draw_below(sweep, 3);
    uint32_t field = domt_kv_draw_below(sweep, DOMT_KV_FIELDS);
    domt_kv_text *at = &client->fields[field];
    char name[] = {'f', (char)('0' + field)};

    domt_kv_begin_command(client, kind == 0 ? 4 : 3,
                          kind == 0   ? "HSET"
                          : kind == 1 ? "HGET"
                                      : "HDEL");
    domt_kv_write_key(client, 6);
    domt_kv_write_argument(client, name, sizeof name);
    if (kind == 0) {
        domt_kv_text value = domt_kv_make_random_value(sweep);
        domt_kv_write_text(client, &value);
        domt_kv_expect_format(client, ":%d\r\n", at->bytes == NULL);
        domt_kv_text_set(at, value);
    } else if (kind == 1) {
        domt_kv_expect_text(client, at);
    } else {
        domt_kv_expect_format(client, ":%d\r\n", at->bytes != NULL);
        domt_kv_text_clear(at);
    }
}

/* --- other commands --------------------------------------------------------------------------- */

static void send_request_in_odd_syntax(domt_sweep *sweep, domt_kv_client *client)
{
    static const struct {
        const char *bytes, *answer;
    } odd[] = {
        {"PING\r\n", "+PONG\r\n"},
        {"  ECHO  \"a \\x62\"  \n", "$3\r\na b\r\n"},
        {"\r\n*0\r\n*-1\r\nPING c\n", "$1\r\nc\r\n"},
        {"nope\r\n", "-ERR unknown command 'nope', with args beginning with: \r\n"},
        {"GET\r\n", "-ERR wrong number of arguments for 'get' command\r\n"},
        {"*1\r\n$4\r\nMGET\r\n", "-ERR wrong number of arguments for 'mget' command\r\n"},
        {"SET nobody x PX 3\r\n", "+OK\r\n"}, /* the key expires, but no client reads it later */
        {"SELECT 0\n", "+OK\r\n"},
    };
    uint32_t which = domt_kv_draw_below(sweep, sizeof odd / sizeof odd[0]);

    client->command_size = 0;
    domt_kv_write_bytes(client, odd[which].bytes, strlen(odd[which].bytes));
    domt_kv_expect_format(client, "%s", odd[which].answer);
}

static void send_command_of_wrong_type(domt_kv_client *client)
{
    domt_kv_begin_command(client, 2, "GET");
    domt_kv_write_key(client, 6);
    if (model_has_key(client, 6))
        domt_kv_expect_format(
            client, "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n");
    else
        domt_kv_expect_null(client);
}

static void send_hello_command(domt_sweep *sweep, domt_kv_client *client)
{
    client->speaks_3 = domt_kv_draw_below(sweep, 2) == 0;
    domt_kv_begin_command(client, 2, "HELLO");
    domt_kv_write_argument(client, client->speaks_3 ? "3" : "2", 1);
    domt_kv_expect_format(client, "%c", DOMT_KV_A_HELLO);
}

static void send_random_command(domt_sweep *sweep, domt_kv_client *client, domt_kv_counter *counter)
{
    uint32_t key = domt_kv_draw_below(sweep, 4);

    client->command_size = 0;
    domt_kv_expect_format(client, "%c", DOMT_KV_BEGIN);
    switch (domt_kv_draw_below(sweep, 20)) {
    case 0:
    case 1:
    case 2:
        send_set_command(sweep, client, key);
        break;
    case 3:
        if (client->strings[key].size < 100000)
            send_append_command(sweep, client, key);
        break;
    case 4:
    case 5:
        send_mget_command(client, 1 + domt_kv_draw_below(sweep, 12));
        break;
    case 6:
        send_mset_command(sweep, client);
        break;
    case 7:
    case 8:
        send_del_or_exists(sweep, client);
        break;
    case 9:
        send_incrby_command(sweep, client);
        break;
    case 10:
    case 11:
        send_incr_of_common_counter(client, counter);
        break;
    case 12:
        if (client->elements_count < DOMT_KV_ELEMENTS)
            send_list_push(sweep, client);
        break;
    case 13:
        send_list_pop(client);
        break;
    case 14:
        send_list_range(client);
        break;
    case 15:
    case 16:
        send_hash_command(sweep, client);
        break;
    case 17:
        send_request_in_odd_syntax(sweep, client);
        break;
    case 18:
        if (domt_kv_draw_below(sweep, 4) == 0 && !client->listens)
            send_hello_command(sweep, client);
        else
            send_command_of_wrong_type(client);
        break;
    default:
        send_get_command(sweep, client, key);
        break;
    }
}

/* --- the header's functions ------------------------------------------------------------------- */

void domt_kv_client_begin(domt_kv_client *client, uint32_t number, domus_peer *peer)
{
    domt_kv_client old = *client;

    *client = (domt_kv_client){.number = number, .peer = peer};
    client->command = old.command;
    client->command_room = old.command_room;
    client->expected = old.expected;
    client->expected_room = old.expected_room;
}

void domt_kv_client_end(domt_kv_client *client)
{
    for (uint32_t key = 0; key < DOMT_KV_KEYS; key++)
        forget_key_in_model(client, key);
}

void domt_kv_send_random_command(domt_sweep *sweep, domt_kv_client *client,
                                 domt_kv_counter *counter)
{
    if (domt_kv_draw_below(sweep, 8) == 0)
        domt_kv_send_random_round(sweep, client, counter);
    else
        send_random_command(sweep, client, counter);
    domt_kv_send_command(client);
}

void domt_kv_send_quit_or_wrong_bytes(domt_sweep *sweep, domt_kv_client *client)
{
    static const struct {
        const char *bytes, *answer;
    } last[] = {
        {"QUIT\r\nPING\r\n", "+OK\r\n"},
        {"*1\r\n!", "-ERR Protocol error: expected '$', got '!'\r\n"},
        {"*2\r\n$3\r\nGET\r\n$-1\r\n", "-ERR Protocol error: invalid bulk length\r\n"},
        {"*1000000000\r\n", "-ERR Protocol error: invalid multibulk length\r\n"},
        {"*1\r\n$4\r\nPINGxx", "-ERR Protocol error: invalid bulk length\r\n"},
        {"GET \"a\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n"},
    };
    uint32_t which = domt_kv_draw_below(sweep, sizeof last / sizeof last[0]);

    client->command_size = 0;
    domt_kv_expect_format(client, "%c", DOMT_KV_BEGIN);
    domt_kv_write_bytes(client, last[which].bytes, strlen(last[which].bytes));
    domt_kv_expect_format(client, "%s", last[which].answer);
    domt_kv_send_command(client);
    client->is_done = client->is_last = true;
}

void domt_kv_send_part_of_command(domt_kv_client *client)
{
    (void)domus_peer_send(client->peer, "*2\r\n$3\r\nGET\r\n$5\r\nab", 18);
}
