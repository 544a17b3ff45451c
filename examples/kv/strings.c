/* Commands of strings: GET, SET, MSET and their like. */
#include "kv.h"

#include <errno.h>

#define LARGE 65536u /* least bytes of a string that may be kept without a copy */

int kv_run_get(struct kv_call *call)
{
    struct kv_item **link = kv_find_item_at_key_of_call(call);

    if (link == NULL) {
        call->store->misses++;
        return kv_answer_null(call->stack);
    }
    call->store->hits++;
    return kv_is_string(*link) ? kv_answer_item_as_bulk_string(call->stack, *link)
                               : kv_answer_error(call->stack, KV_WRONG_TYPE);
}

/* Set an item to a large string without a copy, if that keeps hardly any other memory alive.
 * Returns 1; 0: the string must be copied; -ENOMEM. */
static int set_string_to_slice_of_command(struct kv_call *call, struct kv_item **link,
                                          domus_slice value)
{
    domus_slice kept;

    if (value.size < call->command->bytes.size / 8 * 7)
        return 0;
    int error = domus_slice_keep(value, &kept);
    if (error == 0)
        error = kv_item_set_slice(&call->store->memory, link, kept);
    return error == 0 ? 1 : error;
}

int kv_set_key_to_string(struct kv_call *call, domus_slice value, bool keeps_expiry)
{
    uint32_t room = value.size <= DOMUS_RESP_SHORT_MAX ? value.size : 0;
    struct kv_store *store = call->store;
    uint64_t count = store->table.count;
    struct kv_item **link = kv_find_or_add_item(call, room);

    if (link == NULL)
        return -ENOMEM;
    int error = value.size >= LARGE ? set_string_to_slice_of_command(call, link, value) : 0;
    if (error == 0)
        error = kv_item_set_string(&store->memory, link, domus_slice_data(value), value.size);
    else if (error == 1)
        error = 0;
    if (error != 0 && store->table.count > count)
        kv_store_remove(store, link); /* remove the key again, because it got no value */
    else if (error == 0 && !keeps_expiry)
        kv_store_set_expiry(store, *link, 0);
    return error;
}

/* Options of a SET, which follow the value. */
struct options {
    bool if_new, if_there, keeps_expiry, gets;
    /* time at which the key expires, in ms on the clock of domus_now_ns(); 0: never */
    uint64_t expires_ms;
};

static const char *read_expiry_time_of_set(struct kv_call *call, uint32_t i, enum kv_time time,
                                           struct options *options)
{
    static const char invalid[] = "ERR invalid expire time in 'set' command";
    int64_t value = 1;

    if (kv_read_integer_argument(call, i, &value) && value <= 0)
        return invalid;
    return kv_read_expiry_time_of_argument(call, i, time, invalid, &options->expires_ms);
}

/* Read the option of SET at argument `*i`, and advance `*i` past its value. Returns NULL, or the
 * text of the error. */
static const char *read_set_option(struct kv_call *call, uint32_t *i, struct options *options)
{
    domus_slice word = domus_resp_argument(call->command, *i);
    enum kv_time time = kv_kind_of_time_option(word);

    if (domus_resp_is(word, "NX"))
        options->if_new = true;
    else if (domus_resp_is(word, "XX"))
        options->if_there = true;
    else if (domus_resp_is(word, "KEEPTTL"))
        options->keeps_expiry = true;
    else if (domus_resp_is(word, "GET"))
        options->gets = true;
    else if (time == KV_NO_TIME || options->expires_ms != 0 || ++*i == call->command->count)
        return KV_SYNTAX;
    else
        return read_expiry_time_of_set(call, *i, time, options);
    return NULL;
}

/* Set the key of a call. `link` is the link to its item, or NULL. Returns -EEXIST or -ENOENT if the
 * options forbid it. */
static int set_key_if_set_options_allow(struct kv_call *call, struct kv_item *const *link,
                                        const struct options *options)
{
    if (options->if_new && link != NULL)
        return -EEXIST;
    if (options->if_there && link == NULL)
        return -ENOENT;
    int error =
        kv_set_key_to_string(call, domus_resp_argument(call->command, 2), options->keeps_expiry);
    if (error == 0 && options->expires_ms != 0)
        kv_store_set_expiry(call->store, *kv_find_item_at_key_of_call(call), options->expires_ms);
    return error;
}

