/* Token buckets, by which requests are limited (buckets.h). All accesses of the buckets' words are
 * relaxed: a word is complete by itself and guards nothing else. */
#include "protocols/http/buckets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define TIME_BITS 44u
#define TIME_MASK ((UINT64_C(1) << TIME_BITS) - 1)
#define SET_BYTES (DOMI_HTTP_BUCKET_WAYS * sizeof(uint64_t))
#define AHEAD_US  60000000u
/* times that one call tries to change a word, if other threads change the same word each time */
#define TRIES_MAX 64

domi_http_buckets *domi_http_buckets_new(uint32_t count)
{
    domi_http_buckets *buckets = calloc(1, sizeof *buckets);

    if (buckets == NULL)
        return NULL;
    buckets->mask = count / DOMI_HTTP_BUCKET_WAYS - 1;
    buckets->words = aligned_alloc(SET_BYTES, count * sizeof(uint64_t));
    if (buckets->words == NULL ||
        getrandom(buckets->key, sizeof buckets->key, 0) != (ssize_t)sizeof buckets->key) {
        domi_http_buckets_free(buckets);
        return NULL;
    }
    memset(buckets->words, 0, count * sizeof(uint64_t));
    return buckets;
}

void domi_http_buckets_free(domi_http_buckets *buckets)
{
    if (buckets == NULL)
        return;
    free(buckets->words);
    free(buckets);
}

/* Returns the time in us until a bucket is full; 0: it is full. The clock of another thread may be
 * ahead, so a bucket that was just emptied may take a little longer than a whole filling. */
static uint64_t time_until_bucket_is_full(uint64_t word, uint64_t now_us,
                                          const domi_http_rate *rate)
{
    uint64_t left = (word - now_us) & TIME_MASK;

    if (word == 0 || left > rate->full_us + AHEAD_US)
        return 0; /* the time in the word has passed, so the bucket is full */
    return left < rate->full_us ? left : rate->full_us;
}

/* Find the word of a bucket in its set: the word with the bucket's mark, or else the word that is
 * nearest to full, which is replaced. */
static uint64_t *find_or_replace_word_of_bucket(uint64_t *set, uint64_t mark, uint64_t now_us,
                                                const domi_http_rate *rate, uint64_t *ret_seen)
{
    uint64_t *best = set;
    uint64_t best_left = UINT64_MAX;

    for (uint32_t i = 0; i < DOMI_HTTP_BUCKET_WAYS; i++) {
        uint64_t word = __atomic_load_n(&set[i], __ATOMIC_RELAXED);
        if (word >> TIME_BITS == mark) {
            *ret_seen = word;
            return &set[i];
        }
        uint64_t left = time_until_bucket_is_full(word, now_us, rate);
        if (left < best_left) {
            best = &set[i];
            best_left = left;
            *ret_seen = word;
        }
    }
    return best;
}

domi_http_taken domi_http_take_token_from_bucket(domi_http_buckets *buckets, uint64_t hash,
                                                 uint64_t now_us, const domi_http_rate *rate)
{
    uint64_t *set = buckets->words + (hash & buckets->mask) * DOMI_HTTP_BUCKET_WAYS;
    uint64_t mark = hash >> TIME_BITS != 0 ? hash >> TIME_BITS : 1;
    uint64_t left = 0;

    for (int tries = 0; tries < TRIES_MAX; tries++) {
        uint64_t seen = 0;
        uint64_t *word = find_or_replace_word_of_bucket(set, mark, now_us, rate, &seen);
        left = seen >> TIME_BITS == mark ? time_until_bucket_is_full(seen, now_us, rate) : 0;
        if (left + rate->token_us > rate->full_us)
            return (domi_http_taken){false, left + rate->token_us - rate->full_us};
        uint64_t next = mark << TIME_BITS | ((now_us + left + rate->token_us) & TIME_MASK);
        if (__atomic_compare_exchange_n(word, &seen, next, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            break;
    }
    return (domi_http_taken){true, left + rate->token_us};
}

/* --- changing the rate ------------------------------------------------------------------------ */

int domi_http_set_rate_of_buckets(domi_http_buckets *buckets, const domi_http_rate *rate)
{
    /* Acquire: pairs with the release at the end of this function, so that the rates that the last
     * setter wrote are complete. */
    if (__atomic_exchange_n(&buckets->is_changing, true, __ATOMIC_ACQUIRE))
        return -EBUSY;
    uint32_t changes = __atomic_load_n(&buckets->changes, __ATOMIC_RELAXED) + 1;
    /* a count that has wrapped skips 0, which means that no rate was set */
    changes += changes == 0;
    domi_http_rate *to = &buckets->rates[changes % 2];
    /* Release, for the members and the count of changes: a reader that sees a half-written rate,
     * because it read an old count, then sees that `changes` has moved on. */
    __atomic_store_n(&to->token_us, rate->token_us, __ATOMIC_RELEASE);
    __atomic_store_n(&to->full_us, rate->full_us, __ATOMIC_RELEASE);
    __atomic_store_n(&buckets->changes, changes, __ATOMIC_RELEASE);
    __atomic_store_n(&buckets->is_changing, false, __ATOMIC_RELEASE);
    return 0;
}

bool domi_http_read_rate_set_at_runtime(const domi_http_buckets *buckets, domi_http_rate *ret_rate)
{
    /* Acquire, for all loads: they pair with the releases of a setter. The loop is repeated only if
     * a rate was set meanwhile. */
    uint32_t changes = __atomic_load_n(&buckets->changes, __ATOMIC_ACQUIRE);
    uint32_t before;

    do {
        const domi_http_rate *from = &buckets->rates[changes % 2];

        if (changes == 0)
            return false;
        before = changes;
        ret_rate->token_us = __atomic_load_n(&from->token_us, __ATOMIC_ACQUIRE);
        ret_rate->full_us = __atomic_load_n(&from->full_us, __ATOMIC_ACQUIRE);
        changes = __atomic_load_n(&buckets->changes, __ATOMIC_ACQUIRE);
    } while (changes != before);
    return true;
}
