/* The bare contender of `bench cluster`: the text protocol of NATS by hand, on one blocking socket.
 *
 * This is the least that a round trip through nats-server costs. Each side has one thread, one
 * connection and one subscription. It reads the bytes that are there, handles all messages in them,
 * gathers what it has to send, and writes it by one call. Without a style each ask is a publication
 * of its own. With the style `batch`, all asks (or answers, or up to NOTICES_A_BATCH notices) that
 * are ready together are one publication, as a library may do that knows both ends. */
#include "bench/support/cluster_side.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define INPUT_MAX       65536u
#define OUTPUT_MAX      262144u
#define OUTPUT_ENOUGH   32768u /* gathered notices are written when they have this many bytes */
#define NOTICES_A_BATCH 64u
/* bytes of the head of a publication ("PUB", subject, reply, length), at most */
#define HEAD_MAX 128u

#define RESPONDER "dm.bare.r"
#define REQUESTER "dm.bare.q"

static struct cluster_side side;
static bool batches;
static int connection;

static char input[INPUT_MAX];
static size_t input_start, input_end;
static char output[OUTPUT_MAX];
static size_t output_length;

/* A message that was received from nats-server. `reply` is "" if it has none. */
struct message {
    char reply[HEAD_MAX];
    const char *payload;
    size_t length;
};

static _Noreturn void exit_with_error(const char *what)
{
    fprintf(stderr, "cluster_bare: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void write_output_to_server(void)
{
    size_t written = 0;

    while (written < output_length) {
        ssize_t more = write(connection, output + written, output_length - written);
        if (more < 0)
            exit_with_error("write");
        written += (size_t)more;
    }
    output_length = 0;
}

static void append_bytes_to_output(const void *bytes, size_t length)
{
    if (length > OUTPUT_MAX - output_length)
        write_output_to_server();
    memcpy(output + output_length, bytes, length);
    output_length += length;
}

static void append_number_to_output(uint64_t number)
{
    char digits[20];
    size_t count = 0;

    do {
        digits[sizeof digits - ++count] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    append_bytes_to_output(digits + sizeof digits - count, count);
}

/* Gather the head of a publication for the next write; the caller gathers its payload and "\r\n"
 * next. */
static void append_head_of_publication_to_output(const char *subject, const char *reply,
                                                 size_t length)
{
    append_bytes_to_output("PUB ", 4);
    append_bytes_to_output(subject, strlen(subject));
    append_bytes_to_output(" ", 1);
    if (reply[0] != '\0') {
        append_bytes_to_output(reply, strlen(reply));
        append_bytes_to_output(" ", 1);
    }
    append_number_to_output(length);
    append_bytes_to_output("\r\n", 2);
}

static void publish_payload(const char *subject, const char *reply, const void *payload,
                            size_t length)
{
    append_head_of_publication_to_output(subject, reply, length);
    append_bytes_to_output(payload, length);
    append_bytes_to_output("\r\n", 2);
}

/* Read what the socket has, and wait until more bytes have come. */
static void read_more_bytes_from_server(void)
{
    if (input_start > 0) {
        memmove(input, input + input_start, input_end - input_start);
        input_end -= input_start;
        input_start = 0;
    }
    if (input_end == INPUT_MAX) {
        errno = EMSGSIZE;
        exit_with_error("the server");
    }
    ssize_t more = read(connection, input + input_end, INPUT_MAX - input_end);
    if (more == 0) /* the bench has ended nats-server first, so this side ends, too */
        exit(0);
    if (more < 0)
        exit_with_error("read");
    input_end += (size_t)more;
}

/* Returns the decimal number at the end of a line. */
static size_t read_number_at_end_of_line(const char *line, const char *end)
{
    size_t number = 0;
    size_t factor = 1;

    for (const char *digit = end; digit > line && digit[-1] >= '0' && digit[-1] <= '9'; digit--) {
        number += (size_t)(digit[-1] - '0') * factor;
        factor *= 10;
    }
    return number;
}

/* Copy the reply subject of a line "MSG subject sid [reply] length" into a message, if it has
 * one. */
static void copy_reply_subject(const char *line, const char *end, struct message *message)
{
    const char *words[5] = {line, end, end, end, end};
    size_t count = 1;

    for (const char *at = line; at < end && count < 5; at++) {
        if (*at == ' ')
            words[count++] = at + 1;
    }
    size_t length = count == 5 ? (size_t)(words[4] - words[3]) - 1 : 0;
    if (length >= sizeof message->reply)
        length = 0;
    memcpy(message->reply, words[3], length);
    message->reply[length] = '\0';
}

/* Read the next line, and the payload behind it if the line is that of a message. Returns false if
 * more bytes have to come. `ret_message->payload` is NULL if the line is no message; its bytes stay
 * until the next read_more_bytes_from_server(). */
static bool read_line_or_message(struct message *ret_message)
{
    const char *line = input + input_start;
    size_t there = input_end - input_start;
    const char *end = memmem(line, there, "\r\n", 2);

    if (end == NULL)
        return false;
    size_t used = (size_t)(end - line) + 2;
    ret_message->payload = NULL;
    if (memcmp(line, "MSG ", 4) == 0) {
        size_t length = read_number_at_end_of_line(line, end);
        if (length + 2 > there - used)
            return false;
        copy_reply_subject(line, end, ret_message);
        ret_message->payload = end + 2;
        ret_message->length = length;
        used += length + 2;
    } else if (memcmp(line, "PING", 4) == 0) {
        append_bytes_to_output("PONG\r\n", 6);
    } else if (memcmp(line, "-ERR", 4) == 0) {
        fprintf(stderr, "cluster_bare: %.*s\n", (int)(end - line), line);
        exit(1);
    }
    input_start += used;
    return true;
}

/* Wait for the next message. Gathered bytes are written before that. */
static void wait_for_message(struct message *ret_message)
{
    for (;;) {
        while (read_line_or_message(ret_message)) {
            if (ret_message->payload != NULL)
                return;
        }
        write_output_to_server();
        read_more_bytes_from_server();
    }
}

static void connect_to_server(const char *subject)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(side.port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    const char connect_line[] =
        "CONNECT {\"verbose\":false,\"pedantic\":false,\"echo\":false,\"protocol\":1}\r\n";

    connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection < 0 || connect(connection, (struct sockaddr *)&address, sizeof address) != 0 ||
        setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)) != 0)
        exit_with_error("connect");
    append_bytes_to_output(connect_line, sizeof connect_line - 1);
    append_bytes_to_output("SUB ", 4);
    append_bytes_to_output(subject, strlen(subject));
    append_bytes_to_output(" 1\r\nPING\r\n", 10);
    write_output_to_server();
    /* the answer PONG means that the server has the subscription */
    for (;;) {
        struct message message;
        read_more_bytes_from_server();
        bool is_there = memmem(input, input_end, "PONG\r\n", 6) != NULL;
        while (read_line_or_message(&message))
            continue;
        if (is_there)
            break;
    }
    write_output_to_server();
}

