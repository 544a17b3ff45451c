/* Watches an actor on each other node, and prints when it has ended; and asks each account where it
 * is, and prints when the answer comes from another node, or is the first one after a failure.
 *
 *   watch NODE                    an actor of that node is watched from now on
 *   down NODE REASON AT_NS        the watched actor of that node has ended
 *   place ACCOUNT NODE ASKED_NS ANSWERED_NS FAILURES
 *
 * Times are those of CLOCK_MONOTONIC, which all processes of the machine share. */
#include "tests/chaos/bank.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LOOK_NS  (50 * CHAOS_MS)
#define SPAWN_NS (1000 * CHAOS_MS)
#define PROBE_NS                                                                                   \
    (250 * CHAOS_MS) /* time-out in nanoseconds of a probe, which asks an account where it is */
#define PROBE_GAP_NS (20 * CHAOS_MS)

struct watched_node {
    uint64_t id;
    bool is_asked; /* whether the actor on that node is being spawned */
    domus_address address;
    char name[DOMUS_CLUSTER_NAME_MAX + 1];
};

struct watcher {
    struct watched_node nodes[CHAOS_NODES_MAX];
};

static const domus_type look_type = {.name = "look"};
static const domus_type spawn_type = {.name = "spawn", .size = sizeof(uint32_t)};
static const domus_type probe_type = {.name = "probe", .size = sizeof(uint32_t)};

/* ---- Watches ------------------------------------------------------------------------------- */

const domus_behaviour chaos_watched = {.name = "watched"};

static struct watched_node *find_watched_node(struct watcher *watcher, uint64_t id)
{
    for (uint32_t i = 0; i < CHAOS_NODES_MAX; i++) {
        if (watcher->nodes[i].id == id)
            return &watcher->nodes[i];
    }
    return NULL;
}

static int resume_when_watched_actor_is_spawned(domus_stack *stack, void *self,
                                                const domus_answer *answer)
{
    struct watcher *watcher = self;
    struct watched_node *node = &watcher->nodes[*(const uint32_t *)domus_frame(stack)];

    if (answer->error != 0) {
        /* The entry of this node is free, so the next look_for_new_nodes() that finds the node up
         * spawns an actor on it again. */
        node->id = 0;
        return 0;
    }
    node->is_asked = false;
    node->address = ((const domus_cluster_spawned *)answer->payload)->address;
    printf("watch %s\n", node->name);
    return domus_watch_actor(stack, node->address, NULL);
}

static int handle_spawn_on_node(domus_stack *stack, void *self, const void *payload)
{
    struct watcher *watcher = self;
    uint32_t index = *(const uint32_t *)payload;
    domus_node node = {chaos_cluster, watcher->nodes[index].id};

    *(uint32_t *)domus_frame(stack) = index;
    int error = domus_cluster_spawn(stack, node, chaos_watched.name, NULL, NULL, SPAWN_NS,
                                    resume_when_watched_actor_is_spawned);
    if (error < 0)
        watcher->nodes[index].id = 0;
    return error < 0 ? 0 : error;
}

static int look_for_new_nodes(domus_stack *stack, void *self, const void *payload)
{
    struct watcher *watcher = self;
    domus_node_info infos[CHAOS_NODES_MAX];
    uint32_t count = domus_cluster_nodes(chaos_cluster, infos, CHAOS_NODES_MAX);

    (void)payload;
    for (uint32_t i = 0; i < count && i < CHAOS_NODES_MAX; i++) {
        struct watched_node *node = find_watched_node(watcher, 0);
        if (node == NULL || infos[i].is_here || infos[i].state != DOMUS_NODE_UP ||
            find_watched_node(watcher, infos[i].node.id) != NULL)
            continue;
        *node = (struct watched_node){.id = infos[i].node.id, .is_asked = true};
        memcpy(node->name, infos[i].name, sizeof node->name);
        uint32_t index = (uint32_t)(node - watcher->nodes);
        if (domus_notice(stack, domus_self(stack), &spawn_type, &index) != 0)
            node->id = 0;
    }
    return 0;
}

