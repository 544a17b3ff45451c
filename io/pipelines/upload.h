/* Uploads: requests of this side whose bodies leave in pieces (domus_request_begin()).
 *
 * An upload is an ask with the peer, in the order of such asks, from its head on. So its answer,
 * its late answer and the end of its connection are those of any ask (mail.c). While its body is
 * open, no other ask is sent, because its bytes would lie within the body. Its pieces and its end
 * are asks of the library to the channel's actor, as those of other streams (stream.h).
 *
 * Nobody tells the channel when the asker has gone, so the channel checks from time to time whether
 * its conversation still exists. If it does not, the body is cut. An answer that comes before the
 * end of the body is given at once, but the ask counts until the body has ended, too. Owner
 * thread. */
#ifndef DOMI_IO_PIPELINES_UPLOAD_H
#define DOMI_IO_PIPELINES_UPLOAD_H

#include "house/conversation/owed.h"
#include "io/pipelines/pipe.h"

/* The payload of the ask that begins an upload: the head of the request. */
typedef struct domi_upload_head {
    const domus_type *type; /* type of the upload's head */
    void *message;          /* the head of the upload, on the heap */
    domi_begin begin;
} domi_upload_head;

extern const domus_type domi_upload_type;

/* Returns the type of an ask as the pipeline knows it: for an upload the type of its head. */
static inline const domus_type *domi_mail_type_of_ask(domi_envelope *mail)
{
    if (DOMI_LIKELY(mail->type != &domi_upload_type))
        return mail->type;
    return ((const domi_upload_head *)domi_envelope_get_payload(mail))->type;
}

/* Send the head of an upload, whose ask gets this number, and let its asker go on. Returns 0; the
 * error of `encode` or of the channel. */
int domi_upload_begin(domi_manager *manager, domi_pipe *pipe, domi_envelope *ask, uint32_t number);

/* Handle a piece of an upload, or its end. The channel is open. */
void domi_upload_send_piece_or_end(domi_manager *manager, domi_pipe *pipe, domi_envelope *part);

/* Cut the body of the upload if its asker has gone. Called at the end of a run. */
void domi_upload_cut_if_asker_is_gone(domi_manager *manager, domi_pipe *pipe);

/* Record the peer's answer to the upload, with its body. Returns true if the ask still counts,
 * because the body of the request has not ended, or if the channel was closed. */
bool domi_upload_record_answer(domi_pipe *pipe);

/* Reset the channel, because the peer answers nothing more and the body of the upload has no
 * end. */
void domi_upload_reset_channel_if_open(domi_pipe *pipe);

#endif
