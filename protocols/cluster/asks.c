/* The asks that cross nodes: a table of the asks that this gateway keeps for actors here until
 * another node answers, and a table of the asks that it makes here for actors of other nodes. An id
 * consists of an index and a generation, so an id that comes too late, or was made up, matches no
 * ask. */
#include "protocols/cluster/inside.h"

#include <errno.h>
#include <stdlib.h>

#define ROOM_FEW 64u

static uint64_t make_id_of_ask(uint32_t index, uint32_t generation)
{
    return (uint64_t)generation << 32 | index;
}

/* --- asks of actors here to other nodes ------------------------------------------------------- */

static int grow_table_of_asks(domi_cluster_gateway *gateway)
{
    uint32_t max = gateway->cluster->options.asks_max;
    uint32_t room = gateway->asks_room != 0 ? 2 * gateway->asks_room : ROOM_FEW;

    if (room > max)
        room = max;
    if (room <= gateway->asks_room)
        return -ENOBUFS;
    domi_ask *larger = realloc(gateway->asks, room * sizeof *larger);
    if (larger == NULL)
        return -ENOMEM;
    for (uint32_t i = gateway->asks_room; i < room; i++)
        larger[i] = (domi_ask){.generation = 1, .next_free = i + 1 < room ? i + 1 : DOMI_NO_INDEX};
    gateway->asks = larger;
    gateway->asks_free = gateway->asks_room;
    gateway->asks_room = room;
    return 0;
}

int domi_ask_enter_into_table(domi_cluster_gateway *gateway, domi_peer *peer, domus_kept kept,
                              uint64_t deadline_ns, domi_wire_envelope *envelope,
                              domi_ask **ret_ask)
{
    uint64_t now_ns = domus_now_ns(gateway->stack);

    if (gateway->asks_used == gateway->asks_room) {
        int error = grow_table_of_asks(gateway);
        if (error != 0)
            return error;
    }
    uint32_t index = gateway->asks_free;
    domi_ask *ask = &gateway->asks[index];
    gateway->asks_free = ask->next_free;
    gateway->asks_used++;
    ask->kept = kept;
    ask->peer = peer;
    ask->deadline_ns = deadline_ns;
    ask->spawns = ask->for_grain = false;
    peer->asks++;
    envelope->id = make_id_of_ask(index, ask->generation);
    envelope->time_ns = deadline_ns;
    if (deadline_ns != 0)
        envelope->time_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 1;
    *ret_ask = ask;
    return 0;
}

domi_ask *domi_ask_find_by_id(domi_cluster_gateway *gateway, const domi_peer *peer, uint64_t id)
{
    uint32_t index = (uint32_t)id;

    if (index >= gateway->asks_room)
        return NULL;
    domi_ask *ask = &gateway->asks[index];
    return ask->peer == peer && ask->generation == id >> 32 ? ask : NULL;
}

domi_ask *domi_ask_find_by_kept_ask(domi_cluster_gateway *gateway, domus_kept kept,
                                    uint64_t *ret_id)
{
    for (uint32_t i = 0; i < gateway->asks_room; i++) {
        domi_ask *ask = &gateway->asks[i];
        if (ask->peer == NULL || ask->kept.stack != kept.stack || ask->kept.serial != kept.serial)
            continue;
        *ret_id = make_id_of_ask(i, ask->generation);
        return ask;
    }
    return NULL;
}

void domi_ask_free_entry(domi_cluster_gateway *gateway, domi_ask *ask)
{
    ask->peer->asks--;
    ask->peer = NULL;
    ask->generation++;
    ask->next_free = gateway->asks_free;
    gateway->asks_free = (uint32_t)(ask - gateway->asks);
    gateway->asks_used--;
}

void domi_asks_fail_all_of_peer(domi_cluster_gateway *gateway, const domi_peer *peer, int error)
{
    for (uint32_t i = 0; i < gateway->asks_room && peer->asks != 0; i++) {
        domi_ask *ask = &gateway->asks[i];
        if (ask->peer != peer)
            continue;
        domus_kept kept = ask->kept;
        domi_ask_free_entry(gateway, ask);
        (void)domus_kept_fail(gateway->stack, kept, error);
    }
}

