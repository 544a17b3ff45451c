/* Rounds of commands of kv for the sweep, and the words that the commands are made of. */
#include "tests/runtime/kv_model.h"
#include "tests/support/suite.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rounds of several commands: transactions, commands that wait, and messages between clients
 * (tests/runtime/kv_model.h). */

/* Send a command of several words; the caller then writes down the expected answer. */
static void send_command_of_words(domt_kv_client *client, uint32_t count, const char *const words[])
{
    domt_kv_begin_command(client, count, words[0]);
    for (uint32_t i = 1; i < count; i++)
        domt_kv_write_argument(client, words[i], strlen(words[i]));
    domt_kv_send_command(client);
}

#define SEND(client, ...)                                                                          \
    send_command_of_words(client,                                                                  \
                          sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *),       \
                          (const char *const[]){__VA_ARGS__})

static void expect_begin_of_answer(domt_kv_client *client)
{
    domt_kv_expect_format(client, "%c", DOMT_KV_BEGIN);
}

/* Send a command, and write down its answer, which is known. */
#define ROUND(client, answer, ...)                                                                 \
    do {                                                                                           \
        expect_begin_of_answer(client);                                                            \
        SEND(client, __VA_ARGS__);                                                                 \
        domt_kv_expect_format(client, "%s", answer);                                               \
    } while (0)

/* --- transactions ----------------------------------------------------------------------------- */

#define COMMANDS 4u

/* Queue GETs and SETs of the two keys that lie on one shard. Their results come with the answer to
 * EXEC, so they are gathered as the expected bytes of a spare client, `array`. */
static void queue_commands_of_transaction(domt_sweep *sweep, domt_kv_client *client,
                                          domt_kv_client *array, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t key = domt_kv_draw_below(sweep, 2);
        domt_kv_text *at = &array->strings[key];
        bool reads = domt_kv_draw_below(sweep, 2) == 0;
        expect_begin_of_answer(client);
        domt_kv_begin_command(client, reads ? 2 : 3, reads ? "GET" : "SET");
        domt_kv_write_key(client, key);
        if (reads) {
            domt_kv_expect_text(array, at);
        } else {
            domt_kv_text value = domt_kv_make_random_value(sweep);
            domt_kv_write_text(client, &value);
            domt_kv_text_set(at, value);
            domt_kv_expect_format(array, "+OK\r\n");
        }
        domt_kv_send_command(client);
        domt_kv_expect_format(client, "+QUEUED\r\n");
    }
}

static domt_kv_text copy_of_text(const domt_kv_text *text)
{
    domt_kv_text copy = {NULL, text->size};

    if (text->bytes == NULL)
        return copy;
    copy.bytes = malloc(text->size + 1);
    memcpy(copy.bytes, text->bytes, text->size);
    return copy;
}

enum outcome { DONE, DISCARDED, WRONG, UNDONE };

static void send_watch_and_change_of_key(domt_sweep *sweep, domt_kv_client *client)
{
    domt_kv_text value = domt_kv_make_random_value(sweep);

    expect_begin_of_answer(client);
    domt_kv_begin_command(client, 2, "WATCH");
    domt_kv_write_key(client, 0);
    domt_kv_send_command(client);
    domt_kv_expect_format(client, "+OK\r\n");
    expect_begin_of_answer(client);
    domt_kv_begin_command(client, 3, "SET");
    domt_kv_write_key(client, 0);
    domt_kv_write_text(client, &value);
    domt_kv_send_command(client);
    domt_kv_text_set(&client->strings[0], value);
    domt_kv_expect_format(client, "+OK\r\n");
}

