/* Clients that wait for elements of lists, in their shard.
 *
 * A command that finds nothing is kept, with a mark at each of its keys, until a push serves it,
 * its time is over, its client ends, or the program does. Clients are served in the order in which
 * they came, after the command (or transaction) that has pushed. A client whose connection is gone
 * is passed over: domus_kept_reply() tells so. */
#include "wait.h"

#include "gift.h"
#include "kv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FOR_EVER_MS (UINT64_C(3650) * 86400 * 1000) /* ten years and more are for ever */
#define MS_NS       UINT64_C(1000000)
#define UNBLOCKED   "UNBLOCKED force unblock from blocking operation, the server is shutting down"

/* A wish: pop an element at `from` of the first key that has one; with `moves`, push it to another
 * key at `to`. */
struct wish {
    enum kv_end from, to;
    bool moves;
};

struct kv_waiter {
    domus_kept kept;
    domus_timer timer;
    bool has_timer;
    struct wish wish;
    domus_slice to; /* the key, an owner */
};

struct over {
    struct kv_client *client;
};
const domus_type kv_wait_over_type = {.name = "wait_over", .size = sizeof(struct over)};

/* --- arguments -------------------------------------------------------------------------------- */

/* Read a time-out in seconds. Returns NULL; the text of an error. */
static const char *read_timeout(domus_slice argument, uint64_t *ret_ms)
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
        return "ERR timeout is negative"; /* of large ones redis-server says so, too */
    *ret_ms = (uint64_t)ceill(seconds * 1000);
    return NULL;
}

static bool read_end(domus_slice word, enum kv_end *ret_end)
{
    if (!domus_resp_is(word, "LEFT") && !domus_resp_is(word, "RIGHT"))
        return false;
    *ret_end = domus_resp_is(word, "LEFT") ? KV_HEAD : KV_TAIL;
    return true;
}

/* --- the lists -------------------------------------------------------------------------------- */

static void pop_at(struct kv_store *store, struct kv_item **link, enum kv_end end)
{
    struct kv_list *list = (*link)->list;

    kv_list_pop(&store->memory, list, end);
    if (list->count == 0)
        kv_store_remove(store, link);
}

/* Returns 0; -EINVAL when the key has another kind of value; -ENOMEM. */
static int push(struct kv_call *call, enum kv_end end, domus_slice element)
{
    struct kv_item **link;
    int there = kv_find_list(call, &link);

    if (there == 0 && (link = kv_add_list(call)) == NULL)
        return -ENOMEM;
    if (there < 0)
        return there;
    struct kv_list *list = (*link)->list;
    int error =
        kv_list_push(&call->store->memory, list, end, domus_slice_data(element), element.size);
    if (list->count == 0)
        kv_store_remove(call->store, link);
    return error;
}

static void turn_to(struct kv_call *call, domus_slice key)
{
    if (call->store->observed != NULL)
        kv_observed_note(call->store, call->hash, call->key);
    call->key = key;
    call->hash = kv_hash(domus_slice_data(key), key.size);
}

/* Put back what was popped for a client that is gone. */
static void put_back(struct kv_call *call, domus_slice key, enum kv_end end, domus_slice element)
{
    turn_to(call, key);
    (void)push(call, end, element);
}

/* Answer the command that waited (`kept`), or (NULL) the one that runs. The answer owns what its
 * payload owns, unless this fails. */
static int answer(struct kv_call *call, const domus_kept *kept, const domus_type *type,
                  const void *payload)
{
    return kept != NULL ? domus_kept_reply(call->stack, *kept, type, payload)
                        : kv_answer(call->stack, type, payload);
}

