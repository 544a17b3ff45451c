/* Compares the bytes that a client of a store receives with the bytes that it expects
 * (tests/runtime/kv_model.h). An answer that the model cannot know is checked when all its bytes
 * have come. */
#include "tests/runtime/kv_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MORE  (-1) /* result of a check: the bytes are too few to tell */
#define WRONG (-2)

/* Returns 1 if the bytes begin with `text`, 0 if not, and MORE if they are too few to tell. */
static int do_bytes_begin_with_text(const char *bytes, size_t size, const char *text)
{
    size_t length = strlen(text);

    if (memcmp(bytes, text, size < length ? size : length) != 0)
        return 0;
    return size < length ? MORE : 1;
}

/* Returns the number of bytes in the first `lines` lines, or MORE if these lines have not come
 * yet. */
static int size_of_first_lines(const char *bytes, size_t size, int lines)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] == '\n' && --lines == 0)
            return (int)i + 1;
    }
    return MORE;
}

/* Read a decimal number that is followed by the byte `end`. Returns false if there is no such
 * number. */
static bool parse_number_until_byte(const char *bytes, char end, uint64_t *ret_number)
{
    *ret_number = 0;
    for (; *bytes >= '0' && *bytes <= '9' && *ret_number < 1000000; bytes++)
        *ret_number = *ret_number * 10 + (uint64_t)(*bytes - '0');
    return *bytes == end;
}

/* Returns the size in bytes of the null array with which the bytes begin; 0 if they begin with
 * something else; or MORE. */
static int size_of_null_reply(const char *bytes, size_t size)
{
    int is_null = do_bytes_begin_with_text(bytes, size, "*-1\r\n");

    if (is_null == 0)
        is_null = do_bytes_begin_with_text(bytes, size, "_\r\n");
    return is_null != 1 ? is_null : bytes[0] == '*' ? 5 : 3;
}

/* --- answers that the model does not know ----------------------------------------------------- */

/* Each of the functions that check an answer returns the answer's size in bytes, or MORE (it has
 * not come whole), or WRONG. */

static int check_answer_of_common_counter(domt_kv_client *client, domt_kv_counter *counter,
                                          const char *bytes, size_t size, bool is_next)
{
    int used = size_of_first_lines(bytes, size, 1);
    uint64_t number;

    if (used < 0)
        return used;
    if (bytes[0] != ':' || !parse_number_until_byte(bytes + 1, '\r', &number) || number < 1 ||
        number > counter->sent || counter->given[number] ||
        (is_next && number != client->number_read + 1))
        return WRONG;
    counter->given[number] = true;
    client->number_read = number;
    return used;
}

static int check_integer_reply(const char *bytes, size_t size)
{
    uint64_t number;
    int used = size_of_first_lines(bytes, size, 1);

    if (used < 0)
        return used;
    return bytes[0] == ':' && parse_number_until_byte(bytes + 1, '\r', &number) ? used : WRONG;
}

static int check_answer_to_hello(const char *bytes, size_t size)
{
    for (size_t i = 0; i + 4 <= size; i++) {
        if (memcmp(bytes + i, "*0\r\n", 4) == 0)
            return (int)i + 4;
    }
    return bytes[0] == '*' || bytes[0] == '%' ? MORE : WRONG;
}

/* Check the answer to a transaction that has watched the common counter: null, or a number. */
static int check_answer_to_watched_counter(domt_kv_client *client, domt_kv_counter *counter,
                                           const char *bytes, size_t size)
{
    int null = size_of_null_reply(bytes, size);

    if (null != 0) {
        counter->undone += null > 0;
        return null;
    }
    int head = do_bytes_begin_with_text(bytes, size, "*1\r\n");
    if (head != 1)
        return head == MORE ? MORE : WRONG;
    if (size == 4)
        return MORE;
    int used = check_answer_of_common_counter(client, counter, bytes + 4, size - 4, false);
    return used < 0 ? used : used + 4;
}

/* Check an element of the common queue, which must not have come to any client before. */
static int check_answer_with_queue_element(domt_kv_counter *counter, const char *bytes, size_t size)
{
    static const char head[] = "*2\r\n$5\r\nqueue\r\n$6\r\ne";
    size_t whole = sizeof head - 1 + 7;
    uint64_t number;
    int null = size_of_null_reply(bytes, size);

    if (null != 0)
        return null;
    int is_head = do_bytes_begin_with_text(bytes, size, head);
    if (is_head == 0)
        return WRONG;
    if (size < whole)
        return MORE;
    if (!parse_number_until_byte(bytes + sizeof head - 1, '\r', &number) || number < 1 ||
        number > counter->pushed || counter->taken[number])
        return WRONG;
    counter->taken[number] = true;
    counter->takes++;
    return (int)whole;
}

/* Check whether a published message comes before the answer. Returns the size of the message in
 * bytes; 0 if there is no message; MORE; or WRONG. */
