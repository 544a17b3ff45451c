/* The head of an HTTP/1.1 message, up to its empty line, while it is read (heads.h). */
#ifndef DOMI_PROTOCOLS_HTTP_HEAD_H
#define DOMI_PROTOCOLS_HTTP_HEAD_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kind of a head that is read: that of a request or of a response, or the trailers of a
 * body. */
typedef enum domi_http_kind {
    DOMI_HTTP_REQUEST,
    DOMI_HTTP_RESPONSE,
    DOMI_HTTP_TRAILERS, /* trailers: fields alone, none of which may tell where a message ends */
} domi_http_kind;

/* Flags for the fields that a head has, and for what they say. */
enum {
    DOMI_HTTP_HAS_LENGTH = 1, /* the head has Content-Length, which was read into `length` */
    DOMI_HTTP_CHUNKED = 2,    /* the head has Transfer-Encoding: chunked */
    DOMI_HTTP_HAS_CODING = 4, /* the head has the field Transfer-Encoding */
    /* the head has Host, whose value is at `host_at`, with `host_size` bytes */
    DOMI_HTTP_HAS_HOST = 8,
    DOMI_HTTP_CLOSE = 16,            /* the head has Connection: close */
    DOMI_HTTP_KEEP_ALIVE = 32,       /* the head has Connection: keep-alive */
    DOMI_HTTP_TO_UPGRADE = 64,       /* the head has Connection: upgrade */
    DOMI_HTTP_HAS_UPGRADE = 128,     /* the head has the field Upgrade */
    DOMI_HTTP_CONTINUE = 256,        /* the head has Expect: 100-continue */
    DOMI_HTTP_EXPECTS = 512,         /* the head has the field Expect with any other value */
    DOMI_HTTP_ESCAPED = 1024,        /* the target in the head has a '%', so maybe an escape */
    DOMI_HTTP_TAKES_TRAILERS = 2048, /* the head has TE: trailers */
};

typedef struct domi_http_limits {
    uint32_t target_max; /* bytes of a request's target, at most */
    uint32_t head_max;   /* bytes of a head with its empty line, at most */
    uint32_t fields_max;
} domi_http_limits;

/* A head while it is read; `{.kind = kind}` begins one. */
typedef struct domi_http_head {
    uint8_t kind;         /* kind of the head: domi_http_kind */
    uint8_t method;       /* method of the request: domus_http_method */
    uint8_t minor;        /* version of the message, 0 or 1: HTTP/1.0 or HTTP/1.1 */
    bool begun;           /* the start line of the head was read */
    uint16_t code;        /* status of the response */
    uint16_t wrong;       /* status of the answer, if the head's bytes were refused */
    uint32_t at;          /* offset in the head of the line that is still incomplete */
    uint32_t looked;      /* bytes of the head in which a line end was searched */
    uint32_t fields;      /* number of the head's fields that were read */
    uint32_t fields_at;   /* offset of the first field in the head */
    uint32_t target_at;   /* offset of the request's target in the head */
    uint32_t target_size; /* bytes of the request's target */
    uint32_t host_at;
    uint32_t host_size;
    uint32_t flags;
    uint32_t options; /* number of elements of the field Connection */
    uint64_t length;
} domi_http_head;

/* Record the status with which the bytes of a head are refused. Returns the negative errno for
 * it. */
static inline int domi_http_refuse_head(domi_http_head *head, unsigned status)
{
    head->wrong = (uint16_t)status;
    return status == 413 || status == 414 || status == 431 ? -EMSGSIZE : -EPROTO;
}

#endif
