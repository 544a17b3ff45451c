/* The service with a pipeline whose requests say how they are answered; tests/runtime/pipes.h lists
 * the requests. */
#include "tests/runtime/pipes.h"
#include "tests/runtime/network.h"
#include "tests/support/kits.h"

#include "base/page.h"
#include "runtime/network/ready.h"
#include "runtime/testkit/kit.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

domt_pipes domt_pipes_now;

static void release_packet(void *payload)
{
    domus_slice_free(((domus_packet *)payload)->bytes);
}

/* A type of answers that the stage cannot encode. */
static const domus_type odd_type = {
    .name = "odd", .size = sizeof(domus_packet), .release = release_packet};

/* --- requests --------------------------------------------------------------------------------- */

typedef struct pipe_request {
    char how[8];
    uint64_t wait_ns;
    domus_slice text;
} pipe_request;

/* Split the line of a request into its signs, HOW, MS and TEXT. */
static pipe_request parse_request(domus_slice line)
{
    pipe_request made = {.text = line};
    const char *data = domus_slice_data(line);
    uint32_t at = 0, size = 0;

    while (at < line.size && strchr("!+&?%$", data[at]) != NULL)
        at++;
    for (; at < line.size && data[at] != ' ' && size + 1 < sizeof made.how; at++)
        made.how[size++] = data[at];
    for (at++; at < line.size && data[at] != ' '; at++)
        made.wait_ns = made.wait_ns * 10 + (uint64_t)(data[at] - '0') * DOMT_PIPE_MS;
    at = at < line.size ? at + 1 : line.size;
    made.text.offset += at;
    made.text.size -= at;
    return made;
}

static bool is_request_of_mode(const pipe_request *asked, const char *how)
{
    return strcmp(asked->how, how) == 0;
}

static int reply_with_slice(domus_stack *stack, domus_slice text)
{
    domus_packet answer;
    int error = domus_slice_copy(domus_slice_data(text), text.size, &answer.bytes);
    return error != 0 ? error : domus_reply(stack, &domus_packet_type, &answer);
}

/* --- the actors that answer ------------------------------------------------------------------- */

/* The frame of a helper actor's conversation: the text to answer. The payload of the ask, to which
 * the text belongs, stays valid until the ask is answered. */
typedef struct helper_frame {
    domus_slice text;
} helper_frame;

static int answer_after_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    if (answer->error != 0)
        return answer->error;
    return reply_with_slice(stack, ((helper_frame *)domus_frame(stack))->text);
}

static int on_packet_answer_as_helper(domus_stack *stack, void *self, const void *payload)
{
    pipe_request asked = parse_request(((const domus_packet *)payload)->bytes);

    domt_pipes_now.helped++;
    domt_pipes_now.deadline_ns = domus_deadline_ns(stack);
    if (is_request_of_mode(&asked, "ferr"))
        return -EBADMSG;
    if (is_request_of_mode(&asked, "fhang"))
        return domus_sleep(stack, 3600 * DOMT_PIPE_SECOND, answer_after_sleep);
    *(helper_frame *)domus_frame(stack) = (helper_frame){asked.text};
    if (asked.wait_ns != 0)
        return domus_sleep(stack, asked.wait_ns, answer_after_sleep);
    return reply_with_slice(stack, asked.text);
}

static const domus_behaviour helper = {
    .name = "helper",
    .on = (const domus_on[]){{&domus_packet_type, on_packet_answer_as_helper, sizeof(helper_frame)},
                             {0}}};

/* --- the channel ------------------------------------------------------------------------------ */

/* An ask that the channel has kept, to answer it when a timer fires. */
typedef struct kept_ask {
    domus_kept kept;
    bool is_forwarded;
    domus_slice text;
} kept_ask;

static void release_kept_ask(void *payload)
{
    kept_ask *ask = *(kept_ask **)payload;
    domus_slice_free(ask->text);
    free(ask);
}

static const domus_type wake_type = {
    .name = "wake", .size = sizeof(kept_ask *), .release = release_kept_ask};

static int on_wake_answer_kept_ask(domus_stack *stack, void *self, const void *payload)
{
    const kept_ask *ask = *(kept_ask *const *)payload;
    domus_packet answer;
    int error;

    if (ask->is_forwarded) {
        error = domus_kept_forward(stack, ask->kept, domt_pipes_now.far);
    } else {
        error = domus_slice_keep(ask->text, &answer.bytes);
        if (error == 0) {
            error = domus_kept_reply(stack, ask->kept, &domus_packet_type, &answer);
            if (error != 0)
                domus_slice_free(answer.bytes);
            domt_pipes_now.kept_replies += error == 0;
        }
    }
    if (error != 0)
        (void)domus_kept_fail(stack, ask->kept, error);
    return 0;
}

