/* The store of a node: an actor in front of a JetStream bucket that all nodes share.
 *
 * It forwards its asks, so the bucket itself answers. A node that is alone has no servers and no
 * bucket: then nothing is stored, and a counter that is asked after its life has ended begins at
 * zero again. (The client here does not log in: for servers that require a user, add one to its
 * options.) */
#include "node.h"

#include <domus/nats_kv.h>

#include <errno.h>

static int open_store(domus_stack *stack, void *self_)
{
    static const domus_nats_kv_config config = {.description = "counters of examples/cluster"};
    struct store *self = self_;
    domus_nats_options client = {.servers = self->servers};
    domus_nats_kv_options bucket = {.bucket = "counters", .create = &config};

    if (self->servers != NULL && self->servers[0] != '\0') {
        int error = domus_nats_open(stack, &client, &bucket.client);
        if (error == 0)
            error = domus_nats_kv_open(stack, &bucket, &self->bucket);
        if (error != 0)
            return error;
    }
    return domus_name_register(stack, STORE_NAME);
}

static bool has_store_no_bucket(const struct store *self)
{
    return domus_address_equals(self->bucket, (domus_address){0});
}

static int forward_get_of_key_to_bucket(domus_stack *stack, void *self, const void *payload)
{
    (void)payload;
    return has_store_no_bucket(self) ? -ENOENT
                                     : domus_forward(stack, ((struct store *)self)->bucket);
}

static int forward_change_of_key_to_bucket(domus_stack *stack, void *self, const void *payload)
{
    const domus_nats_kv_put *put = payload;
    const domus_nats_kv_revision next = {.revision = put->revision + 1};

    if (has_store_no_bucket(self))
        return domus_reply(stack, &domus_nats_kv_revision_type, &next);
    return domus_forward(stack, ((struct store *)self)->bucket);
}

const domus_behaviour store = {
    .name = "store",
    .state_size = sizeof(struct store),
    .on_mount = open_store,
    .on = (const domus_on[]){{&domus_nats_kv_get_type, forward_get_of_key_to_bucket, 0},
                             {&domus_nats_kv_put_type, forward_change_of_key_to_bucket, 0},
                             {NULL, NULL, 0}}};
