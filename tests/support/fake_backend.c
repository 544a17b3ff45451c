/* The fake ring of tests of io/. Each operation in flight has its own block on the heap, so that
 * the sanitizers see each use of an operation that has ended. */
#include "tests/support/fake_backend.h"

#include "io/resources/io.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMPLETIONS 65536u

static int fail_open;
static int fail_start;
static int open_count;

void domt_fake_set_open_results(int open_result, int start_result)
{
    fail_open = open_result;
    fail_start = start_result;
}

int domt_fake_count_open_rings(void)
{
    return open_count;
}

/* --- the backend's side ----------------------------------------------------------------------- */

static int fake_open_ring(const domus_config *config, char *error, size_t error_size,
                          void **ret_ring)
{
    if (fail_open != 0) {
        snprintf(error, error_size, "the fake ring does not open");
        return fail_open;
    }
    ck_assert_uint_le(config->io.buffers.count, DOMT_FAKE_BUFFERS_MAX);
    domt_fake *fake = calloc(1, sizeof *fake);
    fake->completions = calloc(COMPLETIONS, sizeof *fake->completions);
    fake->buffers_count = config->io.buffers.count;
    open_count++;
    *ret_ring = fake;
    return 0;
}

static int fake_start_ring(void *ring)
{
    return fail_start;
}

static void fake_close_ring(void *ring)
{
    domt_fake *fake = ring;

    while (fake->ops != NULL) {
        domt_op *op = fake->ops;
        fake->ops = op->next;
        free(op);
    }
    free(fake->completions);
    free(fake);
    open_count--;
}

static bool has_deferred_completions(const domt_fake *fake)
{
    return fake->completions_shown != fake->completions_tail;
}

static int fake_enter_ring(void *ring, uint32_t min_complete, uint64_t timeout_ns)
{
    domt_fake *fake = ring;

    ck_assert_uint_le(min_complete, 1);
    (void)timeout_ns;
    fake->enters++;
    if (fake->enter_result != 0)
        return fake->enter_result;
    fake->pending = false;
    for (uint32_t i = 0; fake->floods && i < DOMT_FAKE_DEFERRED; i++)
        domt_fake_add_completion(
            fake, &(domi_completion){domi_op_user_data(DOMI_OP_WAKE, 0, 0), 1, DOMI_MORE, 0});
    if (fake->barren != 0) {
        fake->barren--;
        return 0;
    }
    for (uint32_t i = 0; i < DOMT_FAKE_DEFERRED && has_deferred_completions(fake); i++)
        fake->completions_shown++;
    return 0;
}

static int fake_submit_operations(void *ring)
{
    return fake_enter_ring(ring, 0, 0);
}

static uint32_t fake_reap_completions(void *ring, domi_completion *completions, uint32_t max)
{
    domt_fake *fake = ring;
    uint32_t count = 0;

    if (max > fake->reaped_max)
        fake->reaped_max = max;
    for (; count < max && fake->completions_head != fake->completions_shown; count++)
        completions[count] = fake->completions[fake->completions_head++ % COMPLETIONS];
    return count;
}

static bool fake_ready_to_reap(const void *ring)
{
    const domt_fake *fake = ring;

    return fake->completions_head != fake->completions_shown;
}

static bool fake_has_pending_work(void *ring)
{
    const domt_fake *fake = ring;

    return fake->pending || has_deferred_completions(fake);
}

static domt_op *begin_operation(void *ring, domt_op_kind kind, int fd, uint64_t user_data)
{
    domt_fake *fake = ring;
    domt_op **link = &fake->ops;
    domt_op *op = calloc(1, sizeof *op);

    ck_assert_uint_ne(user_data, 0);
    if (fd >= 0) {
        ck_assert_msg(fcntl(fd, F_GETFD) >= 0, "an operation on a closed descriptor");
        ck_assert_msg(kind == DOMT_SEND_DATAGRAM ||
                          domt_fake_find_operation(fake, kind, fd) == NULL,
                      "two of kind %d on %d", kind, fd);
    }
    *op = (domt_op){.kind = kind, .fd = fd, .user_data = user_data};
    while (*link != NULL)
        link = &(*link)->next;
    *link = op;
    fake->begun[kind]++;
    fake->pending = true;
    return op;
}

