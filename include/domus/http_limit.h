/* Rate limits: how many requests an address, or whatever a key says, may make, as a part of a
 * chain.
 *
 *     static domus_http_limit limit = {.count = 100, .period_ns = 60000000000, .burst = 20};
 *     ... {&domus_http_limits, &limit} in the chain, or among the parts of a row
 *
 * Each address has a bucket of `burst` tokens, which is full at first and gets `count` tokens in
 * `period_ns`, one by one. A request takes a token. Without one it is answered with 429, without a
 * body (domus/http_problem.h gives it one), and Retry-After says in how many seconds, rounded up,
 * there is a token again. Behind a part that has answered no token is taken.
 *
 * An address is that of the client (domus_channel_peer()): of IPv4 as a whole, of IPv6 the first 64
 * bits, because a customer gets so many addresses. Behind proxies that add to X-Forwarded-For, say
 * with `proxies` how many there are: the address is the one that the outermost of them has added,
 * which a stranger cannot choose. A client without an address (of a Unix socket) is not limited.
 *
 * **Memory** is fixed: 8 bytes for each of `buckets`, taken at the first request. The table is one
 * for all threads and connections that have the same options, so a limit holds for the whole
 * program, and no lock is taken. A bucket has its place in one of 8 words of a cache line. If
 * these are in use, the bucket that is nearest to full gives way, whose client has the least to
 * gain from a new one: so strangers with many addresses cannot free those who are limited, nor
 * shut others out. Two addresses with the same line share a bucket once in 2^20; nobody can
 * choose such addresses, because the places are drawn by a random key.
 *
 * **Exactness.** The time between two tokens is period / count, rounded up to microseconds.
 *
 * Thread-safety: any thread. */
#ifndef DOMUS_HTTP_LIMIT_H
#define DOMUS_HTTP_LIMIT_H

#include <domus/http_chain.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The greatest values of fields of domus_http_limit. */
#define DOMUS_HTTP_LIMIT_BUCKETS_MAX (1u << 24)
#define DOMUS_HTTP_LIMIT_SPAN_MAX    UINT64_C(86400000000000) /* ns */
#define DOMUS_HTTP_LIMIT_PROXIES_MAX 8u

/* Options of the part domus_http_limits, and its table. It is the caller's, and valid as long as
 * the chain is used; its fields are not changed then: domus_http_limit_set() gives another
 * limit. */
typedef struct domus_http_limit {
    /* tokens that a bucket gets in each period, from 1 up to one in a microsecond */
    uint32_t count;
    /* tokens that a full bucket has; 0: `count`. A bucket may take up to a day to fill up */
    uint32_t burst;
    uint64_t period_ns; /* length of the period, up to a day; 0 means 1 s */
    /* number of buckets in the table, 8..DOMUS_HTTP_LIMIT_BUCKETS_MAX, rounded up to a power of 2;
     * 0 means 16,384 */
    uint32_t buckets;
    /* number of trusted proxies that have added to X-Forwarded-For, up to
     * DOMUS_HTTP_LIMIT_PROXIES_MAX; 0: the field is not looked at */
    uint32_t proxies;
    /* leading bits of an IPv4 address by which clients are told apart, 1..32; 0 means 32 */
    uint8_t v4_bits;
    /* leading bits of an IPv6 address by which clients are told apart, 1..128; 0 means 64 */
    uint8_t v6_bits;
    /* whether answers get the fields RateLimit-Policy and RateLimit
     * (draft-ietf-httpapi-ratelimit-headers-10) */
    bool tells;
    /* A function that says for whom a request counts: a part of the request (an API key), or the
     * user of the exchange, or anything else that is valid until the call returns. Returns true;
     * false: the request is not limited. NULL: the request counts for its address. */
    bool (*key)(const domus_http_exchange *exchange, const domus_http_request *request,
                const void **ret_key, size_t *ret_size);
    void *table; /* the table of buckets, for the library alone; NULL at first */
} domus_http_limit;

DOMUS_API extern const domus_http_part domus_http_limits;

/* Let the limit be another one from now on: `count`, `burst` and `period_ns` with the meanings,
 * bounds and defaults of the fields, which stay as they are. Each request sees the old limit or the
 * new one. Buckets stay as full as they are in time: one that was to be full in 3 s is so still,
 * but one that would take longer than a whole bucket now takes is full at once.
 *
 * Returns 0; -EINVAL; -ENOMEM when there is no table yet and no memory for one; -EBUSY while
 * another thread does the same. Thread-safety: any thread, while the chain is used. */
DOMUS_API int domus_http_limit_set(domus_http_limit *limit, uint32_t count, uint32_t burst,
                                   uint64_t period_ns);

/* Free the table, at the end of a program or of a test, when no chain uses it. All buckets are full
 * then, and the limit is that of the fields again. */
DOMUS_API void domus_http_limit_clear(domus_http_limit *limit);

#ifdef __cplusplus
}
#endif

#endif