static void send_transaction(domt_sweep *sweep, domt_kv_client *client)
{
    domt_kv_client array = {.speaks_3 = client->speaks_3};
    enum outcome outcome = domt_kv_draw_below(sweep, 3) != 0 ? DONE : domt_kv_draw_below(sweep, 4);
    uint32_t count = domt_kv_draw_below(sweep, COMMANDS);

    if (outcome == UNDONE)
        send_watch_and_change_of_key(sweep, client);
    ROUND(client, "+OK\r\n", "MULTI");
    for (uint32_t key = 0; key < 2; key++)
        array.strings[key] = copy_of_text(&client->strings[key]);
    queue_commands_of_transaction(sweep, client, &array, count);
    if (outcome == WRONG)
        ROUND(client, "-ERR unknown command 'no', with args beginning with: \r\n", "no");
    expect_begin_of_answer(client);
    if (outcome == DISCARDED)
        SEND(client, "DISCARD");
    else
        SEND(client, "EXEC");
    switch (outcome) {
    case DONE:
        domt_kv_expect_format(client, "*%" PRIu32 "\r\n", count);
        if (array.expected_size != 0)
            domt_kv_expect_bytes(client, array.expected, array.expected_size);
        break;
    case DISCARDED:
        domt_kv_expect_format(client, "+OK\r\n");
        break;
    case WRONG:
        domt_kv_expect_format(client,
                              "-EXECABORT Transaction discarded because of previous errors.\r\n");
        break;
    case UNDONE:
        domt_kv_expect_null_array(client);
        break;
    }
    for (uint32_t key = 0; key < 2; key++) {
        if (outcome == DONE)
            domt_kv_text_set(&client->strings[key], array.strings[key]);
        else
            domt_kv_text_clear(&array.strings[key]);
    }
    free(array.expected);
}

/* Send a transaction with two INCRs of the common counter, which get numbers that follow each
 * other; or one INCR after a WATCH, whose answer may be null. */
static void send_transaction_of_counts(domt_sweep *sweep, domt_kv_client *client,
                                       domt_kv_counter *counter)
{
    bool watches = domt_kv_draw_below(sweep, 2) == 0;

    if (counter->sent + 2 > DOMT_KV_COUNTED)
        return;
    counter->sent += watches ? 1 : 2;
    if (watches)
        ROUND(client, "+OK\r\n", "WATCH", "common");
    ROUND(client, "+OK\r\n", "MULTI");
    ROUND(client, "+QUEUED\r\n", "INCR", "common");
    if (!watches)
        ROUND(client, "+QUEUED\r\n", "INCR", "common");
    expect_begin_of_answer(client);
    SEND(client, "EXEC");
    if (watches)
        domt_kv_expect_format(client, "%c", DOMT_KV_PERHAPS);
    else
        domt_kv_expect_format(client, "*2\r\n%c%c", DOMT_KV_A_NUMBER, DOMT_KV_THE_NEXT);
}

/* --- waiting ---------------------------------------------------------------------------------- */

/* Send a BLPOP of the client's own list. The answer is the first element, or null after 3 ms if the
 * list is empty. */
static void send_wait_for_own_list(domt_kv_client *client)
{
    char name[48];
    int size = snprintf(name, sizeof name, "c%" PRIu32 ":key5", client->number);

    expect_begin_of_answer(client);
    SEND(client, "BLPOP", name, "0.003");
    if (client->elements_count == 0) {
        domt_kv_expect_null_array(client);
        domt_kv_expect_format(client, "%c", DOMT_KV_MAY_END);
        return;
    }
    domt_kv_expect_format(client, "*2\r\n$%d\r\n%s\r\n", size, name);
    domt_kv_expect_text(client, &client->elements[0]);
    domt_kv_text_clear(&client->elements[0]);
    client->elements_count--;
    memmove(client->elements, client->elements + 1,
            client->elements_count * sizeof client->elements[0]);
    client->elements[client->elements_count] = (domt_kv_text){NULL, 0};
}

static void send_queue_command(domt_sweep *sweep, domt_kv_client *client, domt_kv_counter *counter)
{
    char name[24];

    expect_begin_of_answer(client);
    if (domt_kv_draw_below(sweep, 2) == 0 || counter->pushed == DOMT_KV_COUNTED) {
        SEND(client, domt_kv_draw_below(sweep, 2) == 0 ? "BLPOP" : "BRPOP", "queue", "0.005");
        domt_kv_expect_format(client, "%c%c", DOMT_KV_A_PIECE, DOMT_KV_MAY_END);
        return;
    }
    (void)snprintf(name, sizeof name, "e%05" PRIu32, ++counter->pushed);
    SEND(client, "RPUSH", "queue", name);
    domt_kv_expect_format(client, "%c", DOMT_KV_A_COUNT);
}

