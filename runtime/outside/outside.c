/* This file makes and ends the outside's manager, holds most of the functions for foreign threads,
 * and serves listeners. No other actor's home is this manager, so all that foreign threads put goes
 * by the inbox lane. */
#include "runtime/outside/outside.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/pipeline.h"
#include "house/directory/name_table.h"
#include "house/dispatch/manage.h"
#include "house/dispatch/phases.h"
#include "house/family/behaviour.h"
#include "house/family/life.h"
#include "house/message/letters.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "house/message/pooled.h"
#include "house/message/types.h"
#include "io/acceptors/acceptors.h"
#include "io/resources/socket.h"
#include "runtime/outside/blocking.h"
#include "runtime/outside/detached.h"
#include "runtime/outside/futex_park.h"
#include "runtime/outside/visit.h"
#include "runtime/system/logs.h"
#include "runtime/system/manager_options.h"
#include "runtime/system/pressure.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const domus_behaviour asker = {.name = "outside"};

const domi_runtime_hooks domi_hooks_of_outside = {
    /* the owner of this manager sleeps on the park word, as the leader of the asking threads
     * (outside_ask.c) */
    .wake = domi_futex_park_wake,
    .spawn_detached = domi_detached_spawn_actor,
    .withdraw = domi_blocking_withdraw_work,
    .read_memory = domi_pressure_read_levels,
    .say = domi_log_text_for_manager,
};

int domi_outside_init(domus_system *system)
{
    domi_manager_options options =
        domi_system_make_manager_options(system, system->count, domi_clock_now(&system->clock));

    options.hooks = &domi_hooks_of_outside;
    int result = domi_manager_init(&system->outside, &options);
    if (result != 0)
        return result;
    result = domi_manager_spawn_asker_for_outside(&system->outside, &asker, &system->asker);
    if (result != 0)
        domi_manager_fini(&system->outside);
    return result;
}

void domi_outside_fini(domus_system *system)
{
    domi_manager_become_owner(&system->outside);
    domi_manager_end_actors(&system->outside);
    domi_manager_fini(&system->outside);
}

int domus_outside_spawn_with(domus_system *system, const domus_behaviour *behaviour,
                             const void *state, const domus_spawn_options *options,
                             domus_address *ret_address)
{
    domi_manager *outside = &system->outside;
    bool placed = options != NULL && options->placement == DOMUS_ON_THREAD;
    domi_visit visit;

    bool pooled = options != NULL && options->pool != NULL;
    domi_manager *home =
        pooled ? domi_pooled_home_for_spawn(outside, options->pool, behaviour) : NULL;
    if ((placed && options->thread >= system->count) || (pooled && home == NULL))
        return -EINVAL;
    int result = domi_outside_enter(system, DOMI_LAST_TO_SPAWN, &visit);
    if (result != 0)
        return result;
    if (options != NULL && options->detached) {
        result = domi_detached_spawn_actor(outside, NULL, behaviour, state, options, ret_address);
    } else {
        uint32_t thread = placed ? options->thread : system->next_thread++ % system->count;
        if (home == NULL)
            home = &system->threads[thread].manager;
        result =
            domi_house_spawn_child(outside, NULL, home, behaviour, state, options, ret_address);
    }
    domi_outside_leave(system, &visit);
    return result;
}

int domus_outside_spawn_on(domus_system *system, uint32_t thread, const domus_behaviour *behaviour,
                           const void *state, domus_address *ret_address)
{
    const domus_spawn_options options = {.placement = DOMUS_ON_THREAD, .thread = thread};

    return domus_outside_spawn_with(system, behaviour, state, &options, ret_address);
}

int domus_outside_spawn(domus_system *system, const domus_behaviour *behaviour, const void *state,
                        domus_address *ret_address)
{
    return domus_outside_spawn_with(system, behaviour, state, NULL, ret_address);
}

int domus_outside_spawn_many(domus_system *system, const domus_behaviour *behaviour,
                             const void *state, uint32_t count, const domus_routing *routing,
                             const domus_spawn_options *options, domus_address *ret_address)
{
    domi_visit visit;
    int result = domi_outside_enter(system, DOMI_LAST_TO_SPAWN, &visit);

    if (result != 0)
        return result;
    result = domi_router_spawn_with_routees(&system->outside, NULL, behaviour, state, count,
                                            routing, options, ret_address);
    domi_outside_leave(system, &visit);
    return result;
}