/* ---- The responder ------------------------------------------------------------------------ */

/* Answer a publication that has one ask, or, with the style `batch`, several asks. */
static void answer_asks_of_publication(const struct message *message)
{
    append_head_of_publication_to_output(message->reply, "", message->length);
    for (size_t at = 0; at + CLUSTER_ASK_BYTES <= message->length; at += CLUSTER_ASK_BYTES) {
        struct cluster_words words;
        memcpy(&words, message->payload + at, sizeof words);
        words = cluster_side_right_answer_to_ask(words);
        append_bytes_to_output(&words, sizeof words);
    }
    append_bytes_to_output("\r\n", 2);
}

static _Noreturn void run_responder(void)
{
    struct cluster_words counts = {0, 0};

    connect_to_server(RESPONDER);
    cluster_side_print_ready();
    for (;;) {
        struct message message;
        wait_for_message(&message);
        if (message.reply[0] != '\0' && !side.notices) {
            answer_asks_of_publication(&message);
        } else if (message.reply[0] != '\0') {
            publish_payload(message.reply, "", &counts, sizeof counts);
        } else {
            for (size_t at = 0; at + CLUSTER_NOTICE_BYTES <= message.length;
                 at += CLUSTER_NOTICE_BYTES) {
                uint64_t number;
                memcpy(&number, message.payload + at, sizeof number);
                counts = cluster_side_counts_with_notice(counts, number);
            }
        }
    }
}

/* ---- The requester ------------------------------------------------------------------------ */

/* Send asks: with the style `batch` as one publication, otherwise as one publication each. */
static void send_asks_to_responder(const struct cluster_words *asks, size_t count)
{
    if (batches && count > 0) {
        publish_payload(RESPONDER, REQUESTER, asks, count * sizeof asks[0]);
        return;
    }
    for (size_t i = 0; i < count; i++)
        publish_payload(RESPONDER, REQUESTER, &asks[i], sizeof asks[i]);
}

