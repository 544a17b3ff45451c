/* The requests of `bench kv`: all of one kind, on keys that are used in turn, with every reply
 * checked. */
#ifndef DOMUS_BENCH_KV_LOAD_H
#define DOMUS_BENCH_KV_LOAD_H

#include "bench/request_load.h"

/* A kind of request: words with a space between each. KEY is replaced by a key, and VALUE by a
 * value of 32 bytes. */
struct kv_load_row {
    const char *name;
    const char *words;
    /* the begin of the reply's bytes; ":" means any integer, "$" means the value */
    const char *reply;
};

struct kv_load {
    struct request_load_kind kind; /* the kind for request_load_run() */
    /* offset of the key's digits in a request; 0: the request has no key */
    uint32_t digits_at;
    uint32_t keys;
    uint32_t next_key;
    uint32_t reply_size;
    char reply[REQUEST_LOAD_REQUEST_MAX]; /* the expected reply, if `reply_size` is not 0 */
};

/* Make the requests of a row, on `keys` keys. The load points into `load`, which therefore has to
 * stay where it is. */
void kv_load_make(struct kv_load *load, const struct kv_load_row *row, uint32_t keys);

#endif
