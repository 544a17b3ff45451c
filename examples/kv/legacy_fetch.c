/* The next life of a shard fetches the legacy (legacy.h) that the last one has left. */
#include "legacy.h"

#include "trash.h"
#include "travel.h"

#include <errno.h>
#include <stdlib.h>

#define NODES_MAX 64u
#define ASK_NS    UINT64_C(5000000000)
#define FEW       8u
#define PAUSE_NS  UINT64_C(20000000)
#define TRIES_MAX 100u

struct kv_fetching {
    domus_node nodes[NODES_MAX]; /* the other nodes that are up, and are asked for the legacy */
    uint32_t count, at;
    uint32_t tries;        /* number of tries of the ask that is being repeated */
    struct kv_legacy *own; /* the legacy that was in the slot of this node; NULL: none */
    domus_address porter;  /* the porter on the node that is asked now, `nodes[at]` */
    domus_address best;    /* the porter that has the latest legacy so far; nobody: none has one */
    uint64_t best_fence;
    bool keeps; /* whether the actor is a keeper (legacy.h), and not a shard */
    domus_appender commands;
};

static int ask_next_node(domus_stack *stack, struct kv_store *store);
static int look_into_own_slot_again(domus_stack *stack, void *self, const domus_answer *answer);

/* --- commands --------------------------------------------------------------------------------- */

/* Run one command of a fetched legacy in the store, and drop its answer. */
static int run_fetched_command(domus_stack *stack, struct kv_store *store,
                               const domus_resp_bytes *arguments, uint32_t count)
{
    domus_resp_builder answer = {.version = 0};
    domus_resp_command command;
    int error = domus_resp_command_make(arguments, count, &command);

    if (error != 0)
        return error;
    if (kv_may_shard_run(&command)) {
        kv_gather_answers_into(&answer);
        error = kv_run_command_of_row(stack, store, &command,
                                      kv_command_find(domus_resp_argument(&command, 0)));
        kv_gather_answers_into(NULL);
        domus_resp_drop(&answer);
    } else {
        error = -EPROTO;
    }
    domus_resp_command_type.release(&command);
    return error;
}

/* Run all commands in `bytes`, which were fetched from a porter. */
static int run_fetched_commands(domus_stack *stack, struct kv_store *store, domus_slice bytes)
{
    domus_resp_reader reader = {bytes, 0};
    domus_resp_bytes arguments[FEW];
    domus_resp_value value;
    int error = 0;

    while (error == 0 && reader.at < bytes.size) {
        if (domus_resp_read(&reader, &value) != 1 || value.kind != DOMUS_RESP_ARRAY ||
            value.count == 0 || value.count > FEW)
            return -EPROTO;
        uint32_t count = value.count;
        for (uint32_t i = 0; i < count; i++) {
            if (domus_resp_read(&reader, &value) != 1 || value.kind != DOMUS_RESP_BULK)
                return -EPROTO;
            arguments[i] = (domus_resp_bytes){domus_slice_data(value.text), value.text.size};
        }
        error = run_fetched_command(stack, store, arguments, count);
    }
    return error;
}

/* --- fetching --------------------------------------------------------------------------------- */

/* End a keeper that has all keys, or has failed. If it has failed, the legacy is still with the
 * porter, which gives it back. */
static int end_keeper(domus_stack *stack, struct kv_store *store, uint64_t fence, int error)
{
    if (error == 0 && !kv_legacy_put(store, fence, domus_now_ns(stack)))
        error = -ENOMEM;
    (void)domus_stop(stack, domus_self(stack));
    return error != 0 ? error : kv_answer_ok(stack);
}

/* End the fetch: the shard begins with the keys that it has. With -ECANCELED it stops, and the next
 * life fetches again. */