int domus_outside_group_open(domus_system *system, const char *name, domus_group *ret_group)
{
    domi_visit visit;
    int result = domi_outside_enter(system, DOMI_LAST_TO_SEND, &visit);

    if (result != 0)
        return result;
    result = domi_group_open(&system->outside, name, &ret_group->group);
    domi_outside_leave(system, &visit);
    return result;
}

int domus_outside_publish(domus_system *system, domus_group group, const domus_type *type,
                          const void *payload)
{
    domi_visit visit;
    int result = domi_outside_enter_to_send(system, &visit);

    if (result != 0) {
        if (type->release != NULL)
            /* the payload is released although the publication failed, because domus_publish()
             * consumes it in every case */
            type->release((void *)(uintptr_t)payload);
        return result;
    }
    result =
        domi_group_publish(&system->outside, (domus_address){NULL, 0}, group.group, type, payload);
    domi_outside_leave(system, &visit);
    return result;
}

/* Send a notice from a foreign thread that has entered the outside. With `passes` the notice is
 * put even into a full mailbox. */
static int send_notice_from_outside(domi_manager *outside, domus_address to, const domus_type *type,
                                    const void *payload, bool passes)
{
    domi_envelope *envelope = domi_message_new(outside, DOMI_ENVELOPE_HEAD + type->size);

    if (envelope == NULL)
        return domi_message_error_of_failed_new(outside);
    envelope->type = type;
    envelope->sender = NULL;
    envelope->sender_lease = 0;
    if (type->size != 0)
        memcpy(envelope->payload, payload, type->size);
    int result = passes ? domi_mailbox_put_passed_on(outside, to, &envelope->node, DOMI_NOTICE)
                        : domi_mailbox_put(outside, to, &envelope->node, DOMI_NOTICE);
    if (result != 0)
        domi_pool_free_object(outside, &envelope->node);
    return result;
}

int domus_outside_notice(domus_system *system, domus_address to, const domus_type *type,
                         const void *payload)
{
    domi_visit visit;

    if (type->size > DOMUS_PAYLOAD_MAX)
        return -EMSGSIZE;
    int result = domi_outside_enter_to_send(system, &visit);
    if (result != 0)
        return result;
    result = send_notice_from_outside(&system->outside, to, type, payload, false);
    domi_outside_leave(system, &visit);
    return result;
}

int domus_outside_stop(domus_system *system, domus_address address)
{
    domi_visit visit;
    int result = domi_outside_enter(system, DOMI_LAST_TO_SEND, &visit);

    if (result != 0)
        return result;
    result = domi_house_ask_to_stop(&system->outside, address);
    domi_outside_leave(system, &visit);
    return result;
}

int domus_outside_stop_after_mail(domus_system *system, domus_address address)
{
    domi_visit visit;
    int result = domi_outside_enter(system, DOMI_LAST_TO_SEND, &visit);

    if (result != 0)
        return result;
    result = send_notice_from_outside(&system->outside, address, &domi_last_type, "", true);
    domi_outside_leave(system, &visit);
    return result;
}

int domus_outside_find(const domus_system *system, const char *name, domus_address *ret_address)
{
    return domi_names_find_address(&system->names, name, ret_address);
}

int domus_outside_letters(domus_system *system, domus_address subscriber, uint32_t what)
{
    domi_visit visit;
    int result = domi_outside_enter(system, DOMI_LAST_TO_SEND, &visit);

    if (result != 0)
        return result;
    result = domi_letters_subscribe(&system->letters, subscriber, what);
    domi_outside_leave(system, &visit);
    return result;
}

/* --- listeners -------------------------------------------------------------------------------- */

static int find_listener_that_is_not_served(domus_system *system, const char *name,
                                            size_t *ret_index)
{
    for (size_t i = 0; i < system->config.listener_count; i++) {
        if (strcmp(system->listeners[i].name, name) != 0)
            continue;
        *ret_index = i;
        return system->served[i] ? -EALREADY : 0;
    }
    return -ENOENT;
}

