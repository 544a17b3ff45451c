/* The verbs by which an actor controls a channel: pause, resume and finish, and which actors may
 * use them. */
#include "house/family/life.h"
#include "house/message/mailbox.h"
#include "house/message/pool.h"
#include "io/channels/table.h"
#include "tests/io/bed.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static domus_address owner;
static domus_address stranger;
static domus_channel *channel;
static int fd, peer;
static char heard[64]; /* the bytes that on_read was shown; '.' for on_end, '-' for on_close */
static int done;       /* result of the last verb or write of the channel */
static int written;

static void record_bytes(const char *bytes, size_t size)
{
    size_t length = strlen(heard);

    ck_assert_uint_lt(length + size, sizeof heard);
    memcpy(heard + length, bytes, size);
    heard[length + size] = '\0';
}

static int on_open_record_channel(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    channel = event->channel;
    return 0;
}

/* Record the bytes that were read; 'p' pauses the channel. */
static int on_read_record_and_pause(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;
    const char *data = domus_buffer_data(event->bytes);

    record_bytes(data, domus_buffer_size(event->bytes));
    if (data[0] == 'p')
        ck_assert_int_eq(domus_channel_pause(stack, event->channel), 0);
    domus_buffer_free(event->bytes);
    return 0;
}

static int on_end_record_point(domus_stack *stack, void *self, const void *payload)
{
    record_bytes(".", 1);
    return 0;
}

static int on_close_record_hyphen(domus_stack *stack, void *self, const void *payload)
{
    record_bytes("-", 1);
    channel = NULL;
    return 0;
}

static int write_byte_on_channel(domus_stack *stack)
{
    domus_buffer *bytes = NULL;

    ck_assert_int_eq(domus_buffer_new(stack, 1, &bytes), 0);
    *(char *)domus_buffer_data(bytes) = 'w';
    return domus_channel_write(stack, channel, bytes);
}

static int on_word_call_verb_of_its_letter(domus_stack *stack, void *self, const void *payload)
{
    switch (*(const char *)payload) {
    case 'p':
        done = domus_channel_pause(stack, channel);
        break;
    case 'r':
        done = domus_channel_resume(stack, channel);
        break;
    case 'f':
        done = domus_channel_finish(stack, channel);
        break;
    case 'c':
        done = domus_channel_close(stack, channel);
        break;
    case 'x':
        done = domus_channel_reset(stack, channel, -EPROTO);
        break;
    default:
        written = write_byte_on_channel(stack);
    }
    return 0;
}

static const domus_type word_type = {.name = "word", .size = 1};
static const domus_on rows[] = {{&word_type, on_word_call_verb_of_its_letter, 0}, {NULL, NULL, 0}};

static const domus_behaviour line = {
    .name = "line",
    .kind = DOMUS_CHANNELS,
    .on = rows,
    .on_open = {on_open_record_channel, 0},
    .on_read = {on_read_record_and_pause, 0},
    .on_end = {on_end_record_point, 0},
    .on_close = {on_close_record_hyphen, 0},
};
static const domus_behaviour owning = {
    .name = "owning", .kind = DOMUS_CHANNELS, .on = rows, .channel = &line};

static void begin_channel_with_idle_time(uint64_t idle_ms)
{
    heard[0] = '\0';
    done = written = 1;
    bed->config.channel.idle_timeout_ns = idle_ms * DOMT_BED_MS;
    domt_bed_start();
    owner = domt_bed_spawn_actor(&owning, NULL);
    stranger = domt_bed_spawn_actor(&owning, NULL);
    domt_bed_take_turn();
    fd = domt_bed_connect_to_actor(owner, &peer);
    ck_assert_ptr_nonnull(channel);
}

static void begin_channel(void)
{
    begin_channel_with_idle_time(0);
}

static void send_word_to_actor(domus_address to, char word)
{
    domt_bed_put_notice_and_turn(to, &word_type, &word);
}

static void send_word_to_channel(char word)
{
    send_word_to_actor(domus_channel_address(channel), word);
}

static void bring_bytes_and_turn(const char *bytes)
{
    domt_bed_bring_text(fd, bytes);
    domt_bed_take_turn();
}

