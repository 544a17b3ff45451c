/* Makes channels and frees them, each with its house. The table doubles when it is full, and freed
 * slots are used again, the last one first; the generation of a slot grows with each channel in
 * it. */
#include "io/channels/table.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/pipeline.h"
#include "base/probe.h"
#include "house/conversation/asks.h"
#include "house/family/life.h"
#include "house/message/stop.h"
#include "io/channels/due.h"
#include "io/channels/ends.h"
#include "io/channels/proxy.h"
#include "io/channels/ready.h"
#include "io/channels/state.h"

#include <errno.h>
#include <string.h>

/* number of slots in the first table of channels, which doubles when it is full */
#define SLOTS_FIRST 64u
#define NO_SLOT     UINT32_MAX /* mark for the end of the list of free slots */

/* Double the thread's table of channel slots. Returns 0; -ENOMEM, and then the old table stays. */
static int grow_channel_table(domi_io *io)
{
    uint32_t count = io->slot_count == 0 ? SLOTS_FIRST : io->slot_count * 2;
    domi_channel_slot *slots = domi_memory_new(count * sizeof *slots);

    if (slots == NULL)
        return -ENOMEM;
    if (io->slot_count != 0)
        memcpy(slots, io->slots, io->slot_count * sizeof *slots);
    domi_memory_free(io->slots);
    io->slots = slots;
    io->slot_count = count;
    return 0;
}

static int take_channel_slot(domi_io *io, uint32_t *ret_slot)
{
    if (io->free_slot != NO_SLOT) {
        *ret_slot = io->free_slot;
        io->free_slot = io->slots[io->free_slot].next_free;
        return 0;
    }
    if (io->slots_used == io->slot_count && grow_channel_table(io) != 0)
        return -ENOMEM;
    *ret_slot = io->slots_used++;
    return 0;
}

static void put_channel_slot_back(domi_io *io, uint32_t slot)
{
    io->slots[slot].channel = NULL;
    io->slots[slot].next_free = io->free_slot;
    io->free_slot = slot;
}

/* Allocate a channel and take a slot of the table for it. Returns 0; -ENOMEM, and then nothing was
 * taken. */
static int allocate_channel_and_take_slot(domi_io *io, domus_channel **ret_channel,
                                          uint32_t *ret_slot)
{
    *ret_channel = domi_slab_take_object(&io->channel_slab);
    if (*ret_channel == NULL)
        return -ENOMEM;
    if (take_channel_slot(io, ret_slot) == 0)
        return 0;
    domi_slab_put_object(&io->channel_slab, *ret_channel);
    return -ENOMEM;
}

/* Returns the settings for a connection. The thread has a copy of the settings of each listener of
 * the configuration, and learns from the first connection which actor serves it. */
static domi_channel_settings *find_settings_of_connection(domi_io *io,
                                                          const domi_connection *connection)
{
    domi_channel_settings *theirs = connection->settings;

    if (theirs == NULL)
        return &io->settings;
    if (theirs->users != DOMI_SETTINGS_UNCOUNTED || theirs->row >= DOMUS_LISTENERS_MAX)
        return theirs;
    domi_channel_settings *own = &io->settings_of[theirs->row];
    own->listener = theirs->listener;
    own->front = theirs->front;
    return own;
}

/* Fill the fields of a new channel whose actor is `house`, and let it begin. A peer to which this
 * side has connected may wait for the first byte of this side, so only settings of the channel's
 * own bound the wait for its first byte. */
