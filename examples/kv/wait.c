/* Clients that wait for elements of lists, in their shard.
 *
 * A command that finds no element is kept, with a mark at each of its keys, until a push serves it,
 * its time is over, its client ends, or the program does. Clients are served in the order in which
 * they came, after the command (or transaction) that has pushed. A client whose connection is gone
 * is passed over: domus_kept_reply() tells so. */
#include "wait.h"

#include "kv.h"
#include "wish.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* time-out from which on a client waits for ever: ten years */
#define FOR_EVER_MS (UINT64_C(3650) * 86400 * 1000)
#define MS_NS       UINT64_C(1000000)
#define BY_CLIENT   "UNBLOCKED client unblocked via CLIENT UNBLOCK"

struct kv_waiter {
    domus_kept kept;
    domus_timer timer;
    bool has_timer;
    struct kv_wish wish;
    domus_slice to; /* for a move, the key to which the element goes; the slice is an owner */
};

struct over {
    struct kv_client *client;
};
const domus_type kv_wait_over_type = {.name = "wait_over", .size = sizeof(struct over)};

/* --- arguments -------------------------------------------------------------------------------- */

/* Read the time-out of a command, in seconds. Returns NULL, or the text of an error. */
static const char *read_timeout_of_blocking_command(domus_slice argument, uint64_t *ret_ms)
{
    char text[64];
    char *end;

    if (argument.size == 0 || argument.size >= sizeof text)
        return "ERR timeout is not a float or out of range";
    memcpy(text, domus_slice_data(argument), argument.size);
    text[argument.size] = '\0';
    long double seconds = strtold(text, &end);
    if (text[0] == ' ' || (text[0] >= '\t' && text[0] <= '\r') || *end != '\0' ||
        (size_t)(end - text) != argument.size || isnan(seconds))
        return "ERR timeout is not a float or out of range";
    if (seconds < 0 || seconds * 1000 >= (long double)INT64_MAX)
        /* As redis-server does, give this error for time-outs that are too large, too. */
        return "ERR timeout is negative";
    *ret_ms = (uint64_t)ceill(seconds * 1000);
    return NULL;
}

static bool read_end_of_list(domus_slice word, enum kv_end *ret_end)
{
    if (!domus_resp_is(word, "LEFT") && !domus_resp_is(word, "RIGHT"))
        return false;
    *ret_end = domus_resp_is(word, "LEFT") ? KV_HEAD : KV_TAIL;
    return true;
}

/* --- waiting ---------------------------------------------------------------------------------- */

void kv_free_waiter(struct kv_store *store, struct kv_client *client)
{
    struct kv_waiter *waiter = client->waiter;

    kv_end_observing_all_of_client(store, client, KV_WAITS);
    if (waiter == NULL)
        return;
    domus_slice_free(waiter->to);
    kv_free_and_uncount_memory(&store->observed->memory, waiter);
    client->waiter = NULL;
    store->waiting--;
}

/* End the wait of a client whose command is over. */
static void end_wait_and_forget_idle_client(domus_stack *stack, struct kv_store *store,
                                            struct kv_client *client)
{
    if (client->waiter->has_timer)
        (void)domus_timer_cancel(stack, client->waiter->timer);
    kv_free_waiter(store, client);
    kv_forget_client_without_marks(stack, store, client);
}

/* The places of the keys among the arguments of a command. */
struct keys {
    uint32_t first, last;
};

/* Put a mark of the client at each key of its command. */
static int mark_keys_for_client(struct kv_call *call, struct kv_client *client, struct keys keys)
{
    int error = 0;

    for (uint32_t i = keys.first; i <= keys.last && error == 0; i++) {
        domus_slice key = domus_resp_argument(call->command, i);
        error = kv_observe_key_for_client(call->store, client, KV_WAITS,
                                          kv_hash_of_bytes(domus_slice_data(key), key.size), key);
    }
    return error;
}

static int keep_command_and_arm_its_timeout(struct kv_call *call, struct kv_waiter *waiter,
                                            struct kv_client *client, uint64_t timeout_ms)
{
    const struct over over = {client};
    int error = 0;

    if (timeout_ms != 0 && timeout_ms < FOR_EVER_MS) {
        error =
            domus_after(call->stack, timeout_ms * MS_NS, &kv_wait_over_type, &over, &waiter->timer);
        waiter->has_timer = error == 0;
    }
    return error != 0 ? error : domus_keep(call->stack, &waiter->kept);
}

