/* The bed, which tests/io/bed.h describes: the actor that records its calls, and the functions by
 * which a test takes turns and plays the ring. */
#include "tests/io/bed.h"
#include "io/acceptors/acceptors.h"
#include "io/channels/crowd.h"
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

#define DOMT_BED_PEERS_MAX  1024u
#define DOMT_BED_ACTORS_MAX 16u

__attribute__((format(printf, 1, 2))) static void append_note(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    size_t room = sizeof bed->note - bed->note_length;
    int length = vsnprintf(bed->note + bed->note_length, room, format, arguments);
    va_end(arguments);
    ck_assert(length >= 0 && (size_t)length < room);
    bed->note_length += (uint32_t)length;
}

static char letter_of_channel(const domus_channel *channel)
{
    return (char)('A' + (uintptr_t)domus_channel_data(channel) - 1);
}

static int on_open_record_channel(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    if (bed->opened < sizeof bed->channels / sizeof bed->channels[0])
        bed->channels[bed->opened] = event->channel;
    domus_channel_set_data(event->channel, (void *)(uintptr_t)++bed->opened);
    append_note("%c+ ", letter_of_channel(event->channel));
    return bed->open_result;
}

static int on_read_record_bytes(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    uint32_t size = (uint32_t)domus_buffer_size(event->bytes);

    bed->read_bytes += size;
    if (size <= 16)
        append_note("%c(%.*s) ", letter_of_channel(event->channel), (int)size,
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

static int on_end_record_and_close(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    append_note("%c. ", letter_of_channel(event->channel));
    if (bed->reset_on_end) {
        domus_buffer *last = NULL;
        ck_assert_int_eq(domus_buffer_new(stack, 8, &last), 0);
        ck_assert_int_eq(domi_channel_write(event->channel, last), 0);
        domi_channel_end_at_once(event->channel, -EPROTO, true);
        return 0;
    }
    if (bed->ignore_end)
        return 0;
    return bed->end_result != 0 ? bed->end_result : domi_channel_close(event->channel);
}

static int on_close_record_error(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    uintptr_t name = (uintptr_t)domus_channel_data(event->channel);

    append_note("%c-(%d) ", letter_of_channel(event->channel), event->error);
    if (name <= sizeof bed->channels / sizeof bed->channels[0])
        bed->channels[name - 1] = NULL;
    bed->unsent_bytes = domus_channel_queued(event->channel);
    bed->closed++;
    return 0;
}

static const domus_behaviour noting = {
    .name = "noting",
    .kind = DOMUS_CHANNELS,
    .on_open = {on_open_record_channel, 0},
    .on_read = {on_read_record_bytes, 0},
    .on_end = {on_end_record_and_close, 0},
    .on_close = {on_close_record_error, 0},
};

/* --- the life of the bed ---------------------------------------------------------------------- */

domt_bed domt_bed_now;

/* the peers' ends of connections of this bed that have not hung up */
static int peers[DOMT_BED_PEERS_MAX];
static uint32_t peers_count;

/* the actors that domt_bed_spawn_actor() has spawned */
static domus_address spawned[DOMT_BED_ACTORS_MAX];
static uint32_t spawned_count;

__attribute__((constructor)) void domt_bed_set_defaults(void)
{
    memset(bed, 0, sizeof *bed);
    domus_config_init(&bed->config);
    bed->config.io.buffers.count = 64;
    bed->config.io.buffers.size_bytes = 256;
}

int domt_bed_try_start(void)
{
    char error[256] = "";
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
    result = domi_io_start_ring(&bed->io);
    if (result == 0)
        result = domi_house_spawn_without_parent(&bed->manager, &bed->manager, &noting, NULL,
                                                 &bed->actor);
    if (result != 0)
        goto fail_start;
    domt_bed_take_turn();
    return 0;

fail_start:
    domi_io_fini(&bed->io);
fail_io:
    domi_manager_fini(&bed->manager);
    return result;
}

void domt_bed_start(void)
{
    ck_assert_int_eq(domt_bed_try_start(), 0);
}

void domt_bed_end(void)
{
    domt_bed_free_kept_buffers(bed->kept_count);
    (void)domi_io_end_all_open_channels(&bed->io);
    while (spawned_count != 0)
        /* the result may be -ESTALE, if the actor has already ended */
        (void)domi_house_ask_to_stop(&bed->manager, spawned[--spawned_count]);
    ck_assert_int_eq(domi_house_ask_to_stop(&bed->manager, bed->actor), 0);
    domt_bed_settle();
    ck_assert_uint_eq(bed->io.open, 0);
    ck_assert_uint_eq(domi_io_count_free_buffers(&bed->io), bed->config.io.buffers.count);
    ck_assert_uint_eq(domt_fake_count_free_buffers(bed->fake), bed->config.io.buffers.count);
    ck_assert_uint_eq(bed->manager.births.houses, 0);
    ck_assert_ptr_null(bed->io.starved.head);
    ck_assert_ptr_null(bed->io.dirty);
    ck_assert_ptr_null(bed->io.crowd_head);
    ck_assert_uint_eq(bed->io.crowd_count, 0);
    ck_assert_uint_eq(domi_io_count_queued_bytes(&bed->io), 0);
    ck_assert_uint_eq(bed->io.pages.bytes, 0);
    ck_assert_uint_eq(bed->io.pages.count, 0);
    domi_manager_end_actors(&bed->manager);
    domi_io_fini(&bed->io);
    domi_manager_fini(&bed->manager);
    ck_assert_int_eq(domt_fake_count_open_rings(), 0);
    while (peers_count != 0)
        close(peers[--peers_count]);
    domt_bed_set_defaults();
}

void domt_bed_start_with_connection(int *ret_fd, int *ret_peer)
{
    domt_bed_start();
    *ret_fd = domt_bed_connect_to_own_actor(ret_peer);
}

domus_address domt_bed_spawn_actor(const domus_behaviour *behaviour, const void *state)
{
    domus_address actor;

    ck_assert_int_eq(
        domi_house_spawn_without_parent(&bed->manager, &bed->manager, behaviour, state, &actor), 0);
    ck_assert_uint_lt(spawned_count, DOMT_BED_ACTORS_MAX);
    spawned[spawned_count++] = actor;
    return actor;
}

domi_acceptor *domt_bed_make_acceptor(uint32_t backlog)
{
    domi_acceptor *acceptor = domi_memory_new(sizeof *acceptor + sizeof acceptor->targets[0]);
    const domi_listen_plan plan = {.backlog = backlog};

    ck_assert_ptr_nonnull(acceptor);
    acceptor->target_count = 1;
    acceptor->targets[0] = (domi_acceptor_target){bed->actor, &bed->io};
    acceptor->fd = domi_acceptor_listen_at_address(&bed->io, "127.0.0.1:0", &plan, NULL);
    ck_assert_int_ge(acceptor->fd, 0);
    return acceptor;
}

/* --- turns ------------------------------------------------------------------------------------ */

void domt_bed_take_turn(void)
{
    domt_io_run_phases_1_and_2(&bed->io);
}

void domt_bed_pass_ms(uint64_t ms)
{
    bed->manager.now_ns += ms * DOMT_BED_MS;
    domt_bed_take_turn();
}

void domt_bed_pass_ms_and_settle(uint64_t ms)
{
    domt_bed_pass_ms(ms);
    domt_bed_settle();
}

static bool is_any_cancel_in_flight(void)
{
    return domt_fake_find_operation(bed->fake, DOMT_CANCEL, -1) != NULL;
}

void domt_bed_settle(void)
{
    domt_bed_take_turn();
    for (int i = 0;
         i < 1000 && (is_any_cancel_in_flight() || domi_io_has_work_before_park(&bed->io) ||
                      domi_manager_has_work(&bed->manager));
         i++) {
        if (is_any_cancel_in_flight())
            domt_fake_complete_cancel(bed->fake);
        domt_bed_take_turn();
    }
    ck_assert(!is_any_cancel_in_flight());
}

/* --- connections ------------------------------------------------------------------------------ */

void domt_bed_make_connection_from(uint8_t host, int *ret_ours, int *ret_peer)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    struct sockaddr_in from = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    from.sin_addr.s_addr = htonl(0x7f000000u | host);
    ck_assert(listener >= 0 && peer >= 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    ck_assert_int_eq(bind(peer, (struct sockaddr *)&from, size), 0);
    ck_assert_int_eq(connect(peer, (struct sockaddr *)&address, size), 0);
    *ret_ours = accept(listener, NULL, NULL);
    ck_assert_int_ge(*ret_ours, 0);
    close(listener);
    ck_assert_uint_lt(peers_count, DOMT_BED_PEERS_MAX);
    peers[peers_count++] = peer;
    if (ret_peer != NULL)
        *ret_peer = peer;
}

void domt_bed_make_connection(int *ret_ours, int *ret_peer)
{
    domt_bed_make_connection_from(1, ret_ours, ret_peer);
}

void domt_bed_close_peer(int peer)
{
    uint32_t i = 0;

    while (peers[i] != peer)
        ck_assert_uint_lt(++i, peers_count);
    peers[i] = peers[--peers_count];
    close(peer);
}

int domt_bed_adopt_connection(domus_address actor, int fd)
{
    int result = domi_channel_adopt_connection(&bed->io, actor.house, &(domi_connection){.fd = fd});

    if (result == 0) /* Count the connection as an acceptor would; this bed has none. */
        atomic_fetch_add_explicit(&bed->io.connections, 1, memory_order_relaxed);
    return result;
}

int domt_bed_connect_to_actor(domus_address actor, int *ret_peer)
{
    int fd = -1;

    domt_bed_make_connection(&fd, ret_peer);
    ck_assert_int_eq(domt_bed_adopt_connection(actor, fd), 0);
    domt_bed_take_turn();
    return fd;
}

int domt_bed_connect_to_own_actor(int *ret_peer)
{
    return domt_bed_connect_to_actor(bed->actor, ret_peer);
}

/* --- the ring --------------------------------------------------------------------------------- */

void domt_bed_bring_text(int fd, const char *text)
{
    ck_assert(domt_fake_complete_receive(bed->fake, fd, text, (uint32_t)strlen(text), true));
}

void domt_bed_bring_bytes(int fd, char byte, uint32_t size)
{
    char bytes[1024];

    ck_assert_uint_le(size, sizeof bytes);
    memset(bytes, byte, size);
    ck_assert(domt_fake_complete_receive(bed->fake, fd, bytes, size, true));
}

void domt_bed_bring_bytes_and_turn(int fd, char byte, uint32_t size)
{
    domt_bed_bring_bytes(fd, byte, size);
    domt_bed_take_turn();
}

void domt_bed_end_receive(int fd, int32_t result)
{
    domt_fake_end_receive(bed->fake, fd, result);
    domt_bed_settle();
}

void domt_bed_complete_send(int fd, int32_t result)
{
    domt_fake_complete_send(bed->fake, fd, result);
    domt_bed_take_turn();
}

int domt_bed_write_bytes(domus_channel *channel, char byte, uint32_t size)
{
    domus_buffer *buffer = domi_buffer_new_from_heap(&bed->io, size);

    ck_assert_ptr_nonnull(buffer);
    memset(domus_buffer_data(buffer), byte, size);
    return domi_channel_write(channel, buffer);
}

/* --- the actor -------------------------------------------------------------------------------- */

void domt_bed_expect_calls(const char *expected)
{
    bed->note[bed->note_length] = '\0';
    ck_assert_str_eq(bed->note, expected);
    bed->note_length = 0;
    bed->note[0] = '\0';
}

void domt_bed_settle_and_expect_calls(const char *expected)
{
    domt_bed_settle();
    domt_bed_expect_calls(expected);
}

int domt_bed_put_message(domus_address to, uint32_t kind, const domus_type *type,
                         const void *payload)
{
    domi_envelope *envelope = domi_envelope_new(&bed->manager, DOMI_ENVELOPE_HEAD + type->size);

    ck_assert_ptr_nonnull(envelope);
    envelope->type = type;
    envelope->sender = NULL;
    envelope->sender_lease = 0;
    if (type->size != 0)
        memcpy(domi_envelope_payload_by_kind(envelope, kind), payload, type->size);
    int result = domi_mailbox_put(&bed->manager, to, &envelope->node, kind);
    if (result != 0)
        domi_pool_free_object(&bed->manager, &envelope->node);
    return result;
}

void domt_bed_put_notice_and_turn(domus_address to, const domus_type *type, const void *payload)
{
    ck_assert_int_eq(domt_bed_put_message(to, DOMI_NOTICE, type, payload), 0);
    domt_bed_take_turn();
}

void domt_bed_free_kept_buffers(uint32_t count)
{
    ck_assert_uint_le(count, bed->kept_count);
    for (uint32_t i = 0; i < count; i++)
        domus_buffer_free(bed->kept[i]);
    bed->kept_count -= count;
    memmove(bed->kept, bed->kept + count, bed->kept_count * sizeof(domus_buffer *));
}

/* --- descriptors ------------------------------------------------------------------------------ */

bool domt_bed_is_descriptor_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

void domt_bed_settle_and_expect_closed(int fd)
{
    domt_bed_settle();
    ck_assert(!domt_bed_is_descriptor_open(fd));
}

char domt_bed_state_seen_by_peer(int peer)
{
    char byte;
    ssize_t size = recv(peer, &byte, 1, MSG_DONTWAIT | MSG_PEEK);

    if (size > 0)
        return 'd';
    if (size == 0)
        return 'f';
    return errno == EAGAIN ? 'o' : 'r';
}