/* Answer with the key of the call and an element of its list. */
static int give(struct kv_call *call, struct kv_item **link, enum kv_end end,
                const domus_kept *kept)
{
    domus_resp_bytes element = kv_list_end((*link)->list, end);
    int error;

    if (kv_is_gathering()) {
        domus_resp_builder builder = {.version = call->command->version};
        (void)domus_resp_add_array(&builder, 2);
        (void)domus_resp_add_bulk(&builder, domus_slice_data(call->key), call->key.size);
        (void)domus_resp_add_bulk(&builder, element.data, element.size);
        error = kv_reply(call->stack, &builder);
    } else {
        struct kv_gift *gift = kv_gift_new(call->store->index, end, call->key, element);
        if (gift != NULL)
            gift->was_waited_for = kept != NULL;
        error = gift != NULL ? answer(call, kept, &kv_gift_type, &gift) : -ENOMEM;
        if (error != 0 && gift != NULL)
            kv_gift_free(gift);
    }
    if (error == 0)
        pop_at(call->store, link, end);
    return error;
}

/* Move an element from the list of the call's key to the key `to`, and answer with it. */
static int move(struct kv_call *call, struct kv_item **link, const struct wish *wish,
                domus_slice to, const domus_kept *kept)
{
    domus_resp_bytes bytes = kv_list_end((*link)->list, wish->from);
    domus_slice from = call->key;
    domus_slice element;

    int error = domus_slice_copy(bytes.data, bytes.size, &element);
    if (error != 0)
        return error;
    turn_to(call, to);
    error = push(call, wish->to, element);
    if (error != 0) {
        domus_resp_error text = domus_resp_error_text("%s", KV_WRONG_TYPE);
        domus_slice_free(element);
        return error == -EINVAL ? answer(call, kept, &domus_resp_error_type, &text) : error;
    }
    turn_to(call, from);
    pop_at(call->store, kv_find(call), wish->from);
    turn_to(call, to); /* what was changed is noted before the answer frees the command */
    error = answer(call, kept, &domus_slice_type, &element);
    if (error == 0)
        return 0;
    put_back(call, from, wish->from, element);
    turn_to(call, to);
    pop_at(call->store, kv_find(call), wish->to);
    domus_slice_free(element);
    return error;
}

/* Returns 0 if the command was answered; 1 if its key has no element; -ENOENT when its client is
 * gone; or another error. */
static int fulfil(struct kv_call *call, const struct wish *wish, domus_slice to,
                  const domus_kept *kept)
{
    struct kv_item **link;
    int there = kv_find_list(call, &link);

    if (there == 0 || (there < 0 && kept != NULL))
        return 1;
    if (there < 0)
        return kv_error(call->stack, KV_WRONG_TYPE);
    return wish->moves ? move(call, link, wish, to, kept) : give(call, link, wish->from, kept);
}

/* --- waiting ---------------------------------------------------------------------------------- */

void kv_waiter_free(struct kv_store *store, struct kv_client *client)
{
    struct kv_waiter *waiter = client->waiter;

    kv_marks_remove(store, client, KV_WAITS);
    if (waiter == NULL)
        return;
    domus_slice_free(waiter->to);
    kv_free(&store->observed->memory, waiter);
    client->waiter = NULL;
}

/* The command of a client is over. */
static void end(domus_stack *stack, struct kv_store *store, struct kv_client *client)
{
    if (client->waiter->has_timer)
        (void)domus_timer_cancel(stack, client->waiter->timer);
    kv_waiter_free(store, client);
    kv_client_settle(stack, store, client);
}

/* Mark the keys first..last of the command for the client. */
static int mark_keys(struct kv_call *call, struct kv_client *client, uint32_t last)
{
    int error = 0;

    for (uint32_t i = 1; i <= last && error == 0; i++) {
        domus_slice key = domus_resp_argument(call->command, i);
        error = kv_mark_add(call->store, client, KV_WAITS, kv_hash(domus_slice_data(key), key.size),
                            key);
    }
    return error;
}

static int keep(struct kv_call *call, struct kv_waiter *waiter, struct kv_client *client,
                uint64_t timeout_ms)
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

