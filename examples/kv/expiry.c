/* Times at which keys expire: EXPIRE, TTL, PERSIST and their like. */
#include "kv.h"

#include <string.h>
#include <time.h>

#define PAST 1 /* a time of expiry that has passed for sure */

int64_t kv_wall_clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

enum kv_time kv_kind_of_time_option(domus_slice word)
{
    static const char *const words[] = {"EX", "PX", "EXAT", "PXAT"};

    for (uint32_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (domus_resp_is(word, words[i]))
            return (enum kv_time)(KV_SECONDS + i);
    }
    return KV_NO_TIME;
}

const char *kv_read_expiry_time_of_argument(struct kv_call *call, uint32_t i, enum kv_time time,
                                            const char *invalid, uint64_t *ret_ms)
{
    int64_t now = (int64_t)call->store->now_ms, wall = call->store->wall_ms;
    bool is_date = time == KV_SECONDS_AT || time == KV_MS_AT;
    int64_t value;

    if (!kv_read_integer_argument(call, i, &value))
        return KV_NO_INTEGER;
    if (time == KV_SECONDS || time == KV_SECONDS_AT) {
        if (value > INT64_MAX / 1000 || value < INT64_MIN / 1000)
            return invalid;
        value *= 1000;
    }
    if (!is_date && value > INT64_MAX - now - wall)
        return invalid;
    value = is_date ? value < 0 ? PAST : value - wall : now + value;
    *ret_ms = value <= now ? PAST : (uint64_t)value;
    return NULL;
}

/* The conditions NX, XX, GT and LT of an EXPIRE command. */
struct conditions {
    bool if_none, if_any, if_later, if_sooner;
};

/* Read the conditions NX, XX, GT and LT of EXPIRE. Returns false if the command was answered with
 * an error. */
static bool read_expire_conditions(struct kv_call *call, struct conditions *conditions,
                                   int *ret_result)
{
    domus_resp_error error;

    for (uint32_t i = 3; i < call->command->count; i++) {
        domus_slice word = domus_resp_argument(call->command, i);
        if (domus_resp_is(word, "NX"))
            conditions->if_none = true;
        else if (domus_resp_is(word, "XX"))
            conditions->if_any = true;
        else if (domus_resp_is(word, "GT"))
            conditions->if_later = true;
        else if (domus_resp_is(word, "LT"))
            conditions->if_sooner = true;
        else {
            error = domus_resp_error_text("ERR Unsupported option %.*s",
                                          (int)(word.size < 80 ? word.size : 80),
                                          domus_slice_data(word));
            *ret_result = kv_answer_error(call->stack, error.text);
            return false;
        }
    }
    const char *wrong = NULL;
    if (conditions->if_none &&
        (conditions->if_any || conditions->if_later || conditions->if_sooner))
        wrong = "ERR NX and XX, GT or LT options at the same time are not compatible";
    else if (conditions->if_later && conditions->if_sooner)
        wrong = "ERR GT and LT options at the same time are not compatible";
    if (wrong != NULL)
        *ret_result = kv_answer_error(call->stack, wrong);
    return wrong == NULL;
}

static bool do_conditions_of_expire_hold(struct conditions conditions, uint64_t before,
                                         uint64_t after)
{
    if ((conditions.if_none && before != 0) || (conditions.if_any && before == 0))
        return false;
    if (conditions.if_later && (before == 0 || after <= before))
        return false;
    return !conditions.if_sooner || before == 0 || after < before;
}

static int set_expiry_as_expire_commands_do(struct kv_call *call, enum kv_time time,
                                            const char *invalid)
{
    struct conditions conditions = {0};
    uint64_t expires_ms = 0;
    int result = 0;

    if (!read_expire_conditions(call, &conditions, &result))
        return result;
    const char *wrong = kv_read_expiry_time_of_argument(call, 2, time, invalid, &expires_ms);
    if (wrong != NULL)
        return kv_answer_error(call->stack, wrong);
    struct kv_item **link = kv_find_item_at_key_of_call(call);
    if (link == NULL || !do_conditions_of_expire_hold(conditions, (*link)->expires_ms, expires_ms))
        return kv_answer_integer(call->stack, 0);
    if (expires_ms == PAST)
        kv_store_remove(call->store, link);
    else
        kv_store_set_expiry(call->store, *link, expires_ms);
    return kv_answer_integer(call->stack, 1);
}

int kv_run_expire(struct kv_call *call)
{
    return set_expiry_as_expire_commands_do(call, KV_SECONDS,
                                            "ERR invalid expire time in 'expire' command");
}

