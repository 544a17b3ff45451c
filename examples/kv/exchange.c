/* Messages to clients of other nodes. A node has one exchange, through which all PUBLISH go: it
 * asks its own switchboard, and an envoy on each other node, which forwards to the switchboard
 * there; and it adds up the receivers. So the messages of a client reach each subscriber in order,
 * and the subscribers of one node get those of all clients in one order.
 *
 * An envoy is spawned by the exchange (domus_cluster_spawn()), which then greets it, and ends when
 * the exchange is gone. */
#include "nodes.h"
#include "pubsub.h"
#include "travel.h"

#include <errno.h>
#include <string.h>

#define LOOK_NS  UINT64_C(200000000)
#define SPAWN_NS UINT64_C(5000000000)
/* Tag of the ask to this node's own switchboard; the tags of asks to envoys are the numbers of
 * their nodes. */
#define OWN       UINT64_C(0)
#define PEERS_MAX 64u

domus_address kv_exchange;

/* Another node of the cluster, to which messages are published. */
struct peer {
    domus_node node;
    domus_address envoy; /* address of this node's envoy on that node; nobody: none exists yet */
    bool is_up;
};

struct exchange {
    struct peer peers[PEERS_MAX];
    uint32_t count;
    bool spawns; /* whether an envoy is being spawned, on the node `spawns_at` */
    uint64_t spawns_at;
};

const domus_type kv_greeting_type = {.name = "greeting"};
static const domus_type look_type = {.name = "look"};

/* --- nodes ------------------------------------------------------------------------------------ */

static struct peer *find_peer_node(struct exchange *exchange, uint64_t id)
{
    for (uint32_t i = 0; i < exchange->count; i++) {
        if (exchange->peers[i].node.id == id)
            return &exchange->peers[i];
    }
    return NULL;
}

/* Update the exchange's list of other nodes, and remove those that are gone. */
static void update_peer_nodes(struct exchange *exchange)
{
    domus_node_info nodes[PEERS_MAX + 1];
    uint32_t count = domus_cluster_nodes(kv_cluster, nodes, PEERS_MAX + 1);
    struct exchange old = *exchange;

    exchange->count = 0;
    for (uint32_t i = 0; i < count && i < PEERS_MAX + 1; i++) {
        if (nodes[i].is_here || nodes[i].state == DOMUS_NODE_ENDED)
            continue;
        const struct peer *known = find_peer_node(&old, nodes[i].node.id);
        struct peer *peer = &exchange->peers[exchange->count++];
        *peer = known != NULL ? *known : (struct peer){.node = nodes[i].node};
        peer->is_up = nodes[i].state == DOMUS_NODE_UP;
    }
}

static int store_envoy_and_send_greeting(domus_stack *stack, void *self, const domus_answer *answer)
{
    struct exchange *exchange = self;
    struct peer *peer = find_peer_node(exchange, exchange->spawns_at);

    exchange->spawns = false;
    if (answer->error != 0 || peer == NULL)
        return 0;
    peer->envoy = ((const domus_cluster_spawned *)answer->payload)->address;
    (void)domus_notice(stack, peer->envoy, &kv_greeting_type, NULL);
    return 0;
}

/* Check for nodes that have no envoy yet, and spawn one there. One envoy is spawned at a time. */
static int spawn_envoy_on_new_node_at_timer(domus_stack *stack, void *self, const void *payload)
{
    struct exchange *exchange = self;

    (void)payload;
    (void)domus_after(stack, LOOK_NS, &look_type, NULL, NULL);
    update_peer_nodes(exchange);
    for (uint32_t i = 0; i < exchange->count && !exchange->spawns; i++) {
        const struct peer *peer = &exchange->peers[i];
        if (!peer->is_up || peer->envoy.house != NULL)
            continue;
        exchange->spawns = true;
        exchange->spawns_at = peer->node.id;
        int error = domus_cluster_spawn(stack, peer->node, KV_ENVOY, NULL, NULL, SPAWN_NS,
                                        store_envoy_and_send_greeting);
        exchange->spawns = error == DOMUS_PARKED;
        /* an envoy that cannot be spawned now is tried again by the next check */
        return exchange->spawns ? error : 0;
    }
    return 0;
}

/* --- publishing ------------------------------------------------------------------------------- */

static int ask_actor_to_publish_copy_of_command(domus_stack *stack, domus_address to,
                                                const domus_resp_command *command, uint64_t tag)
{
    domus_resp_command kept;
    int error = kv_keep_command_without_copy(command, &kept);

    if (error != 0)
        return error;
    error = domus_ask_add(stack, to, &kv_publish_type, &kept, 0, tag);
    if (error != 0)
        domus_resp_command_type.release(&kept);
    return error;
}

