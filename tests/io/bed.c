/* The bed: the actor that notes, and the functions by which a test takes turns and
 * plays the ring. */
#include "tests/io/bed.h"
#include "io/channels/send.h"
#include "io/channels/state.h"

#include "base/memory.h"
#include "house/dispatch/manage.h"
#include "house/dispatch/phases.h"
#include "house/family/life.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static domt_bed *of(void *self)
{
    return *(domt_bed **)self;
}

__attribute__((format(printf, 2, 3))) static void note(domt_bed *bed, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    size_t room = sizeof bed->note - bed->note_length;
    int length = vsnprintf(bed->note + bed->note_length, room, format, arguments);
    va_end(arguments);
    ck_assert(length >= 0 && (size_t)length < room);
    bed->note_length += (uint32_t)length;
}

static char name_of(const domus_channel *channel)
{
    return (char)('A' + (uintptr_t)domus_channel_data(channel) - 1);
}

static int on_open(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    domt_bed *bed = of(self);

    if (bed->opened < sizeof bed->channels / sizeof bed->channels[0])
        bed->channels[bed->opened] = event->channel;
    domus_channel_set_data(event->channel, (void *)(uintptr_t)++bed->opened);
    note(bed, "%c+ ", name_of(event->channel));
    return bed->open_result;
}

static int on_read(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    domt_bed *bed = of(self);
    uint32_t size = (uint32_t)domus_buffer_size(event->bytes);

    bed->read_bytes += size;
    if (size <= 16)
        note(bed, "%c(%.*s) ", name_of(event->channel), (int)size,
             (char *)domus_buffer_data(event->bytes));
    if (bed->mode == DOMT_BED_ECHO) {
        bed->write_result = domi_channel_write(event->channel, event->bytes);
    } else if (bed->mode == DOMT_BED_KEEP) {
        ck_assert_uint_lt(bed->kept_count, DOMT_BED_KEPT_MAX);
        bed->kept[bed->kept_count++] = event->bytes;
    } else {
        domus_buffer_free(event->bytes);
    }
    if (bed->close_on_read)
        ck_assert_int_eq(domi_channel_close(event->channel), 0);
    return bed->read_result;
}

static int on_end(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    domt_bed *bed = of(self);

    note(bed, "%c. ", name_of(event->channel));
    if (bed->reset_on_end) {
        domus_buffer *last = NULL;
        ck_assert_int_eq(domus_buffer_new(stack, 8, &last), 0);
        ck_assert_int_eq(domi_channel_write(event->channel, last), 0);
        domi_channel_end(event->channel, -EPROTO, true);
        return 0;
    }
    if (bed->ignore_end)
        return 0;
    return bed->end_result != 0 ? bed->end_result : domi_channel_close(event->channel);
}

static int on_close(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    domt_bed *bed = of(self);
    uintptr_t name = (uintptr_t)domus_channel_data(event->channel);

    note(bed, "%c-(%d) ", name_of(event->channel), event->error);
    if (name <= sizeof bed->channels / sizeof bed->channels[0])
        bed->channels[name - 1] = NULL;
    bed->unsent_bytes = domus_channel_queued(event->channel);
    bed->closed++;
    return 0;
}

static const domus_behaviour noting = {
    .name = "noting",
    .kind = DOMUS_CHANNELS,
    .state_size = sizeof(domt_bed *),
    .on_open = {on_open, 0},
    .on_read = {on_read, 0},
    .on_end = {on_end, 0},
    .on_close = {on_close, 0},
};

void domt_bed_init(domt_bed *bed)
{
    memset(bed, 0, sizeof *bed);
    domus_config_init(&bed->config);
    bed->config.io.buffers.count = 64;
    bed->config.io.buffers.size_bytes = 256;
}

int domt_bed_start(domt_bed *bed)
{
    char error[256] = "";
    domt_bed *self = bed;

    const domi_manager_options options = {
        .count = 1,
        .managers = bed->managers,
        .config = &bed->config,
        .now_ns = 1000 * DOMT_BED_MS,
        .io_hooks = &domi_hooks_of_io,
        .io = &bed->io,
    };

    bed->managers[0] = &bed->manager;
    int result = domi_manager_init(&bed->manager, &options);
    if (result != 0)
        return result;
    result = domi_io_init(&bed->io, &bed->manager, &domt_fake_backend, error, sizeof error);
    if (result != 0)
        goto fail_io;
    bed->fake = bed->io.ring;
    result = domi_io_start(&bed->io);
    if (result == 0)
        result = domi_house_spawn(&bed->manager, &bed->manager, &noting, &self, &bed->actor);
    if (result != 0)
        goto fail_start;
    domt_bed_turn(bed);
    return 0;

fail_start:
    domi_io_fini(&bed->io);
fail_io:
    domi_manager_fini(&bed->manager);
    return result;
}

