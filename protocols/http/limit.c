/* The part of a chain that limits the rate of requests (domus/http_limit.h). The word of an
 * exchange is the value for the field RateLimit. Runs on the thread of the connection; all threads
 * share the table of buckets. */
#include "protocols/http/buckets.h"
#include "protocols/http/client_address.h"
#include "protocols/http/fields.h"

#include <domus/http_limit.h>

#include <errno.h>
#include <nettle/sha2.h>
#include <sys/socket.h>

#define PERIOD_DEFAULT  UINT64_C(1000000000)
#define BUCKETS_DEFAULT 16384u
#define US              UINT64_C(1000)
#define SECOND_US       UINT64_C(1000000)
#define WORD_IS_SET     (UINT64_C(1) << 63)

/* --- options ---------------------------------------------------------------------------------- */

static uint64_t period_of_limit(const domus_http_limit *limit)
{
    return limit->period_ns != 0 ? limit->period_ns : PERIOD_DEFAULT;
}

static uint32_t burst_of_limit(const domus_http_limit *limit)
{
    return limit->burst != 0 ? limit->burst : limit->count;
}

/* Returns the rate that the options give. */
static domi_http_rate rate_given_by_options(const domus_http_limit *limit)
{
    uint64_t token_us = (period_of_limit(limit) + limit->count * US - 1) / (limit->count * US);

    return (domi_http_rate){token_us, token_us * burst_of_limit(limit)};
}

/* Returns the rate that holds now: that of the table if one was set there, else that of the
 * options. The table may be NULL. */
static domi_http_rate rate_that_holds_now(const domus_http_limit *limit,
                                          const domi_http_buckets *table)
{
    domi_http_rate rate;

    return table != NULL && domi_http_read_rate_set_at_runtime(table, &rate)
               ? rate
               : rate_given_by_options(limit);
}

static int check_options_of_limit(const void *options)
{
    const domus_http_limit *limit = options;

    if (limit == NULL || limit->count == 0 || period_of_limit(limit) > DOMUS_HTTP_LIMIT_SPAN_MAX ||
        limit->count > period_of_limit(limit) / US)
        return -EINVAL;
    if ((limit->buckets != 0 && limit->buckets < DOMI_HTTP_BUCKET_WAYS) ||
        limit->buckets > DOMUS_HTTP_LIMIT_BUCKETS_MAX || limit->v4_bits > 32 ||
        limit->v6_bits > 128 || limit->proxies > DOMUS_HTTP_LIMIT_PROXIES_MAX)
        return -EINVAL;
    return rate_given_by_options(limit).full_us > DOMUS_HTTP_LIMIT_SPAN_MAX / US ? -EINVAL : 0;
}

/* --- the table -------------------------------------------------------------------------------- */

/* Get the table of buckets; the first call makes it. The release of its compare-exchange makes the
 * table's contents visible to the acquire of other threads. Returns NULL without memory. */