/* --- messages --------------------------------------------------------------------------------- */

static void send_publish(domt_kv_client *client)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%02" PRIu32 ":%05" PRIu32, client->number, ++client->said);
    expect_begin_of_answer(client);
    SEND(client, "PUBLISH", "all", text);
    domt_kv_expect_format(client, "%c", DOMT_KV_A_COUNT);
}

/* Subscribe to the messages of all clients. A client of RESP 3 keeps the subscription until the
 * next such round; one of RESP 2 ends it in the same round. */
static void send_subscribe_to_all(domt_kv_client *client)
{
    char mark = client->speaks_3 ? '>' : '*';

    expect_begin_of_answer(client);
    if (client->listens) {
        SEND(client, "UNSUBSCRIBE", "all");
        domt_kv_expect_format(client, ">3\r\n$11\r\nunsubscribe\r\n$3\r\nall\r\n:0\r\n%c",
                              DOMT_KV_IS_DEAF);
        client->listens = false;
        return;
    }
    SEND(client, "SUBSCRIBE", "all");
    domt_kv_expect_format(client, "%c3\r\n$9\r\nsubscribe\r\n$3\r\nall\r\n:1\r\n%c", mark,
                          DOMT_KV_HEARS);
    if (client->speaks_3) {
        client->listens = true;
        return;
    }
    ROUND(client, "*2\r\n$4\r\npong\r\n$0\r\n\r\n", "PING");
    expect_begin_of_answer(client);
    SEND(client, "GET", "x");
    domt_kv_expect_format(client,
                          "-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / "
                          "PING / QUIT / RESET are allowed in this context\r\n");
    expect_begin_of_answer(client);
    SEND(client, "UNSUBSCRIBE");
    domt_kv_expect_format(client, "*3\r\n$11\r\nunsubscribe\r\n$3\r\nall\r\n:0\r\n%c",
                          DOMT_KV_IS_DEAF);
}

/* --- the header's function -------------------------------------------------------------------- */

void domt_kv_send_random_round(domt_sweep *sweep, domt_kv_client *client, domt_kv_counter *counter)
{
    client->command_size = 0;
    switch (domt_kv_draw_below(sweep, 12)) {
    case 0:
    case 1:
    case 2:
        send_transaction(sweep, client);
        break;
    case 3:
    case 4:
        send_transaction_of_counts(sweep, client, counter);
        break;
    case 5:
        send_wait_for_own_list(client);
        break;
    case 6:
    case 7:
        send_queue_command(sweep, client, counter);
        break;
    case 8:
        send_subscribe_to_all(client);
        break;
    default:
        send_publish(client);
        break;
    }
}

/* --- kv words --------------------------------------------------------------------------------- */

/* Writes the bytes of a client's commands and of the answers that it expects
 * (tests/runtime/kv_model.h). */

/* --- bytes ------------------------------------------------------------------------------------ */

static void append_to_buffer(char **bytes, size_t *size, size_t *room, const void *more,
                             size_t more_size)
{
    if (*room - *size < more_size) {
        *room = 2 * (*size + more_size) + 1024;
        *bytes = realloc(*bytes, *room);
        ck_assert_ptr_nonnull(*bytes);
    }
    if (more_size != 0)
        memcpy(*bytes + *size, more, more_size);
    *size += more_size;
}

void domt_kv_expect_bytes(domt_kv_client *client, const void *bytes, size_t size)
{
    append_to_buffer(&client->expected, &client->expected_size, &client->expected_room, bytes,
                     size);
}

void domt_kv_expect_format(domt_kv_client *client, const char *format, ...)
{
    char text[256];
    va_list list;

    va_start(list, format);
    int size = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    domt_kv_expect_bytes(client, text, (size_t)size);
}

void domt_kv_expect_null(domt_kv_client *client)
{
    domt_kv_expect_format(client, client->speaks_3 ? "_\r\n" : "$-1\r\n");
}

