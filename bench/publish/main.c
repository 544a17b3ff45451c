/* The domus side of `bench publish`: each connection joins one group and says so by one byte. A
 * byte from a connection becomes a publication to the group, and each member writes the publication
 * to its connection. */
#include "bench/publish/publish.h"
#include "bench/publish/serve.h"

struct bulletin {
    char bytes[PUBLISH_BYTES];
};
static const domus_type bulletin_type = {.name = "bulletin", .size = sizeof(struct bulletin)};

static int send_bytes_of_publication(domus_stack *stack, domus_channel *channel, const void *bytes,
                                     size_t size)
{
    domus_buffer *buffer;
    int error = domus_buffer_new(stack, size, &buffer);

    if (error != 0)
        return error;
    memcpy(domus_buffer_data(buffer), bytes, size);
    return domus_channel_write(stack, channel, buffer);
}

static int join_group_at_open(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    domus_group *group = self;
    int error = publish_open_and_join_group(stack, group);

    return error != 0 ? error : send_bytes_of_publication(stack, event->channel, PUBLISH_JOINED, 1);
}

static int publish_bytes_of_order_to_group(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    const domus_group *group = self;
    struct bulletin bulletin;

    publish_fill_bytes_of_publication(bulletin.bytes,
                                      *(const unsigned char *)domus_buffer_data(event->bytes));
    domus_buffer_free(event->bytes);
    return domus_publish(stack, *group, &bulletin_type, &bulletin);
}

static int send_bulletin_to_subscriber(domus_stack *stack, void *self, const void *payload)
{
    (void)self;
    return send_bytes_of_publication(stack, domus_channel_running(stack), payload, PUBLISH_BYTES);
}

static const domus_behaviour member = {
    .name = "member",
    .kind = DOMUS_CHANNELS,
    .state_size = sizeof(domus_group),
    .on = (const domus_on[]){{&bulletin_type, send_bulletin_to_subscriber, 0}, {NULL, NULL, 0}},
    .on_open = {.handle = join_group_at_open},
    .on_read = {.handle = publish_bytes_of_order_to_group},
};
static const domus_behaviour owner = {.name = "owner", .kind = DOMUS_CHANNELS, .channel = &member};

int main(int argc, char **argv)
{
    return publish_run_server_with_owner(argc, argv, &owner);
}