/* Let the client of the command wait at its keys 1..last. */
static int wait(struct kv_call *call, const struct wish *wish, domus_slice to, uint32_t last,
                uint64_t timeout_ms)
{
    struct kv_store *store = call->store;
    struct kv_client *client;

    if (store->is_ending)
        return kv_error(call->stack, UNBLOCKED);
    int error = kv_client_find_or_add(call->stack, store, domus_sender(call->stack), &client);
    if (error != 0)
        return error;
    struct kv_waiter *waiter = kv_allocate(&store->observed->memory, sizeof *waiter);
    if (waiter != NULL) {
        *waiter = (struct kv_waiter){.wish = *wish};
        client->waiter = waiter;
        error = domus_slice_copy(domus_slice_data(to), to.size, &waiter->to);
        if (error == 0)
            error = mark_keys(call, client, last);
        if (error == 0)
            error = keep(call, waiter, client, timeout_ms);
        if (error == 0)
            return 0;
        end(call->stack, store, client);
    } else {
        kv_client_settle(call->stack, store, client);
        error = -ENOMEM;
    }
    return error == -ENOMEM ? kv_error(call->stack, "ERR too many keys are watched and waited for")
                            : error;
}

/* Run a command that pops from the first of its keys 1..last that has an element, or waits. */
static int run(struct kv_call *call, const struct wish *wish, domus_slice to, uint32_t last)
{
    domus_slice argument = domus_resp_argument(call->command, call->command->count - 1);
    uint64_t timeout_ms = 0;
    const char *wrong = read_timeout(argument, &timeout_ms);

    if (wrong != NULL)
        return kv_error(call->stack, wrong);
    for (uint32_t i = 1; i <= last; i++) {
        kv_turn_to(call, i);
        int result = fulfil(call, wish, to, NULL);
        if (result != 1)
            return result;
    }
    if (kv_is_gathering())
        return kv_answer(call->stack,
                         wish->moves ? &domus_resp_null_type : &domus_resp_null_array_type, NULL);
    return wait(call, wish, to, last, timeout_ms);
}

/* --- the commands ----------------------------------------------------------------------------- */

int kv_run_blpop(struct kv_call *call)
{
    return run(call, &(struct wish){.from = KV_HEAD}, (domus_slice){0}, call->command->count - 2);
}

int kv_run_brpop(struct kv_call *call)
{
    return run(call, &(struct wish){.from = KV_TAIL}, (domus_slice){0}, call->command->count - 2);
}

int kv_run_brpoplpush(struct kv_call *call)
{
    const struct wish wish = {.from = KV_TAIL, .to = KV_HEAD, .moves = true};

    return run(call, &wish, domus_resp_argument(call->command, 2), 1);
}

/* Read the ends of an LMOVE. */
static bool read_ends(const struct kv_call *call, struct wish *wish)
{
    return read_end(domus_resp_argument(call->command, 3), &wish->from) &&
           read_end(domus_resp_argument(call->command, 4), &wish->to);
}

int kv_run_blmove(struct kv_call *call)
{
    struct wish wish = {.moves = true};

    if (!read_ends(call, &wish))
        return kv_error(call->stack, KV_SYNTAX);
    return run(call, &wish, domus_resp_argument(call->command, 2), 1);
}

static int move_now(struct kv_call *call, const struct wish *wish)
{
    int result = fulfil(call, wish, domus_resp_argument(call->command, 2), NULL);

    return result == 1 ? kv_null(call->stack) : result;
}

int kv_run_lmove(struct kv_call *call)
{
    struct wish wish = {.moves = true};

    return read_ends(call, &wish) ? move_now(call, &wish) : kv_error(call->stack, KV_SYNTAX);
}

int kv_run_rpoplpush(struct kv_call *call)
{
    return move_now(call, &(struct wish){.from = KV_TAIL, .to = KV_HEAD, .moves = true});
}

/* --- serving ---------------------------------------------------------------------------------- */