/* Serve a listener: spawn one channels actor on each thread, and the acceptor that hands
 * connections to them. */
static int spawn_servers_and_acceptor(domus_system *system, domi_acceptor *acceptor,
                                      size_t listener, const domus_behaviour *behaviour,
                                      const void *state)
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

/* Make the acceptor of a listener, which gets its socket later. Returns NULL if there is no
 * memory. */
static domi_acceptor *make_acceptor_of_listener(domus_system *system, size_t index)
{
    const domus_listener_config *listener = &system->listeners[index];
    const domus_allocator *before = domi_memory_set_allocator(system->hooks.allocator);
    domi_acceptor *acceptor =
        domi_memory_new(sizeof *acceptor + system->count * sizeof acceptor->targets[0]);
    (void)domi_memory_set_allocator(before);
    if (acceptor == NULL)
        return NULL;
    acceptor->target_count = system->count;
    acceptor->name = listener->name;
    acceptor->settings = &system->listener_settings[index];
    int result = domi_networks_parse_list(listener->proxy_from, &acceptor->proxies, NULL, 0);
    /* the networks are valid, because they were checked with the configuration */
    DOMI_CHECK(result == 0);
    acceptor->targets[0].io = &system->threads[0].io;
    return acceptor;
}

/* Returns why a listener cannot be served, because its settings, its behaviour and the stages in
 * front of it do not fit together; NULL: they fit. */
static const char *find_reason_against_serving(const domus_listener_config *listener,
                                               const domus_behaviour *behaviour,
                                               const domus_pipeline_stage *front)
{
    const domus_behaviour *channel = behaviour->channel != NULL ? behaviour->channel : behaviour;
    bool has_front = domi_front_count_stages(front) != 0;

    if (behaviour->kind != DOMUS_CHANNELS)
        return "the kind of its behaviour is not DOMUS_CHANNELS, so it has no connections";
    if (listener->tls.cert_files[0] != '\0' && !has_front)
        return "the configuration wants TLS (tls.certFile), and the program puts none in front";
    if (has_front && channel->pipeline == NULL)
        return "its connections have no pipeline, so nothing (TLS) can stand in front of it";
    return NULL;
}

/* Check that a listener can be served with this behaviour and these stages. Returns 0; -EINVAL; the
 * errno of a stage's `check`. On failure `ret_why` is set to the reason. */
static int check_listener_can_be_served(const domus_listener_config *listener,
                                        const domus_behaviour *behaviour,
                                        const domus_pipeline_stage *front, const char **ret_why)
{
    int result = domi_behaviour_check(behaviour);

    if (result != 0) {
        *ret_why = domi_behaviour_find_fault(behaviour);
        return result;
    }
    const char *why = find_reason_against_serving(listener, behaviour, front);
    if (why != NULL) {
        *ret_why = why;
        return -EINVAL;
    }
    result = domi_front_check_stages(front, behaviour);
    if (result != 0)
        *ret_why = "the stages in front are wrong (domus/pipeline.h), or one refuses its options";
    return result;
}

/* Store the address of a listening socket that the program has passed, so that the profile of
 * the listener can show it. */
static int store_address_of_passed_socket(domus_system *system, size_t index,
                                          const domus_endpoint *at)
{
    size_t size = domus_endpoint_text(at, NULL, 0) + 1;
    const domus_allocator *before = domi_memory_set_allocator(system->hooks.allocator);
    char *text = domi_memory_new(size);

    (void)domi_memory_set_allocator(before);
    if (text == NULL)
        return -ENOMEM;
    (void)domus_endpoint_text(at, text, size);
    system->passed_at[index] = text;
    return 0;
}

/* Give an acceptor its listening socket: the descriptor `listening` that the program has passed,
 * or a new socket if that is 0. Returns 0; a negative errno. */