/* Arm the timer whose handler answers a kept ask. */
static int keep_ask_until_timer(domus_stack *stack, const pipe_request *asked, domus_kept kept)
{
    kept_ask *ask = calloc(1, sizeof *ask);

    ck_assert_ptr_nonnull(ask);
    *ask = (kept_ask){.kept = kept, .is_forwarded = is_request_of_mode(asked, "kffar")};
    int error = domus_slice_keep(asked->text, &ask->text);
    if (error == 0)
        error = domus_after(stack, asked->wait_ns, &wake_type, &ask, NULL);
    if (error != 0)
        release_kept_ask(&ask);
    return error;
}

static int keep_ask_as_request_says(domus_stack *stack, const pipe_request *asked)
{
    domus_kept kept;
    int error = domus_keep(stack, &kept);

    if (error != 0)
        return error;
    if (is_request_of_mode(asked, "kfwd"))
        error = domus_kept_forward(stack, kept, domt_pipes_now.near);
    else
        error = keep_ask_until_timer(stack, asked, kept);
    if (error != 0)
        (void)domus_kept_fail(stack, kept, error);
    return 0;
}

/* The frame of a channel's conversation: the request that it answers. */
typedef struct pipe_frame {
    pipe_request asked;
} pipe_frame;

static int answer_request_after_sleep(domus_stack *stack, void *self, const domus_answer *answer)
{
    pipe_frame *frame = domus_frame(stack);

    if (answer->error != 0) {
        domt_pipes_now.cancelled++;
        return answer->error;
    }
    domt_pipes_now.resumed++;
    if (frame != NULL && is_request_of_mode(&frame->asked, "late"))
        return -EBADMSG;
    if (frame != NULL)
        return reply_with_slice(stack, frame->asked.text);
    /* in a conversation without a frame the request is not stored */
    return domus_fail(stack, -EDOM);
}

static int reply_with_helpers_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    if (answer->error != 0)
        return answer->error;
    return reply_with_slice(stack, ((const domus_packet *)answer->payload)->bytes);
}

static int ask_helper(domus_stack *stack, const domus_packet *packet, domus_address to)
{
    domus_packet passed;
    int error = domus_slice_keep(packet->bytes, &passed.bytes);

    if (error != 0)
        return error;
    int result = domus_ask(stack, to, &domus_packet_type, &passed, reply_with_helpers_answer);
    if (result < 0)
        domus_slice_free(passed.bytes);
    return result;
}

static int reply_with_odd_answer(domus_stack *stack, const pipe_request *asked)
{
    domus_packet answer;
    bool is_line = is_request_of_mode(asked, "line");
    int error = is_line ? domus_slice_copy("two\nlines", 9, &answer.bytes)
                        : domus_slice_keep(asked->text, &answer.bytes);
    return error != 0 ? error
                      : domus_reply(stack, is_line ? &domus_packet_type : &odd_type, &answer);
}

/* End the channel as the request says, and check that the request stays readable. */
static int end_channel_as_request_says(domus_stack *stack, const pipe_request *asked)
{
    domus_channel *channel = domus_channel_running(stack);
    domus_slice kept;

    if (is_request_of_mode(asked, "reset"))
        (void)domus_channel_reset(stack, channel, -ECONNABORTED);
    else if (is_request_of_mode(asked, "close"))
        (void)domus_channel_close(stack, channel);
    else
        (void)domus_channel_finish(stack, channel);
    if (domus_slice_keep(asked->text, &kept) != 0)
        return -ENOMEM;
    ck_assert(domus_slice_equals(kept, "text", 4));
    domus_slice_free(kept);
    return reply_with_slice(stack, asked->text);
}