static bool is_channel_receiving(void)
{
    const domt_op *op = domt_fake_find_operation(bed->fake, DOMT_RECEIVE, fd);

    return op != NULL && !channel->cancelling;
}

/* --- pause ------------------------------------------------------------------------------------ */

DOMT_TEST(paused_channel_shows_nothing_until_it_is_resumed)
{
    begin_channel();
    bring_bytes_and_turn("1");
    send_word_to_channel('p');
    ck_assert_int_eq(done, 0);
    ck_assert(!is_channel_receiving());
    domt_bed_bring_text(fd, "2"); /* this byte comes before the cancel of the receive took hold */
    domt_bed_settle();
    ck_assert_str_eq(heard, "1");
    send_word_to_channel('p');
    ck_assert_int_eq(done, 0);
    send_word_to_channel('r');
    ck_assert_int_eq(done, 0);
    domt_bed_settle();
    ck_assert_str_eq(heard, "12");
    ck_assert(is_channel_receiving());
    send_word_to_channel('r');
    bring_bytes_and_turn("3");
    ck_assert_str_eq(heard, "123");
    domt_bed_end();
}

/* A handler that pauses its channel is shown no further piece in the same run. */
DOMT_TEST(pause_within_on_read_holds_at_once)
{
    begin_channel();
    domt_bed_bring_text(fd, "p");
    domt_bed_bring_text(fd, "1");
    domt_bed_bring_text(fd, "2");
    domt_bed_settle();
    ck_assert_str_eq(heard, "p");
    send_word_to_channel('r');
    domt_bed_settle();
    ck_assert_str_eq(heard, "p12");
    domt_bed_end();
}

DOMT_TEST(end_of_the_peer_waits_for_the_resume)
{
    begin_channel();
    domt_bed_bring_text(fd, "p");
    domt_bed_bring_text(fd, "1");
    domt_bed_end_receive(fd, 0);
    ck_assert_str_eq(heard, "p");
    send_word_to_channel('r');
    domt_bed_settle();
    ck_assert_str_eq(heard, "p1.");
    domt_bed_end();
}

/* The end of a paused channel waits for the resume, also when no bytes come before the end. */
DOMT_TEST(end_of_the_peer_alone_waits_for_the_resume)
{
    begin_channel();
    domt_bed_bring_text(fd, "p");
    domt_bed_end_receive(fd, 0);
    ck_assert_str_eq(heard, "p");
    send_word_to_channel('r');
    domt_bed_settle();
    ck_assert_str_eq(heard, "p.");
    domt_bed_end();
}

/* While bytes wait, it is the paused actor that is slow, so its peer is not idle; if no bytes wait,
 * the peer is idle. */
DOMT_TEST(paused_channel_is_idle_only_if_nothing_waits)
{
    for (int waits = 0; waits < 2; waits++) {
        begin_channel_with_idle_time(20);
        send_word_to_channel('p');
        domt_bed_settle();
        if (waits != 0)
            ck_assert_int_eq(send(peer, "x", 1, 0), 1);
        for (int i = 0; i < 10; i++)
            domt_bed_pass_ms_and_settle(10);
        ck_assert_int_eq(domt_bed_is_descriptor_open(fd), waits);
        domt_bed_end();
    }
}

DOMT_TEST(closing_channel_is_not_paused)
{
    begin_channel();
    send_word_to_channel('c');
    ck_assert_int_eq(done, 0);
    send_word_to_channel('p');
    ck_assert_int_eq(done, -EPIPE);
    send_word_to_channel('r');
    ck_assert_int_eq(done, -EPIPE);
    domt_bed_end();
}

/* --- finish ----------------------------------------------------------------------------------- */

DOMT_TEST(finish_sends_fin_behind_the_bytes_and_goes_on_reading)
{
    begin_channel();
    send_word_to_channel('w');
    ck_assert_int_eq(written, 0);
    send_word_to_channel('f');
    ck_assert_int_eq(done, 0);
    /* the kernel has not taken the byte yet, so no FIN was sent */
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peer), 'o');
    domt_bed_complete_send(fd, 1);
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peer), 'f');
    bring_bytes_and_turn("1");
    ck_assert_str_eq(heard, "1");
    send_word_to_channel('w');
    ck_assert_int_eq(written, -EPIPE);
    send_word_to_channel('f');
    ck_assert_int_eq(done, -EALREADY);
    domt_bed_end_receive(fd, 0);
    ck_assert_str_eq(heard, "1.");
    send_word_to_channel('c');
    domt_bed_settle();
    ck_assert_str_eq(heard, "1.-");
    ck_assert(!domt_bed_is_descriptor_open(fd));
    domt_bed_end();
}