static int give_acceptor_its_socket(domus_system *system, domi_acceptor *acceptor, size_t index,
                                    int listening, uint16_t *ret_port)
{
    const domus_listener_config *listener = &system->listeners[index];
    const domi_listen_plan plan = {listener->backlog, listener->shares_port, acceptor->settings};
    domi_io *io = acceptor->targets[0].io;
    domus_endpoint at;

    /* an earlier call that failed may have left a text */
    domi_memory_free(system->passed_at[index]);
    system->passed_at[index] = NULL;
    if (listening == 0) {
        acceptor->fd = domi_acceptor_listen_at_address(io, listener->address, &plan, ret_port);
        return acceptor->fd < 0 ? acceptor->fd : 0;
    }
    int result = domi_acceptor_adopt_listener(io, listening, &plan, &at);
    if (result == 0)
        result = store_address_of_passed_socket(system, index, &at);
    if (result != 0)
        return result;
    acceptor->fd = listening;
    acceptor->is_shared = true;
    *ret_port = at.port;
    return 0;
}

/* Write into the system's error text which listening socket could not be used, and why. */
static void write_socket_error(domus_system *system, size_t index, int listening, int error)
{
    const domus_listener_config *listener = &system->listeners[index];

    if (listening != 0)
        snprintf(system->error, sizeof system->error, "listener %s: descriptor %d: %s",
                 listener->name, listening,
                 error == -ENOTCONN ? "it does not listen" : strerror(-error));
    else
        snprintf(system->error, sizeof system->error, "listener %s: %s: %s", listener->name,
                 listener->address, strerror(-error));
}

bool domus_listener_is_served(const domus_system *system, const char *name)
{
    for (size_t i = 0; i < system->config.listener_count; i++) {
        if (strcmp(system->listeners[i].name, name) == 0)
            return system->served[i];
    }
    return false;
}

int domus_serve(domus_system *system, const char *name, const domus_behaviour *behaviour,
                const void *state, uint16_t *ret_port)
{
    return domus_serve_with(system, name, behaviour, state, NULL, ret_port);
}

int domus_serve_with(domus_system *system, const char *name, const domus_behaviour *behaviour,
                     const void *state, const domus_serve_options *options, uint16_t *ret_port)
{
    const domus_pipeline_stage *front = options != NULL ? options->front : NULL;
    int listening = options != NULL ? options->listening : 0;
    uint16_t port = 0;
    size_t index;
    int result = domi_system_is_forked(system)
                     ? -ECHILD
                     : find_listener_that_is_not_served(system, name, &index);

    if (result == 0 && system->stage == DOMI_STAGE_NEW)
        /* the system must have started: sockets are made by the rings of its threads */
        result = -ESHUTDOWN;
    const char *why = result != -ENOENT ? NULL
                      : system->config.listener_count != 0
                          ? "the key listeners of the configuration does not have it"
                          : "the configuration has no key listeners, which domus_main() reads from "
                            "--config FILE";
    if (result == 0)
        result = check_listener_can_be_served(&system->listeners[index], behaviour, front, &why);
    if (result != 0) {
        snprintf(system->error, sizeof system->error, "listener %s: %s", name,
                 why != NULL ? why : strerror(-result));
        return result;
    }
    domi_acceptor *acceptor = make_acceptor_of_listener(system, index);
    if (acceptor == NULL)
        return -ENOMEM;
    /* the settings may be written, because no other thread reads them yet */
    acceptor->settings->front = front;
    result = give_acceptor_its_socket(system, acceptor, index, listening, &port);
    if (result != 0) {
        write_socket_error(system, index, listening, result);
        domi_memory_free(acceptor);
        return result;
    }
    acceptor->held = &system->unmounted[index];
    /* the pointer is set before the spawn, because after that the acceptor's thread writes it */
    system->unmounted[index] = acceptor;
    result = spawn_servers_and_acceptor(system, acceptor, index, behaviour, state);
    if (result != 0) {
        system->unmounted[index] = NULL;
        if (listening == 0)
            domi_socket_close(acceptor->targets[0].io, acceptor->fd);
        domi_memory_free(acceptor);
        snprintf(system->error, sizeof system->error, "listener %s: %s", name, strerror(-result));
        return result;
    }
    /* release: pairs with the acquire in domus_system_listener(), so `passed_at` is seen with
     * the port. */
    atomic_store_explicit(&system->listening[index], DOMI_LISTENING | port, memory_order_release);
    if (ret_port != NULL)
        *ret_port = port;
    system->served[index] = true;
    return 0;
}