static void fill_and_begin_channel(domus_channel *channel, domi_io *io, domi_house *house,
                                   uint32_t slot, const domi_connection *connection,
                                   domi_proxy_header *proxy)
{
    const domus_behaviour *behaviour = domi_house_get_behaviour(house);
    bool is_outbound = connection->is_outbound;
    domi_channel_settings *settings = find_settings_of_connection(io, connection);

    *channel = (domus_channel){
        .io = io,
        .house = house,
        .settings = domi_settings_add_user(settings),
        .peer = connection->peer,
        .proxy = proxy,
        .fd = connection->fd,
        .slot = slot,
        .slot_generation = io->slots[slot].generation,
        .opened_ns = io->manager->now_ns,
        .active_ns = io->manager->now_ns,
        .silent_ns = is_outbound && connection->settings == &io->settings ? 0 : io->manager->now_ns,
        .is_outbound = is_outbound,
        .wraps =
            behaviour->pipeline != NULL && (domi_pipeline_count_stages(behaviour->pipeline) > 1 ||
                                            domi_front_count_stages(settings->front) != 0),
        .rate = {.begun_ns = io->manager->now_ns, .answered = UINT64_MAX},
    };
    io->slots[slot].channel = channel;
    io->open++;
    house->channels.owned = channel;
    domi_counter_add(&io->counters.channels_opened, 1);
    domi_listener_counts *counts = domi_io_counters_of_listener(io, settings);
    if (counts != NULL)
        domi_counter_add(&counts->opened, 1);
    DOMI_PROBE_2(channel__open, io->manager->index, channel);
    domi_channel_arm_timeouts(channel);
    if (is_outbound ? io->draining_upstream : io->draining)
        domi_channel_begin_drain(channel);
    if (proxy == NULL)
        domi_channel_make_actor_ready(channel);
    else
        /* a channel of a proxy receives the PROXY header first, and opens for its actor later */
        domi_channel_take_due_steps(channel);
}

/* Copy the name of the server to which a connection was made, if the behaviour has stages that may
 * need it. Returns 0; -ENOMEM. */
static int copy_name_of_server(const domi_connection *connection, const domus_behaviour *behaviour,
                               domi_server **ret_server)
{
    size_t size = connection->server != NULL ? strlen(connection->server) + 1 : 0;

    *ret_server = NULL;
    if (size == 0 || behaviour->pipeline == NULL)
        return 0;
    *ret_server = domi_memory_new(sizeof **ret_server + size);
    if (*ret_server == NULL)
        return -ENOMEM;
    (*ret_server)->port = connection->server_port;
    memcpy((*ret_server)->name, connection->server, size);
    return 0;
}

/* Allocate the state of a proxy's header, if the connection comes from a proxy. Returns 0;
 * -ENOMEM. */
static int make_proxy_header_state(const domi_connection *connection, domi_proxy_header **ret_proxy)
{
    *ret_proxy = NULL;
    if (!connection->is_proxied)
        return 0;
    *ret_proxy = domi_memory_new(sizeof **ret_proxy);
    if (*ret_proxy == NULL)
        return -ENOMEM;
    domi_proxy_header_init(*ret_proxy);
    return 0;
}

int domi_channel_adopt_connection(domi_io *io, domi_house *owner, const domi_connection *connection)
{
    domus_channel *channel;

    return domi_channel_adopt_with_behaviour(io, owner, NULL, connection, &channel);
}

int domi_channel_adopt_with_behaviour(domi_io *io, domi_house *owner,
                                      const domus_behaviour *behaviour,
                                      const domi_connection *connection,
                                      domus_channel **ret_channel)
{
    domi_proxy_header *proxy;
    domus_channel *channel;
    domi_house *house;
    uint32_t slot;

    if (io->failed != 0)
        return io->failed;
    int error = make_proxy_header_state(connection, &proxy);
    if (error != 0)
        return error;
    error = allocate_channel_and_take_slot(io, &channel, &slot);
    if (error != 0)
        goto fail_place;
    error = domi_house_spawn_channel(io->manager, owner, behaviour, proxy != NULL, &house);
    if (error != 0)
        goto fail_house;
    fill_and_begin_channel(channel, io, house, slot, connection, proxy);
    *ret_channel = channel;
    return 0;

fail_house:
    put_channel_slot_back(io, slot);
    domi_slab_put_object(&io->channel_slab, channel);
fail_place:
    domi_memory_free(proxy);
    return error;
}

