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

static int spawn_porter_on_next_node_or_fetch(domus_stack *stack, struct kv_store *store);
static int take_own_legacy_after_pause(domus_stack *stack, void *self, const domus_answer *answer);

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
    if (kv_may_shard_run_foreign_command(&command)) {
        kv_gather_answers_of_transaction_in(&answer);
        error = kv_run_command_on_store(stack, store, &command,
                                        kv_command_find(domus_resp_argument(&command, 0)));
        kv_gather_answers_of_transaction_in(NULL);
        domus_resp_drop(&answer);
    } else {
        error = -EPROTO;
    }
    domus_resp_command_type.release(&command);
    return error;
}

/* Run all commands in `bytes`, which were fetched from a porter. */
static int run_each_fetched_command(domus_stack *stack, struct kv_store *store, domus_slice bytes)
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
static int leave_keys_in_slot_and_stop_keeper(domus_stack *stack, struct kv_store *store,
                                              uint64_t fence, int error)
{
    if (error == 0 && !kv_legacy_make_of_store_in_slot(store, fence, domus_now_ns(stack)))
        error = -ENOMEM;
    (void)domus_stop(stack, domus_self(stack));
    return error != 0 ? error : kv_answer_ok(stack);
}

/* End the fetch: the shard begins with the keys that it has. With -ECANCELED it stops, and the next
 * life fetches again. */
static int end_fetch_of_legacy(domus_stack *stack, struct kv_store *store, int error)
{
    struct kv_fetching *fetching = store->fetching;

    store->fetching = NULL;
    store->is_partial = error == -ECANCELED;
    if (store->is_partial || (fetching->keeps && error != 0))
        (void)domus_stop(stack, fetching->best);
    else if (fetching->best_fence != 0)
        (void)domus_notice(stack, fetching->best, &kv_drop_type, NULL);
    kv_legacy_put_newest_into_slot(store->index, fetching->own);
    domus_append_drop(&fetching->commands);
    bool keeps = fetching->keeps;
    uint64_t fence = fetching->best_fence;
    free(fetching);
    if (keeps)
        return leave_keys_in_slot_and_stop_keeper(stack, store, fence, error);
    kv_store_publish_its_free_memory(store);
    return 0;
}

/* Run the commands of the legacy that were fetched so far. */
static int run_all_fetched_commands_so_far(domus_stack *stack, struct kv_store *store)
{
    domus_slice commands;
    int error = domus_append_end(&store->fetching->commands, &commands);

    if (error != 0)
        return error;
    kv_set_store_time_and_arm_timer(stack, store);
    error = run_each_fetched_command(stack, store, commands);
    domus_slice_free(commands);
    return error;
}

static int run_fetched_piece_and_ask_for_next(domus_stack *stack, void *self,
                                              const domus_answer *answer);

/* Wait a moment, and then resume: a porter of a life that has ended will give a legacy back, or the
 * way to the node is full. */
static int sleep_and_resume_fetch(domus_stack *stack, struct kv_store *store, domus_resumed *then)
{
    int error = domus_sleep(stack, PAUSE_NS, then);

    return error == DOMUS_PARKED ? error : end_fetch_of_legacy(stack, store, error);
}

static bool may_repeat_refused_ask_of_fetch(struct kv_fetching *fetching, int error)
{
    return error == -ENOBUFS && fetching->tries++ < TRIES_MAX;
}

static int ask_porter_for_piece_after_pause(domus_stack *stack, void *self,
                                            const domus_answer *answer);

/* Ask the best porter for the next piece of its legacy. The failure of its node is reported at
 * once, or by the answer. */
static int ask_porter_for_next_piece(domus_stack *stack, struct kv_store *store)
{
    const struct kv_fetch next = {.shard = store->index};
    int error = domus_ask_within(stack, store->fetching->best, &kv_fetch_type, &next, ASK_NS,
                                 run_fetched_piece_and_ask_for_next);

    if (may_repeat_refused_ask_of_fetch(store->fetching, error))
        return sleep_and_resume_fetch(stack, store, ask_porter_for_piece_after_pause);
    return error == DOMUS_PARKED ? error : end_fetch_of_legacy(stack, store, error);
}