void domt_bed_end(domt_bed *bed)
{
    domt_bed_release(bed, bed->kept_count);
    (void)domi_io_abort(&bed->io);
    ck_assert_int_eq(domi_house_stop(&bed->manager, bed->actor), 0);
    domt_bed_settle(bed);
    ck_assert_uint_eq(bed->io.open, 0);
    ck_assert_uint_eq(domi_io_buffers_free(&bed->io), bed->config.io.buffers.count);
    ck_assert_uint_eq(domt_fake_buffers_free(bed->fake), bed->config.io.buffers.count);
    ck_assert_uint_eq(bed->manager.births.houses, 0);
    ck_assert_ptr_null(bed->io.starved.head);
    ck_assert_ptr_null(bed->io.dirty);
    domi_manager_end_actors(&bed->manager);
    domi_io_fini(&bed->io);
    domi_manager_fini(&bed->manager);
    ck_assert_int_eq(domt_fake_open_count(), 0);
}

void domt_bed_begin(domt_bed *bed, int *ret_fd, int *ret_peer)
{
    ck_assert_int_eq(domt_bed_start(bed), 0);
    *ret_fd = domt_bed_connect(bed, ret_peer);
}

void domt_bed_finish(domt_bed *bed, int peer)
{
    domt_bed_end(bed);
    (void)close(peer);
}

void domt_bed_turn(domt_bed *bed)
{
    domt_io_turn(&bed->io);
}

void domt_bed_pass(domt_bed *bed, uint64_t ms)
{
    bed->manager.now_ns += ms * DOMT_BED_MS;
    domt_bed_turn(bed);
}

void domt_bed_pair(int *ret_ours, int *ret_peer)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert(listener >= 0 && peer >= 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    ck_assert_int_eq(connect(peer, (struct sockaddr *)&address, size), 0);
    *ret_ours = accept(listener, NULL, NULL);
    ck_assert_int_ge(*ret_ours, 0);
    *ret_peer = peer;
    close(listener);
}

int domt_bed_adopt(domt_bed *bed, int fd)
{
    int result = domi_channel_adopt(&bed->io, bed->actor.house, &(domi_connection){.fd = fd});

    if (result == 0) /* counts the connection as the acceptor would, which this bed does not use */
        atomic_fetch_add_explicit(&bed->io.connections, 1, memory_order_relaxed);
    return result;
}

int domt_bed_connect(domt_bed *bed, int *ret_peer)
{
    int fd = -1;

    domt_bed_pair(&fd, ret_peer);
    ck_assert_int_eq(domt_bed_adopt(bed, fd), 0);
    domt_bed_turn(bed);
    return fd;
}

void domt_bed_feed(domt_bed *bed, int fd, char byte, uint32_t size)
{
    char bytes[1024];

    ck_assert_uint_le(size, sizeof bytes);
    memset(bytes, byte, size);
    ck_assert(domt_fake_bytes(bed->fake, fd, bytes, size, true));
}

void domt_bed_noted(domt_bed *bed, const char *expected)
{
    bed->note[bed->note_length] = '\0';
    ck_assert_str_eq(bed->note, expected);
    bed->note_length = 0;
    bed->note[0] = '\0';
}

int domt_bed_put(domt_bed *bed, domus_address to, uint32_t kind, const domus_type *type,
                 const void *payload)
{
    domi_envelope *envelope = domi_envelope_new(&bed->manager, DOMI_ENVELOPE_HEAD + type->size);

    ck_assert_ptr_nonnull(envelope);
    envelope->type = type;
    envelope->sender = NULL;
    envelope->sender_lease = 0;
    if (type->size != 0)
        memcpy(domi_envelope_payload_of(envelope, kind), payload, type->size);
    int result = domi_mailbox_put(&bed->manager, to, &envelope->node, kind);
    if (result != 0)
        domi_pool_free(&bed->manager, &envelope->node);
    return result;
}

void domt_bed_tell(domt_bed *bed, domus_address to, const domus_type *type, const void *payload)
{
    ck_assert_int_eq(domt_bed_put(bed, to, DOMI_NOTICE, type, payload), 0);
    domt_bed_turn(bed);
}

void domt_bed_release(domt_bed *bed, uint32_t count)
{
    ck_assert_uint_le(count, bed->kept_count);
    for (uint32_t i = 0; i < count; i++)
        domus_buffer_free(bed->kept[i]);
    bed->kept_count -= count;
    memmove(bed->kept, bed->kept + count, bed->kept_count * sizeof(domus_buffer *));
}

static bool is_cancelling(domt_fake *fake)
{
    for (domt_op *op = fake->ops; op != NULL; op = op->next) {
        if (op->kind == DOMT_CANCEL)
            return true;
    }
    return false;
}

void domt_bed_settle(domt_bed *bed)
{
    domt_bed_turn(bed);
    for (int i = 0; i < 1000 && (is_cancelling(bed->fake) || domi_io_has_work(&bed->io) ||
                                 domi_manager_has_work(&bed->manager));
         i++) {
        if (is_cancelling(bed->fake))
            domt_fake_cancel_step(bed->fake);
        domt_bed_turn(bed);
    }
    ck_assert(!is_cancelling(bed->fake));
}

bool domt_bed_is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

char domt_bed_peer_sees(int peer)
{
    char byte;
    ssize_t size = recv(peer, &byte, 1, MSG_DONTWAIT | MSG_PEEK);

    if (size > 0)
        return 'd';
    if (size == 0)
        return 'f';
    return errno == EAGAIN ? 'o' : 'r';
}