DOMT_TEST(finish_of_a_channel_with_nothing_queued_is_sent_at_once)
{
    begin_channel();
    send_word_to_channel('f');
    ck_assert_int_eq(domt_bed_state_seen_by_peer(peer), 'f');
    /* a close of a channel that has sent its FIN waits for the peer's FIN only */
    send_word_to_channel('c');
    domt_bed_end_receive(fd, 0);
    ck_assert_str_eq(heard, "-");
    domt_bed_end();
}

/* --- who may ---------------------------------------------------------------------------------- */

DOMT_TEST(owner_may_act_on_its_channels_and_others_may_not)
{
    static const char words[] = "prfwcx";

    begin_channel();
    for (const char *word = words; *word != '\0'; word++) {
        done = written = 1;
        send_word_to_actor(stranger, *word);
        ck_assert_int_eq(*word == 'w' ? written : done, -EPERM);
    }
    ck_assert(is_channel_receiving());
    ck_assert_uint_eq(domus_channel_queued(channel), 0);
    send_word_to_actor(owner, 'w');
    ck_assert_int_eq(written, 0);
    domt_fake_complete_send(bed->fake, fd, 1);
    send_word_to_actor(owner, 'p');
    ck_assert_int_eq(done, 0);
    send_word_to_actor(owner, 'r');
    ck_assert_int_eq(done, 0);
    send_word_to_actor(owner, 'x');
    ck_assert_int_eq(done, 0);
    domt_bed_settle();
    ck_assert_str_eq(heard, "-");
    domt_bed_end();
}

DOMT_TEST(channels_that_share_a_state_may_act_on_each_other)
{
    domus_address sharing[2];
    domus_address channels[3];

    begin_channel();
    const domus_address first = domus_channel_address(channel);
    for (int i = 0; i < 2; i++)
        sharing[i] = domt_bed_spawn_actor(&line, NULL);
    domt_bed_take_turn();
    for (int i = 0; i < 3; i++) { /* the second and the third channel share one state */
        (void)domt_bed_connect_to_actor(sharing[i == 0 ? 0 : 1], NULL);
        channels[i] = domus_channel_address(channel);
    }
    send_word_to_actor(channels[0], 'w');
    ck_assert_int_eq(written, -EPERM);
    send_word_to_actor(first, 'w');
    ck_assert_int_eq(written, -EPERM);
    send_word_to_actor(channels[1], 'w');
    ck_assert_int_eq(written, 0);
    domt_bed_end();
}

/* --- what is told ----------------------------------------------------------------------------- */

DOMT_TEST(channel_tells_its_endpoints_and_counts)
{
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    domus_endpoint own;
    domus_endpoint others;
    domus_channel_counters counts;

    begin_channel();
    ck_assert_int_eq(getsockname(peer, (struct sockaddr *)&address, &size), 0);
    ck_assert_int_eq(domus_channel_peer(channel, &others), 0);
    ck_assert_uint_eq(others.family, AF_INET);
    ck_assert_uint_eq(others.port, ntohs(address.sin_port));
    ck_assert_int_eq(domus_channel_local(channel, &own), 0);
    ck_assert_uint_ne(own.port, others.port);
    ck_assert(!domus_endpoint_is_same(&own, &others));
    bring_bytes_and_turn("123");
    send_word_to_channel('w');
    domus_channel_counts(channel, &counts);
    ck_assert_uint_eq(counts.received_bytes, 3);
    ck_assert_uint_eq(counts.sent_bytes, 0);
    ck_assert_uint_eq(counts.queued_bytes, 1);
    ck_assert_uint_eq(counts.opened_ns, 1000 * DOMT_BED_MS);
    domt_bed_complete_send(fd, 1);
    domus_channel_counts(channel, &counts);
    ck_assert_uint_eq(counts.sent_bytes, 1);
    ck_assert_uint_eq(counts.queued_bytes, 0);
    domt_bed_end();
}

DOMT_SUITE(30)