static void fake_begin_accept(void *ring, int fd, uint64_t user_data)
{
    (void)begin_operation(ring, DOMT_ACCEPT, fd, user_data);
}

static void fake_begin_receive(void *ring, int fd, bool once, uint64_t user_data)
{
    begin_operation(ring, DOMT_RECEIVE, fd, user_data)->once = once;
}

static void fake_begin_poll(void *ring, int fd, uint64_t user_data)
{
    (void)begin_operation(ring, DOMT_POLL, fd, user_data);
}

static void fake_begin_poll_once(void *ring, int fd, uint32_t events, uint64_t user_data)
{
    (void)begin_operation(ring, DOMT_POLL, fd, user_data);
}

static void fake_begin_send(void *ring, int fd, const void *data, uint32_t size, uint64_t user_data)
{
    domt_op *op = begin_operation(ring, DOMT_SEND, fd, user_data);

    op->data = data;
    op->size = size;
}

static void fake_begin_send_message(void *ring, int fd, const struct msghdr *message,
                                    uint64_t user_data)
{
    domt_op *op = begin_operation(ring, DOMT_SEND, fd, user_data);

    op->message = domi_gathered_copy_message(&op->gathered, message);
    for (size_t i = 0; i < message->msg_iovlen; i++)
        op->size += (uint32_t)message->msg_iov[i].iov_len;
}

static void fake_begin_receive_datagrams(void *ring, int fd, uint64_t user_data)
{
    (void)begin_operation(ring, DOMT_RECEIVE, fd, user_data);
}

static void fake_begin_send_datagram(void *ring, int fd, const domi_datagram_out *datagram,
                                     uint64_t user_data)
{
    begin_operation(ring, DOMT_SEND_DATAGRAM, fd, user_data)->datagram = *datagram;
}

static void fake_begin_cancel(void *ring, int fd, uint64_t target, uint64_t user_data)
{
    for (domt_op *op = ((domt_fake *)ring)->ops; op != NULL; op = op->next)
        ck_assert_msg(op->user_data != target || op->fd == fd, "a cancel on another descriptor");
    domt_op *op = begin_operation(ring, DOMT_CANCEL, -1, user_data);

    op->target = target;
}

static void fake_forget_descriptor(void *ring, int fd)
{
    ((domt_fake *)ring)->forgotten++;
    ck_assert_msg(fcntl(fd, F_GETFD) >= 0, "a descriptor is forgotten when it is closed already");
}

static void fake_give_buffer(void *ring, uint16_t index, void *data, uint32_t size)
{
    domt_fake *fake = ring;

    ck_assert_uint_lt(index, fake->buffers_count);
    ck_assert_msg(!fake->buffers[index].given, "buffer %u was given twice", index);
    fake->buffers[index].data = data;
    fake->buffers[index].size = size;
    fake->buffers[index].given = true;
    fake->queue[fake->queue_tail++ % DOMT_FAKE_BUFFERS_MAX] = index;
}

static void fake_publish_buffers(void *ring)
{
    domt_fake *fake = ring;

    fake->published = fake->queue_tail;
}

const domi_backend domt_fake_backend = {
    .name = "fake",
    .sockets = &domi_kernel_sockets,
    .open = fake_open_ring,
    .start = fake_start_ring,
    .close = fake_close_ring,
    .enter = fake_enter_ring,
    .submit = fake_submit_operations,
    .reap = fake_reap_completions,
    .ready = fake_ready_to_reap,
    .pending = fake_has_pending_work,
    .accept = fake_begin_accept,
    .receive = fake_begin_receive,
    .poll = fake_begin_poll,
    .poll_once = fake_begin_poll_once,
    .send = fake_begin_send,
    .send_message = fake_begin_send_message,
    .receive_datagrams = fake_begin_receive_datagrams,
    .send_datagram = fake_begin_send_datagram,
    .cancel = fake_begin_cancel,
    .forget = fake_forget_descriptor,
    .give = fake_give_buffer,
    .publish = fake_publish_buffers,
};

/* --- the test's side -------------------------------------------------------------------------- */

domt_op *domt_fake_find_operation(domt_fake *fake, domt_op_kind kind, int fd)
{
    domt_op *op = fake->ops;

    while (op != NULL && (op->kind != kind || op->fd != fd))
        op = op->next;
    return op;
}