void domi_asks_forget_after_deadline(domi_cluster_gateway *gateway)
{
    uint64_t now_ns = domus_now_ns(gateway->stack);

    for (uint32_t i = 0; i < gateway->asks_room && gateway->asks_used != 0; i++) {
        domi_ask *ask = &gateway->asks[i];
        /* A kept ask fails by itself at its deadline, and the gateway is not told of that. */
        if (ask->peer != NULL && ask->deadline_ns != 0 && ask->deadline_ns < now_ns)
            domi_ask_free_entry(gateway, ask);
    }
}

/* --- asks of other nodes to actors here ------------------------------------------------------- */

static uint32_t *bucket_of_served_ask(domi_cluster_gateway *gateway, uint64_t id)
{
    return &gateway->served_buckets[(id ^ id >> 32) % gateway->served_room];
}

static void link_served_ask_to_bucket(domi_cluster_gateway *gateway, uint32_t index)
{
    uint32_t *bucket = bucket_of_served_ask(gateway, gateway->served[index].id);

    gateway->served[index].next = *bucket;
    *bucket = index;
}

static int grow_table_of_served_asks(domi_cluster_gateway *gateway)
{
    uint32_t room = gateway->served_room != 0 ? 2 * gateway->served_room : ROOM_FEW;

    if (gateway->served_room >= gateway->cluster->options.asks_max)
        return -ENOBUFS;
    domi_served *larger = realloc(gateway->served, room * sizeof *larger);
    if (larger == NULL)
        return -ENOMEM;
    gateway->served = larger;
    uint32_t *buckets = malloc(room * sizeof *buckets);
    if (buckets == NULL)
        return -ENOMEM;
    uint32_t before = gateway->served_room;
    free(gateway->served_buckets);
    gateway->served_buckets = buckets;
    gateway->served_room = room;
    for (uint32_t i = 0; i < room; i++)
        buckets[i] = DOMI_NO_INDEX;
    /* all entries are in use, so each has to be linked into a bucket of the larger table */
    for (uint32_t i = 0; i < before; i++)
        link_served_ask_to_bucket(gateway, i);
    for (uint32_t i = before; i < room; i++)
        larger[i] = (domi_served){.generation = 1, .next = i + 1 < room ? i + 1 : DOMI_NO_INDEX};
    gateway->served_free = before;
    return 0;
}

int domi_served_enter_ask_into_table(domi_cluster_gateway *gateway, domi_peer *peer,
                                     uint16_t from_gateway, uint64_t id, uint64_t *ret_tag)
{
    if (gateway->served_used == gateway->served_room) {
        int error = grow_table_of_served_asks(gateway);
        if (error != 0)
            return error;
    }
    uint32_t index = gateway->served_free;
    domi_served *served = &gateway->served[index];
    gateway->served_free = served->next;
    gateway->served_used++;
    served->peer = peer;
    served->id = id;
    served->gateway = from_gateway;
    served->is_used = true;
    served->asked = (domus_remote_asked){NULL, 0};
    link_served_ask_to_bucket(gateway, index);
    *ret_tag = make_id_of_ask(index, served->generation);
    return 0;
}

domi_served *domi_served_find_ask_by_tag(domi_cluster_gateway *gateway, uint64_t tag)
{
    uint32_t index = (uint32_t)tag;

    if (index >= gateway->served_room)
        return NULL;
    domi_served *served = &gateway->served[index];
    return served->is_used && served->generation == tag >> 32 ? served : NULL;
}

void domi_served_free_entry_of_ask(domi_cluster_gateway *gateway, domi_served *served)
{
    uint32_t index = (uint32_t)(served - gateway->served);
    uint32_t *link = bucket_of_served_ask(gateway, served->id);

    while (*link != index)
        link = &gateway->served[*link].next;
    *link = served->next;
    served->is_used = false;
    served->peer = NULL;
    served->generation++;
    served->next = gateway->served_free;
    gateway->served_free = index;
    gateway->served_used--;
}

/* Cancel an ask of another node that nobody waits for any more. Its entry is freed when its answer,
 * -ECANCELED, has come. */
static void cancel_served_ask(domi_cluster_gateway *gateway, domi_served *served)
{
    served->peer = NULL;
    (void)domus_remote_cancel(gateway->stack, served->asked);
}

