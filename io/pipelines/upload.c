/* Sends requests of this side in pieces (upload.h). */
#include "io/pipelines/upload.h"

#include "base/memory.h"
#include "house/conversation/asks.h"
#include "house/message/mailbox.h"
#include "house/message/sign.h"
#include "io/channels/crowd.h"
#include "io/channels/due.h"
#include "io/channels/ends.h"
#include "io/channels/ready.h"
#include "io/channels/state.h"
#include "io/pipelines/answers.h"
#include "io/pipelines/stream.h"

#include <errno.h>

/* time between two checks whether the asker of an upload is still there, in nanoseconds;
 * TUNNEL_LOOK_NS is for a tunnel, which may be idle for long */
#define LOOK_NS        UINT64_C(100000000)
#define TUNNEL_LOOK_NS UINT64_C(1000000000)

const domus_type domus_request_type = {.name = "request", .size = sizeof(domus_request)};

static void release_head_of_upload(void *payload)
{
    const domi_upload_head *head = payload;

    if (head->type->release != NULL)
        head->type->release(head->message);
    domi_memory_free(head->message);
}

const domus_type domi_upload_type = {.name = "request in pieces",
                                     .size = sizeof(domi_upload_head),
                                     .release = release_head_of_upload};

/* True if the answer to the upload has a body that is all that the peer still sends. */
static bool is_answer_a_tunnel(const domi_pipe *pipe)
{
    return pipe->upload.answered && pipe->body.of_answer && pipe->body.is_rest;
}

/* Set the time at which the channel checks the upload again. */
static void schedule_check_of_upload(const domi_manager *manager, domi_pipe *pipe)
{
    domus_channel *channel = pipe->channel;
    uint64_t next_ns = manager->now_ns + (is_answer_a_tunnel(pipe) ? TUNNEL_LOOK_NS : LOOK_NS);
    uint64_t deadline_ns = pipe->upload.deadline_ns;

    if (channel->look_ns != 0)
        return;
    channel->look_ns = deadline_ns != 0 && deadline_ns < next_ns ? deadline_ns : next_ns;
    domi_channel_arm_timeouts(channel);
}

/* Mark the upload's body as not open any more; the next run continues the work that waited for its
 * end. */
static void mark_upload_closed(domi_pipe *pipe)
{
    pipe->upload.open = false;
    pipe->upload.ended = pipe->stopped = true;
    pipe->channel->streams--;
    pipe->channel->look_ns = 0;
    domi_channel_make_actor_ready(pipe->channel);
}

/* Encode a message of the upload, and queue its bytes. Returns 0, or an error: byte stages that
 * have lost their place can encode nothing more, and then the channel was reset. */
static int send_part_of_upload(domi_pipe *pipe, const domus_type *type, const void *payload)
{
    domus_wire *wire = pipe->wire;

    wire->stream = &pipe->upload.note;
    int error = domi_wire_encode_message(wire, pipe->upload.number, type, payload);
    wire->stream = NULL;
    if (error == 0)
        return domi_pipe_queue_encoded_bytes(pipe);
    if (wire->broken != 0)
        domi_channel_reset_after_error(pipe->channel, error);
    return error;
}

/* Cut the upload's body before its end. The bytes of an answer that has come are still read. */
static void cut_body_of_upload(domi_pipe *pipe, int error)
{
    domi_upload *upload = &pipe->upload;
    domus_channel *channel = pipe->channel;

    pipe->wire->stream = &upload->note;
    int result = domi_wire_encode_cut_of_answer(pipe->wire, upload->number, error);
    pipe->wire->stream = NULL;
    if (result == 0)
        result = domi_pipe_queue_encoded_bytes(pipe);
    mark_upload_closed(pipe);
    if (result < 0 && upload->answered && !upload->ask_over)
        upload->doomed = result;
    else if (result < 0)
        (void)domi_channel_reset_when_sent(channel, result);
}

/* --- the start -------------------------------------------------------------------------------- */

/* Returns the message that tells the asker that its upload has started; NULL: no memory. */
static domi_envelope *make_message_that_upload_started(domi_manager *manager, const domi_pipe *pipe,
                                                       domi_envelope *ask, uint32_t number)
{
    const domi_upload_head *head = domi_envelope_get_payload(ask);
    const domi_return *back = domi_envelope_get_return_of_ask(ask);
    domi_envelope *begun = domi_envelope_new(manager, DOMI_ASK_HEAD + sizeof(domus_request));

    if (begun == NULL)
        return NULL;
    domi_envelope_set_type_and_sender(begun, &domus_request_type, pipe->channel->house);
    begun->node.kind = DOMI_REPLY;
    *domi_envelope_get_return_of_ask(begun) = head->begin.back;
    *(domus_request *)domi_envelope_get_payload(begun) = (domus_request){
        .stream = {domi_house_get_address(pipe->channel->house), number, true},
        .promise = back->promise,
        .serial = back->serial,
    };
    return begun;
}