static int check_published_message(domt_kv_client *client, domt_kv_counter *counter,
                                   const char *bytes, size_t size)
{
    static const char head[] = "3\r\n$7\r\nmessage\r\n$3\r\nall\r\n$8\r\n";
    size_t whole = 1 + sizeof head - 1 + 10;
    uint64_t publisher, number;

    if (!client->hears || (bytes[0] != '>' && bytes[0] != '*'))
        return 0;
    int is_head = do_bytes_begin_with_text(bytes + 1, size - 1, head);
    if (is_head != 1)
        return is_head;
    if (size < whole)
        return MORE;
    const char *text = bytes + sizeof head;
    if (!parse_number_until_byte(text, ':', &publisher) || publisher >= DOMT_SWEEP_CLIENTS ||
        !parse_number_until_byte(text + 3, '\r', &number) || number <= client->heard[publisher])
        return WRONG;
    client->heard[publisher] = (uint32_t)number;
    counter->messages++;
    return (int)whole;
}

/* --- what comes ------------------------------------------------------------------------------- */

/* Check the received bytes for which a mark in `expected` stands. Returns their number, MORE, or
 * WRONG. `*ret_stays` becomes true if the mark also holds for the bytes that follow. */
static int check_received_bytes_for_mark(domt_kv_client *client, domt_kv_counter *counter,
                                         const char *bytes, size_t size, bool *ret_stays)
{
    char mark = client->expected[client->checked];
    int used;

    switch (mark) {
    case DOMT_KV_A_NUMBER:
    case DOMT_KV_THE_NEXT:
        return check_answer_of_common_counter(client, counter, bytes, size,
                                              mark == DOMT_KV_THE_NEXT);
    case DOMT_KV_A_COUNT:
        return check_integer_reply(bytes, size);
    case DOMT_KV_A_HELLO:
        return check_answer_to_hello(bytes, size);
    case DOMT_KV_PERHAPS:
        return check_answer_to_watched_counter(client, counter, bytes, size);
    case DOMT_KV_A_PIECE:
        return check_answer_with_queue_element(counter, bytes, size);
    case DOMT_KV_BEGIN:
    /* more bytes have come, and only a published message may come before the next answer */
    case DOMT_KV_MAY_END:
        used = check_published_message(client, counter, bytes, size);
        *ret_stays = used > 0;
        return used;
    case DOMT_KV_HEARS:
    case DOMT_KV_IS_DEAF:
        client->hears = mark == DOMT_KV_HEARS;
        return 0;
    default:
        return WRONG;
    }
}

/* Compare one received byte, or the bytes of one mark, with what is expected. Returns the number of
 * bytes, MORE, or WRONG. */
static int check_byte_or_mark(domt_kv_client *client, domt_kv_counter *counter, const char *bytes,
                              size_t size)
{
    bool stays = false;

    /* all expected answers have come, so only a published message may follow */
    if (client->checked == client->expected_size) {
        int used = check_published_message(client, counter, bytes, size);
        return used == 0 ? WRONG : used;
    }
    char wanted = client->expected[client->checked];
    int used = domt_kv_is_mark_in_expected(wanted)
                   ? check_received_bytes_for_mark(client, counter, bytes, size, &stays)
               : bytes[0] == wanted ? 1
                                    : WRONG;
    client->checked += used >= 0 && !stays;
    return used;
}

static void print_wrong_answer_of_client(const domt_kv_client *client, const char *bytes,
                                         size_t size)
{
    size_t left = client->expected_size - client->checked;

    if (getenv("DOMUS_SEED") == NULL)
        return;
    printf("client %" PRIu32 ", byte %zu: got %.*s\nwanted %.*s\n", client->number, client->checked,
           (int)(size < 200 ? size : 200), bytes, (int)(left < 200 ? left : 200),
           client->expected + client->checked);
}

/* Go past the marks at the end of `expected` that stand for no bytes. */
static void skip_last_marks(domt_kv_client *client)
{
    for (; client->checked < client->expected_size; client->checked++) {
        char mark = client->expected[client->checked];
        if (mark != DOMT_KV_HEARS && mark != DOMT_KV_IS_DEAF)
            break;
        client->hears = mark == DOMT_KV_HEARS;
    }
}

void domt_kv_check_answers(domt_sweep *sweep, domt_kv_client *client, domt_kv_counter *counter)
{
    size_t size;
    const char *got = domus_peer_got(client->peer, &size);
    size_t at = 0;

    while (at < size && !sweep->has_failed) {
        int used = check_byte_or_mark(client, counter, got + at, size - at);
        if (used == MORE)
            break;
        if (used == WRONG)
            print_wrong_answer_of_client(client, got + at, size - at);
        DOMT_SWEEP_HOLD(sweep, used != WRONG);
        at += used > 0 ? (size_t)used : 0;
    }
    skip_last_marks(client);
    domus_peer_take(client->peer, at);
}

/* Returns whether a mark in `expected` stands for no bytes. */
static bool is_mark_without_bytes(char byte)
{
    return byte == DOMT_KV_BEGIN || byte == DOMT_KV_MAY_END || byte == DOMT_KV_HEARS ||
           byte == DOMT_KV_IS_DEAF;
}

bool domt_kv_has_all_answers(const domt_kv_client *client)
{
    size_t at = client->checked;

    if (client->is_done && at < client->expected_size && client->expected[at] == DOMT_KV_MAY_END)
        return true;
    while (at < client->expected_size && is_mark_without_bytes(client->expected[at]))
        at++;
    if (at < client->expected_size && getenv("DOMUS_SEED") != NULL)
        printf("client %" PRIu32 " lacks: %.*s\n", client->number,
               (int)(client->expected_size - at), client->expected + at);
    return at == client->expected_size;
}
