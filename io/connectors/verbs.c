/* The verbs of domus/connect.h. They run on whichever thread runs the actor, so they touch nothing
 * of its home but what is constant; all else happens in the connecting actor. */
#include "io/connectors/connect.h"

#include "base/memory.h"
#include "house/conversation/stack.h"
#include "house/family/birth.h"
#include "house/message/stop.h"

#include <errno.h>
#include <string.h>

/* Make the record of a connect to one address. `io` is that of the home: only what is constant in
 * it is read. Returns 0; -EINVAL for wrong settings; -ENOMEM. */
static int connect_new(domi_io *io, const domus_endpoint *to, const domus_connect_options *options,
                       domi_connect **ret_connect)
{
    domi_connect *connect = domi_memory_new(sizeof *connect);
    const domus_channel_options *given = options->channel;
    domus_channel_options own;

    if (connect == NULL)
        return -ENOMEM;
    if (given != NULL && given->first_byte_timeout_ns == 0) {
        own = *given;
        own.first_byte_timeout_ns = DOMUS_NONE;
        given = &own;
    }
    int result = domi_settings_make(io->config, &io->settings, given, &connect->settings);
    if (result != 0) {
        domi_memory_free(connect);
        return result;
    }
    connect->timeout_ns = options->timeout_ns;
    connect->wanted = options->local;
    connect->fd = -1;
    connect->count = 1;
    connect->attempts = &connect->only;
    connect->only = (domi_attempt){.of = connect, .to = *to, .fd = -1};
    *ret_connect = connect;
    return 0;
}

/* Spawn the connecting actor. Returns 0; a negative errno. */
static int spawn_connecting(domus_stack *stack, const domus_endpoint *to,
                            const domus_connect_options *options, domus_address *ret_address)
{
    domi_house *owner = domi_stack_house(stack);
    const domus_behaviour *usual =
        owner->behaviour->channel != NULL ? owner->behaviour->channel : owner->behaviour;
    const domus_behaviour *behaviour = options->behaviour != NULL ? options->behaviour : usual;
    bool shares = behaviour->shares_state ||
                  (options->behaviour == NULL && owner->behaviour->channel == NULL);
    domi_connect *connect;
    int result = connect_new(owner->home->io, to, options, &connect);

    if (result != 0)
        return result;
    connect->behaviour = behaviour;
    result = domi_house_spawn_connecting(stack->manager, owner, &domi_connecting_behaviour,
                                         behaviour, shares, connect, ret_address);
    if (result != 0)
        domi_connect_give_up(connect);
    return result;
}

/* Check all that can be checked here, and spawn the connecting actor. */
static int prepare(domus_stack *stack, const char *to, const domus_connect_options *options,
                   domus_address *ret_address)
{
    static const domus_connect_options defaults = {0};
    const domi_io *io = domi_stack_house(stack)->home->io; /* constant while threads run */
    domus_endpoint at;
    int result = domus_endpoint_parse(to, &at);

    if (result != 0)
        return result;
    if (io == NULL || io->backend->poll_once == NULL)
        return -EOPNOTSUPP;
    result = domi_stack_check_may_wait(stack);
    if (result != 0)
        return result;
    return spawn_connecting(stack, &at, options != NULL ? options : &defaults, ret_address);
}

int domus_connect(domus_stack *stack, const char *to, const domus_connect_options *options,
                  domus_resumed *then)
{
    domus_address connecting;
    int result = prepare(stack, to, options, &connecting);

    if (result != 0)
        return result;
    result = domus_ask(stack, connecting, &domi_connect_type, NULL, then);
    if (result < 0)
        (void)domi_house_stop(stack->manager, connecting);
    return result;
}

int domus_connect_add(domus_stack *stack, const char *to, const domus_connect_options *options,
                      uint64_t tag)
{
    domus_address connecting;
    int result = prepare(stack, to, options, &connecting);

    if (result != 0)
        return result;
    result = domus_ask_add(stack, connecting, &domi_connect_type, NULL, 0, tag);
    if (result < 0)
        (void)domi_house_stop(stack->manager, connecting);
    return result;
}