static int end_fetch(domus_stack *stack, struct kv_store *store, int error)
{
    struct kv_fetching *fetching = store->fetching;

    store->fetching = NULL;
    store->is_partial = error == -ECANCELED;
    if (store->is_partial || (fetching->keeps && error != 0))
        (void)domus_stop(stack, fetching->best);
    else if (fetching->best_fence != 0)
        (void)domus_notice(stack, fetching->best, &kv_drop_type, NULL);
    kv_legacy_give_back(store->index, fetching->own);
    domus_append_drop(&fetching->commands);
    bool keeps = fetching->keeps;
    uint64_t fence = fetching->best_fence;
    free(fetching);
    if (keeps)
        return end_keeper(stack, store, fence, error);
    kv_tell_room_of_store(store);
    return 0;
}

/* Run the commands of the legacy that were fetched so far. */
static int run_fetched_bytes(domus_stack *stack, struct kv_store *store)
{
    domus_slice commands;
    int error = domus_append_end(&store->fetching->commands, &commands);

    if (error != 0)
        return error;
    kv_begin_store_turn(stack, store);
    error = run_fetched_commands(stack, store, commands);
    domus_slice_free(commands);
    return error;
}

static int handle_fetched_piece(domus_stack *stack, void *self, const domus_answer *answer);

/* Wait a moment, and then resume: a porter of a life that has ended will give a legacy back, or the
 * way to the node is full. */
static int pause_fetch(domus_stack *stack, struct kv_store *store, domus_resumed *then)
{
    int error = domus_sleep(stack, PAUSE_NS, then);

    return error == DOMUS_PARKED ? error : end_fetch(stack, store, error);
}

static bool may_repeat_ask(struct kv_fetching *fetching, int error)
{
    return error == -ENOBUFS && fetching->tries++ < TRIES_MAX;
}

static int ask_for_piece_again(domus_stack *stack, void *self, const domus_answer *answer);

/* Ask the best porter for the next piece of its legacy. The failure of its node is reported at
 * once, or by the answer. */
static int ask_for_piece(domus_stack *stack, struct kv_store *store)
{
    const struct kv_fetch next = {.shard = store->index};
    int error = domus_ask_within(stack, store->fetching->best, &kv_fetch_type, &next, ASK_NS,
                                 handle_fetched_piece);

    if (may_repeat_ask(store->fetching, error))
        return pause_fetch(stack, store, ask_for_piece_again);
    return error == DOMUS_PARKED ? error : end_fetch(stack, store, error);
}

static int ask_for_piece_again(domus_stack *stack, void *self, const domus_answer *answer)
{
    return answer->error != 0 ? end_fetch(stack, self, answer->error) : ask_for_piece(stack, self);
}

static int handle_fetched_piece(domus_stack *stack, void *self, const domus_answer *answer)
{
    struct kv_store *store = self;
    struct kv_fetching *fetching = store->fetching;
    const struct kv_piece_of_legacy *piece = answer->payload;
    int error = answer->error;

    if (may_repeat_ask(fetching, error))
        return pause_fetch(stack, store, ask_for_piece_again);
    fetching->tries = 0;
    if (error == 0 && answer->type != &kv_legacy_piece_type)
        error = -EPROTO;
    if (error == 0)
        error =
            domus_append(&fetching->commands, domus_slice_data(piece->bytes), piece->bytes.size);
    if (error == 0 && piece->ends_commands)
        error = run_fetched_bytes(stack, store);
    return error == 0 && !piece->ends_all ? ask_for_piece(stack, store)
                                          : end_fetch(stack, store, error);
}

/* Fetch the legacy of the best porter, after all nodes have been asked. */
static int fetch_best_legacy(domus_stack *stack, struct kv_store *store)
{
    struct kv_fetching *fetching = store->fetching;
    struct kv_legacy *own = fetching->own;

    if (own != NULL && own->fence >= fetching->best_fence) {
        uint64_t bytes_max = store->memory.bytes_max;
        store->table = own->table;
        store->memory = own->memory;
        store->memory.bytes_max = bytes_max;
        store->expiring = own->expiring;
        free(own);
        fetching->own = NULL;
        kv_begin_store_turn(stack, store);
        return end_fetch(stack, store, 0);
    }
    kv_legacy_free(own);
    fetching->own = NULL;
    return fetching->best_fence == 0 ? end_fetch(stack, store, 0) : ask_for_piece(stack, store);
}

