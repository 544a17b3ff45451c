/* Makes, enables and frees the io_uring of a thread (uring_ring.h).
 *
 * The ring is made disabled and is enabled by its owner, because with SINGLE_ISSUER only the thread
 * that enables it may enter it. */
#include "io/backend/uring_ring.h"

#include "base/memory.h"
#include "io/backend/explain.h"

#include <errno.h>

/* Constants of io_uring that the header of liburing 2.3 lacks. The first two belong to newer
 * kernels. */
#define ENTER_NO_IOWAIT (1u << 7)
#define FEAT_NO_IOWAIT  (1u << 17)
/* declared here, because liburing 2.3 declares io_uring_enable_rings() but does not export it */
#define REGISTER_ENABLE_RINGS 12

/* Returns the size in bytes of the memory for the messages of gathered sends (gathered.h). Pages
 * that no send has used take no memory. */
static size_t get_bytes_for_gathered_messages(const domi_uring *ring)
{
    return (size_t)ring->uring.sq.ring_entries * sizeof *ring->gathered;
}

static void free_uring(domi_uring *ring)
{
    if (ring->buffers != NULL)
        domi_memory_unmap_pages(ring->buffers, ring->buffers_bytes);
    if (ring->gathered != NULL)
        domi_memory_unmap_pages(ring->gathered, get_bytes_for_gathered_messages(ring));
    domi_direct_sends_fini(&ring->direct);
    domi_memory_free(ring);
}

static int register_provided_buffers(domi_uring *ring, const domus_config *config)
{
    uint32_t count = config->io.buffers.count;

    ring->buffers_bytes = count * sizeof(struct io_uring_buf);
    ring->buffers_mask = count - 1;
    ring->buffers = domi_memory_map_pages(ring->buffers_bytes);
    if (ring->buffers == NULL)
        return -ENOMEM;
    io_uring_buf_ring_init(ring->buffers);
    struct io_uring_buf_reg registration = {
        .ring_addr = (uintptr_t)ring->buffers,
        .ring_entries = count,
        .bgid = DOMI_URING_BUFFERS,
    };
    return io_uring_register_buf_ring(&ring->uring, &registration, 0);
}

int domi_uring_open(const domus_config *config, char *error, size_t error_size, void **ret_ring)
{
    struct io_uring_params params = {
        .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                 IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL |
                 IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP | IORING_SETUP_R_DISABLED,
        .cq_entries = config->io.completion_entries,
    };
    domi_uring *ring = domi_memory_new(sizeof *ring);

    if (ring == NULL) {
        domi_setup_explain_failure_of_ring(-ENOMEM, DOMI_SETUP_MEMORY, config, error, error_size);
        return -ENOMEM;
    }
    int result = io_uring_queue_init_params(config->io.ring_entries, &ring->uring, &params);
    if (result < 0) {
        domi_setup_explain_failure_of_ring(result, DOMI_SETUP_RING, config, error, error_size);
        goto fail_ring;
    }
    ring->gathered = domi_memory_map_pages(get_bytes_for_gathered_messages(ring));
    if (!domi_direct_sends_init(&ring->direct) || ring->gathered == NULL) {
        result = -ENOMEM;
        domi_setup_explain_failure_of_ring(result, DOMI_SETUP_MEMORY, config, error, error_size);
        goto fail_buffers;
    }
    result = register_provided_buffers(ring, config);
    if (result < 0) {
        domi_setup_explain_failure_of_ring(result, DOMI_SETUP_BUFFERS, config, error, error_size);
        goto fail_buffers;
    }
    ring->enter_flags = IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG;
    if ((params.features & FEAT_NO_IOWAIT) != 0)
        ring->enter_flags |= ENTER_NO_IOWAIT;
    *ret_ring = ring;
    return 0;

fail_buffers:
    io_uring_queue_exit(&ring->uring);
fail_ring:
    free_uring(ring);
    return result;
}

int domi_uring_start(void *ring_)
{
    domi_uring *ring = ring_;
    int result = io_uring_register((unsigned)ring->uring.ring_fd, REGISTER_ENABLE_RINGS, NULL, 0);

    if (result < 0)
        return result;
    /* The descriptor of the ring is registered, which saves a reference count for each enter;
     * without that everything works, too. */
    ring->registered = io_uring_register_ring_fd(&ring->uring) == 1;
    if (ring->registered)
        ring->enter_flags |= IORING_ENTER_REGISTERED_RING;

    /* A seccomp filter may allow io_uring_setup(2) and refuse io_uring_enter(2). A first enter here
     * finds that before the loop does. */
    result = io_uring_enter2(
        (unsigned)ring->uring.enter_ring_fd, 0, 0,
        IORING_ENTER_GETEVENTS | (ring->enter_flags & IORING_ENTER_REGISTERED_RING), NULL, 0);
    return result < 0 ? result : 0;
}

void domi_uring_close(void *ring_)
{
    domi_uring *ring = ring_;

    if (ring == NULL)
        return;
    io_uring_queue_exit(&ring->uring);
    free_uring(ring);
}