/* Let the client of the command wait at its keys. */
static int let_client_wait_at_keys_of_command(struct kv_call *call, const struct kv_wish *wish,
                                              domus_slice to, struct keys keys, uint64_t timeout_ms)
{
    struct kv_store *store = call->store;
    struct kv_client *client;

    if (store->is_ending)
        return kv_answer_error(call->stack, KV_UNBLOCKED);
    int error = kv_client_find_or_add(call->stack, store, domus_sender(call->stack), &client);
    if (error != 0)
        return error;
    struct kv_waiter *waiter =
        kv_allocate_and_count_memory(&store->observed->memory, sizeof *waiter);
    if (waiter != NULL) {
        *waiter = (struct kv_waiter){.wish = *wish};
        client->waiter = waiter;
        store->waiting++;
        error = domus_slice_copy(domus_slice_data(to), to.size, &waiter->to);
        if (error == 0)
            error = mark_keys_for_client(call, client, keys);
        if (error == 0)
            error = keep_command_and_arm_its_timeout(call, waiter, client, timeout_ms);
        if (error == 0)
            return 0;
        end_wait_and_forget_idle_client(call->stack, store, client);
    } else {
        kv_forget_client_without_marks(call->stack, store, client);
        error = -ENOMEM;
    }
    return error == -ENOMEM
               ? kv_answer_error(call->stack, "ERR too many keys are watched and waited for")
               : error;
}

/* Run a command that pops from the first of its keys that has an element, or else waits for as long
 * as argument `at` says. */
static int pop_from_first_full_list_or_wait(struct kv_call *call, const struct kv_wish *wish,
                                            domus_slice to, struct keys keys, uint32_t at)
{
    uint64_t timeout_ms = 0;
    const char *wrong =
        read_timeout_of_blocking_command(domus_resp_argument(call->command, at), &timeout_ms);

    if (wrong != NULL)
        return kv_answer_error(call->stack, wrong);
    for (uint32_t i = keys.first; i <= keys.last; i++) {
        kv_make_argument_key_of_call(call, i);
        int result = kv_pop_or_move_for_command(call, wish, to, NULL);
        if (result != 1)
            return result;
    }
    if (kv_are_answers_gathered())
        return kv_answer_or_gather_answer(
            call->stack, wish->moves ? &domus_resp_null_type : &domus_resp_null_array_type, NULL);
    return let_client_wait_at_keys_of_command(call, wish, to, keys, timeout_ms);
}

/* --- the commands ----------------------------------------------------------------------------- */

static int pop_as_blpop_and_brpop_do(struct kv_call *call, enum kv_end end)
{
    uint32_t last = call->command->count - 1;

    return pop_from_first_full_list_or_wait(call, &(struct kv_wish){.from = end}, (domus_slice){0},
                                            (struct keys){1, last - 1}, last);
}

int kv_run_blpop(struct kv_call *call)
{
    return pop_as_blpop_and_brpop_do(call, KV_HEAD);
}

int kv_run_brpop(struct kv_call *call)
{
    return pop_as_blpop_and_brpop_do(call, KV_TAIL);
}

static int move_element_or_wait_for_one(struct kv_call *call, const struct kv_wish *wish)
{
    return pop_from_first_full_list_or_wait(call, wish, domus_resp_argument(call->command, 2),
                                            (struct keys){1, 1}, call->command->count - 1);
}

int kv_run_brpoplpush(struct kv_call *call)
{
    return move_element_or_wait_for_one(
        call, &(struct kv_wish){.from = KV_TAIL, .to = KV_HEAD, .moves = true});
}

/* Read the arguments of LMPOP and BLMPOP from the number of keys, argument `at`, on: the keys, an
 * end, and a count. Returns NULL, or the error. */
static const char *read_pop_arguments(const struct kv_call *call, uint32_t at, struct keys *keys,
                                      struct kv_wish *wish)
{
    int64_t number, count = 0;

