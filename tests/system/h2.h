/* Frames of HTTP/2 (RFC 9113) as a test writes and reads them: without a library, so that it can
 * send frames that no library would. A connection is a plain socket with prior knowledge.
 *
 * Fields are a text of lines "name: value\n". In a value "@A" is the address of the server, "@P"
 * the requested path, and "%N" as many bytes as the number N says. The fields become literals
 * without indexing (RFC 7541, 6.2.2), not in Huffman's code. */
#ifndef DOMT_H2_H
#define DOMT_H2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DOMT_H2_DATA,
    DOMT_H2_HEADERS,
    DOMT_H2_PRIORITY,
    DOMT_H2_RST_STREAM,
    DOMT_H2_SETTINGS,
    DOMT_H2_PUSH_PROMISE,
    DOMT_H2_PING,
    DOMT_H2_GOAWAY,
    DOMT_H2_WINDOW_UPDATE,
    DOMT_H2_CONTINUATION,
    DOMT_H2_PRIORITY_UPDATE = 0x10,
    DOMT_H2_UNKNOWN_TYPE = 0x16, /* a type that HTTP/2 does not define */
};

/* Flags of frames; ACK belongs to SETTINGS and PING. */
#define DOMT_H2_ACK         0x01u
#define DOMT_H2_END_STREAM  0x01u
#define DOMT_H2_END_HEADERS 0x04u
#define DOMT_H2_PADDED      0x08u
#define DOMT_H2_PRIORITIZED 0x20u

enum {
    DOMT_H2_NO_ERROR,
    DOMT_H2_PROTOCOL_ERROR,
    DOMT_H2_INTERNAL_ERROR,
    DOMT_H2_FLOW_CONTROL_ERROR,
    DOMT_H2_SETTINGS_TIMEOUT,
    DOMT_H2_STREAM_CLOSED,
    DOMT_H2_FRAME_SIZE_ERROR,
    DOMT_H2_REFUSED_STREAM,
    DOMT_H2_CANCEL,
    DOMT_H2_COMPRESSION_ERROR,
    DOMT_H2_CONNECT_ERROR,
    DOMT_H2_ENHANCE_YOUR_CALM,
};

enum {
    DOMT_H2_TABLE_SIZE = 1,
    DOMT_H2_ENABLE_PUSH,
    DOMT_H2_MAX_STREAMS,
    DOMT_H2_INITIAL_WINDOW,
    DOMT_H2_MAX_FRAME,
    DOMT_H2_MAX_HEAD,
    DOMT_H2_SETTINGS_KNOWN,
};

#define DOMT_H2_GET                                                                                \
    ":method: GET\n"                                                                               \
    ":scheme: http\n"                                                                              \
    ":path: @P\n"                                                                                  \
    ":authority: @A\n"
#define DOMT_H2_POST                                                                               \
    ":method: POST\n"                                                                              \
    ":scheme: http\n"                                                                              \
    ":path: @P\n"                                                                                  \
    ":authority: @A\n"

/* --- frames to send --------------------------------------------------------------------------- */

#define DOMT_H2_ROOM 65536u

/* Bytes of frames that are collected and sent at once. A frame that does not fit fails the test. */
typedef struct domt_h2_bytes {
    size_t size;
    uint8_t data[DOMT_H2_ROOM];
} domt_h2_bytes;

void domt_h2_add_bytes(domt_h2_bytes *to, const void *bytes, size_t size);
void domt_h2_add_u32(domt_h2_bytes *to, uint32_t number);

/* Add a frame with its head. `claimed` is the length in the head, which may be wrong. */
void domt_h2_add_frame(domt_h2_bytes *to, uint8_t type, uint8_t flags, uint32_t stream,
                       const void *payload, size_t size);
void domt_h2_add_frame_head(domt_h2_bytes *to, uint8_t type, uint8_t flags, uint32_t stream,
                            size_t claimed);

/* Add a frame with a number as its payload: RST_STREAM or WINDOW_UPDATE. */
void domt_h2_add_number_frame(domt_h2_bytes *to, uint8_t type, uint32_t stream, uint32_t number);
/* Add SETTINGS with one setting. */
void domt_h2_add_settings_frame(domt_h2_bytes *to, uint16_t name, uint32_t value);
/* Add HEADERS with these fields. */
void domt_h2_add_headers_frame(domt_h2_bytes *to, uint8_t flags, uint32_t stream,
                               const char *fields);

/* Add a block of fields without the head of a frame. */
void domt_h2_add_field_block(domt_h2_bytes *to, const char *fields);

/* --- connections ------------------------------------------------------------------------------ */

typedef struct domt_h2_frame {
    uint8_t type;
    uint8_t flags;
    uint32_t stream;
    uint32_t size;
    const uint8_t *payload; /* valid until the next frame is read */
} domt_h2_frame;

typedef struct domt_h2 {
    int fd;
    bool is_closed;   /* the server has closed the connection, by FIN or RST */
    bool is_nonsense; /* the server has sent frames larger than the test allows, or no frames */
    uint32_t settings[DOMT_H2_SETTINGS_KNOWN]; /* values of the settings that the server has sent */
    bool has[DOMT_H2_SETTINGS_KNOWN]; /* for each setting: true if the server has sent it */
    size_t at, end;                   /* bounds of the bytes in `in` that are not taken yet */
    uint8_t in[32768];
} domt_h2;

/* The texts for "@A" and "@P" in fields: the address of the server, and the requested path. */
extern char domt_h2_authority[64];
extern char domt_h2_path[256];

/* Connect to the port on 127.0.0.1, and send nothing. Returns whether that succeeded. */
void domt_h2_connect(domt_h2 *h2, uint16_t port);

/* Connect, and exchange settings until both sides have acknowledged. Returns whether that
 * succeeded. */
bool domt_h2_open_connection(domt_h2 *h2, uint16_t port);

/* Close the connection by FIN, or by RST. */
void domt_h2_close_connection(domt_h2 *h2, bool reset);

/* Send all collected bytes, and remove them. It is no failure if the server has closed the
 * connection. */
void domt_h2_send(domt_h2 *h2, domt_h2_bytes *bytes);

typedef enum domt_h2_read {
    DOMT_H2_FRAME,
    DOMT_H2_END,  /* the connection is closed */
    DOMT_H2_LATE, /* nothing has come in time */
} domt_h2_read;

/* Read the next frame within `ms`. Settings and pings of the server are acknowledged. */
domt_h2_read domt_h2_read_next_frame(domt_h2 *h2, uint32_t ms, domt_h2_frame *ret_frame);

/* Returns a number of 32 bits from the bytes of a frame. */
uint32_t domt_h2_u32_of_bytes(const uint8_t *bytes);

#endif
