/* Token buckets in a table of fixed size, for all threads.
 *
 * A bucket is one word: a mark of its key, and the time at which it will be full. A request moves
 * that time on by the time of one token, if it is then not further away than a whole bucket takes
 * to fill: this is the generic cell rate algorithm, which says the same as counting tokens. So each
 * step is one compare-exchange. A time that has passed is a full bucket, and so is a word of 0.
 *
 * Times are microseconds modulo 2^44 (203 days). One that is further away than a bucket takes to
 * fill is one that has passed, so a turn of the clock does no harm. */
#ifndef DOMI_PROTOCOLS_HTTP_BUCKETS_H
#define DOMI_PROTOCOLS_HTTP_BUCKETS_H

#include <stdbool.h>
#include <stdint.h>

#define DOMI_HTTP_BUCKET_WAYS 8u /* words of a set: a line of the cache */

/* How a bucket fills: the time of one token, and of all, in microseconds. */
typedef struct domi_http_rate {
    uint64_t token_us; /* 1.. */
    uint64_t full_us;  /* `token_us` or more, up to 2^43 */
} domi_http_rate;

typedef struct domi_http_buckets {
    uint64_t key[2]; /* of the hash that chooses sets */
    uint64_t mask;   /* sets - 1 */
    uint64_t *words; /* aligned to sets */
    /* The rate that was set while the table is used (domi_http_set_rate()). The one that holds is
     * that of `changes` modulo 2; with 0 changes none was set. */
    domi_http_rate rates[2];
    uint32_t changes;
    bool is_changing; /* a thread writes the other one */
} domi_http_buckets;

/* Make a table of `count` buckets, a power of 2 from 8 on, with a random key. NULL: no memory, or
 * no random bytes. */
domi_http_buckets *domi_http_buckets_new(uint32_t count);
void domi_http_buckets_free(domi_http_buckets *buckets);

/* Set another rate than that of the options; and read it, if one was set. Set returns 0; -EBUSY
 * while another thread does so. Any thread. */
int domi_http_set_rate(domi_http_buckets *buckets, const domi_http_rate *rate);
bool domi_http_read_rate(const domi_http_buckets *buckets, domi_http_rate *ret_rate);

typedef struct domi_http_taken {
    bool is_taken;
    uint64_t left_us; /* until there is a token again, or, if one was taken, until all are there */
} domi_http_taken;

/* Take a token of the bucket with this hash, of 64 mixed bits. Any thread. */
domi_http_taken domi_http_take_token(domi_http_buckets *buckets, uint64_t hash, uint64_t now_us,
                                     const domi_http_rate *rate);

#endif