int domi_upload_begin(domi_manager *manager, domi_pipe *pipe, domi_envelope *ask, uint32_t number)
{
    const domi_upload_head *head = domi_envelope_get_payload(ask);
    domi_upload *upload = &pipe->upload;

    if (!pipe->wire->stages[pipe->wire->count - 1].stage->has_bodies)
        return -EOPNOTSUPP;
    domi_envelope *begun = make_message_that_upload_started(manager, pipe, ask, number);
    if (begun == NULL)
        return -ENOMEM;
    *upload = (domi_upload){
        .number = number,
        .ask = ask,
        .asker = head->begin.stack,
        .asker_serial = head->begin.serial,
        .deadline_ns = domi_envelope_deadline_ns(ask),
    };
    int error = send_part_of_upload(pipe, head->type, head->message);
    if (error != 0) {
        upload->ask = NULL;
        domi_envelope_release_and_free(manager, begun);
        return error;
    }
    upload->open = true;
    pipe->channel->streams++;
    schedule_check_of_upload(manager, pipe);
    if (domi_mailbox_put(manager, (domus_address){ask->sender, ask->sender_lease}, &begun->node,
                         DOMI_REPLY) != 0)
        /* the asker of the upload is gone, as the next check will find */
        domi_envelope_release_and_free(manager, begun);
    return 0;
}

/* --- pieces and the end ----------------------------------------------------------------------- */

static int send_piece_of_body(domi_pipe *pipe, const domi_part *part)
{
    const domus_piece piece = {part->bytes, false};

    if (!domi_upload_is_open(pipe, part->number))
        return -EPIPE;
    if (domi_stream_has_waiting_write(pipe, part))
        return -EBUSY;
    if (domi_channel_is_write_refused(pipe->channel, part->bytes.size))
        return -ENOBUFS;
    return part->bytes.size != 0 ? send_part_of_upload(pipe, &domus_piece_type, &piece) : 0;
}

static int send_end_of_upload(domi_pipe *pipe, const domi_part *part)
{
    static const domus_piece end = {{NULL, 0, 0}, true};

    return part->type != NULL ? send_part_of_upload(pipe, part->type, part->message)
                              : send_part_of_upload(pipe, &domus_piece_type, &end);
}

/* Tell the writer of the last part of an upload whether it was sent. A writer that waits for the
 * answer to its whole request gets that in the envelope of the request; only an error is told by
 * the envelope of the last part. */
static void report_end_of_upload(domi_manager *manager, const domi_pipe *pipe, domi_envelope *ask,
                                 int error)
{
    const domi_part *part = domi_envelope_get_payload(ask);

    if (!part->waits && error != 0)
        domi_envelope_get_return_of_ask(ask)->serial = part->serial;
    if (error != 0)
        domi_ask_fail(manager, ask, error);
    else if (part->waits)
        domi_ask_answer_for_house(manager, pipe->channel->house, ask, &domi_taken_type, NULL);
    else
        domi_envelope_release_and_free(manager, ask);
}

static void end_or_cut_body_of_upload(domi_manager *manager, domi_pipe *pipe, domi_envelope *ask)
{
    const domi_part *part = domi_envelope_get_payload(ask);

    if (!domi_upload_is_open(pipe, part->number)) {
        report_end_of_upload(manager, pipe, ask, part->waits ? -EPIPE : 0);
        return;
    }
    int error = part->kind == DOMI_PART_END ? send_end_of_upload(pipe, part) : -ECANCELED;
    report_end_of_upload(manager, pipe, ask, part->kind == DOMI_PART_END ? error : 0);
    if (error != 0) {
        cut_body_of_upload(pipe, error);
        return;
    }
    bool was_tunnel = is_answer_a_tunnel(pipe);
    mark_upload_closed(pipe);
    if (was_tunnel)
        (void)domi_channel_finish(pipe->channel);
}

void domi_upload_send_piece_or_end(domi_manager *manager, domi_pipe *pipe, domi_envelope *ask)
{
    const domi_part *part = domi_envelope_get_payload(ask);

    if (part->kind != DOMI_PART_PIECE) {
        end_or_cut_body_of_upload(manager, pipe, ask);
        return;
    }
    int error = send_piece_of_body(pipe, part);
    if (error != 0)
        domi_ask_fail(manager, ask, error);
    else
        domi_stream_answer_writer_or_wait(manager, pipe, ask);
}

/* --- what ends it ----------------------------------------------------------------------------- */

void domi_upload_cut_if_asker_is_gone(domi_manager *manager, domi_pipe *pipe)
{
    const domi_upload *upload = &pipe->upload;

    /* The order is relaxed (in domi_stack_serial()), because the serial alone tells that the
     * conversation is over. */
    if (domi_stack_serial(upload->asker) != upload->asker_serial)
        cut_body_of_upload(pipe, -ECANCELED);
    else if (upload->deadline_ns != 0 && upload->deadline_ns <= manager->now_ns)
        cut_body_of_upload(pipe, -ETIMEDOUT);
    else
        schedule_check_of_upload(manager, pipe);
}

bool domi_upload_record_answer(domi_pipe *pipe)
{
    domi_upload *upload = &pipe->upload;

    if (upload->doomed != 0) {
        (void)domi_channel_reset_when_sent(pipe->channel, upload->doomed);
        return true;
    }
    if (upload->open && upload->answered)
        upload->ask_over = true;
    return upload->open && upload->answered;
}

void domi_upload_reset_channel_if_open(domi_pipe *pipe)
{
    if (!pipe->upload.open)
        return;
    (void)domi_channel_reset_when_sent(pipe->channel, -EPIPE);
    mark_upload_closed(pipe);
}