static int ask_porter_for_piece_after_pause(domus_stack *stack, void *self,
                                            const domus_answer *answer)
{
    return answer->error != 0 ? end_fetch_of_legacy(stack, self, answer->error)
                              : ask_porter_for_next_piece(stack, self);
}

static int run_fetched_piece_and_ask_for_next(domus_stack *stack, void *self,
                                              const domus_answer *answer)
{
    struct kv_store *store = self;
    struct kv_fetching *fetching = store->fetching;
    const struct kv_piece_of_legacy *piece = answer->payload;
    int error = answer->error;

    if (may_repeat_refused_ask_of_fetch(fetching, error))
        return sleep_and_resume_fetch(stack, store, ask_porter_for_piece_after_pause);
    fetching->tries = 0;
    if (error == 0 && answer->type != &kv_legacy_piece_type)
        error = -EPROTO;
    if (error == 0)
        error =
            domus_append(&fetching->commands, domus_slice_data(piece->bytes), piece->bytes.size);
    if (error == 0 && piece->ends_commands)
        error = run_all_fetched_commands_so_far(stack, store);
    return error == 0 && !piece->ends_all ? ask_porter_for_next_piece(stack, store)
                                          : end_fetch_of_legacy(stack, store, error);
}

/* Fetch the legacy of the best porter, after all nodes have been asked. */
static int use_own_or_fetch_newest_legacy(domus_stack *stack, struct kv_store *store)
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
        kv_set_store_time_and_arm_timer(stack, store);
        return end_fetch_of_legacy(stack, store, 0);
    }
    kv_legacy_free(own);
    fetching->own = NULL;
    return fetching->best_fence == 0 ? end_fetch_of_legacy(stack, store, 0)
                                     : ask_porter_for_next_piece(stack, store);
}

static int keep_newer_legacy_and_ask_next_node(domus_stack *stack, void *self,
                                               const domus_answer *answer);
static int ask_porter_for_fence_after_pause(domus_stack *stack, void *self,
                                            const domus_answer *answer);

static int ask_porter_for_fence_of_legacy(domus_stack *stack, struct kv_store *store)
{
    const struct kv_fetch look = {.shard = store->index, .looks = true};
    int error = domus_ask_within(stack, store->fetching->porter, &kv_fetch_type, &look, ASK_NS,
                                 keep_newer_legacy_and_ask_next_node);

    if (error == DOMUS_PARKED)
        return error;
    if (may_repeat_refused_ask_of_fetch(store->fetching, error))
        return sleep_and_resume_fetch(stack, store, ask_porter_for_fence_after_pause);
    store->fetching->tries = 0;
    (void)domus_stop(stack, store->fetching->porter);
    return error == -ECANCELED ? end_fetch_of_legacy(stack, store, error)
                               : spawn_porter_on_next_node_or_fetch(stack, store);
}

static int ask_porter_for_fence_after_pause(domus_stack *stack, void *self,
                                            const domus_answer *answer)
{
    return answer->error != 0 ? end_fetch_of_legacy(stack, self, answer->error)
                              : ask_porter_for_fence_of_legacy(stack, self);
}

