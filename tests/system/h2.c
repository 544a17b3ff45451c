/* Writes and reads frames of HTTP/2; tests/system/h2.h describes the form of fields. */
#include "tests/system/h2.h"

#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD_BYTES 9u
#define FRAME_MAX  16384u /* the largest frame until the server's SETTINGS allow more */
#define WAIT_MS    DOMT_SCALE(2000u, 10000u)

char domt_h2_authority[64];
char domt_h2_path[256] = "/";

/* --- frames to send --------------------------------------------------------------------------- */

void domt_h2_add_bytes(domt_h2_bytes *to, const void *bytes, size_t size)
{
    ck_assert_uint_le(size, sizeof to->data - to->size);
    if (size > 0)
        memcpy(to->data + to->size, bytes, size);
    to->size += size;
}

void domt_h2_add_u32(domt_h2_bytes *to, uint32_t number)
{
    const uint8_t bytes[] = {(uint8_t)(number >> 24), (uint8_t)(number >> 16),
                             (uint8_t)(number >> 8), (uint8_t)number};

    domt_h2_add_bytes(to, bytes, sizeof bytes);
}

void domt_h2_add_frame_head(domt_h2_bytes *to, uint8_t type, uint8_t flags, uint32_t stream,
                            size_t claimed)
{
    const uint8_t head[] = {(uint8_t)(claimed >> 16), (uint8_t)(claimed >> 8), (uint8_t)claimed,
                            type, flags};

    domt_h2_add_bytes(to, head, sizeof head);
    domt_h2_add_u32(to, stream);
}

void domt_h2_add_frame(domt_h2_bytes *to, uint8_t type, uint8_t flags, uint32_t stream,
                       const void *payload, size_t size)
{
    domt_h2_add_frame_head(to, type, flags, stream, size);
    domt_h2_add_bytes(to, payload, size);
}

void domt_h2_add_number_frame(domt_h2_bytes *to, uint8_t type, uint32_t stream, uint32_t number)
{
    domt_h2_add_frame_head(to, type, 0, stream, 4);
    domt_h2_add_u32(to, number);
}

void domt_h2_add_settings_frame(domt_h2_bytes *to, uint16_t name, uint32_t value)
{
    const uint8_t bytes[] = {(uint8_t)(name >> 8), (uint8_t)name};

    domt_h2_add_frame_head(to, DOMT_H2_SETTINGS, 0, 0, 6);
    domt_h2_add_bytes(to, bytes, sizeof bytes);
    domt_h2_add_u32(to, value);
}

/* Add a text with its length, whose prefix has seven bits (RFC 7541, 5.1). */
static void add_text_with_length(domt_h2_bytes *to, const char *text, size_t size)
{
    size_t rest = size;
    uint8_t byte = (uint8_t)(size < 127 ? size : 127);

    domt_h2_add_bytes(to, &byte, 1);
    if (size >= 127) {
        for (rest = size - 127; rest >= 128; rest >>= 7) {
            byte = (uint8_t)(0x80u | (rest & 0x7fu));
            domt_h2_add_bytes(to, &byte, 1);
        }
        byte = (uint8_t)rest;
        domt_h2_add_bytes(to, &byte, 1);
    }
    domt_h2_add_bytes(to, text, size);
}

static void add_field_value_with_placeholders(domt_h2_bytes *to, const char *text, size_t size)
{
    static char long_value[DOMT_H2_ROOM / 2];

    if (size == 2 && memcmp(text, "@A", 2) == 0) {
        add_text_with_length(to, domt_h2_authority, strlen(domt_h2_authority));
    } else if (size == 2 && memcmp(text, "@P", 2) == 0) {
        add_text_with_length(to, domt_h2_path, strlen(domt_h2_path));
    } else if (size > 1 && text[0] == '%') {
        size_t count = strtoul(text + 1, NULL, 10);
        ck_assert_uint_le(count, sizeof long_value);
        memset(long_value, 'x', count);
        add_text_with_length(to, long_value, count);
    } else {
        add_text_with_length(to, text, size);
    }
}

void domt_h2_add_field_block(domt_h2_bytes *to, const char *fields)
{
    /* first byte of a literal field without indexing, with its own name */
    static const uint8_t literal = 0;

    while (*fields != '\0') {
        const char *colon = strchr(fields + 1, ':');
        const char *end = strchr(fields, '\n');
        ck_assert(colon != NULL && end != NULL && colon + 2 <= end);
        domt_h2_add_bytes(to, &literal, 1);
        add_text_with_length(to, fields, (size_t)(colon - fields));
        add_field_value_with_placeholders(to, colon + 2, (size_t)(end - colon - 2));
        fields = end + 1;
    }
}

void domt_h2_add_headers_frame(domt_h2_bytes *to, uint8_t flags, uint32_t stream,
                               const char *fields)
{
    domt_h2_bytes *block = calloc(1, sizeof *block);

    ck_assert_ptr_nonnull(block);
    domt_h2_add_field_block(block, fields);
    domt_h2_add_frame(to, DOMT_H2_HEADERS, flags, stream, block->data, block->size);
    free(block);
}

/* --- connections ------------------------------------------------------------------------------ */

