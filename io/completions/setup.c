/* Makes the io of a thread: the receive buffers, the ring, its wake, and the hooks that io brings
 * to a manager. */
#include "io/completions/setup.h"

#include "base/check.h"
#include "base/memory.h"
#include "io/channels/crowd.h"
#include "io/channels/flush.h"
#include "io/completions/actor.h"
#include "io/completions/descriptor.h"
#include "io/completions/file.h"
#include "io/completions/ring.h"
#include "io/connectors/connect.h"
#include "io/connectors/pool.h"
#include "io/datagrams/datagrams.h"
#include "io/inner/inner.h"
#include "io/pipelines/answers.h"
#include "io/pipelines/decode.h"
#include "io/pipelines/hooks.h"
#include "io/resources/socket.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const domi_io_hooks domi_hooks_of_io = {
    .run_channels = domi_channels_run_channel_of_actor,
    .open_channel = domi_channels_open_channel_of_actor,
    .conversation_ended = domi_channel_handle_ended_conversation,
    .flush_left = domi_flush_remove_wait,
    .answer_request = domi_pipe_answer_request,
    .fail_request = domi_pipe_fail_request,
    .answer_peer = domi_pipe_answer_peer_by_number,
    .release_message = domi_pipe_release_message,
    .send_mail = domi_pipe_send_mail_or_handle_stream,
    .unsent_asks = domi_pool_find_list_of_unsent_asks,
    .return_mail = domi_pool_return_mail_of_ending_actor,
    .channel_failed = domi_channel_reset_for_failed_actor,
    .take_event = domi_channels_handle_accepted_event,
    .descriptor_handled = domi_descriptor_free_or_rearm_watch,
    .descriptor_cancel = domi_descriptor_cancel_watch,
    .descriptor_noted = domi_descriptor_arm_noted_watch,
    .stop_channels = domi_channels_stop_owned_by_actor,
};

/* number of shares of the receive buffers; a channel may hold one share, that is 1/16 of them */
#define SHARES 16u

static int init_receive_buffers(domi_io *io)
{
    uint32_t count = io->config->io.buffers.count;
    uint32_t size = io->config->io.buffers.size_bytes;

    io->memory_bytes = (size_t)count * size;
    io->memory = domi_memory_map_pages(io->memory_bytes);
    io->buffers = domi_memory_new(count * sizeof *io->buffers);
    if (io->memory == NULL || io->buffers == NULL) {
        domi_memory_unmap_pages(io->memory, io->memory_bytes);
        domi_memory_free(io->buffers);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < count; i++) {
        io->buffers[i] = (domus_buffer){
            .io = io,
            .data = io->memory + (size_t)i * size,
            .index = i,
            .holder_slot = UINT32_MAX,
        };
    }
    io->share = count / SHARES != 0 ? count / SHARES : 1;
    io->reserve = count / 4;
    return 0;
}

int domi_io_init(domi_io *io, domi_manager *manager, const domi_backend *backend, char *error,
                 size_t error_size)
{
    io->manager = manager;
    io->next = io;
    io->backend = backend;
    io->pipe_ways = &domi_ways_of_pipes;
    io->inners = &domi_ways_of_inners;
    io->config = manager->config;
    io->free_slot = UINT32_MAX;
    domi_settings_compute_all(io->config, NULL, &io->settings);
    domi_slab_init(&io->channel_slab, (sizeof(domus_channel) + 63) / 64 * 64, 8, 64u * 1024);
    domi_slab_init(&io->datagram_slab, DOMI_DATAGRAM_COST, 8, 64u * 1024);
    domi_wheel_init(&io->wheel, manager->now_ns);
    domi_wheel_node_init(&io->shortage_timer.node);
    io->shortage_timer.kind = DOMI_TIMER_SHORTAGE;
    domi_wheel_node_init(&io->sweep.timer.node);
    io->sweep.timer.kind = DOMI_TIMER_SWEEP;
    domi_io_set_bound_of_queued_bytes(io, UINT64_MAX);

    int result = init_receive_buffers(io);
    if (result != 0) {
        snprintf(error, error_size, "no memory for the receive buffers (io.buffers)");
        return result;
    }
    result = backend->open(io->config, error, error_size, &io->ring);
    if (result != 0)
        goto fail_ring;
    result = io->wake_fd = backend->sockets->wake_open(io->ring);
    if (result < 0)
        goto fail_wake;
    return 0;

fail_wake:
    snprintf(error, error_size, "eventfd: %s", strerror(-result));
    backend->close(io->ring);
fail_ring:
    domi_memory_unmap_pages(io->memory, io->memory_bytes);
    domi_memory_free(io->buffers);
    return result;
}

int domi_io_start_ring(domi_io *io)
{
    int result = io->backend->start(io->ring);

    if (result != 0)
        return result;
    for (uint32_t i = 0; i < io->config->io.buffers.count; i++)
        io->backend->give(io->ring, (uint16_t)i, io->buffers[i].data,
                          io->config->io.buffers.size_bytes);
    io->backend->publish(io->ring);
    domi_buffers_begin_to_keep_freed(io);
    domi_io_arm_wake_poll(io, false);
    return 0;
}

void domi_io_end_tries_and_connects(domi_io *io)
{
    uint32_t taken;

    /* After an enter the ring has carried out all queued operations, and uses no memory of a try
     * (file.h) any more. */
    if (io->tries != NULL)
        (void)domi_io_enter_and_reap_all(io, io->config->io.completion_entries, &taken);
    domi_file_fail_all_tries(io, -ESHUTDOWN);
    domi_connects_free_given_up(io);
}

void domi_io_fini(domi_io *io)
{
    /* no tries (file.h) are left: domi_io_end_tries_and_connects() has ended them, and actors that
     * end begin no further ones */
    DOMI_CHECK(io->tries == NULL);
    /* Connects may be left of actors whose work was abandoned, or that had no thread any more. */
    domi_connects_free_given_up(io);
    DOMI_CHECK(io->connects == NULL);
    domi_socket_close_used_in_ring(io, io->wake_fd);
    io->backend->close(io->ring);
    domi_memory_unmap_pages(io->memory, io->memory_bytes);
    domi_out_remove_all(&io->out, true);
    domi_out_remove_all(&io->aside, true);
    domi_pages_free_table(&io->pages);
    domi_buffers_free_kept(io);
    domi_memory_free(io->buffers);
    domi_memory_free(io->slots);
    domi_slab_fini(&io->channel_slab);
    domi_slab_fini(&io->datagram_slab);
}