static int handle_looked_answer(domus_stack *stack, void *self, const domus_answer *answer);
static int ask_porter_to_look_again(domus_stack *stack, void *self, const domus_answer *answer);

static int ask_porter_to_look(domus_stack *stack, struct kv_store *store)
{
    const struct kv_fetch look = {.shard = store->index, .looks = true};
    int error = domus_ask_within(stack, store->fetching->porter, &kv_fetch_type, &look, ASK_NS,
                                 handle_looked_answer);

    if (error == DOMUS_PARKED)
        return error;
    if (may_repeat_ask(store->fetching, error))
        return pause_fetch(stack, store, ask_porter_to_look_again);
    store->fetching->tries = 0;
    (void)domus_stop(stack, store->fetching->porter);
    return error == -ECANCELED ? end_fetch(stack, store, error) : ask_next_node(stack, store);
}

static int ask_porter_to_look_again(domus_stack *stack, void *self, const domus_answer *answer)
{
    return answer->error != 0 ? end_fetch(stack, self, answer->error)
                              : ask_porter_to_look(stack, self);
}

static int handle_looked_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    struct kv_store *store = self;
    struct kv_fetching *fetching = store->fetching;
    const struct kv_piece_of_legacy *piece = answer->payload;

    if (may_repeat_ask(fetching, answer->error == -EAGAIN ? -ENOBUFS : answer->error))
        return pause_fetch(stack, store, ask_porter_to_look_again);
    fetching->tries = 0;
    if (answer->error == -ECANCELED) {
        (void)domus_stop(stack, fetching->porter);
        return end_fetch(stack, store, answer->error);
    }
    if (answer->error != 0 || answer->type != &kv_legacy_piece_type || piece->fence == 0) {
        (void)domus_stop(stack, fetching->porter);
    } else if (piece->fence > fetching->best_fence) {
        if (fetching->best_fence != 0)
            (void)domus_notice(stack, fetching->best, &kv_drop_type, NULL);
        fetching->best = fetching->porter;
        fetching->best_fence = piece->fence;
    } else {
        (void)domus_notice(stack, fetching->porter, &kv_drop_type, NULL);
    }
    return ask_next_node(stack, store);
}

static int handle_spawned_porter(domus_stack *stack, void *self, const domus_answer *answer)
{
    struct kv_store *store = self;
    struct kv_fetching *fetching = store->fetching;

    if (answer->error == -ECANCELED)
        return end_fetch(stack, store, answer->error);
    if (answer->error != 0)
        return ask_next_node(stack, store);
    fetching->porter = ((const domus_cluster_spawned *)answer->payload)->address;
    return ask_porter_to_look(stack, store);
}

static int ask_next_node(domus_stack *stack, struct kv_store *store)
{
    struct kv_fetching *fetching = store->fetching;

    while (fetching->at < fetching->count) {
        int error = domus_cluster_spawn(stack, fetching->nodes[fetching->at++], KV_PORTER, NULL,
                                        NULL, ASK_NS, handle_spawned_porter);
        if (error == DOMUS_PARKED)
            return error;
        if (error == -ECANCELED)
            return end_fetch(stack, store, error);
    }
    return fetch_best_legacy(stack, store);
}

/* Look for the legacy in the slot of this node. If a porter has its legacy for a life that has
 * ended, look again in a moment. */
static int look_into_own_slot(domus_stack *stack, struct kv_store *store)
{
    struct kv_fetching *fetching = store->fetching;

    fetching->own = kv_legacy_take(store->index);
    if (fetching->own == NULL && kv_legacy_is_with_porter(store->index) &&
        fetching->tries++ < TRIES_MAX)
        return pause_fetch(stack, store, look_into_own_slot_again);
    fetching->tries = 0;
    return ask_next_node(stack, store);
}