static int handle_end_of_watched_actor(domus_stack *stack, void *self, const void *payload)
{
    struct watcher *watcher = self;
    const domus_down *down = payload;

    (void)stack;
    for (uint32_t i = 0; i < CHAOS_NODES_MAX; i++) {
        struct watched_node *node = &watcher->nodes[i];
        if (node->id == 0 || node->is_asked || !domus_address_equals(node->address, down->who))
            continue;
        printf("down %s %d %" PRIu64 "\n", node->name, down->reason, chaos_now_ns());
        node->id = 0; /* the next look_for_new_nodes() that finds the node up watches it again */
    }
    return 0;
}

static int mount_watcher_with_timer(domus_stack *stack, void *self)
{
    (void)self;
    return domus_every(stack, LOOK_NS, &look_type, NULL, NULL);
}

const domus_behaviour chaos_watcher = {
    .name = "watcher",
    .state_size = sizeof(struct watcher),
    .on =
        (const domus_on[]){
            {.type = &look_type, .handle = look_for_new_nodes},
            {.type = &spawn_type, .handle = handle_spawn_on_node, .frame_size = sizeof(uint32_t)},
            {.type = &domus_down_type, .handle = handle_end_of_watched_actor},
            {.type = NULL}},
    .on_mount = mount_watcher_with_timer,
};

/* ---- Probes -------------------------------------------------------------------------------- */

struct probe { /* the frame of the conversation that asks one account for ever
                                    where it is */
    uint32_t account;
    uint32_t node; /* node that has given the last answer; 0: no answer yet */
    uint32_t failures;
    uint64_t asked_ns;
};

struct prober {
    domus_grains accounts;
};

static domus_resumed resume_with_answer_of_probe;

static int ask_account_where_it_is(domus_stack *stack, void *self, const domus_answer *answer)
{
    const struct prober *prober = self;
    struct probe *frame = domus_frame(stack);
    char key[CHAOS_KEY_SIZE];

    if (answer != NULL && answer->error == -ECANCELED)
        return 0;
    chaos_account_make_key(frame->account, key);
    frame->asked_ns = chaos_now_ns();
    int error = domus_grain_ask_within(stack, prober->accounts, key, &chaos_where_type, NULL,
                                       PROBE_NS, resume_with_answer_of_probe);
    if (error >= 0)
        return error;
    frame->failures++;
    return domus_sleep(stack, PROBE_GAP_NS, ask_account_where_it_is);
}

static int resume_with_answer_of_probe(domus_stack *stack, void *self, const domus_answer *answer)
{
    struct probe *frame = domus_frame(stack);

    (void)self;
    if (answer->error == -ECANCELED)
        return 0;
    if (answer->error != 0) {
        frame->failures++;
        return domus_sleep(stack, CHAOS_MS, ask_account_where_it_is);
    }
    const struct chaos_place *place = answer->payload;
    if (place->node != frame->node || frame->failures > 0)
        printf("place %u %u %" PRIu64 " %" PRIu64 " %u\n", frame->account, place->node,
               frame->asked_ns, chaos_now_ns(), frame->failures);
    frame->node = place->node;
    frame->failures = 0;
    return domus_sleep(stack, PROBE_GAP_NS, ask_account_where_it_is);
}

static int handle_begin_of_probe(domus_stack *stack, void *self, const void *payload)
{
    struct probe *frame = domus_frame(stack);

    frame->account = *(const uint32_t *)payload;
    return ask_account_where_it_is(stack, self, NULL);
}

static int mount_prober_of_accounts(domus_stack *stack, void *self)
{
    struct prober *prober = self;
    int error = domus_grain_open(stack, &chaos_accounts, &prober->accounts);

    for (uint32_t i = 0; i < chaos_options.accounts && error == 0; i++)
        error = domus_notice(stack, domus_self(stack), &probe_type, &i);
    return error;
}

const domus_behaviour chaos_prober = {
    .name = "prober",
    .state_size = sizeof(struct prober),
    .on = (const domus_on[]){{.type = &probe_type,
                              .handle = handle_begin_of_probe,
                              .frame_size = sizeof(struct probe)},
                             {.type = NULL}},
    .on_mount = mount_prober_of_accounts,
};
