/* The head of a message: its start line and its fields, up to the empty line, as they are
 * read (lines.h). */
#ifndef DOMI_PROTOCOLS_HTTP_HEAD_H
#define DOMI_PROTOCOLS_HTTP_HEAD_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A head is that of a message, or trailers. */
typedef enum domi_http_kind {
    DOMI_HTTP_REQUEST,
    DOMI_HTTP_RESPONSE,
    DOMI_HTTP_TRAILERS, /* fields alone, none of which may frame a message */
} domi_http_kind;

/* The meaning of what was read. */
enum {
    DOMI_HTTP_HAS_LENGTH = 1,        /* Content-Length: `length` */
    DOMI_HTTP_CHUNKED = 2,           /* Transfer-Encoding: chunked */
    DOMI_HTTP_HAS_CODING = 4,        /* Transfer-Encoding */
    DOMI_HTTP_HAS_HOST = 8,          /* Host: `host_at`, `host_size` */
    DOMI_HTTP_CLOSE = 16,            /* Connection: close */
    DOMI_HTTP_KEEP_ALIVE = 32,       /* Connection: keep-alive */
    DOMI_HTTP_TO_UPGRADE = 64,       /* Connection: upgrade */
    DOMI_HTTP_HAS_UPGRADE = 128,     /* Upgrade */
    DOMI_HTTP_CONTINUE = 256,        /* Expect: 100-continue */
    DOMI_HTTP_EXPECTS = 512,         /* Expect with anything else */
    DOMI_HTTP_ESCAPED = 1024,        /* the target has a '%' */
    DOMI_HTTP_TAKES_TRAILERS = 2048, /* TE: trailers */
};

typedef struct domi_http_limits {
    uint32_t target_max; /* bytes */
    uint32_t head_max;   /* bytes, with the empty line at the end */
    uint32_t fields_max;
} domi_http_limits;

/* `{.kind = kind}` begins a head. */
typedef struct domi_http_head {
    uint8_t kind;         /* domi_http_kind */
    uint8_t method;       /* of a request: domus_http_method */
    uint8_t minor;        /* 0 or 1: HTTP/1.0 or HTTP/1.1 */
    bool begun;           /* the start line was read */
    uint16_t code;        /* of a response */
    uint16_t wrong;       /* the status that a peer gets for the bytes that were refused */
    uint32_t at;          /* the offset of the line that has not come whole */
    uint32_t looked;      /* bytes that were looked at */
    uint32_t fields;      /* fields that were read */
    uint32_t fields_at;   /* the offset of the first field */
    uint32_t target_at;   /* of a request */
    uint32_t target_size; /* bytes */
    uint32_t host_at;
    uint32_t host_size;
    uint32_t flags;
    uint32_t options; /* elements of Connection */
    uint64_t length;
} domi_http_head;

/* Note the status for bytes that are refused. Returns the error that belongs to it. */
static inline int domi_http_refuse(domi_http_head *head, unsigned status)
{
    head->wrong = (uint16_t)status;
    return status == 413 || status == 414 || status == 431 ? -EMSGSIZE : -EPROTO;
}

#endif