/* Handle all answers in `message`, and append to `next` the asks that follow them; `count` grows by
 * their number. Returns false if an answer is wrong. */
static bool handle_answers(struct cluster_asks *asks, const struct message *message,
                           struct cluster_words *next, size_t *count)
{
    for (size_t at = 0; at + CLUSTER_ASK_BYTES <= message->length; at += CLUSTER_ASK_BYTES) {
        struct cluster_words words;
        memcpy(&words, message->payload + at, sizeof words);
        if (!cluster_asks_check_and_count_answer(asks, words))
            return false;
        words = (struct cluster_words){words.first + CLUSTER_UNDER_WAY, 0};
        if (words.first < asks->count)
            next[(*count)++] = words;
    }
    return true;
}

static const char *run_row_of_asks(void)
{
    static struct cluster_asks asks;
    struct cluster_words next[CLUSTER_UNDER_WAY];
    size_t count = 0;

    cluster_asks_init(&asks, side.count);
    for (uint64_t i = 0; i < CLUSTER_UNDER_WAY && i < side.count; i++)
        next[count++] = (struct cluster_words){i, 0};
    for (;;) {
        struct message message;
        send_asks_to_responder(next, count);
        count = 0;
        if (asks.answered == side.count)
            return NULL;
        wait_for_message(&message);
        do { /* this loop handles all messages that have come together */
            if (message.payload != NULL && !handle_answers(&asks, &message, next, &count))
                return "an answer";
        } while (read_line_or_message(&message));
    }
}

/* Wait for the answer to the oldest mark under way, and check it. The mark was sent after `sent`
 * notices. */
static bool await_right_answer_to_mark(uint64_t sent)
{
    struct message message;
    struct cluster_words counts;

    wait_for_message(&message);
    if (message.length != sizeof counts)
        return false;
    memcpy(&counts, message.payload, sizeof counts);
    return cluster_side_is_mark_answer_right(counts, sent);
}

/* Gather a publication of `count` notices, the first of which has the number `number`. */
static void append_publication_of_notices_to_output(uint64_t number, size_t count)
{
    char notice[CLUSTER_NOTICE_BYTES] = {0};

    append_head_of_publication_to_output(RESPONDER, "", count * sizeof notice);
    for (size_t i = 0; i < count; i++, number++) {
        memcpy(notice, &number, sizeof number);
        append_bytes_to_output(notice, sizeof notice);
    }
    append_bytes_to_output("\r\n", 2);
    if (output_length >= OUTPUT_ENOUGH)
        write_output_to_server();
}

static const char *run_row_of_notices(void)
{
    uint64_t sent = 0;
    /* number of notices that were sent before the last mark that was answered */
    uint64_t answered = 0;

    while (sent < side.count) {
        uint64_t until = sent + CLUSTER_NOTICES_A_MARK;
        until = until < side.count ? until : side.count;
        while (sent < until) {
            size_t count = batches ? NOTICES_A_BATCH : 1;
            count = count < until - sent ? count : (size_t)(until - sent);
            append_publication_of_notices_to_output(sent, count);
            sent += count;
        }
        publish_payload(RESPONDER, REQUESTER, &(struct cluster_words){0, 0}, CLUSTER_ASK_BYTES);
        if (sent - answered >= CLUSTER_MARKS_MAX * CLUSTER_NOTICES_A_MARK) {
            answered += CLUSTER_NOTICES_A_MARK;
            if (!await_right_answer_to_mark(answered))
                return "a mark";
        }
    }
    while (answered < side.count) {
        answered += CLUSTER_NOTICES_A_MARK;
        answered = answered < side.count ? answered : side.count;
        if (!await_right_answer_to_mark(answered))
            return "a mark";
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct message message;

    cluster_side_parse_or_exit(&side, argc, argv);
    batches = strcmp(side.style, "batch") == 0;
    if (side.responds)
        run_responder();
    connect_to_server(REQUESTER);
    publish_payload(RESPONDER, REQUESTER, &(struct cluster_words){0, 0}, CLUSTER_ASK_BYTES);
    wait_for_message(&message);
    cluster_side_print_ready_and_await_go(&side);
    cluster_side_print_result(&side, side.notices ? run_row_of_notices() : run_row_of_asks());
    return 0;
}
