/* Times at which keys expire: EXPIRE, TTL, PERSIST and their like. */
#include "kv.h"

#include <string.h>
#include <time.h>

#define PAST 1 /* a time that has passed */

static int64_t wall_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

enum kv_time kv_time_named(domus_slice word)
{
    static const char *const words[] = {"EX", "PX", "EXAT", "PXAT"};

    for (uint32_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (domus_resp_is(word, words[i]))
            return (enum kv_time)(KV_SECONDS + i);
    }
    return KV_NO_TIME;
}

const char *kv_read_time(struct kv_call *call, uint32_t i, enum kv_time time, const char *invalid,
                         uint64_t *ret_ms)
{
    int64_t now = (int64_t)call->store->now_ms;
    bool is_date = time == KV_SECONDS_AT || time == KV_MS_AT;
    int64_t value;

    if (!kv_argument_integer(call, i, &value))
        return KV_NO_INTEGER;
    if (time == KV_SECONDS || time == KV_SECONDS_AT) {
        if (value > INT64_MAX / 1000 || value < INT64_MIN / 1000)
            return invalid;
        value *= 1000;
    }
    if (is_date)
        value -= value < INT64_MIN / 2 ? 0 : wall_ms();
    if (value > INT64_MAX - now || (is_date ? 0 : value < INT64_MIN + now))
        return invalid;
    *ret_ms = value <= 0 ? PAST : (uint64_t)(now + value);
    return NULL;
}

static int expire(struct kv_call *call, enum kv_time time, const char *invalid)
{
    uint64_t expires_ms = 0;
    const char *wrong = kv_read_time(call, 2, time, invalid, &expires_ms);
    struct kv_item **link = wrong == NULL ? kv_find(call) : NULL;

    if (wrong != NULL)
        return kv_error(call->stack, wrong);
    if (link == NULL)
        return kv_integer(call->stack, 0);
    if (call->command->count > 3) { /* NX, XX, GT, LT */
        domus_slice word = domus_resp_argument(call->command, 3);
        uint64_t before = (*link)->expires_ms != 0 ? (*link)->expires_ms : UINT64_MAX;
        bool holds = domus_resp_is(word, "NX")   ? before == UINT64_MAX
                     : domus_resp_is(word, "XX") ? before != UINT64_MAX
                     : domus_resp_is(word, "GT") ? expires_ms > before
                                                 : expires_ms < before;
        if (!holds)
            return kv_integer(call->stack, 0);
    }
    if (expires_ms == PAST)
        kv_store_remove(call->store, link);
    else
        kv_store_set_expiry(call->store, *link, expires_ms);
    return kv_integer(call->stack, 1);
}

int kv_run_expire(struct kv_call *call)
{
    return expire(call, KV_SECONDS, "ERR invalid expire time in 'expire' command");
}

int kv_run_pexpire(struct kv_call *call)
{
    return expire(call, KV_MS, "ERR invalid expire time in 'pexpire' command");
}

static int ttl(struct kv_call *call, uint64_t unit_ms)
{
    struct kv_item **link = kv_find(call);

    if (link == NULL || (*link)->expires_ms == 0)
        return kv_integer(call->stack, link == NULL ? -2 : -1);
    uint64_t left_ms = (*link)->expires_ms - call->store->now_ms;
    return kv_integer(call->stack, (int64_t)((left_ms + unit_ms / 2) / unit_ms));
}

int kv_run_ttl(struct kv_call *call)
{
    return ttl(call, 1000);
}

int kv_run_pttl(struct kv_call *call)
{
    return ttl(call, 1);
}

int kv_run_persist(struct kv_call *call)
{
    struct kv_item **link = kv_find(call);

    if (link == NULL || (*link)->expires_ms == 0)
        return kv_integer(call->stack, 0);
    kv_store_set_expiry(call->store, *link, 0);
    return kv_integer(call->stack, 1);
}