/* Add up the receivers of a PUBLISH on all nodes. A node that does not answer counts as having
 * none. */
static int add_up_receivers_on_all_nodes(struct exchange *exchange, const domus_answer *answers,
                                         struct kv_published *ret_sum)
{
    *ret_sum = (struct kv_published){0};
    for (; answers != NULL; answers = answers->next) {
        const struct kv_published *published = answers->payload;
        if (answers->error == 0 && answers->type == &kv_published_type) {
            ret_sum->receivers += published->receivers;
            if (answers->tag == OWN)
                ret_sum->number = published->number;
            continue;
        }
        struct peer *peer = find_peer_node(exchange, answers->tag);
        if (peer != NULL && answers->error == -ESTALE)
            peer->envoy = (domus_address){NULL, 0};
        if (answers->tag == OWN)
            return answers->error;
    }
    return 0;
}

static int answer_publish_with_all_receivers(domus_stack *stack, void *self,
                                             const domus_answer *answers)
{
    struct kv_published sum;
    int error = add_up_receivers_on_all_nodes(self, answers, &sum);

    return error != 0 ? error : kv_answer_integer(stack, sum.receivers);
}

static int reply_with_receivers_for_transaction(domus_stack *stack, void *self,
                                                const domus_answer *answers)
{
    struct kv_published sum;
    int error = add_up_receivers_on_all_nodes(self, answers, &sum);

    return error != 0 ? error : domus_reply(stack, &kv_published_type, &sum);
}

static int publish_to_nodes(domus_stack *stack, struct exchange *exchange,
                            const domus_resp_command *command, domus_resumed *then)
{
    uint32_t asked = 0;

    for (uint32_t i = 0; i < exchange->count; i++) {
        const struct peer *peer = &exchange->peers[i];
        if (!peer->is_up || peer->envoy.house == NULL)
            continue;
        if (command->bytes.size > KV_TRAVEL_MAX)
            return -EMSGSIZE;
        asked +=
            ask_actor_to_publish_copy_of_command(stack, peer->envoy, command, peer->node.id) == 0;
    }
    if (asked == 0)
        return domus_forward(stack, kv_switchboard);
    int error = ask_actor_to_publish_copy_of_command(stack, kv_switchboard, command, OWN);
    return error != 0 ? error : domus_wait_all(stack, then);
}

static int publish_to_nodes_for_publish_command(domus_stack *stack, void *self, const void *payload)
{
    return publish_to_nodes(stack, self, payload, answer_publish_with_all_receivers);
}

static int publish_to_nodes_for_transaction(domus_stack *stack, void *self, const void *payload)
{
    return publish_to_nodes(stack, self, payload, reply_with_receivers_for_transaction);
}

static int arm_timer_for_new_nodes_at_mount(domus_stack *stack, void *self)
{
    (void)self;
    return domus_after(stack, LOOK_NS, &look_type, NULL, NULL);
}

const domus_behaviour kv_exchange_behaviour = {
    .name = "exchange",
    .state_size = sizeof(struct exchange),
    .on = (const domus_on[]){{&domus_resp_command_type, publish_to_nodes_for_publish_command, 0},
                             {&kv_publish_type, publish_to_nodes_for_transaction, 0},
                             {&look_type, spawn_envoy_on_new_node_at_timer, 0},
                             {NULL, NULL, 0}},
    .on_mount = arm_timer_for_new_nodes_at_mount,
};

/* --- envoys ----------------------------------------------------------------------------------- */

struct envoy {
    bool watches; /* whether the envoy watches the exchange that has spawned it */
};

static int watch_exchange_that_greets(domus_stack *stack, void *self, const void *payload)
{
    struct envoy *envoy = self;

    (void)payload;
    if (!envoy->watches)
        envoy->watches = domus_watch_actor(stack, domus_sender(stack), NULL) == 0;
    return 0;
}

/* Pass a publication on to the switchboard of this node. The sending exchange is watched here, too,
 * because its greeting may be lost. */
static int forward_publication_to_switchboard(domus_stack *stack, void *self, const void *payload)
{
    (void)watch_exchange_that_greets(stack, self, payload);
    return domus_forward(stack, kv_switchboard);
}

static int stop_envoy_of_ended_exchange(domus_stack *stack, void *self, const void *payload)
{
    (void)self, (void)payload;
    return domus_stop(stack, domus_self(stack));
}

const domus_behaviour kv_envoy = {
    .name = "envoy",
    .state_size = sizeof(struct envoy),
    .on = (const domus_on[]){{&kv_publish_type, forward_publication_to_switchboard, 0},
                             {&kv_greeting_type, watch_exchange_that_greets, 0},
                             {&domus_down_type, stop_envoy_of_ended_exchange, 0},
                             {NULL, NULL, 0}},
};