int domi_channel_make_for_outgoing(domi_io *io, domi_house *house, const domus_behaviour *behaviour,
                                   const domi_connection *connection)
{
    domus_channel *channel;
    uint32_t slot;

    if (io->failed != 0)
        return io->failed;
    /* No channel is made for a connect that completes so late: it would only delay the stop,
     * because no later step of the drain would end it. */
    if (io->draining_upstream)
        return -ESHUTDOWN;
    domi_server *server;
    int error = copy_name_of_server(connection, behaviour, &server);
    if (error != 0)
        return error;
    error = allocate_channel_and_take_slot(io, &channel, &slot);
    if (error != 0) {
        domi_memory_free(server);
        return error;
    }
    domi_house_become_channel(io->manager, house, behaviour);
    /* Relaxed: the numbers of connections only serve to choose a thread, and to check a bound. */
    atomic_fetch_add_explicit(&io->connections, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&io->outbound, 1, memory_order_relaxed);
    fill_and_begin_channel(channel, io, house, slot, connection, NULL);
    channel->server = server;
    return 0;
}

/* Returns the number of accepted connections of a thread, inner channels included. Its two
 * addends are read one after the other. Relaxed: they only serve to choose a thread, and to
 * check a bound. */
static uint32_t count_accepted_connections(const domi_io *io)
{
    uint32_t outbound =
        atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&io->outbound, memory_order_relaxed);
    uint32_t all =
        atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&io->connections, memory_order_relaxed);

    return all > outbound ? all - outbound : 0;
}

bool domi_io_has_accepted_maximum(const domi_io *io)
{
    uint64_t sum = count_accepted_connections(io);

    for (const domi_io *other = io->next; other != io; other = other->next)
        sum += count_accepted_connections(other);
    return sum >= io->config->channel.connections_max;
}

bool domi_io_has_opened_maximum(const domi_io *io)
{
    uint32_t open = atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)&io->outbound,
                                         /* Relaxed: only this thread writes the number of
                                          * connections. */
                                         memory_order_relaxed);

    return io->connecting + open >= io->config->connect.connections_max;
}

/* Let the actor of a channel that is gone stop after this run. If its behaviour says so, or if a
 * conversation of it outlives the connection, it lives until its last conversation has ended, which
 * the end of each run finds out (DOMI_MARK_GONE). */
static void let_actor_of_gone_channel_stop(domi_house *house, int error)
{
    house->channels.owned = NULL;
    /* if there is a reason already, a link has stopped the actor and has set it */
    if (house->reason == 0)
        house->reason = (int16_t)(error > INT16_MIN ? error : INT16_MIN);
    if (house->behaviour->conversations_go_on)
        return;
    if (house->behaviour->pipeline == NULL ||
        !domi_stack_cancel_when_peer_is_gone(house->home, house))
        domi_house_stop_after_run(house);
}

/* Count a channel that has ended at the listener from which it came. */
static void count_closed_at_listener(domus_channel *channel)
{
    domi_listener_counts *counts = domi_io_counters_of_listener(channel->io, channel->settings);

    if (counts == NULL)
        return;
    domi_counter_add(&counts->closed, 1);
    if (channel->error != 0)
        domi_counter_add(&counts->reset, 1);
}

void domi_channel_free(domus_channel *channel)
{
    domi_io *io = channel->io;

    DOMI_CHECK(channel->state == DOMI_CHANNEL_CLOSED && !channel->dirty && !channel->starved &&
               !channel->carry_due);
    let_actor_of_gone_channel_stop(channel->house, channel->error);
    io->slots[channel->slot].generation++;
    put_channel_slot_back(io, channel->slot);
    io->open--;
    if (channel->is_outbound)
        atomic_fetch_sub_explicit(&io->outbound, 1, memory_order_relaxed);
    domi_counter_add(&io->counters.channels_closed, 1);
    count_closed_at_listener(channel);
    DOMI_PROBE_3(channel__close, io->manager->index, channel, channel->error);
    domi_channel_count_result_of_drain(channel);
    if (channel->error != 0)
        domi_counter_add(&io->counters.channels_reset, 1);
    /* Release: a thread that sees that no connection is left
     * (domi_system_count_accepted_connections()) also sees the counts of connections that were cut.
     */
    atomic_fetch_sub_explicit(&io->connections, 1, memory_order_release);
    domi_peers_uncount_connection(io->peers, channel->peer);
    domi_channel_free_proxy_data(channel);
    domi_settings_remove_user(channel->settings);
    domi_memory_free(channel->special);
    domi_memory_free(channel->server);
    domi_slab_put_object(&io->channel_slab, channel);
}