void domt_h2_connect(domt_h2 *h2, uint16_t port)
{
    const int on = 1;

    memset(h2, 0, sizeof *h2);
    h2->settings[DOMT_H2_MAX_FRAME] = FRAME_MAX;
    h2->settings[DOMT_H2_TABLE_SIZE] = 4096;
    h2->fd = domt_connect_to_port(port);
    ck_assert_int_ge(h2->fd, 0);
    (void)setsockopt(h2->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void domt_h2_close_connection(domt_h2 *h2, bool reset)
{
    domt_client_close(&(domt_client){.fd = h2->fd}, reset);
    h2->fd = -1;
}

void domt_h2_send(domt_h2 *h2, domt_h2_bytes *bytes)
{
    for (size_t sent = 0; sent < bytes->size && !h2->is_closed;) {
        ssize_t part = send(h2->fd, bytes->data + sent, bytes->size - sent, MSG_NOSIGNAL);
        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0)
            break; /* the next read reports that the connection is closed */
        sent += (size_t)part;
    }
    bytes->size = 0;
}

uint32_t domt_h2_u32_of_bytes(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Read more bytes of the connection, until `until_ns` at the latest. */
static domt_h2_read read_more_bytes(domt_h2 *h2, uint64_t until_ns)
{
    struct pollfd waiting = {.fd = h2->fd, .events = POLLIN};

    memmove(h2->in, h2->in + h2->at, h2->end - h2->at);
    h2->end -= h2->at;
    h2->at = 0;
    for (;;) {
        uint64_t now_ns = domt_monotonic_ns();
        int left_ms = now_ns < until_ns ? (int)((until_ns - now_ns) / 1000000u) + 1 : 0;
        if (poll(&waiting, 1, left_ms) <= 0 && domt_monotonic_ns() >= until_ns)
            return DOMT_H2_LATE;
        ssize_t part = recv(h2->fd, h2->in + h2->end, sizeof h2->in - h2->end, MSG_DONTWAIT);
        if (part > 0) {
            h2->end += (size_t)part;
            return DOMT_H2_FRAME;
        }
        if (part == 0 || (errno != EAGAIN && errno != EINTR)) {
            h2->is_closed = true;
            return DOMT_H2_END;
        }
    }
}

/* Read the server's SETTINGS, and acknowledge them. */
static void take_and_acknowledge_settings(domt_h2 *h2, const domt_h2_frame *frame)
{
    static const uint8_t answer[] = {0, 0, 0, DOMT_H2_SETTINGS, DOMT_H2_ACK, 0, 0, 0, 0};

    if ((frame->flags & DOMT_H2_ACK) != 0)
        return;
    for (uint32_t i = 0; i + 6 <= frame->size; i += 6) {
        uint32_t name = (uint32_t)frame->payload[i] << 8 | frame->payload[i + 1];
        if (name < DOMT_H2_SETTINGS_KNOWN) {
            h2->settings[name] = domt_h2_u32_of_bytes(frame->payload + i + 2);
            h2->has[name] = true;
        }
    }
    (void)send(h2->fd, answer, sizeof answer, MSG_NOSIGNAL);
}

static void acknowledge_ping(domt_h2 *h2, const domt_h2_frame *frame)
{
    uint8_t answer[HEAD_BYTES + 8] = {0, 0, 8, DOMT_H2_PING, DOMT_H2_ACK, 0, 0, 0, 0};

    if ((frame->flags & DOMT_H2_ACK) != 0 || frame->size != 8)
        return;
    memcpy(answer + HEAD_BYTES, frame->payload, 8);
    (void)send(h2->fd, answer, sizeof answer, MSG_NOSIGNAL);
}

/* Returns whether the received bytes begin with a whole frame. */
static bool take_frame_if_whole(domt_h2 *h2, domt_h2_frame *ret_frame)
{
    const uint8_t *head = h2->in + h2->at;
    size_t have = h2->end - h2->at;

    if (have < HEAD_BYTES)
        return false;
    uint32_t size = domt_h2_u32_of_bytes(head) >> 8;
    if (size > FRAME_MAX)
        h2->is_nonsense = true;
    if (h2->is_nonsense || have < HEAD_BYTES + size)
        return false;
    *ret_frame = (domt_h2_frame){head[3], head[4], domt_h2_u32_of_bytes(head + 5) & 0x7fffffffu,
                                 size, head + HEAD_BYTES};
    h2->at += HEAD_BYTES + size;
    return true;
}

domt_h2_read domt_h2_read_next_frame(domt_h2 *h2, uint32_t ms, domt_h2_frame *ret_frame)
{
    uint64_t until_ns = domt_monotonic_ns() + ms * UINT64_C(1000000);

    while (!take_frame_if_whole(h2, ret_frame)) {
        if (h2->is_nonsense)
            /* the server has sent no HTTP/2, perhaps text of HTTP/1.1: only the end of the
             * connection matters */
            h2->at = h2->end = 0;
        domt_h2_read result = h2->is_closed ? DOMT_H2_END : read_more_bytes(h2, until_ns);
        if (result != DOMT_H2_FRAME)
            return result;
    }
    if (ret_frame->type == DOMT_H2_SETTINGS)
        take_and_acknowledge_settings(h2, ret_frame);
    else if (ret_frame->type == DOMT_H2_PING)
        acknowledge_ping(h2, ret_frame);
    return DOMT_H2_FRAME;
}

bool domt_h2_open_connection(domt_h2 *h2, uint16_t port)
{
    /* payload of SETTINGS with an initial window of 65,535 */
    static const char begin[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                                "\0\0\6\4\0\0\0\0\0"
                                "\0\4\0\0\xff\xff";
    bool is_told = false;
    bool is_acknowledged = false;
    domt_h2_frame frame;

    domt_h2_connect(h2, port);
    (void)send(h2->fd, begin, sizeof begin - 1, MSG_NOSIGNAL);
    while (!is_told || !is_acknowledged) {
        if (domt_h2_read_next_frame(h2, WAIT_MS, &frame) != DOMT_H2_FRAME)
            return false;
        if (frame.type == DOMT_H2_SETTINGS && (frame.flags & DOMT_H2_ACK) != 0)
            is_acknowledged = true;
        else if (frame.type == DOMT_H2_SETTINGS)
            is_told = true;
    }
    return true;
}
