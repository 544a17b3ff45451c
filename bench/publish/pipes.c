/* The side of `bench publish` with pipelines: each connection joins one group and says so by one
 * byte. A byte from a connection is a message of its peer, and becomes a publication to the group:
 * a packet that is encoded once, in a slice. The pipeline of each member sends the packet to its
 * peer. */
#include "bench/publish/publish.h"
#include "bench/publish/serve.h"

#include <errno.h>

/* --- the protocol: each byte is a message, and packets go out as they are --------------------- */

static const domus_type order_type = {.name = "order", .size = sizeof(unsigned char)};

static int decode_first_byte_as_order(domus_wire *wire, void *state, const char *bytes, size_t size)
{
    unsigned char *order = domus_wire_notice(wire, &order_type);

    (void)state, (void)size;
    if (order == NULL)
        return -ENOMEM;
    *order = (unsigned char)bytes[0];
    return 1;
}

static int encode_message(domus_wire *wire, void *state, uint64_t id, const domus_type *type,
                          const void *payload)
{
    (void)state, (void)id;
    if (type != &domus_packet_type)
        return -EOPNOTSUPP;
    return domus_wire_append_slice(wire, ((const domus_packet *)payload)->bytes);
}

static const domus_stage stage = {
    .name = "orders", .decode = decode_first_byte_as_order, .encode = encode_message};

/* --- the members ------------------------------------------------------------------------------ */

static int join_group_and_send_joined_at_open(domus_stack *stack, void *self, const void *payload)
{
    domus_group *group = self;
    domus_packet packet;
    int error = publish_open_and_join_group(stack, group);

    (void)payload;
    if (error == 0)
        error = domus_slice_copy(PUBLISH_JOINED, 1, &packet.bytes);
    if (error != 0)
        return error;
    error = domus_notice(stack, domus_self(stack), &domus_packet_type, &packet);
    if (error != 0)
        domus_slice_free(packet.bytes);
    return error;
}

static int publish_packet_to_group(domus_stack *stack, void *self, const void *payload)
{
    const domus_group *group = self;
    char bytes[PUBLISH_BYTES];
    domus_packet packet;

    publish_fill_bytes_of_publication(bytes, *(const unsigned char *)payload);
    int error = domus_slice_copy(bytes, sizeof bytes, &packet.bytes);
    if (error != 0)
        return error;
    error = domus_publish(stack, *group, &domus_packet_type, &packet);
    if (error != 0)
        domus_slice_free(packet.bytes);
    return error;
}

static const domus_type *const encodes[] = {&domus_packet_type, NULL};
static const domus_pipeline pipeline = {
    .stages = (const domus_pipeline_stage[]){{&stage, NULL}, {NULL, NULL}},
    .encodes = encodes,
};
static const domus_behaviour member = {
    .name = "member",
    .kind = DOMUS_CHANNELS,
    .state_size = sizeof(domus_group),
    .pipeline = &pipeline,
    .on_peer = (const domus_on_peer[]){{.type = &order_type, .handle = publish_packet_to_group},
                                       {.type = NULL}},
    .on_open = {.handle = join_group_and_send_joined_at_open},
};
static const domus_behaviour owner = {.name = "owner", .kind = DOMUS_CHANNELS, .channel = &member};

int main(int argc, char **argv)
{
    return publish_run_server_with_owner(argc, argv, &owner);
}
