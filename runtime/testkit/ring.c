/* The ring of a simulated thread accepts no operations and brings no completions. Simulated threads
 * sleep in the simulator, not in this ring. They have no descriptor but the eventfd, and nobody
 * writes to that. */
#include "runtime/testkit/ring.h"

#include "base/check.h"

static int ring_open(const domus_config *config, char *error, size_t error_size, void **ret_ring)
{
    (void)config, (void)error, (void)error_size;
    *ret_ring = NULL; /* this ring has no state */
    return 0;
}

static int ring_start(void *ring)
{
    (void)ring;
    return 0;
}

static void ring_close(void *ring)
{
    (void)ring;
}

static int ring_enter(void *ring, uint32_t min_complete, uint64_t timeout_ns)
{
    (void)ring, (void)timeout_ns;
    DOMI_CHECK(min_complete == 0);
    return 0;
}

static uint32_t ring_reap(void *ring, domi_completion *completions, uint32_t max)
{
    (void)ring, (void)completions, (void)max;
    return 0;
}

static bool ring_is_empty(const void *ring)
{
    (void)ring;
    return false;
}

/* Only the poll of the thread's eventfd comes here. */
static void ring_poll(void *ring, int fd, uint64_t user_data)
{
    (void)ring, (void)fd, (void)user_data;
}

static void ring_cancel(void *ring, uint64_t target, uint64_t user_data)
{
    (void)ring, (void)target, (void)user_data;
}

static void ring_give(void *ring, uint16_t index, void *data, uint32_t size)
{
    (void)ring, (void)index, (void)data, (void)size;
}

static void ring_publish(void *ring)
{
    (void)ring;
}

/* The functions for accept, receive and send are NULL: a kit has no listeners, so there is no
 * channel. */
const domi_backend domi_testkit_ring = {
    .name = "testkit",
    .open = ring_open,
    .start = ring_start,
    .close = ring_close,
    .enter = ring_enter,
    .reap = ring_reap,
    .ready = ring_is_empty,
    .pending = ring_is_empty,
    .poll = ring_poll,
    .cancel = ring_cancel,
    .give = ring_give,
    .publish = ring_publish,
};