static int keep_newer_legacy_and_ask_next_node(domus_stack *stack, void *self,
                                               const domus_answer *answer)
{
    struct kv_store *store = self;
    struct kv_fetching *fetching = store->fetching;
    const struct kv_piece_of_legacy *piece = answer->payload;

    if (may_repeat_refused_ask_of_fetch(fetching,
                                        answer->error == -EAGAIN ? -ENOBUFS : answer->error))
        return sleep_and_resume_fetch(stack, store, ask_porter_for_fence_after_pause);
    fetching->tries = 0;
    if (answer->error == -ECANCELED) {
        (void)domus_stop(stack, fetching->porter);
        return end_fetch_of_legacy(stack, store, answer->error);
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
    return spawn_porter_on_next_node_or_fetch(stack, store);
}

static int ask_spawned_porter_to_look(domus_stack *stack, void *self, const domus_answer *answer)
{
    struct kv_store *store = self;
    struct kv_fetching *fetching = store->fetching;

    if (answer->error == -ECANCELED)
        return end_fetch_of_legacy(stack, store, answer->error);
    if (answer->error != 0)
        return spawn_porter_on_next_node_or_fetch(stack, store);
    fetching->porter = ((const domus_cluster_spawned *)answer->payload)->address;
    return ask_porter_for_fence_of_legacy(stack, store);
}

static int spawn_porter_on_next_node_or_fetch(domus_stack *stack, struct kv_store *store)
{
    struct kv_fetching *fetching = store->fetching;

    while (fetching->at < fetching->count) {
        int error = domus_cluster_spawn(stack, fetching->nodes[fetching->at++], KV_PORTER, NULL,
                                        NULL, ASK_NS, ask_spawned_porter_to_look);
        if (error == DOMUS_PARKED)
            return error;
        if (error == -ECANCELED)
            return end_fetch_of_legacy(stack, store, error);
    }
    return use_own_or_fetch_newest_legacy(stack, store);
}

/* Look for the legacy in the slot of this node. If a porter has its legacy for a life that has
 * ended, look again in a moment. */
static int take_own_legacy_and_ask_nodes(domus_stack *stack, struct kv_store *store)
{
    struct kv_fetching *fetching = store->fetching;

    fetching->own = kv_legacy_take_out_of_slot(store->index);
    if (fetching->own == NULL && kv_legacy_has_any_porter_it(store->index) &&
        fetching->tries++ < TRIES_MAX)
        return sleep_and_resume_fetch(stack, store, take_own_legacy_after_pause);
    fetching->tries = 0;
    return spawn_porter_on_next_node_or_fetch(stack, store);
}

static int take_own_legacy_after_pause(domus_stack *stack, void *self, const domus_answer *answer)
{
    return answer->error != 0 ? end_fetch_of_legacy(stack, self, answer->error)
                              : take_own_legacy_and_ask_nodes(stack, self);
}

int kv_legacy_begin_fetch_at_mount(domus_stack *stack, struct kv_store *store)
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
    return take_own_legacy_and_ask_nodes(stack, store);
}

/* --- keepers ---------------------------------------------------------------------------------- */

const domus_type kv_keep_type = {.name = "keep", .size = sizeof(struct kv_keep)};

/* Begin to fetch as a keeper, when the porter of the shard's node has looked into its slot. */
static int begin_fetch_if_porter_has_legacy(domus_stack *stack, void *self,
                                            const domus_answer *answer)
{
    struct kv_store *store = self;
    const struct kv_piece_of_legacy *piece = answer->payload;
    int error = answer->error;

    if (error == 0 &&
        (answer->type != &kv_legacy_piece_type || piece->fence != store->fetching->best_fence))
        error = -ENOENT;
    return error != 0 ? end_fetch_of_legacy(stack, store, error)
                      : use_own_or_fetch_newest_legacy(stack, store);
}

static int ask_porter_for_keys_to_keep(domus_stack *stack, void *self, const void *payload)
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
    int error = domus_ask_within(stack, what->porter, &kv_fetch_type, &look, ASK_NS,
                                 begin_fetch_if_porter_has_legacy);
    return error == DOMUS_PARKED ? error : end_fetch_of_legacy(stack, store, error);
}

static void free_keys_of_keeper_at_stop(domus_stack *stack, void *self)
{
    struct kv_store *store = self;

    (void)stack;
    kv_table_clear(&store->table, &store->memory);
    while (kv_trash_free_some_elements(&store->memory))
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
    .on = (const domus_on[]){{&kv_keep_type, ask_porter_for_keys_to_keep, 0},
                             {&kv_expire_type, ignore_store_tick, 0},
                             {NULL, NULL, 0}},
    .on_stop = free_keys_of_keeper_at_stop,
};
