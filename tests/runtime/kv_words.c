/* Writes the bytes of a client's commands and of the answers that it expects
 * (tests/runtime/kv_model.h). */
#include "tests/runtime/kv_model.h"
#include "tests/support/suite.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        text.bytes[i] = domt_kv_is_mark(byte) ? 'x' : byte;
    }
    return text;
}
