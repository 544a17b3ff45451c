/* The functions of lines and of their owner, and how a test sends to them (tests/io/line.h). */
#include "tests/io/line.h"

#include "house/conversation/stack.h"
#include "house/family/life.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "io/channels/table.h"
#include "tests/support/suite.h"

#include <domus/conversation.h>
#include <domus/supervise.h>
#include <domus/timer.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

domt_lines domt_lines_now;

static char next_name;

static void record_call(char name, const char *what)
{
    size_t length = strlen(domt_lines_now.told);

    ck_assert_uint_lt(length + strlen(what) + 2, sizeof domt_lines_now.told);
    (void)snprintf(domt_lines_now.told + length, sizeof domt_lines_now.told - length, "%c%s ", name,
                   what);
}

void domt_lines_expect_calls(const char *expected)
{
    ck_assert_str_eq(domt_lines_now.told, expected);
    domt_lines_now.told[0] = '\0';
}

void domt_lines_settle_and_expect_calls(const char *expected)
{
    domt_bed_settle();
    domt_lines_expect_calls(expected);
}

static int mount_line_and_name_it(domus_stack *stack, void *self)
{
    domt_line *mine = self;

    ck_assert_ptr_nonnull(domus_channel_running(stack));
    ck_assert_int_eq(mine->name, 0);
    mine->name = next_name++;
    record_call(mine->name, "m");
    return domt_lines_now.mount_result;
}

static void record_stop_of_line(domus_stack *stack, void *self)
{
    ck_assert_ptr_null(domus_channel_running(stack));
    record_call(((domt_line *)self)->name, "s");
}

static int record_open_of_line(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    ck_assert_ptr_eq(domus_channel_running(stack), event->channel);
    record_call(((domt_line *)self)->name, "o");
    return 0;
}

static int count_end_of_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    domt_lines_now.answers++;
    domt_lines_now.cancelled += answer->error == -ECANCELED;
    return 0;
}

static int record_read_of_line(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    char byte = *(char *)domus_buffer_data(event->bytes);
    domus_address mine = domus_self(stack);
    domus_address same = domus_channel_address(event->channel);

    ck_assert(mine.house == same.house && mine.lease == same.lease);
    ((domt_line *)self)->bytes += (uint32_t)domus_buffer_size(event->bytes);
    domus_buffer_free(event->bytes);
    record_call(((domt_line *)self)->name, "r");
    return byte == '5' ? domus_sleep(stack, 5 * DOMT_BED_MS, count_end_of_sleep) : 0;
}

static int record_close_of_line(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    ck_assert_ptr_eq(domus_channel_running(stack), event->channel);
    record_call(((domt_line *)self)->name, "c");
    return 0;
}

static int record_notice_of_line(domus_stack *stack, void *self, const void *nothing)
{
    record_call(((domt_line *)self)->name, "n");
    return domt_lines_now.note_result;
}

static int sleep_9_ms_as_line(domus_stack *stack, void *self, const void *nothing)
{
    return domus_sleep(stack, 9 * DOMT_BED_MS, count_end_of_sleep);
}

static int escalate_from_line(domus_stack *stack, void *self, const void *nothing)
{
    return domus_escalate(stack, -EPROTO);
}

static int fail_mount_of_child(domus_stack *stack, void *self)
{
    return -EIO;
}

static int spawn_child_that_fails_mount(domus_stack *stack, void *self, const void *nothing)
{
    static const domus_behaviour child = {
        .name = "child", .kind = DOMUS_CHANNELS, .on_mount = fail_mount_of_child};
    domus_address born;

    return domi_house_spawn_child(stack->manager, domi_stack_get_house(stack), stack->manager,
                                  &child, NULL, NULL, &born);
}

static int link_line_to_address(domus_stack *stack, void *self, const void *payload)
{
    domus_address address;

    memcpy(&address, payload, sizeof address);
    return domus_link_actor(stack, address, NULL);
}

const domus_type domt_note_type = {.name = "note"};
const domus_type domt_nap_type = {.name = "nap"};
const domus_type domt_escalate_type = {.name = "escalate"};
const domus_type domt_bear_type = {.name = "bear"};
const domus_type domt_link_type = {.name = "link", .size = sizeof(domus_address)};
static const domus_on line_rows[] = {{&domt_note_type, record_notice_of_line, 0},
                                     {&domt_nap_type, sleep_9_ms_as_line, 0},
                                     {&domt_escalate_type, escalate_from_line, 0},
                                     {&domt_bear_type, spawn_child_that_fails_mount, 0},
                                     {&domt_link_type, link_line_to_address, 0},
                                     {NULL, NULL, 0}};

static const domus_supervision escalating = {.otherwise = DOMUS_ESCALATE};

#define LINE                                                                                       \
    .kind = DOMUS_CHANNELS, .state_size = sizeof(domt_line), .on = line_rows,                      \
    .on_mount = mount_line_and_name_it, .on_stop = record_stop_of_line,                            \
    .on_open = {record_open_of_line, 0}, .on_read = {record_read_of_line, 0},                      \
    .on_close = {record_close_of_line, 0}, .supervision = &escalating