static int look_into_own_slot_again(domus_stack *stack, void *self, const domus_answer *answer)
{
    return answer->error != 0 ? end_fetch(stack, self, answer->error)
                              : look_into_own_slot(stack, self);
}

int kv_legacy_fetch(domus_stack *stack, struct kv_store *store)
{
    domus_node_info nodes[NODES_MAX + 1];

    if (kv_cluster == NULL)
        return 0;
    store->fence = domus_grain_fence(stack);
    if (store->fence == 0)
        return 0;
    /* a barrier: messages that come meanwhile wait until the keys are there */
    int error = domus_barrier(stack);
    if (error != 0)
        return error;
    struct kv_fetching *fetching = calloc(1, sizeof *fetching);
    if (fetching == NULL)
        return -ENOMEM;
    uint32_t count = domus_cluster_nodes(kv_cluster, nodes, NODES_MAX + 1);
    for (uint32_t i = 0; i < count && i < NODES_MAX + 1; i++) {
        if (!nodes[i].is_here && nodes[i].state == DOMUS_NODE_UP)
            fetching->nodes[fetching->count++] = nodes[i].node;
    }
    store->fetching = fetching;
    store->is_partial = true;
    return look_into_own_slot(stack, store);
}

/* --- keepers ---------------------------------------------------------------------------------- */

const domus_type kv_keep_type = {.name = "keep", .size = sizeof(struct kv_keep)};

/* Begin to fetch as a keeper, when the porter of the shard's node has looked into its slot. */
static int begin_fetch_of_keeper(domus_stack *stack, void *self, const domus_answer *answer)
{
    struct kv_store *store = self;
    const struct kv_piece_of_legacy *piece = answer->payload;
    int error = answer->error;

    if (error == 0 &&
        (answer->type != &kv_legacy_piece_type || piece->fence != store->fetching->best_fence))
        error = -ENOENT;
    return error != 0 ? end_fetch(stack, store, error) : fetch_best_legacy(stack, store);
}

static int handle_keep_ask(domus_stack *stack, void *self, const void *payload)
{
    const struct kv_keep *what = payload;
    const struct kv_fetch look = {.shard = what->shard, .looks = true};
    struct kv_store *store = self;

    if (store->fetching != NULL)
        return -EINVAL;
    bool is_right = what->shard < kv_shard_count && what->fence != 0;
    store->fetching = is_right ? calloc(1, sizeof *store->fetching) : NULL;
    if (store->fetching == NULL) {
        (void)domus_stop(stack, domus_self(stack));
        return is_right ? -ENOMEM : -EINVAL;
    }
    store->index = what->shard;
    store->memory.bytes_max = UINT64_MAX;
    store->fetching->keeps = true;
    store->fetching->best = what->porter;
    store->fetching->best_fence = what->fence;
    int error =
        domus_ask_within(stack, what->porter, &kv_fetch_type, &look, ASK_NS, begin_fetch_of_keeper);
    return error == DOMUS_PARKED ? error : end_fetch(stack, store, error);
}

static void stop_keeper(domus_stack *stack, void *self)
{
    struct kv_store *store = self;

    (void)stack;
    kv_table_clear(&store->table, &store->memory);
    while (kv_trash_free_piece(&store->memory))
        ;
}

static int ignore_store_tick(domus_stack *stack, void *self, const void *payload)
{
    (void)stack, (void)self, (void)payload;
    return 0;
}

const domus_behaviour kv_keeper = {
    .name = "keeper",
    .state_size = sizeof(struct kv_store),
    .on = (const domus_on[]){{&kv_keep_type, handle_keep_ask, 0},
                             {&kv_expire_type, ignore_store_tick, 0},
                             {NULL, NULL, 0}},
    .on_stop = stop_keeper,
};
