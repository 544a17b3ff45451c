/* Spawns actors on other nodes: a request names a behaviour that the other node exports
 * (domus_cluster_spawn()). */
#include "protocols/cluster/inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const domus_type domus_cluster_spawned_type = {.name = "cluster spawned",
                                               .size = sizeof(domus_cluster_spawned)};

/* The payload of domus_cluster_spawn()'s ask to the gateway; it owns `message`. */
typedef struct domi_spawn_request {
    uint64_t node;
    /* name of the behaviour with its length before it, and the pickled input */
    domus_slice message;
} domi_spawn_request;

static void release_spawn_request(void *request)
{
    domus_slice_free(((domi_spawn_request *)request)->message);
}

const domus_type domi_spawn_type = {
    .name = "cluster spawn", .size = sizeof(domi_spawn_request), .release = release_spawn_request};

/* --- the side that asks ----------------------------------------------------------------------- */

/* Pickle the input of a spawn. Addresses in it are refused, because only a gateway can write the
 * names of remote actors. */
static int pickle_input_of_spawn(domus_cluster *cluster, const char *behaviour,
                                 const domus_type *type, const void *input,
                                 domus_slice *ret_message)
{
    domus_appender message = {.size_max = cluster->options.message_max};
    unsigned char length = (unsigned char)strlen(behaviour);

    (void)domus_append(&message, &length, 1);
    int error = domus_append(&message, behaviour, length);
    if (error == 0 && type != NULL)
        error = cluster->picklers != NULL
                    ? domus_pickle(cluster->picklers, NULL, type, input, &message, NULL, 0)
                    : -ENOENT;
    if (error != 0) {
        domus_append_drop(&message);
        return error;
    }
    return domus_append_end(&message, ret_message);
}

int domus_cluster_spawn(domus_stack *stack, domus_node node, const char *behaviour,
                        const domus_type *input_type, const void *input, uint64_t timeout_ns,
                        domus_resumed *then)
{
    domi_spawn_request request = {.node = node.id};
    domus_address gateway;

    if (node.cluster == NULL ||
        !domi_wide_is_valid_name(behaviour, strnlen(behaviour, DOMUS_CLUSTER_NAME_MAX + 1)))
        return -EINVAL;
    int error = domus_remote_gateway(stack, &gateway);
    if (error == 0)
        error = pickle_input_of_spawn(node.cluster, behaviour, input_type, input, &request.message);
    if (error != 0)
        return error;
    error = domus_ask_within(stack, gateway, &domi_spawn_type, &request, timeout_ns, then);
    if (error < 0)
        domus_slice_free(request.message);
    return error;
}

static int ask_peer_to_spawn(domi_cluster_gateway *gateway, domi_peer *peer,
                             const domi_spawn_request *request)
{
    domi_wire_envelope envelope = {
        .kind = DOMI_TO_SPAWN,
        .rest = (const unsigned char *)domus_slice_data(request->message),
        .rest_size = request->message.size,
    };
    domus_kept kept;
    domi_ask *ask;

    if (peer == NULL || !domi_peer_is_up(gateway, peer))
        return -EHOSTDOWN;
    int error = domi_ask_enter_into_table(gateway, peer, (domus_kept){NULL, 0},
                                          domus_deadline_ns(gateway->stack), &envelope, &ask);
    if (error != 0)
        return error;
    error = domi_add_envelope_to_batch_of_link(
        gateway, peer, domi_gateway_index_at_peer(gateway, peer), &envelope);
    if (error == 0)
        error = domus_remote_keep(gateway->stack, &kept);
    if (error != 0) {
        domi_ask_free_entry(gateway, ask);
        return error;
    }
    ask->kept = kept;
    ask->spawns = true;
    return 0;
}

/* --- the side that spawns --------------------------------------------------------------------- */

static const domus_cluster_export *find_exported_behaviour(const domus_cluster *cluster,
                                                           const char *name, uint32_t length)
{
    const domus_cluster_export *at = cluster->options.exports;

    for (; at != NULL && at->name != NULL; at++) {
        if (strlen(at->name) == length && memcmp(at->name, name, length) == 0)
            return at;
    }
    return NULL;
}

