/* Token buckets in a table of fixed size, which all threads share.
 *
 * A bucket is one word: a mark of its key, and the time at which the bucket will be full. A request
 * moves that time on by the time of one token, unless it would then be further away than an empty
 * bucket takes to fill: this is the generic cell rate algorithm, which is equivalent to counting
 * tokens. So each step is one compare-exchange. A time that has passed means a full bucket, and so
 * does a word of 0.
 *
 * Times are microseconds modulo 2^44 (203 days). A time that is further away than a bucket takes to
 * fill has passed, so the wrap of the clock does no harm. */
#ifndef DOMI_PROTOCOLS_HTTP_BUCKETS_H
#define DOMI_PROTOCOLS_HTTP_BUCKETS_H

#include <stdbool.h>
#include <stdint.h>

#define DOMI_HTTP_BUCKET_WAYS 8u /* words of one set of buckets, which fill a cache line */

/* How fast a bucket fills: the time for one token, and the time for all tokens, in us. */
typedef struct domi_http_rate {
    uint64_t token_us; /* us in which one token comes, at least 1 */
    uint64_t full_us;  /* us in which all tokens come: from `token_us` to 2^43 */
} domi_http_rate;

typedef struct domi_http_buckets {
    uint64_t key[2]; /* random key of the hash that selects a bucket's set */
    uint64_t mask;   /* number of sets minus 1, a mask */
    uint64_t *words; /* the words of all buckets, aligned to the size of a set */
    /* Rates that were set while the table was used (domi_http_set_rate_of_buckets()). The current
     * rate has the index `changes` modulo 2; if `changes` is 0, none was set. */
    domi_http_rate rates[2];
    uint32_t changes;
    bool is_changing; /* a thread writes the rate that is not current, so no other thread may */
} domi_http_buckets;

/* Make a table of `count` token buckets, a power of 2, at least 8, with a random key. Returns NULL
 * without memory or random bytes. */
domi_http_buckets *domi_http_buckets_new(uint32_t count);
void domi_http_buckets_free(domi_http_buckets *buckets);

/* Set a rate in place of that of the options; read the rate that was set. Setting returns 0; -EBUSY
 * while another thread sets one. Any thread. */
int domi_http_set_rate_of_buckets(domi_http_buckets *buckets, const domi_http_rate *rate);
bool domi_http_read_rate_set_at_runtime(const domi_http_buckets *buckets, domi_http_rate *ret_rate);

typedef struct domi_http_taken {
    bool is_taken;
    /* us until the bucket has a token; or, if a token was taken, until the bucket is full again */
    uint64_t left_us;
} domi_http_taken;

/* Take a token from the bucket that belongs to this hash of 64 well mixed bits. Any thread. */
domi_http_taken domi_http_take_token_from_bucket(domi_http_buckets *buckets, uint64_t hash,
                                                 uint64_t now_us, const domi_http_rate *rate);

#endif