static domi_http_buckets *get_table_of_buckets(domus_http_limit *limit)
{
    domi_http_buckets *table = __atomic_load_n(&limit->table, __ATOMIC_ACQUIRE);
    uint32_t count = DOMI_HTTP_BUCKET_WAYS;
    void *none = NULL;

    if (table != NULL)
        return table;
    while (count < (limit->buckets != 0 ? limit->buckets : BUCKETS_DEFAULT))
        count *= 2;
    table = domi_http_buckets_new(count);
    if (table == NULL || __atomic_compare_exchange_n(&limit->table, &none, table, false,
                                                     __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
        return table;
    /* another thread has made the table first, so that one is used */
    domi_http_buckets_free(table);
    return none;
}

int domus_http_limit_set(domus_http_limit *limit, uint32_t count, uint32_t burst,
                         uint64_t period_ns)
{
    domus_http_limit other = {.count = count, .burst = burst, .period_ns = period_ns};
    int error = check_options_of_limit(limit);

    if (error == 0)
        error = check_options_of_limit(&other);
    if (error != 0)
        return error;
    const domi_http_rate rate = rate_given_by_options(&other);
    domi_http_buckets *table = get_table_of_buckets(limit);
    return table != NULL ? domi_http_set_rate_of_buckets(table, &rate) : -ENOMEM;
}

void domus_http_limit_clear(domus_http_limit *limit)
{
    domi_http_buckets_free(__atomic_exchange_n(&limit->table, NULL, __ATOMIC_ACQUIRE));
}

/* --- keys of buckets -------------------------------------------------------------------------- */

static void clear_last_bits_of_address(domus_endpoint *client, uint32_t kept)
{
    for (uint32_t i = 0; i < client->size; i++) {
        uint32_t bits = kept > 8 * i ? kept - 8 * i : 0;
        if (bits < 8)
            client->bytes[i] &= (unsigned char)(0xff00u >> bits);
    }
}

/* Find the client whose bucket counts the request, or a hash of the request's key, which is stored
 * as if it were the name of a socket. Returns false if the request is not limited. */
static bool find_key_of_bucket(const domus_http_exchange *exchange,
                               const domus_http_request *request, const domus_http_limit *limit,
                               domus_endpoint *ret_holder)
{
    const void *key;
    size_t size;

    if (limit->key != NULL) {
        struct sha256_ctx context;
        if (!limit->key(exchange, request, &key, &size))
            return false;
        sha256_init(&context);
        sha256_update(&context, size, key);
        *ret_holder = (domus_endpoint){.family = AF_UNIX, .size = SHA256_DIGEST_SIZE};
        sha256_digest(&context, SHA256_DIGEST_SIZE, ret_holder->bytes);
        return true;
    }
    domi_http_find_client_address(exchange, request->fields, limit->proxies, ret_holder);
    ret_holder->scope = 0;
    if (ret_holder->family == AF_INET)
        clear_last_bits_of_address(ret_holder, limit->v4_bits != 0 ? limit->v4_bits : 32);
    else if (ret_holder->family == AF_INET6)
        clear_last_bits_of_address(ret_holder, limit->v6_bits != 0 ? limit->v6_bits : 64);
    else
        return false;
    return true;
}

/* --- entering and leaving the chain ----------------------------------------------------------- */

static uint64_t seconds_rounded_up(uint64_t us)
{
    return (us + SECOND_US - 1) / SECOND_US;
}

static int refuse_request_over_limit(domus_stack *stack, uint64_t left_us)
{
    domus_appender fields = {0};

    (void)domus_http_add_number(&fields, "Retry-After", seconds_rounded_up(left_us));
    return domus_http_answer(stack, 429, &fields, NULL, NULL);
}

static int count_request_against_limit(domus_stack *stack, domus_http_exchange *exchange,
                                       domus_http_request *request, const void *options)
{
    /* const is cast away, because only the table of buckets changes, which is no option of the
     * user */
    domus_http_limit *limit = (domus_http_limit *)(uintptr_t)options;
    domus_endpoint holder;

    if (!find_key_of_bucket(exchange, request, limit, &holder))
        return 0;
    domi_http_buckets *table = get_table_of_buckets(limit);
    if (table == NULL)
        return -ENOMEM;
    const domi_http_rate rate = rate_that_holds_now(limit, table);
    uint64_t hash = domus_endpoint_hash(&holder, table->key, false);
    domi_http_taken taken =
        domi_http_take_token_from_bucket(table, hash, exchange->begun_ns / US, &rate);
    uint64_t tokens = taken.is_taken ? (rate.full_us - taken.left_us) / rate.token_us : 0;
    *exchange->word = WORD_IS_SET | seconds_rounded_up(taken.left_us) << 32 | tokens;
    return taken.is_taken ? 0 : refuse_request_over_limit(stack, taken.left_us);
}

static void add_ratelimit_field(domus_http_exchange *exchange, domus_http_leaving *leaving,
                                const void *options)
{
    const domus_http_limit *limit = options;
    uint64_t word = *exchange->word;

    if (!limit->tells || word == 0)
        return;
    /* Acquire: pairs with the release in get_table_of_buckets(), so that the table is seen
     * complete. */
    const domi_http_rate rate =
        rate_that_holds_now(limit, __atomic_load_n(&limit->table, __ATOMIC_ACQUIRE));
    (void)domus_append_text(leaving->added, "RateLimit-Policy: \"default\";q=%llu;w=%llu\r\n",
                            (unsigned long long)(rate.full_us / rate.token_us),
                            (unsigned long long)seconds_rounded_up(rate.full_us));
    (void)domus_append_text(leaving->added, "RateLimit: \"default\";r=%u;t=%u\r\n", (uint32_t)word,
                            (uint32_t)(word >> 32) & 0x7fffffffu);
}

const domus_http_part domus_http_limits = {.name = "limits",
                                           .check = check_options_of_limit,
                                           .enter = count_request_against_limit,
                                           .leave = add_ratelimit_field};