    if (!kv_read_integer_argument(call, at, &number) || number < 1)
        return "ERR numkeys should be greater than 0";
    if (number > (int64_t)call->command->count - at - 2)
        return KV_SYNTAX;
    *keys = (struct keys){at + 1, at + (uint32_t)number};
    if (!read_end_of_list(domus_resp_argument(call->command, keys->last + 1), &wish->from))
        return KV_SYNTAX;
    for (uint32_t i = keys->last + 2; i < call->command->count; i += 2) {
        if (!domus_resp_is(domus_resp_argument(call->command, i), "COUNT") || count != 0 ||
            i + 1 == call->command->count)
            return KV_SYNTAX;
        if (!kv_read_integer_argument(call, i + 1, &count) || count < 1)
            return "ERR count should be greater than 0";
    }
    wish->count = count != 0 ? (uint64_t)count : 1;
    return NULL;
}

int kv_run_lmpop(struct kv_call *call)
{
    struct kv_wish wish = {.is_direct = true};
    struct keys keys;
    const char *wrong = read_pop_arguments(call, 1, &keys, &wish);

    if (wrong != NULL)
        return kv_answer_error(call->stack, wrong);
    for (uint32_t i = keys.first; i <= keys.last; i++) {
        kv_make_argument_key_of_call(call, i);
        int result = kv_pop_or_move_for_command(call, &wish, (domus_slice){0}, NULL);
        if (result != 1)
            return result;
    }
    return kv_answer_or_gather_answer(call->stack, &domus_resp_null_array_type, NULL);
}

int kv_run_blmpop(struct kv_call *call)
{
    struct kv_wish wish = {.count = 0};
    struct keys keys;
    const char *wrong = read_pop_arguments(call, 2, &keys, &wish);

    if (wrong != NULL)
        return kv_answer_error(call->stack, wrong);
    return pop_from_first_full_list_or_wait(call, &wish, (domus_slice){0}, keys, 1);
}

/* Read the ends of the two lists from the arguments of LMOVE and BLMOVE. */
static bool read_ends_of_both_lists(const struct kv_call *call, struct kv_wish *wish)
{
    return read_end_of_list(domus_resp_argument(call->command, 3), &wish->from) &&
           read_end_of_list(domus_resp_argument(call->command, 4), &wish->to);
}

int kv_run_blmove(struct kv_call *call)
{
    struct kv_wish wish = {.moves = true};

    if (!read_ends_of_both_lists(call, &wish))
        return kv_answer_error(call->stack, KV_SYNTAX);
    return move_element_or_wait_for_one(call, &wish);
}

static int move_element_or_answer_null(struct kv_call *call, const struct kv_wish *wish)
{
    int result =
        kv_pop_or_move_for_command(call, wish, domus_resp_argument(call->command, 2), NULL);

    return result == 1 ? kv_answer_null(call->stack) : result;
}

int kv_run_lmove(struct kv_call *call)
{
    struct kv_wish wish = {.moves = true};

    return read_ends_of_both_lists(call, &wish) ? move_element_or_answer_null(call, &wish)
                                                : kv_answer_error(call->stack, KV_SYNTAX);
}

int kv_run_rpoplpush(struct kv_call *call)
{
    return move_element_or_answer_null(
        call, &(struct kv_wish){.from = KV_TAIL, .to = KV_HEAD, .moves = true});
}

/* --- serving ---------------------------------------------------------------------------------- */

/* Serve the clients that wait at a key, as long as it has elements. */
static void serve_clients_that_wait_at_key(domus_stack *stack, struct kv_store *store,
                                           struct kv_chain *chain)
{
    for (struct kv_mark *mark = chain->first; mark != NULL; mark = chain->first) {
        struct kv_client *client = mark->client;
        const struct kv_waiter *waiter = client->waiter;
        struct kv_call call = {
            .stack = stack, .store = store, .key = kv_key_of_chain(chain), .hash = chain->hash};
        int result = kv_pop_or_move_for_command(&call, &waiter->wish, waiter->to, &waiter->kept);
        kv_mark_key_if_command_changed_it(store, call.hash, call.key);
        if (result == 1)
            return;
        if (result != 0 && result != -ENOENT)
            (void)domus_kept_fail(stack, waiter->kept, result);
        end_wait_and_forget_idle_client(stack, store, client);
    }
}

void kv_serve_clients_that_wait_at_changed(domus_stack *stack, struct kv_store *store)
{
    struct kv_chain *chain;

    if (store->observed == NULL)
        return;
    while ((chain = kv_take_next_chain_of_changed_key(store)) != NULL) {
        chain->is_served = true;
        serve_clients_that_wait_at_key(stack, store, chain);
        chain->is_served = false;
        kv_free_chain_without_clients(store, chain);
    }
    kv_free_observed_if_unused(store);
}

