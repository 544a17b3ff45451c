/* What foreign threads may do, and serving a listener. They share one manager under a mutex: its
 * pools are theirs, its home is nobody's, so all that they put goes by the inbox lane. */
#include "runtime/system.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/life.h"
#include "house/mailbox.h"
#include "house/pool.h"
#include "io/acceptor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* NULL, and nothing to leave, when the system does not run or has come past `last`. */
static domi_manager *enter(domus_system *system, domi_stage last)
{
    pthread_mutex_lock(&system->outside_mutex);
    if (system->stage >= DOMI_STAGE_RUNNING && system->stage <= last)
        return &system->outside;
    pthread_mutex_unlock(&system->outside_mutex);
    return NULL;
}

static void leave(domus_system *system)
{
    domi_pool_flush(&system->outside);
    pthread_mutex_unlock(&system->outside_mutex);
}

/* Spawning ends with the drain: who stops a system wants fewer actors, not more. Notices and stops
 * go on, because what drains may wait for them. */
#define LAST_TO_SPAWN DOMI_STAGE_RUNNING
#define LAST_TO_SEND  DOMI_STAGE_DRAINING

int domus_outside_spawn_on(domus_system *system, uint32_t thread, const domus_behaviour *behaviour,
                           const void *state, domus_address *ret_address)
{
    if (thread >= system->count)
        return -EINVAL;
    domi_manager *outside = enter(system, LAST_TO_SPAWN);
    if (outside == NULL)
        return -ESHUTDOWN;
    int result =
        domi_house_spawn(outside, &system->threads[thread].manager, behaviour, state, ret_address);
    leave(system);
    return result;
}

int domus_outside_spawn(domus_system *system, const domus_behaviour *behaviour, const void *state,
                        domus_address *ret_address)
{
    domi_manager *outside = enter(system, LAST_TO_SPAWN);
    if (outside == NULL)
        return -ESHUTDOWN;
    domi_manager *home = &system->threads[system->next_thread++ % system->count].manager;
    int result = domi_house_spawn(outside, home, behaviour, state, ret_address);
    leave(system);
    return result;
}

int domus_outside_spawn_many(domus_system *system, const domus_behaviour *behaviour,
                             const void *state, uint32_t count, const domus_routing *routing,
                             const domus_spawn_options *options, domus_address *ret_address)
{
    domi_manager *outside = enter(system, LAST_TO_SPAWN);
    if (outside == NULL)
        return -ESHUTDOWN;
    int result =
        domi_router_spawn(outside, NULL, behaviour, state, count, routing, options, ret_address);
    leave(system);
    return result;
}

int domus_outside_group_open(domus_system *system, const char *name, domus_group *ret_group)
{
    domi_manager *outside = enter(system, LAST_TO_SEND);
    if (outside == NULL)
        return -ESHUTDOWN;
    int result = domi_group_open(outside, name, &ret_group->group);
    leave(system);
    return result;
}

int domus_outside_publish(domus_system *system, domus_group group, const domus_type *type,
                          const void *payload)
{
    domi_manager *outside = enter(system, LAST_TO_SEND);
    if (outside == NULL) {
        if (type->drop != NULL)
            type->drop((void *)(uintptr_t)payload); /* consumed in every case */
        return -ESHUTDOWN;
    }
    int result = domi_group_publish(outside, (domus_address){NULL, 0}, group.group, type, payload);
    leave(system);
    return result;
}

int domus_outside_notice(domus_system *system, domus_address to, const domus_type *type,
                         const void *payload)
{
    if (type->size > DOMUS_PAYLOAD_MAX)
        return -EMSGSIZE;
    domi_manager *outside = enter(system, LAST_TO_SEND);
    if (outside == NULL)
        return -ESHUTDOWN;
    domi_envelope *envelope = domi_envelope_new(outside, DOMI_ENVELOPE_HEAD + type->size);
    int result = -ENOMEM;

    if (envelope != NULL) {
        envelope->type = type;
        envelope->sender = NULL;
        envelope->sender_lease = 0;
        if (type->size != 0)
            memcpy(envelope->payload, payload, type->size);
        result = domi_mailbox_put(outside, to, &envelope->node, DOMI_NOTICE);
        if (result != 0)
            domi_pool_free(outside, &envelope->node);
    }
    leave(system);
    return result;
}

int domus_outside_stop(domus_system *system, domus_address address)
{
    domi_manager *outside = enter(system, LAST_TO_SEND);
    if (outside == NULL)
        return -ESHUTDOWN;
    int result = domi_house_stop(outside, address);
    leave(system);
    return result;
}

static int find_listener(domus_system *system, const char *name, size_t *ret_index)
{
    for (size_t i = 0; i < system->config.listener_count; i++) {
        if (strcmp(system->listeners[i].name, name) != 0)
            continue;
        *ret_index = i;
        return system->served[i] ? -EALREADY : 0;
    }
    return -ENOENT;
}

/* One actor on each thread, and the acceptor that hands to them. */
static int spawn_servers(domus_system *system, domi_acceptor *acceptor, size_t listener,
                         const domus_behaviour *behaviour, const void *state)
{
    domus_address address;
    int result = 0;
    uint32_t made = 0;

    DOMI_CHECK(system->count != 0);
    for (; made < system->count && result == 0; made++) {
        domi_acceptor_target *target = &acceptor->targets[made];
        target->io = &system->threads[made].io;
        result = domus_outside_spawn_on(system, made, behaviour, state, &target->actor);
    }
    if (result == 0)
        result = domus_outside_spawn_on(system, (uint32_t)listener % system->count,
                                        &domi_acceptor_behaviour, &acceptor, &address);
    else
        made--;
    if (result != 0) {
        while (made-- > 0)
            (void)domus_outside_stop(system, acceptor->targets[made].actor);
    }
    return result;
}

int domus_serve(domus_system *system, const char *name, const domus_behaviour *behaviour,
                const void *state, uint16_t *ret_port)
{
    size_t index;
    int result = find_listener(system, name, &index);

    if (result == 0 && (behaviour == NULL || behaviour->kind != DOMUS_CHANNELS))
        result = -EINVAL;
    if (result != 0) {
        snprintf(system->error, sizeof system->error, "listener %s: %s", name,
                 result == -ENOENT ? "the configuration does not have it" : strerror(-result));
        return result;
    }
    const domus_listener_config *listener = &system->listeners[index];
    domi_acceptor *acceptor =
        domi_memory_new(sizeof *acceptor + system->count * sizeof acceptor->targets[0]);
    if (acceptor == NULL)
        return -ENOMEM;
    acceptor->target_count = system->count;
    acceptor->fd = domi_acceptor_listen(listener->address, listener->backlog, ret_port);
    if (acceptor->fd < 0) {
        result = acceptor->fd;
        snprintf(system->error, sizeof system->error, "listener %s: %s: %s", name,
                 listener->address, strerror(-result));
        domi_memory_free(acceptor);
        return result;
    }
    result = spawn_servers(system, acceptor, index, behaviour, state);
    if (result != 0) {
        (void)close(acceptor->fd);
        domi_memory_free(acceptor);
        snprintf(system->error, sizeof system->error, "listener %s: %s", name, strerror(-result));
        return result;
    }
    system->served[index] = true;
    return 0;
}
