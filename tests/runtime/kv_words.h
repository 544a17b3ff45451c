/* The words of a client of a store (tests/runtime/kv_model.h): they write its next command, and
 * what it will hear. */
#ifndef DOMT_KV_WORDS_H
#define DOMT_KV_WORDS_H

#include "tests/runtime/kv_model.h"

/* Bytes of `expected` that stand for what the model does not know, or that tell something of the
 * answers behind them. No value has them. */
enum {
    DOMT_KV_A_NUMBER = 1, /* a value of the common counter */
    DOMT_KV_A_HELLO,      /* up to its last element, an empty array */
    DOMT_KV_THE_NEXT,     /* of the common counter, the one behind the last number */
    DOMT_KV_A_COUNT,      /* an integer, whatever it is */
    DOMT_KV_PERHAPS,      /* an EXEC with a number of the common counter, or null */
    DOMT_KV_A_PIECE,      /* an element of the common queue with the name of this, or null */
    DOMT_KV_BEGIN,        /* an answer begins, and there may be messages of others before it */
    DOMT_KV_MAY_END,      /* nothing more comes if the client had finished by then */
    DOMT_KV_HEARS = 14,   /* from here on there may be messages */
    DOMT_KV_IS_DEAF       /* and from here on none */
};

static inline bool domt_kv_is_mark(char byte)
{
    return (byte >= DOMT_KV_A_NUMBER && byte <= DOMT_KV_MAY_END) || byte == DOMT_KV_HEARS ||
           byte == DOMT_KV_IS_DEAF;
}

void domt_kv_expect_bytes(domt_kv_client *client, const void *bytes, size_t size);
void domt_kv_expect(domt_kv_client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void domt_kv_expect_null(domt_kv_client *client);
void domt_kv_expect_text(domt_kv_client *client, const domt_kv_text *text);

/* The null array. */
void domt_kv_expect_nothing(domt_kv_client *client);

/* Begin a command of `count` arguments with its name. */
void domt_kv_begin_command(domt_kv_client *client, uint32_t count, const char *name);
void domt_kv_write_bytes(domt_kv_client *client, const void *bytes, size_t size);
void domt_kv_write_argument(domt_kv_client *client, const void *bytes, size_t size);
void domt_kv_write_text(domt_kv_client *client, const domt_kv_text *text);
void domt_kv_write_key(domt_kv_client *client, uint32_t key);

/* Send what was written, and begin anew. */
void domt_kv_send_command(domt_kv_client *client);

void domt_kv_text_clear(domt_kv_text *text);
void domt_kv_text_set(domt_kv_text *text, domt_kv_text value);

uint32_t domt_kv_below(domt_sweep *sweep, uint32_t n);

/* A value by chance; the caller's. */
domt_kv_text domt_kv_make_value(domt_sweep *sweep);

#endif