/* --- the end of waiting ----------------------------------------------------------------------- */

int kv_answer_null_at_wait_timeout(domus_stack *stack, void *self, const void *payload)
{
    struct kv_client *client = ((const struct over *)payload)->client;
    struct kv_store *store = self;

    (void)domus_kept_reply(stack, client->waiter->kept, &domus_resp_null_array_type, NULL);
    client->waiter->has_timer = false;
    end_wait_and_forget_idle_client(stack, store, client);
    kv_free_observed_if_unused(store);
    return 0;
}

const domus_type kv_unblock_type = {.name = "unblock", .size = sizeof(struct kv_unblock)};

int kv_end_wait_of_client_as_asked(domus_stack *stack, void *self, const void *payload)
{
    const struct kv_unblock *unblock = payload;
    struct kv_store *store = self;
    struct kv_client *client = kv_client_find(store, unblock->who);
    domus_resp_error error =
        domus_resp_error_text("%s", unblock->why == KV_BY_END ? KV_UNBLOCKED : BY_CLIENT);

    if (client == NULL || client->waiter == NULL)
        return kv_answer_integer(stack, 0);
    if (unblock->why != KV_BY_TIME)
        (void)domus_kept_reply(stack, client->waiter->kept, &domus_resp_error_type, &error);
    else
        (void)domus_kept_reply(stack, client->waiter->kept, &domus_resp_null_array_type, NULL);
    end_wait_and_forget_idle_client(stack, store, client);
    kv_free_observed_if_unused(store);
    return kv_answer_integer(stack, 1);
}

const domus_type kv_leave_type = {.name = "leave"};

int kv_end_wait_of_leaving_client(domus_stack *stack, void *self, const void *payload)
{
    struct kv_store *store = self;
    struct kv_client *client = kv_client_find(store, domus_sender(stack));

    (void)payload;
    if (client != NULL && client->waiter != NULL) {
        (void)domus_kept_reply(stack, client->waiter->kept, &domus_resp_null_array_type, NULL);
        end_wait_and_forget_idle_client(stack, store, client);
        kv_free_observed_if_unused(store);
    }
    return kv_answer_ok(stack);
}

int kv_forget_ended_client(domus_stack *stack, void *self, const void *payload)
{
    const domus_down *down = payload;
    struct kv_store *store = self;
    struct kv_client *client = kv_client_find(store, down->who);

    if (client == NULL)
        return 0;
    kv_end_observing_all_of_client(store, client, KV_WATCHES);
    if (client->waiter != NULL)
        end_wait_and_forget_idle_client(stack, store, client);
    else
        kv_forget_client_without_marks(stack, store, client);
    kv_free_observed_if_unused(store);
    return 0;
}

static void answer_unblocked_at_end_of_node(domus_stack *stack, struct kv_store *store,
                                            struct kv_client *client)
{
    domus_resp_error error = domus_resp_error_text("%s", KV_UNBLOCKED);

    (void)store;
    if (client->waiter != NULL)
        (void)domus_kept_reply(stack, client->waiter->kept, &domus_resp_error_type, &error);
}

const domus_type kv_wait_end_type = {.name = "wait_end"};

int kv_end_all_waits_of_store(domus_stack *stack, void *self, const void *payload)
{
    struct kv_store *store = self;

    (void)payload;
    store->is_ending = true;
    if (store->observed != NULL)
        kv_visit_all_observing_clients(store, stack,
                                       /* the visit ends the wait of each client, and clients are
                                        * forgotten as they end */
                                       answer_unblocked_at_end_of_node);
    return 0;
}

void kv_put_gift_back_and_free_it(domus_stack *stack, struct kv_store *store, struct kv_gift *gift)
{
    struct kv_call call = {.stack = stack, .store = store};

    kv_push_gift_back_to_its_list(&call, gift);
    if (store->observed != NULL)
        kv_mark_key_if_command_changed_it(store, call.hash, call.key);
    kv_gift_free(gift);
}

void kv_put_all_returned_gifts_back(domus_stack *stack, struct kv_store *store)
{
    struct kv_gift *next;
    struct kv_gift *gift = kv_take_gifts_returned_to_shard(store->index);

    for (; gift != NULL; gift = next) {
        next = gift->next;
        kv_put_gift_back_and_free_it(stack, store, gift);
    }
    kv_serve_clients_that_wait_at_changed(stack, store);
}
