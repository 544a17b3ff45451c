/* The requests of `bench kv`: all of one kind, on keys that are used in turn, with every reply
 * checked. */
#ifndef DOMUS_BENCH_KV_LOAD_H
#define DOMUS_BENCH_KV_LOAD_H

#include "bench/request_load.h"

/* A kind of request: words with a space between each. In them KEY stands for a key, and VALUE for a
 * value of 32 bytes. */
struct kv_load_row {
    const char *name;
    const char *words;
    /* the beginning of the reply's bytes; ":" stands for any integer, "$" for the value */
    const char *reply;
};

struct kv_load {
    struct request_load_kind kind; /* the kind of requests for request_load_run_to_its_end() */
    /* offset of the key's digits in the bytes of a request; 0: the request has no key */
    uint32_t digits_at;
    uint32_t keys;
    uint32_t next_key;
    uint32_t reply_size;
    /* the expected bytes of each reply, if `reply_size` is not 0 */
    char reply[REQUEST_LOAD_REQUEST_MAX];
};

/* Make the requests of a row, which use `keys` keys in turn. The kind points into `load`, which
 * therefore has to stay where it is. */
void kv_load_make_requests(struct kv_load *load, const struct kv_load_row *row, uint32_t keys);

#endif