int kv_run_pexpire(struct kv_call *call)
{
    return set_expiry_as_expire_commands_do(call, KV_MS,
                                            "ERR invalid expire time in 'pexpire' command");
}

int kv_run_expireat(struct kv_call *call)
{
    return set_expiry_as_expire_commands_do(call, KV_SECONDS_AT,
                                            "ERR invalid expire time in 'expireat' command");
}

int kv_run_pexpireat(struct kv_call *call)
{
    return set_expiry_as_expire_commands_do(call, KV_MS_AT,
                                            "ERR invalid expire time in 'pexpireat' command");
}

/* --- the time that is left -------------------------------------------------------------------- */

static int answer_time_until_key_expires(struct kv_call *call, uint64_t unit_ms)
{
    struct kv_item **link = kv_find_item_at_key_of_call(call);

    if (link == NULL || (*link)->expires_ms == 0)
        return kv_answer_integer(call->stack, link == NULL ? -2 : -1);
    uint64_t left_ms = (*link)->expires_ms - call->store->now_ms;
    return kv_answer_integer(call->stack, (int64_t)((left_ms + unit_ms / 2) / unit_ms));
}

int kv_run_ttl(struct kv_call *call)
{
    return answer_time_until_key_expires(call, 1000);
}

int kv_run_pttl(struct kv_call *call)
{
    return answer_time_until_key_expires(call, 1);
}

static int answer_expiry_date(struct kv_call *call, int64_t unit_ms)
{
    struct kv_item **link = kv_find_item_at_key_of_call(call);

    if (link == NULL || (*link)->expires_ms == 0)
        return kv_answer_integer(call->stack, link == NULL ? -2 : -1);
    int64_t date_ms = (int64_t)(*link)->expires_ms + call->store->wall_ms;
    /* Round to units without adding to the date, which may be the largest number. */
    int64_t rest_ms = date_ms % unit_ms;
    return kv_answer_integer(call->stack, date_ms / unit_ms + (2 * rest_ms >= unit_ms));
}

int kv_run_expiretime(struct kv_call *call)
{
    return answer_expiry_date(call, 1000);
}

int kv_run_pexpiretime(struct kv_call *call)
{
    return answer_expiry_date(call, 1);
}

int kv_run_persist(struct kv_call *call)
{
    struct kv_item **link = kv_find_item_at_key_of_call(call);

    if (link == NULL || (*link)->expires_ms == 0)
        return kv_answer_integer(call->stack, 0);
    kv_store_set_expiry(call->store, *link, 0);
    return kv_answer_integer(call->stack, 1);
}

static bool has_getex_right_argument_count(const struct kv_call *call, bool persists)
{
    uint32_t count = call->command->count;

    if (count == 2 || persists)
        return count <= 3;
    return count == 4 &&
           kv_kind_of_time_option(domus_resp_argument(call->command, 2)) != KV_NO_TIME;
}

static const char *read_expiry_time_of_getex(struct kv_call *call, uint64_t *ret_ms)
{
    static const char invalid[] = "ERR invalid expire time in 'getex' command";
    enum kv_time time = kv_kind_of_time_option(domus_resp_argument(call->command, 2));
    int64_t value = 1;

    if (kv_read_integer_argument(call, 3, &value) && value <= 0)
        return invalid;
    return kv_read_expiry_time_of_argument(call, 3, time, invalid, ret_ms);
}

int kv_run_getex(struct kv_call *call)
{
    bool persists = domus_resp_is(domus_resp_argument(call->command, 2), "PERSIST");
    const char *wrong = NULL;
    uint64_t expires_ms = 0;

    if (!has_getex_right_argument_count(call, persists))
        return kv_answer_error(call->stack, KV_SYNTAX);
    struct kv_item **link = kv_find_item_at_key_of_call(call);
    if (link == NULL)
        return kv_answer_null(call->stack);
    if (!kv_is_string(*link))
        return kv_answer_error(call->stack, KV_WRONG_TYPE);
    if (call->command->count == 4 && (wrong = read_expiry_time_of_getex(call, &expires_ms)) != NULL)
        return kv_answer_error(call->stack, wrong);
    int error = kv_answer_item_as_bulk_string(call->stack, *link);
    if (error == 0 && expires_ms == PAST)
        kv_store_remove(call->store, link);
    else if (error == 0 && (persists || expires_ms != 0))
        kv_store_set_expiry(call->store, *link, expires_ms);
    return error;
}