/* Answer a request in one of the ways that finish within the same turn. */
static int answer_request_at_once(domus_stack *stack, const domus_packet *packet,
                                  const pipe_request *asked)
{
    domus_packet answer;

    if (is_request_of_mode(asked, "now"))
        return reply_with_slice(stack, asked->text);
    if (is_request_of_mode(asked, "slice")) {
        int error = domus_slice_keep(asked->text, &answer.bytes);
        return error != 0 ? error : domus_reply(stack, &domus_packet_type, &answer);
    }
    if (is_request_of_mode(asked, "twice")) {
        int error = reply_with_slice(stack, asked->text);
        if (error == 0)
            ck_assert_int_eq(domus_fail(stack, -EDOM), -EALREADY);
        return error;
    }
    if (is_request_of_mode(asked, "take")) {
        int error = domus_take(stack);
        if (error != 0)
            return error;
        /* Another thread may have the bytes of the request now, although nobody has kept their
         * page. */
        ck_assert(asked->text.page == NULL || !domi_page_of_slice(asked->text)->borrowed);
        answer.bytes = asked->text;
        return domus_reply(stack, &domus_packet_type, &answer);
    }
    if (is_request_of_mode(asked, "both")) {
        int error = domus_forward(stack, (domus_address){NULL, 0});
        ck_assert_int_ne(error, 0);
        return reply_with_slice(stack, asked->text);
    }
    if (is_request_of_mode(asked, "stash")) {
        ck_assert_int_eq(domus_stash(stack), -EOPNOTSUPP);
        return reply_with_slice(stack, asked->text);
    }
    if (is_request_of_mode(asked, "odd") || is_request_of_mode(asked, "line"))
        return reply_with_odd_answer(stack, asked);
    if (is_request_of_mode(asked, "reset") || is_request_of_mode(asked, "close") ||
        is_request_of_mode(asked, "finish"))
        return end_channel_as_request_says(stack, asked);
    if (is_request_of_mode(asked, "err"))
        return -EBADMSG;
    if (is_request_of_mode(asked, "fail"))
        return domus_fail(stack, -EPERM);
    (void)packet;
    return 0; /* `none`: the handler returns without an answer */
}

static int on_request_answer(domus_stack *stack, void *self, const void *payload)
{
    const domus_packet *packet = payload;
    pipe_request asked = parse_request(packet->bytes);
    pipe_frame *frame = domus_frame(stack);

    domt_pipes_now.begun++;
    ck_assert(domus_sender(stack).house == domus_self(stack).house);
    if (frame != NULL)
        *frame = (pipe_frame){asked};
    if (is_request_of_mode(&asked, "sleep") || is_request_of_mode(&asked, "late"))
        return domus_sleep(stack, asked.wait_ns, answer_request_after_sleep);
    if (is_request_of_mode(&asked, "hang"))
        return domus_sleep(stack, 3600 * DOMT_PIPE_SECOND, answer_request_after_sleep);
    if (is_request_of_mode(&asked, "near"))
        return ask_helper(stack, packet, domt_pipes_now.near);
    if (is_request_of_mode(&asked, "far"))
        return ask_helper(stack, packet, domt_pipes_now.far);
    if (is_request_of_mode(&asked, "fnear") || is_request_of_mode(&asked, "ferr"))
        return domus_forward(stack, domt_pipes_now.near);
    if (is_request_of_mode(&asked, "ffar") || is_request_of_mode(&asked, "fhang"))
        return domus_forward(stack, domt_pipes_now.far);
    if (strncmp(asked.how, "k", 1) == 0)
        return keep_ask_as_request_says(stack, &asked);
    return answer_request_at_once(stack, packet, &asked);
}

static int on_note_handle_as_text_says(domus_stack *stack, void *self, const void *payload)
{
    domus_slice line = ((const domus_packet *)payload)->bytes;
    domus_message *message;

    domt_pipes_now.notices++;
    ck_assert(domus_sender(stack).house == domus_self(stack).house);
    if (domus_slice_equals(line, "%fail", 5))
        return -EBADMSG;
    /* the forward to nobody is refused, so the notice ends in this handler */
    if (domus_slice_equals(line, "%forward", 8))
        return domus_forward(stack, (domus_address){NULL, 0}) != 0 ? 0 : -EBADMSG;
    if (domus_slice_equals(line, "%own", 4)) {
        ck_assert_int_eq(domus_take(stack), 0);
        domus_slice_free(line);
        return 0;
    }
    int error = domus_message_take(stack, &message);
    if (error != 0)
        return error;
    domt_pipes_now.taken++;
    /* The message is sent to this same channel, which then sends it to its peer. */
    return domus_message_send(stack, domus_self(stack), message);
}

static uint32_t marks_of_line(const void *payload)
{
    domus_slice line = ((const domus_packet *)payload)->bytes;
    uint32_t marks = 0;

    for (uint32_t at = 0; at < line.size && strchr("!+&", domus_slice_data(line)[at]) != NULL; at++)
        marks |= domus_slice_data(line)[at] == '!'   ? DOMUS_ALONE
                 : domus_slice_data(line)[at] == '+' ? DOMUS_OUTLIVES
                                                     : 0;
    return marks;
}

static int on_open_count(domus_stack *stack, void *self, const void *payload)
{
    domt_pipes_now.opened++;
    if (domt_pipes_now.is_kit)
        domt_pipes_now.channel = domus_self(stack);
    return 0;
}

