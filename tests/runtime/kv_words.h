/* The words of a client of a store (tests/runtime/kv_model.h): they write its next command, and
 * what it will hear. */
#ifndef DOMT_KV_WORDS_H
#define DOMT_KV_WORDS_H

#include "tests/runtime/kv_model.h"

/* Bytes of `expected` that stand for an answer which the model does not know. No value has them. */
#define DOMT_KV_A_NUMBER '\1' /* of the common counter */
#define DOMT_KV_A_HELLO  '\2' /* up to its last element, an empty array */

void domt_kv_expect_bytes(domt_kv_client *client, const void *bytes, size_t size);
void domt_kv_expect(domt_kv_client *client, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void domt_kv_expect_null(domt_kv_client *client);
void domt_kv_expect_text(domt_kv_client *client, const domt_kv_text *text);

/* Begin a command of `count` arguments with its name. */
void domt_kv_begin_command(domt_kv_client *client, uint32_t count, const char *name);
void domt_kv_write_bytes(domt_kv_client *client, const void *bytes, size_t size);
void domt_kv_write_argument(domt_kv_client *client, const void *bytes, size_t size);
void domt_kv_write_text(domt_kv_client *client, const domt_kv_text *text);
void domt_kv_write_key(domt_kv_client *client, uint32_t key);

void domt_kv_text_clear(domt_kv_text *text);
void domt_kv_text_set(domt_kv_text *text, domt_kv_text value);

uint32_t domt_kv_below(domt_sweep *sweep, uint32_t n);

/* A value by chance; the caller's. */
domt_kv_text domt_kv_make_value(domt_sweep *sweep);

#endif
