/* A TCP proxy: every connection is relayed to one server, both ways:
 *   ./dev run proxy --config examples/proxy.yaml --set proxy.upstream=127.0.0.1:7000
 *
 * The channel of a client has the state `relay`; the channel to the server is its child and shares
 * that state, so either of the two may write to the other. Bytes that one side does not take stay
 * in the receive buffers of the other side, which has few and so is not read then. A half close
 * goes through, and an error of one side resets the other. A drain waits for busy relays. */
#include <domus/domus.h>
#include <domus/main.h>

#include <errno.h>

static struct settings {
    char upstream[256];
} settings; /* settings of the proxy, constant while the program runs */

struct relay {
    domus_channel *client; /* channel of the client; NULL: the client is gone */
    int ends;              /* number of sides that have finished sending */
};

/* Pass bytes on to the other side, whose channel is the data of this one (domus_channel_data()). */
static int pass_data_on(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    (void)self;
    return domus_channel_write(stack, domus_channel_data(event->channel), event->bytes);
}

static int pass_half_close_on(domus_stack *stack, void *self, const void *payload)
{
    domus_channel *from = ((const domus_channel_event *)payload)->channel;

    (void)domus_channel_finish(stack, domus_channel_data(from));
    return ++((struct relay *)self)->ends == 2 ? domus_channel_close(stack, from) : 0;
}

/* One side is gone: close the other when everything queued is sent, or reset it at once. */
static int pass_close_on(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    domus_channel *other = domus_channel_data(event->channel);

    ((struct relay *)self)->client = NULL; /* a connect under way sees that nobody needs it */
    if (other == NULL)
        return 0;
    domus_channel_set_data(other, NULL);
    return event->error != 0 ? domus_channel_reset(stack, other, event->error)
                             : domus_channel_close(stack, other);
}

static int join_server_to_client(domus_stack *stack, void *self, const void *payload)
{
    domus_channel *client = ((struct relay *)self)->client;
    domus_channel *server = ((const domus_channel_event *)payload)->channel;

    if (client == NULL)
        return -ECONNRESET;
    (void)domus_channel_set_relay(stack, client, true);
    (void)domus_channel_set_relay(stack, server, true);
    domus_channel_set_data(client, server);
    domus_channel_set_data(server, client);
    return domus_channel_resume(stack, client);
}

static const domus_behaviour server = {
    .name = "server",
    .kind = DOMUS_CHANNELS,
    .shares_state = true,
    .on_open = {join_server_to_client, 0},
    .on_read = {pass_data_on, 0},
    .on_end = {pass_half_close_on, 0},
    .on_close = {pass_close_on, 0},
};

/* Both channels are read however much they have to send, or two relays could block each other. */
static const domus_channel_options unbounded = {.send_high_bytes = 1u << 30,
                                                .send_max_bytes = 1u << 30};

DOMUS_SEQUENCE(client_opened, char)
{
    static const domus_connect_options options = {.behaviour = &server, .channel = &unbounded};
    domus_channel *client = ((struct relay *)self)->client = domus_channel_running(stack);

    DOMUS_BEGIN;
    (void)domus_channel_set_options(stack, client, &unbounded);
    (void)domus_channel_pause(stack, client); /* the client is read when its server is there */
    DOMUS_AWAIT(domus_connect(stack, settings.upstream, &options, then));
    return answer->error; /* this negative errno resets the client's channel */
    DOMUS_END;
}

static const domus_behaviour client = {
    .name = "client",
    .kind = DOMUS_CHANNELS,
    .state_size = sizeof(struct relay),
    .on_open = DOMUS_BY(client_opened),
    .on_read = {pass_data_on, 0},
    .on_end = {pass_half_close_on, 0},
    .on_close = {pass_close_on, 0},
};
static const domus_behaviour proxy = {.name = "proxy", .kind = DOMUS_CHANNELS, .channel = &client};

static int start_service(domus_system *system, void *argument)
{
    return domus_main_serve(system, argument, &proxy, NULL);
}

static const domus_config_key keys[] = {
    {DOMUS_KEY_TEXT("upstream", ADDRESS, struct settings, upstream, 1, "127.0.0.1:7000")}, {0}};
static const domus_section section = {"proxy", keys, sizeof settings, NULL};
static const domus_program program = {"proxy", start_service, "proxy", .section = &section,
                                      .settings = &settings};

int main(int argc, char **argv)
{
    return domus_main(argc, argv, &program);
}
