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

static bool ring_ready(const void *ring)
{
    (void)ring;
    return false;
}

static bool ring_pending(void *ring)
{
    (void)ring;
    return false;
}

/* Only the poll of the thread's eventfd comes here. */
static void ring_poll(void *ring, int fd, uint64_t user_data)
{
    (void)ring, (void)fd, (void)user_data;
}

static void ring_cancel(void *ring, int fd, uint64_t target, uint64_t user_data)
{
    (void)ring, (void)fd, (void)target, (void)user_data;
}

static void ring_forget(void *ring, int fd)
{
    (void)ring, (void)fd;
}

static void ring_give(void *ring, uint16_t index, void *data, uint32_t size)
{
    (void)ring, (void)index, (void)data, (void)size;
}

static void ring_publish(void *ring)
{
    (void)ring;
}

/* A kit has no listeners, so there is no channel, and nothing of channels comes to this ring. */
static void never_accept(void *ring, int fd, uint64_t user_data)
{
    (void)ring, (void)fd, (void)user_data;
    DOMI_NEVER("an accept in the test kit");
}

static void never_receive(void *ring, int fd, bool once, uint64_t user_data)
{
    (void)ring, (void)fd, (void)once, (void)user_data;
    DOMI_NEVER("a receive in the test kit");
}

static void never_send(void *ring, int fd, const void *data, uint32_t size, uint64_t user_data)
{
    (void)ring, (void)fd, (void)data, (void)size, (void)user_data;
    DOMI_NEVER("a send in the test kit");
}

static void never_send_message(void *ring, int fd, const struct msghdr *message, uint64_t user_data)
{
    (void)ring, (void)fd, (void)message, (void)user_data;
    DOMI_NEVER("a send in the test kit");
}

static void never_cancel_fd(void *ring, int fd, uint64_t user_data)
{
    (void)ring, (void)fd, (void)user_data;
    DOMI_NEVER("a cancel of a channel's operations in the test kit");
}

/* poll_once is NULL: there are no descriptors to watch. */
const domi_backend domi_testkit_ring = {
    .name = "testkit",
    .sockets = &domi_kernel_sockets,
    .open = ring_open,
    .start = ring_start,
    .close = ring_close,
    .enter = ring_enter,
    .reap = ring_reap,
    .ready = ring_ready,
    .pending = ring_pending,
    .accept = never_accept,
    .receive = never_receive,
    .poll = ring_poll,
    .send = never_send,
    .send_message = never_send_message,
    .cancel = ring_cancel,
    .cancel_fd = never_cancel_fd,
    .forget = ring_forget,
    .give = ring_give,
    .publish = ring_publish,
};