static int on_close_count(domus_stack *stack, void *self, const void *payload)
{
    domt_pipes_now.closed++;
    if (domt_pipes_now.is_kit)
        domt_pipes_now.close_error = ((const domus_channel_event *)payload)->error;
    return 0;
}

static const domus_type *const encodes[] = {&domus_packet_type, &domt_note_type, NULL};

const domus_pipeline domt_pipe_pipeline = {
    .stages = (const domus_pipeline_stage[]){{&domt_pipe_stage, NULL}, {NULL, NULL}},
    .encodes = encodes};

#define ROWS(frame)                                                                                \
    (const domus_on_peer[])                                                                        \
    {                                                                                              \
        {&domus_packet_type, on_request_answer, frame, 0, marks_of_line},                          \
            {&domt_note_type, on_note_handle_as_text_says, 0, 0, NULL}, {.type = NULL},            \
    }
static const domus_on woken[] = {{&wake_type, on_wake_answer_kept_ask, 0}, {0}};

const domus_behaviour domt_pipe_plain = {.name = "plain",
                                         .kind = DOMUS_CHANNELS,
                                         .pipeline = &domt_pipe_pipeline,
                                         .on = woken,
                                         .on_peer = ROWS(0),
                                         .on_open = {on_open_count, 0},
                                         .on_close = {on_close_count, 0}};

const domus_behaviour domt_pipe_framed = {.name = "framed",
                                          .kind = DOMUS_CHANNELS,
                                          .pipeline = &domt_pipe_pipeline,
                                          .on = woken,
                                          .on_peer = ROWS(sizeof(pipe_frame)),
                                          .on_open = {on_open_count, 0},
                                          .on_close = {on_close_count, 0}};

/* --- kits ------------------------------------------------------------------------------------- */

const char *domt_pipe_at = DOMT_PIPE_AT;
domus_testkit *domt_pipe_kit;

void domt_pipes_make_config(domus_config *ret_config)
{
    domt_net_make_config(ret_config);
}

void domt_pipes_spawn_helpers(domus_system *system, uint32_t near, uint32_t far)
{
    memset(&domt_pipes_now, 0, sizeof domt_pipes_now);
    ck_assert_int_eq(domus_outside_spawn_on(system, near, &helper, NULL, &domt_pipes_now.near), 0);
    ck_assert_int_eq(domus_outside_spawn_on(system, far, &helper, NULL, &domt_pipes_now.far), 0);
}

domus_testkit *domt_pipes_new_kit(const domus_config *config, const domus_behaviour *behaviour,
                                  uint64_t seed)
{
    domus_config own;

    domt_pipes_make_config(&own);
    domus_testkit *kit =
        domt_kit_new_listening(config != NULL ? config : &own, "pipe", domt_pipe_at, seed);
    domus_system *system = domus_testkit_system(kit);
    domt_pipes_spawn_helpers(system, 0, 2);
    domt_pipes_now.is_kit = true;
    ck_assert_int_eq(domus_serve(system, "pipe", behaviour, NULL, NULL), 0);
    ck_assert_int_eq(domus_testkit_run(kit), 0);
    domt_pipe_kit = kit;
    return kit;
}

domus_peer *domt_pipes_connect_peer(domus_testkit *kit)
{
    return domt_kit_connect_peer(kit, domt_pipe_at);
}

void domt_pipes_peer_send(domus_testkit *kit, domus_peer *peer, const char *text)
{
    domt_kit_peer_send(peer, text);
}

void domt_pipes_peer_expect(domus_testkit *kit, domus_peer *peer, const char *text)
{
    domt_kit_peer_expect(kit, peer, text);
}

void domt_pipes_end_kit(domus_testkit *kit)
{
    const domus_system *system = domus_testkit_system(kit);
    domus_profile profile;
    uint64_t opened = 0, closed = 0;

    (void)domus_testkit_stop(kit);
    for (uint32_t i = 0; i < system->count; i++) {
        const domi_io *io = &system->threads[i].io;
        ck_assert_int_eq(domus_system_profile(system, i, &profile), 0);
        opened += profile.channels_opened;
        closed += profile.channels_closed;
        ck_assert_uint_eq(io->open, 0);
        ck_assert_uint_eq(domi_io_count_free_buffers(io), io->config->io.buffers.count);
        ck_assert_uint_eq(domi_counter_read(&io->queued), 0);
        ck_assert_uint_eq(io->copied, 0);
    }
    ck_assert_uint_eq(opened, closed);
    ck_assert_uint_eq(domt_pipes_now.opened, domt_pipes_now.closed);
    domus_testkit_free(kit);
}