void domt_kv_expect_null_array(domt_kv_client *client)
{
    domt_kv_expect_format(client, client->speaks_3 ? "_\r\n" : "*-1\r\n");
}

void domt_kv_expect_text(domt_kv_client *client, const domt_kv_text *text)
{
    if (text->bytes == NULL) {
        domt_kv_expect_null(client);
        return;
    }
    domt_kv_expect_format(client, "$%zu\r\n", text->size);
    domt_kv_expect_bytes(client, text->bytes, text->size);
    domt_kv_expect_format(client, "\r\n");
}

void domt_kv_send_command(domt_kv_client *client)
{
    if (client->command_size == 0)
        return;
    client->sent++;
    /* The send fails if the connection is gone, and then the command gets no answer. */
    if (domus_peer_send(client->peer, client->command, client->command_size) != 0)
        client->is_done = true;
    client->command_size = 0;
}

void domt_kv_write_bytes(domt_kv_client *client, const void *bytes, size_t size)
{
    append_to_buffer(&client->command, &client->command_size, &client->command_room, bytes, size);
}

void domt_kv_write_argument(domt_kv_client *client, const void *bytes, size_t size)
{
    char head[32];

    domt_kv_write_bytes(client, head, (size_t)snprintf(head, sizeof head, "$%zu\r\n", size));
    domt_kv_write_bytes(client, bytes, size);
    domt_kv_write_bytes(client, "\r\n", 2);
}

void domt_kv_write_text(domt_kv_client *client, const domt_kv_text *text)
{
    domt_kv_write_argument(client, text->bytes, text->size);
}

/* Begin to write a command of `count` arguments, the first of which is its name, one word. */
void domt_kv_begin_command(domt_kv_client *client, uint32_t count, const char *name)
{
    char head[32];

    client->command_size = 0;
    domt_kv_write_bytes(client, head,
                        (size_t)snprintf(head, sizeof head, "*%" PRIu32 "\r\n", count));
    domt_kv_write_argument(client, name, strlen(name));
}

/* The first two string keys have a tag in braces, so they lie on one shard. */
void domt_kv_write_key(domt_kv_client *client, uint32_t key)
{
    char name[48];
    int size = snprintf(name, sizeof name,
                        key < 2 ? "{c%" PRIu32 "}:%" PRIu32 : "c%" PRIu32 ":key%" PRIu32,
                        client->number, key);

    domt_kv_write_argument(client, name, (size_t)size);
}

void domt_kv_text_clear(domt_kv_text *text)
{
    free(text->bytes);
    *text = (domt_kv_text){NULL, 0};
}

void domt_kv_text_set(domt_kv_text *text, domt_kv_text value)
{
    domt_kv_text_clear(text);
    *text = value;
}

/* --- values ----------------------------------------------------------------------------------- */

uint32_t domt_kv_draw_below(domt_sweep *sweep, uint32_t n)
{
    return (uint32_t)domt_sweep_draw_below(sweep, n);
}

/* In a network with tiny buffers every byte is an event, so values are short then. */
static uint32_t size_max_of_value(domt_sweep *sweep)
{
    uint32_t send = sweep->faults.send_buffer_bytes, receive = sweep->faults.receive_buffer_bytes;
    bool is_tiny = (send != 0 && send < 200) || (receive != 0 && receive < 200);

    switch (domt_kv_draw_below(sweep, 16)) {
    case 0:
        return is_tiny ? 100 : 70000;
    case 1:
    case 2:
        return is_tiny ? 70 : 3000;
    default:
        return 40;
    }
}

domt_kv_text domt_kv_make_random_value(domt_sweep *sweep)
{
    size_t size = domt_kv_draw_below(sweep, size_max_of_value(sweep));
    uint64_t key = domi_random_next_bits(&sweep->random);
    domt_kv_text text = {malloc(size + 1), size};

    ck_assert_ptr_nonnull(text.bytes);
    for (size_t i = 0; i < size; i++) {
        char byte = (char)((key + i) * UINT64_C(0x9E3779B97F4A7C15) >> 56);
        text.bytes[i] = domt_kv_is_mark_in_expected(byte) ? 'x' : byte;
    }
    return text;
}
