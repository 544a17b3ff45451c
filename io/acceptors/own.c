/* Listeners that an actor makes for itself. The acceptor is a child of that actor, on the same
 * thread, and hands its connections to that actor alone. */
#include "base/memory.h"
#include "base/pipeline.h"
#include "house/conversation/ringless.h"
#include "house/conversation/stack.h"
#include "house/family/behaviour.h"
#include "house/family/birth.h"
#include "io/acceptors/acceptors.h"
#include "io/resources/socket.h"

#include <domus/listen.h>

#include <errno.h>

#define BACKLOG_DEFAULT 4096u

/* Spawn the actor of the acceptor, and attach the acceptor at once, before its mount: the listener
 * is open, and an actor that is stopped before its mount has no function that could close it. */
static int spawn_acceptor(domi_manager *manager, domi_house *owner, domi_acceptor *acceptor,
                          domus_address *ret_listener)
{
    int result = domi_house_spawn_child(manager, owner, manager, &domi_acceptor_behaviour,
                                        &acceptor, NULL, ret_listener);

    if (result != 0)
        return result;
    /* the acceptor finds a free place, because domus_listen() has checked that */
    result = domi_acceptor_attach_to_io(acceptor, manager->io, ret_listener->house);
    DOMI_CHECK(result == 0);
    return 0;
}

static bool has_place_for_acceptor(const domi_io *io)
{
    for (uint32_t i = 0; i < DOMI_ACCEPTORS_MAX; i++) {
        if (io->acceptors[i] == NULL)
            return true;
    }
    return false;
}

static int open_listener_and_spawn_acceptor(domi_manager *manager, domi_house *house,
                                            const domus_endpoint *at,
                                            const domus_listen_options *options,
                                            domus_address *ret_listener, domus_endpoint *ret_at)
{
    uint32_t backlog = options->backlog != 0 ? options->backlog : BACKLOG_DEFAULT;
    domi_io *io = manager->io;
    domi_acceptor *acceptor = domi_memory_new(sizeof *acceptor + sizeof acceptor->targets[0]);

    if (acceptor == NULL)
        return -ENOMEM;
    acceptor->target_count = 1;
    acceptor->targets[0] = (domi_acceptor_target){domi_house_get_address(house), io};
    int result = domi_networks_parse_list(options->proxy_from != NULL ? options->proxy_from : "",
                                          &acceptor->proxies, NULL, 0);
    if (result == 0)
        result = domi_settings_make_for_listener(io->config, options->channel, options->name,
                                                 &acceptor->settings);
    const domi_listen_plan plan = {backlog, options->shares_port, acceptor->settings};
    if (result == 0) {
        acceptor->settings->front = options->front;
        acceptor->settings->row = DOMI_LISTENER_OWN;
    }
    if (result == 0)
        result = domi_acceptor_open_listener(io, at, &plan, ret_at);
    if (result >= 0) {
        acceptor->fd = result;
        result = spawn_acceptor(manager, house, acceptor, ret_listener);
        if (result == 0)
            return 0;
        domi_socket_close(io, acceptor->fd);
    }
    domi_settings_remove_user(acceptor->settings);
    domi_memory_free(acceptor);
    return result;
}

int domus_listen(domus_stack *stack, const domus_endpoint *at, const domus_listen_options *options,
                 domus_address *ret_listener, domus_endpoint *ret_at)
{
    static const domus_listen_options defaults = {0};
    domi_house *house = domi_stack_get_house(stack);
    domi_manager *manager = stack->manager;
    domus_address listener;
    domus_endpoint actual;

    if (manager->pooled != NULL)
        return domi_refuse_verb_without_ring(stack);
    if (house->behaviour->kind != DOMUS_CHANNELS ||
        (options != NULL && options->backlog > INT32_MAX))
        return -EINVAL;
    /* If this actor is itself a channel, its behaviour was checked before, but without the
     * behaviour of its own channels, so it is checked here as a whole. */
    int result = domi_behaviour_check(house->behaviour);
    if (result == 0 && options != NULL)
        result = domi_front_check_stages(options->front, house->behaviour);
    if (result != 0)
        return result;
    if (manager->io == NULL)
        return -EOPNOTSUPP;
    if (!domi_house_may_spawn(manager, house))
        /* an actor that ends gets no listener, and is refused before the file of a Unix socket
         * is made */
        return -ESHUTDOWN;
    if (!has_place_for_acceptor(manager->io))
        return -EMFILE;
    result = open_listener_and_spawn_acceptor(
        manager, house, at, options != NULL ? options : &defaults, &listener, &actual);
    if (result != 0)
        return result;
    if (ret_listener != NULL)
        *ret_listener = listener;
    if (ret_at != NULL)
        *ret_at = actual;
    return 0;
}
