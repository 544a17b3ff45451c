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

#define LOOK_NS      (50 * CHAOS_MS)
#define SPAWN_NS     (1000 * CHAOS_MS)
#define PROBE_NS     (250 * CHAOS_MS) /* time-out of a probe, in nanoseconds */
#define PROBE_GAP_NS (20 * CHAOS_MS)

struct watched_node {
    uint64_t id;
    bool is_asked; /* the actor is being spawned */
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

static struct watched_node *find_node(struct watcher *watcher, uint64_t id)
{
    for (uint32_t i = 0; i < CHAOS_NODES_MAX; i++) {
        if (watcher->nodes[i].id == id)
            return &watcher->nodes[i];
    }
    return NULL;
}

static int watch_spawned(domus_stack *stack, void *self, const domus_answer *answer)
{
    struct watcher *watcher = self;
    struct watched_node *node = &watcher->nodes[*(const uint32_t *)domus_frame(stack)];

    if (answer->error != 0) {
        /* the entry is free, so the next on_look() that finds that node up spawns an actor on it
         * again */
        node->id = 0;
        return 0;
    }
    node->is_asked = false;
    node->address = ((const domus_cluster_spawned *)answer->payload)->address;
    printf("watch %s\n", node->name);
    return domus_watch_actor(stack, node->address, NULL);
}

static int on_spawn(domus_stack *stack, void *self, const void *payload)
{
    struct watcher *watcher = self;
    uint32_t index = *(const uint32_t *)payload;
    domus_node node = {chaos_cluster, watcher->nodes[index].id};

    *(uint32_t *)domus_frame(stack) = index;
    int error =
        domus_cluster_spawn(stack, node, chaos_watched.name, NULL, NULL, SPAWN_NS, watch_spawned);
    if (error < 0)
        watcher->nodes[index].id = 0;
    return error < 0 ? 0 : error;
}

static int on_look(domus_stack *stack, void *self, const void *payload)
{
    struct watcher *watcher = self;
    domus_node_info infos[CHAOS_NODES_MAX];
    uint32_t count = domus_cluster_nodes(chaos_cluster, infos, CHAOS_NODES_MAX);

    (void)payload;
    for (uint32_t i = 0; i < count && i < CHAOS_NODES_MAX; i++) {
        struct watched_node *node = find_node(watcher, 0);
        if (node == NULL || infos[i].is_here || infos[i].state != DOMUS_NODE_UP ||
            find_node(watcher, infos[i].node.id) != NULL)
            continue;
        *node = (struct watched_node){.id = infos[i].node.id, .is_asked = true};
        memcpy(node->name, infos[i].name, sizeof node->name);
        uint32_t index = (uint32_t)(node - watcher->nodes);
        if (domus_notice(stack, domus_self(stack), &spawn_type, &index) != 0)
            node->id = 0;
    }
    return 0;
}

static int on_down(domus_stack *stack, void *self, const void *payload)
{
    struct watcher *watcher = self;
    const domus_down *down = payload;

    (void)stack;
    for (uint32_t i = 0; i < CHAOS_NODES_MAX; i++) {
        struct watched_node *node = &watcher->nodes[i];
        if (node->id == 0 || node->is_asked || !domus_address_equals(node->address, down->who))
            continue;
        printf("down %s %d %" PRIu64 "\n", node->name, down->reason, chaos_now_ns());
        node->id = 0; /* the next look that finds the node up watches it again */
    }
    return 0;
}

static int watcher_mounted(domus_stack *stack, void *self)
{
    (void)self;
    return domus_every(stack, LOOK_NS, &look_type, NULL, NULL);
}

const domus_behaviour chaos_watcher = {
    .name = "watcher",
    .state_size = sizeof(struct watcher),
    .on =
        (const domus_on[]){
            {.type = &look_type, .handle = on_look},
            {.type = &spawn_type, .handle = on_spawn, .frame_size = sizeof(uint32_t)},
            {.type = &domus_down_type, .handle = on_down},
            {.type = NULL}},
    .on_mount = watcher_mounted,
};

/* ---- Probes -------------------------------------------------------------------------------- */

struct probe { /* the frame of a conversation that never ends */
    uint32_t account;
    uint32_t node; /* node that gave the last answer; 0: no answer yet */
    uint32_t failures;
    uint64_t asked_ns;
};

struct prober {
    domus_grains accounts;
};

static domus_resumed probe_answered;

static int probe(domus_stack *stack, void *self, const domus_answer *answer)
{
    const struct prober *prober = self;
    struct probe *frame = domus_frame(stack);
    char key[CHAOS_KEY_SIZE];

    if (answer != NULL && answer->error == -ECANCELED)
        return 0;
    chaos_account_make_key(frame->account, key);
    frame->asked_ns = chaos_now_ns();
    int error = domus_grain_ask_within(stack, prober->accounts, key, &chaos_where_type, NULL,
                                       PROBE_NS, probe_answered);
    if (error >= 0)
        return error;
    frame->failures++;
    return domus_sleep(stack, PROBE_GAP_NS, probe);
}

static int probe_answered(domus_stack *stack, void *self, const domus_answer *answer)
{
    struct probe *frame = domus_frame(stack);

    (void)self;
    if (answer->error == -ECANCELED)
        return 0;
    if (answer->error != 0) {
        frame->failures++;
        return domus_sleep(stack, CHAOS_MS, probe);
    }
    const struct chaos_place *place = answer->payload;
    if (place->node != frame->node || frame->failures > 0)
        printf("place %u %u %" PRIu64 " %" PRIu64 " %u\n", frame->account, place->node,
               frame->asked_ns, chaos_now_ns(), frame->failures);
    frame->node = place->node;
    frame->failures = 0;
    return domus_sleep(stack, PROBE_GAP_NS, probe);
}

static int on_probe(domus_stack *stack, void *self, const void *payload)
{
    struct probe *frame = domus_frame(stack);

    frame->account = *(const uint32_t *)payload;
    return probe(stack, self, NULL);
}

static int prober_mounted(domus_stack *stack, void *self)
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
    .on =
        (const domus_on[]){
            {.type = &probe_type, .handle = on_probe, .frame_size = sizeof(struct probe)},
            {.type = NULL}},
    .on_mount = prober_mounted,
};