/* Run SET with GET: set the key, and answer with its old string. The answer frees the command, so
 * it comes last, and the old string is kept until then. */
static int set_key_and_answer_with_old_string(struct kv_call *call, const struct options *options)
{
    struct kv_item **link = kv_find_item_at_key_of_call(call);
    domus_slice old = {NULL, 0, 0};
    bool there = link != NULL;

    if (there && !kv_is_string(*link))
        return kv_answer_error(call->stack, KV_WRONG_TYPE);
    int error = there ? kv_item_copy_or_share_string(*link, &old) : 0;
    if (error != 0)
        return error;
    error = set_key_if_set_options_allow(call, link, options);
    if (error == 0 || error == -EEXIST || error == -ENOENT)
        error = there ? kv_answer_or_gather_answer(call->stack, &domus_slice_type, &old)
                      : kv_answer_null(call->stack);
    if (error != 0)
        domus_slice_free(old);
    return error;
}

int kv_run_set(struct kv_call *call)
{
    struct options options = {0};
    const char *wrong = NULL;

    for (uint32_t i = 3; i < call->command->count && wrong == NULL; i++)
        wrong = read_set_option(call, &i, &options);
    if ((options.if_new && options.if_there) || (options.keeps_expiry && options.expires_ms != 0))
        wrong = KV_SYNTAX;
    if (wrong != NULL)
        return kv_answer_error(call->stack, wrong);
    if (options.gets)
        return set_key_and_answer_with_old_string(call, &options);
    int error = set_key_if_set_options_allow(
        call, options.if_new || options.if_there ? kv_find_item_at_key_of_call(call) : NULL,
        &options);
    if (error == -EEXIST || error == -ENOENT)
        return kv_answer_null(call->stack);
    return error != 0 ? error : kv_answer_ok(call->stack);
}

int kv_run_getset(struct kv_call *call)
{
    return set_key_and_answer_with_old_string(call, &(struct options){0});
}

int kv_run_setnx(struct kv_call *call)
{
    int error = set_key_if_set_options_allow(call, kv_find_item_at_key_of_call(call),
                                             &(struct options){.if_new = true});

    return error != 0 && error != -EEXIST ? error : kv_answer_integer(call->stack, error == 0);
}

/* Run SETEX or PSETEX. */
static int set_key_as_setex_and_psetex_do(struct kv_call *call, enum kv_time time,
                                          const char *invalid)
{
    struct options options = {0};
    int64_t value = 1;
    const char *wrong = NULL;

    if (kv_read_integer_argument(call, 2, &value) && value <= 0)
        wrong = invalid;
    else
        wrong = kv_read_expiry_time_of_argument(call, 2, time, invalid, &options.expires_ms);
    if (wrong != NULL)
        return kv_answer_error(call->stack, wrong);
    int error = kv_set_key_to_string(call, domus_resp_argument(call->command, 3), false);
    if (error != 0)
        return error;
    kv_store_set_expiry(call->store, *kv_find_item_at_key_of_call(call), options.expires_ms);
    return kv_answer_ok(call->stack);
}

int kv_run_setex(struct kv_call *call)
{
    return set_key_as_setex_and_psetex_do(call, KV_SECONDS,
                                          "ERR invalid expire time in 'setex' command");
}

int kv_run_psetex(struct kv_call *call)
{
    return set_key_as_setex_and_psetex_do(call, KV_MS,
                                          "ERR invalid expire time in 'psetex' command");
}

int kv_run_mset(struct kv_call *call)
{
    for (uint32_t i = 1; i + 1 < call->command->count; i += 2) {
        kv_make_argument_key_of_call(call, i);
        int error = kv_set_key_to_string(call, domus_resp_argument(call->command, i + 1), false);
        if (error != 0)
            return error;
    }
    return kv_answer_ok(call->stack);
}

int kv_run_msetnx(struct kv_call *call)
{
    for (uint32_t i = 1; i + 1 < call->command->count; i += 2) {
        kv_make_argument_key_of_call(call, i);
        if (kv_find_item_at_key_of_call(call) != NULL)
            return kv_answer_integer(call->stack, 0);
    }
    for (uint32_t i = 1; i + 1 < call->command->count; i += 2) {
        kv_make_argument_key_of_call(call, i);
        int error = kv_set_key_to_string(call, domus_resp_argument(call->command, i + 1), false);
        if (error != 0)
            return error;
    }
    return kv_answer_integer(call->stack, 1);
}
