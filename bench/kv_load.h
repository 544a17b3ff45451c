/* The requests of `bench kv`: of one kind each, on keys that take turns, with every
 * reply checked. */
#ifndef DOMUS_BENCH_KV_LOAD_H
#define DOMUS_BENCH_KV_LOAD_H

#include "bench/request_load.h"

/* A kind of request: words with a space between each. KEY is replaced by a key, and VALUE by a
 * value of 32 bytes. */
struct kv_load_row {
    const char *name;
    const char *words;
    const char *reply; /* as the bytes begin; ":" is any integer; "$" is the value */
};

struct kv_load {
    struct request_load_kind kind; /* the part that every load has */
    /* where the digits of the key are in a request; 0: there is no key */
    uint32_t digits_at;
    uint32_t keys;
    uint32_t next_key;
    uint32_t reply_size;
    char reply[REQUEST_LOAD_REQUEST_MAX]; /* as it must be, if its size is not 0 */
};

/* Make requests of a row, on `keys` keys. `load` has to stay where it is. */
void kv_load_make(struct kv_load *load, const struct kv_load_row *row, uint32_t keys);

#endif