/* Unpickle the input of a spawn into gateway->payload, if the export takes one. `ret_read` tells
 * whether there was one. */
static int unpickle_input_of_spawn(domi_cluster_gateway *gateway,
                                   const domus_cluster_export *export, domus_slice bytes,
                                   bool *ret_read)
{
    domus_pickled pickled;

    *ret_read = false;
    if (export->input == NULL)
        return bytes.size == 0 ? 0 : -EINVAL;
    if (bytes.size == 0 || gateway->cluster->picklers == NULL)
        return -EINVAL;
    int error = domus_pickled_open(gateway->cluster->picklers, &gateway->pickling, bytes, &pickled,
                                   NULL, 0);
    if (error != 0 || pickled.pickler->type != export->input)
        return error != 0 ? error : -EINVAL;
    error = domus_unpickle(&pickled, &gateway->pickling, gateway->payload, NULL, 0);
    *ret_read = error == 0;
    return error;
}

static int spawn_exported_behaviour(domi_cluster_gateway *gateway,
                                    const domus_cluster_export *export, domus_slice bytes,
                                    domus_address *ret_address)
{
    uint32_t size = export->behaviour->state_size;
    bool has_read;
    int error = unpickle_input_of_spawn(gateway, export, bytes, &has_read);

    if (error != 0)
        return error;
    void *state = calloc(1, size != 0 ? size : 1);
    if (state == NULL)
        error = -ENOMEM;
    else if (export->make != NULL)
        error = export->make(has_read ? gateway->payload : NULL, state);
    if (error == 0) {
        domus_spawn_options options = export->options;
        if (options.placement == DOMUS_NEAR && options.pool == NULL)
            options.placement = DOMUS_SPREAD;
        error = domus_spawn_with(gateway->stack, export->behaviour, state, &options, ret_address);
    }
    if (has_read && export->input->release != NULL)
        export->input->release(gateway->payload);
    free(state);
    return error;
}

/* Spawn the behaviour that the message of a spawn names. Returns 0; a negative errno. */
static int spawn_behaviour_named_in_message(domi_cluster_gateway *gateway, domus_slice message,
                                            domus_address *ret_address)
{
    const char *data = domus_slice_data(message);
    uint32_t length = message.size != 0 ? (unsigned char)data[0] : 0;

    if (message.size < 1 + length)
        return -EBADMSG;
    const domus_cluster_export *export =
        find_exported_behaviour(gateway->cluster, data + 1, length);
    if (export == NULL)
        return -ENOENT;
    message.offset += 1 + length;
    message.size -= 1 + length;
    return spawn_exported_behaviour(gateway, export, message, ret_address);
}

void domi_spawn_for_peer_and_answer(domi_cluster_gateway *gateway, domi_peer *peer,
                                    uint16_t from_gateway, const domi_wire_envelope *envelope,
                                    domus_slice rest)
{
    domi_wire_envelope answer = {.kind = DOMI_TO_SPAWNED, .id = envelope->id};
    domus_address address;
    int error = spawn_behaviour_named_in_message(gateway, rest, &address);

    if (error == 0) {
        domi_name_of_address_on_wire(gateway, address, &answer.from);
    } else {
        answer.kind = DOMI_TO_FAIL;
        answer.error = error;
    }
    domi_add_envelope_or_mark_link_torn(gateway, peer, from_gateway, &answer);
}

int domi_spawn_here_or_ask_peer_to(domus_stack *stack, void *self, const void *payload)
{
    domi_cluster_gateway *gateway = self;
    const domi_spawn_request *request = payload;
    domus_cluster_spawned spawned;

    gateway->stack = stack;
    if (request->node != gateway->cluster->id)
        return ask_peer_to_spawn(gateway, domi_peer_find_or_make(gateway, request->node), request);
    int error = spawn_behaviour_named_in_message(gateway, request->message, &spawned.address);
    return error != 0 ? error : domus_reply(stack, &domus_cluster_spawned_type, &spawned);
}
