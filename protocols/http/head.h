/* The head of a message, up to its empty line, while it is read (heads.h). */
#ifndef DOMI_PROTOCOLS_HTTP_HEAD_H
#define DOMI_PROTOCOLS_HTTP_HEAD_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kind of a head: that of a request or response, or trailers. */
typedef enum domi_http_kind {
    DOMI_HTTP_REQUEST,
    DOMI_HTTP_RESPONSE,
    DOMI_HTTP_TRAILERS, /* fields alone, none of which may frame a message */
} domi_http_kind;

/* Flags for what the head tells. */
enum {
    DOMI_HTTP_HAS_LENGTH = 1,        /* Content-Length was read to `length` */
    DOMI_HTTP_CHUNKED = 2,           /* Transfer-Encoding: chunked */
    DOMI_HTTP_HAS_CODING = 4,        /* Transfer-Encoding */
    DOMI_HTTP_HAS_HOST = 8,          /* Host was read to `host_at` and `host_size` */
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
    uint32_t target_max; /* bytes of the target, at most */
    uint32_t head_max;   /* bytes of the head with its empty line, at most */
    uint32_t fields_max;
} domi_http_limits;

/* `{.kind = kind}` begins a head. */
typedef struct domi_http_head {
    uint8_t kind;         /* domi_http_kind */
    uint8_t method;       /* the request's domus_http_method */
    uint8_t minor;        /* 0 or 1: HTTP/1.0 or HTTP/1.1 */
    bool begun;           /* the start line was read */
    uint16_t code;        /* status of a response */
    uint16_t wrong;       /* status of the answer for bytes that were refused */
    uint32_t at;          /* offset of the line that is incomplete */
    uint32_t looked;      /* bytes that were searched for a line end */
    uint32_t fields;      /* number of fields that were read */
    uint32_t fields_at;   /* the offset of the first field */
    uint32_t target_at;   /* offset of a request's target */
    uint32_t target_size; /* bytes */
    uint32_t host_at;
    uint32_t host_size;
    uint32_t flags;
    uint32_t options; /* number of elements of the field Connection */
    uint64_t length;
} domi_http_head;

/* Record the status for bytes that are refused. Returns the negative errno for it. */
static inline int domi_http_refuse(domi_http_head *head, unsigned status)
{
    head->wrong = (uint16_t)status;
    return status == 413 || status == 414 || status == 431 ? -EMSGSIZE : -EPROTO;
}

#endif