static const domus_behaviour line_behaviour = {.name = "line", LINE};
static const domus_behaviour lasting_line = {.name = "lasting", LINE, .conversations_go_on = true};

/* A behaviour of channels that share the state of their owner. */
static const domus_behaviour sharing_line = {.name = "sharing", LINE, .shares_state = true};

static int name_owner_z(domus_stack *stack, void *self)
{
    ck_assert_ptr_null(domus_channel_running(stack));
    ((domt_line *)self)->name = 'z';
    return 0;
}

#define OWNER(of)                                                                                  \
    .kind = DOMUS_CHANNELS, .state_size = sizeof(domt_line), .on = line_rows,                      \
    .on_mount = name_owner_z, .on_stop = record_stop_of_line, .channel = (of)

const domus_behaviour domt_owner_of_lines = {.name = "with lines", OWNER(&line_behaviour)};
const domus_behaviour domt_owner_of_lasting = {.name = "with lasting", OWNER(&lasting_line)};
const domus_behaviour domt_owner_of_sharing = {.name = "with sharing", OWNER(&sharing_line)};
const domus_behaviour domt_owner_with_rules = {
    .name = "with rules", OWNER(&line_behaviour), .supervision = &escalating};

/* --- who watches ------------------------------------------------------------------------------ */

static int on_down_count_end(domus_stack *stack, void *self, const void *payload)
{
    domt_lines_now.downs++;
    domt_lines_now.down_reason = ((const domus_down *)payload)->reason;
    return 0;
}

static int watch_given_actor(domus_stack *stack, void *self, const void *payload)
{
    domus_address address;
    domus_watch watch;

    memcpy(&address, payload, sizeof address);
    ck_assert_int_eq(domus_watch_actor(stack, address, &watch), 0);
    return 0;
}

const domus_type domt_watch_type = {.name = "watch", .size = sizeof(domus_address)};
static const domus_behaviour watching = {
    .name = "watching",
    .kind = DOMUS_CHANNELS, /* a channels actor, so that it runs in the turns of the bed */
    .on = (const domus_on[]){{&domt_watch_type, watch_given_actor, 0},
                             {&domus_down_type, on_down_count_end, 0},
                             {NULL, NULL, 0}},
};

/* --- the bed ---------------------------------------------------------------------------------- */

void domt_lines_begin_bed(const domus_behaviour *owner)
{
    memset(&domt_lines_now, 0, sizeof domt_lines_now);
    next_name = 'a';
    domt_bed_start();
    domi_manager *manager = &bed->manager;
    ck_assert_int_eq(
        domi_house_spawn_without_parent(manager, manager, owner, NULL, &domt_lines_now.owner), 0);
    ck_assert_int_eq(
        domi_house_spawn_without_parent(manager, manager, &watching, NULL, &domt_lines_now.watcher),
        0);
    domt_bed_take_turn();
}

void domt_lines_end_bed(void)
{
    (void)domi_io_end_all_open_channels(&bed->io);
    (void)domi_house_ask_to_stop(&bed->manager, domt_lines_now.owner);
    ck_assert_int_eq(domi_house_ask_to_stop(&bed->manager, domt_lines_now.watcher), 0);
    domt_bed_settle();
    domt_bed_end();
}

domus_address domt_lines_connect_line_maybe_proxied(bool is_proxied, int *ret_fd, int *ret_peer)
{
    uint32_t slot = bed->io.free_slot != UINT32_MAX ? bed->io.free_slot : bed->io.slots_used;
    domi_connection connection = {.is_proxied = is_proxied};

    domt_bed_make_connection(&connection.fd, ret_peer);
    *ret_fd = connection.fd;
    ck_assert_int_eq(
        domi_channel_adopt_connection(&bed->io, domt_lines_now.owner.house, &connection), 0);
    atomic_fetch_add_explicit(&bed->io.connections, 1, memory_order_relaxed);
    domus_address address = domus_channel_address(bed->io.slots[slot].channel);
    domt_bed_take_turn();
    return address;
}

domus_address domt_lines_connect_line(int *ret_fd, int *ret_peer)
{
    return domt_lines_connect_line_maybe_proxied(false, ret_fd, ret_peer);
}

void domt_lines_put_notice(domus_address to, const domus_type *type, const void *payload)
{
    ck_assert_int_eq(domt_bed_put_message(to, DOMI_NOTICE, type, payload), 0);
}

int domt_lines_put_notice_and_turn(domus_address to, const domus_type *type, const void *payload)
{
    int result = domt_bed_put_message(to, DOMI_NOTICE, type, payload);

    domt_bed_take_turn();
    return result;
}

void domt_lines_bring_bytes(int fd, const char *bytes)
{
    domt_bed_bring_text(fd, bytes);
    domt_bed_take_turn();
}