/* Serve the clients that wait at a key, as long as it has elements. */
static void serve_chain(domus_stack *stack, struct kv_store *store, struct kv_chain *chain)
{
    for (struct kv_mark *mark = chain->first; mark != NULL; mark = chain->first) {
        struct kv_client *client = mark->client;
        const struct kv_waiter *waiter = client->waiter;
        struct kv_call call = {
            .stack = stack, .store = store, .key = kv_chain_key(chain), .hash = chain->hash};
        int result = fulfil(&call, &waiter->wish, waiter->to, &waiter->kept);
        kv_observed_note(store, call.hash, call.key);
        if (result == 1)
            return;
        if (result != 0 && result != -ENOENT)
            (void)domus_kept_fail(stack, waiter->kept, result);
        end(stack, store, client);
    }
}

void kv_wait_serve(domus_stack *stack, struct kv_store *store)
{
    struct kv_chain *chain;

    if (store->observed == NULL)
        return;
    while ((chain = kv_chain_take_ready(store)) != NULL) {
        chain->is_served = true;
        serve_chain(stack, store, chain);
        chain->is_served = false;
        kv_chain_settle(store, chain);
    }
    kv_observed_settle(store);
}

/* --- the end of waiting ----------------------------------------------------------------------- */

int kv_wait_over(domus_stack *stack, void *self, const void *payload)
{
    struct kv_client *client = ((const struct over *)payload)->client;
    struct kv_store *store = self;

    (void)domus_kept_reply(stack, client->waiter->kept, &domus_resp_null_array_type, NULL);
    client->waiter->has_timer = false;
    end(stack, store, client);
    kv_observed_settle(store);
    return 0;
}

const domus_type kv_leave_type = {.name = "leave"};

int kv_leave(domus_stack *stack, void *self, const void *payload)
{
    struct kv_store *store = self;
    struct kv_client *client = kv_client_find(store, domus_sender(stack));

    (void)payload;
    if (client != NULL && client->waiter != NULL) {
        (void)domus_kept_reply(stack, client->waiter->kept, &domus_resp_null_array_type, NULL);
        end(stack, store, client);
        kv_observed_settle(store);
    }
    return kv_ok(stack);
}

int kv_client_down(domus_stack *stack, void *self, const void *payload)
{
    const domus_down *down = payload;
    struct kv_store *store = self;
    struct kv_client *client = kv_client_find(store, down->who);

    if (client == NULL)
        return 0;
    kv_marks_remove(store, client, KV_WATCHES);
    if (client->waiter != NULL)
        end(stack, store, client);
    else
        kv_client_settle(stack, store, client);
    kv_observed_settle(store);
    return 0;
}

static void refuse(domus_stack *stack, struct kv_store *store, struct kv_client *client)
{
    domus_resp_error error = domus_resp_error_text("%s", UNBLOCKED);

    (void)store;
    if (client->waiter != NULL)
        (void)domus_kept_reply(stack, client->waiter->kept, &domus_resp_error_type, &error);
}

const domus_type kv_wait_end_type = {.name = "wait_end"};

int kv_wait_end(domus_stack *stack, void *self, const void *payload)
{
    struct kv_store *store = self;

    (void)payload;
    store->is_ending = true;
    if (store->observed != NULL)
        kv_clients_visit(store, stack, refuse); /* the clients are forgotten as they end */
    return 0;
}

void kv_wait_take_returned(domus_stack *stack, struct kv_store *store)
{
    struct kv_gift *next;
    struct kv_gift *gift = kv_gifts_returned(store->index);

    for (; gift != NULL; gift = next) {
        struct kv_call call = {.stack = stack, .store = store};
        next = gift->next;
        put_back(&call, gift->key, gift->end, gift->element);
        if (store->observed != NULL)
            kv_observed_note(store, call.hash, call.key);
        kv_gift_free(gift);
    }
    kv_wait_serve(stack, store);
}