void domi_served_cancel_ask_by_id(domi_cluster_gateway *gateway, const domi_peer *peer, uint64_t id)
{
    if (gateway->served_room == 0)
        return;
    for (uint32_t i = *bucket_of_served_ask(gateway, id); i != DOMI_NO_INDEX;
         i = gateway->served[i].next) {
        if (gateway->served[i].id != id || gateway->served[i].peer != peer)
            continue;
        cancel_served_ask(gateway, &gateway->served[i]);
        return;
    }
}

void domi_served_cancel_asks_of_peer_gateway(domi_cluster_gateway *gateway, const domi_peer *peer,
                                             uint16_t from_gateway)
{
    for (uint32_t i = 0; i < gateway->served_room; i++) {
        domi_served *served = &gateway->served[i];
        if (served->is_used && served->peer == peer && served->gateway == from_gateway)
            cancel_served_ask(gateway, served);
    }
}

/* --- answers to other nodes ------------------------------------------------------------------- */

/* multiple of queued_max: if more bytes are on the way to a node, answers to it are refused */
#define ANSWERS_MAX 2u

void domi_send_failure_of_ask_to_node(domi_cluster_gateway *gateway, domi_peer *peer,
                                      uint16_t to_gateway, uint64_t id, int error)
{
    const domi_wire_envelope envelope = {.kind = DOMI_TO_FAIL, .error = error, .id = id};

    domi_add_envelope_or_mark_link_torn(gateway, peer, to_gateway, &envelope);
}

/* Write the message of an answer into gateway->message. Returns its bytes; -ENOBUFS when too much
 * is on the way to the node, whose bound is higher for answers than for asks and notices; another
 * negative errno. */
static int pickle_message_of_answer(domi_cluster_gateway *gateway, const domi_peer *peer,
                                    const domus_answer *answer)
{
    uint64_t queued = atomic_load_explicit(&peer->record->queued_bytes, memory_order_relaxed);

    return queued > ANSWERS_MAX * gateway->cluster->options.queued_max
               ? -ENOBUFS
               : domi_gateway_pickle_message(gateway, answer->type, answer->payload);
}

/* Send the reply of an actor here to the node that has asked. Returns 0; a negative errno. */
static int send_reply_to_asking_node(domi_cluster_gateway *gateway, domi_peer *peer,
                                     const domi_served *served, const domus_answer *answer)
{
    int bytes = pickle_message_of_answer(gateway, peer, answer);

    if (bytes < 0) {
        DOMI_COUNT(gateway, peer->record, refused, 1);
        return bytes;
    }
    const domi_wire_envelope envelope = {.kind = DOMI_TO_REPLY,
                                         .id = served->id,
                                         .rest = gateway->message,
                                         .rest_size = (uint32_t)bytes};
    return domi_add_envelope_to_batch_of_link(gateway, peer, served->gateway, &envelope);
}

/* Send the answer of an actor here, a reply or a failure, to the node that has asked. */
static void send_answer_to_asking_node(domi_cluster_gateway *gateway, domi_peer *peer,
                                       const domi_served *served, const domus_answer *answer)
{
    int error = answer->error != 0 ? answer->error
                                   : send_reply_to_asking_node(gateway, peer, served, answer);

    if (error != 0)
        domi_send_failure_of_ask_to_node(gateway, peer, served->gateway, served->id, error);
}

int domi_asks_on_answer_send_it_to_node(domus_stack *stack, void *self, const domus_answer *answer)
{
    domi_cluster_gateway *gateway = self;

    gateway->stack = stack;
    /* the conversation's long sleep is over, and no actor has answered: the conversation sleeps
     * again, unless the gateway ends */
    if (answer->tag == UINT64_MAX) {
        if (answer->error != 0)
            return 0;
        int error = domus_sleep_add(stack, DOMI_LONG_NS, UINT64_MAX);
        return error != 0 ? error : domus_wait_first(stack, domi_asks_on_answer_send_it_to_node);
    }
    domi_served *served = domi_served_find_ask_by_tag(gateway, answer->tag);
    if (served != NULL) {
        domi_peer *peer = served->peer;
        const domi_served what = *served;
        domi_served_free_entry_of_ask(gateway, served);
        if (peer != NULL)
            send_answer_to_asking_node(gateway, peer, &what, answer);
    }
    return domus_wait_first(stack, domi_asks_on_answer_send_it_to_node);
}

void domi_asks_free_tables(domi_cluster_gateway *gateway)
{
    free(gateway->asks);
    free(gateway->served);
    free(gateway->served_buckets);
}