void domt_fake_add_completion(domt_fake *fake, const domi_completion *completion)
{
    ck_assert_uint_lt(fake->completions_tail - fake->completions_head, COMPLETIONS);
    fake->completions[fake->completions_tail++ % COMPLETIONS] = *completion;
    if (!fake->defers)
        fake->completions_shown = fake->completions_tail;
}

static void add_completion_of_operation(domt_fake *fake, domt_op *op, int32_t result,
                                        uint16_t flags, uint16_t buffer)
{
    domt_op **link = &fake->ops;

    ck_assert_ptr_nonnull(op);
    domt_fake_add_completion(fake, &(domi_completion){op->user_data, result, flags, buffer});
    if ((flags & DOMI_MORE) != 0)
        return;
    while (*link != op)
        link = &(*link)->next;
    *link = op->next;
    free(op);
}

void domt_fake_complete_operation(domt_fake *fake, domt_op *op, int32_t result, uint16_t flags)
{
    add_completion_of_operation(fake, op, result, flags, 0);
}

bool domt_fake_complete_receive(domt_fake *fake, int fd, const void *bytes, uint32_t size,
                                bool more)
{
    domt_op *op = domt_fake_find_operation(fake, DOMT_RECEIVE, fd);

    ck_assert_msg(op != NULL, "nothing receives on %d", fd);
    if (fake->queue_head == fake->published) {
        add_completion_of_operation(fake, op, -ENOBUFS, 0, 0);
        return false;
    }
    uint16_t index = fake->queue[fake->queue_head++ % DOMT_FAKE_BUFFERS_MAX];
    ck_assert_uint_le(size, fake->buffers[index].size);
    fake->buffers[index].given = false;
    memcpy(fake->buffers[index].data, bytes, size);
    add_completion_of_operation(fake, op, (int32_t)size,
                                (uint16_t)(DOMI_BUFFERED | (more && !op->once ? DOMI_MORE : 0)),
                                index);
    return true;
}

void domt_fake_end_receive(domt_fake *fake, int fd, int32_t result)
{
    add_completion_of_operation(fake, domt_fake_find_operation(fake, DOMT_RECEIVE, fd), result, 0,
                                0);
}

void domt_fake_complete_send(domt_fake *fake, int fd, int32_t result)
{
    domt_op *op = domt_fake_find_operation(fake, DOMT_SEND, fd);

    ck_assert_msg(op != NULL, "nothing is sent on %d", fd);
    ck_assert_int_le(result, (int32_t)op->size);
    add_completion_of_operation(fake, op, result, 0, 0);
}

uint32_t domt_fake_copy_send_bytes(domt_fake *fake, int fd, char *bytes, uint32_t size)
{
    const domt_op *op = domt_fake_find_operation(fake, DOMT_SEND, fd);
    uint32_t length = 0;

    ck_assert_msg(op != NULL, "nothing is sent on %d", fd);
    struct iovec one = {.iov_base = (void *)(uintptr_t)op->data, .iov_len = op->size};
    const struct iovec *pieces = op->message != NULL ? op->message->msg_iov : &one;
    size_t count = op->message != NULL ? op->message->msg_iovlen : 1;
    for (size_t i = 0; i < count && length < size; i++) {
        uint32_t part = (uint32_t)pieces[i].iov_len;
        if (part > size - length)
            part = size - length;
        memcpy(bytes + length, pieces[i].iov_base, part);
        length += part;
    }
    return length;
}

void domt_fake_complete_cancel(domt_fake *fake)
{
    domt_op *cancel = fake->ops;
    uint32_t hit = 0;

    while (cancel != NULL && cancel->kind != DOMT_CANCEL)
        cancel = cancel->next;
    ck_assert_msg(cancel != NULL, "nothing is being cancelled");
    for (domt_op *op = fake->ops; op != NULL; op = op->next)
        hit += op != cancel && op->user_data == cancel->target;
    uint64_t target = cancel->target;
    add_completion_of_operation(fake, cancel, hit != 0 ? 0 : -ENOENT, 0, 0);
    for (domt_op *op = fake->ops, *next = NULL; op != NULL; op = next) {
        next = op->next;
        if (op->user_data == target)
            add_completion_of_operation(fake, op, -ECANCELED, 0, 0);
    }
}

uint32_t domt_fake_count_free_buffers(const domt_fake *fake)
{
    return fake->published - fake->queue_head;
}
