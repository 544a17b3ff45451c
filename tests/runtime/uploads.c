/* Actors that send requests in pieces; tests/runtime/uploads.h has the contract. */
#include "tests/runtime/uploads.h"
#include "tests/support/suite.h"

#include <domus/await.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MS DOMT_PIPE_MS

static const domt_stream_options as_client = {.role = DOMUS_ROLE_CLIENT, .cuts = true};
const domus_type *const domt_upload_encodes[] = {&domt_line_type, &domus_piece_type, NULL};
const domus_pipeline_stage domt_upload_stages[] = {{&domt_stream_stage, &as_client}, {NULL, NULL}};
const domus_pipeline_stage domt_upload_cutless[] = {{&domt_cutless_stage, &as_client},
                                                    {NULL, NULL}};

/* --- an actor that asks in pieces ------------------------------------------------------------- */

typedef struct send_frame {
    char how[16];
    uint64_t left; /* bytes of the request that are left to send */
    uint64_t wait_ns;
    uint32_t pieces; /* number of pieces that were sent */
    int error;       /* error of the last write of a piece */
    domus_request request;
    domus_body body;
} send_frame;

domt_uploads domt_uploads_now;

static bool is_upload_of_mode(const send_frame *frame, const char *how)
{
    return strcmp(frame->how, how) == 0;
}

static domus_slice new_piece_of_size(uint64_t left)
{
    static const char text[DOMT_UPLOAD_PIECE] = "abcdefghij";
    domus_slice slice;
    ck_assert_int_eq(
        domus_slice_copy(text, left < DOMT_UPLOAD_PIECE ? (size_t)left : DOMT_UPLOAD_PIECE, &slice),
        0);
    return slice;
}

static int reply_with_text(domus_stack *stack, const char *text)
{
    domt_line line = {.body = {{NULL, 0}, 0}};
    snprintf(line.text, sizeof line.text, "%s", text);
    return domus_reply(stack, &domt_line_type, &line);
}

static const domt_line head = {.text = "put"};
static const domt_line trailer = {.text = "-end"};

DOMUS_SEQUENCE(send, send_frame)
{
    unsigned long long bytes = 0, wait_ms = 0;
    domt_line begin = head;

    DOMUS_BEGIN;
    ck_assert_int_ge(
        sscanf(((const domt_line *)message)->text, "%15s %llu %llu", frame->how, &bytes, &wait_ms),
        2);
    frame->left = bytes;
    frame->wait_ns = wait_ms * MS;
    if (domt_uploads_now.head != NULL)
        snprintf(begin.text, sizeof begin.text, "%s", domt_uploads_now.head);
    DOMUS_AWAIT(domus_request_begin(stack, domt_uploads_now.to, &domt_line_type, &begin,
                                    is_upload_of_mode(frame, "within") ? 100 * MS : 0, then));
    if (answer->error != 0)
        return answer->error;
    ck_assert_ptr_eq(answer->type, &domus_request_type);
    frame->request = *(const domus_request *)answer->payload;
    domt_uploads_now.begun++;
    while (frame->error == 0 && frame->left != 0) {
        if (frame->wait_ns != 0)
            DOMUS_SLEEP(frame->wait_ns);
        if (answer->error == -ECANCELED)
            return answer->error; /* the connection has ended and takes no more pieces */
        DOMUS_AWAIT(
            domus_request_write(stack, frame->request, new_piece_of_size(frame->left), then));
        frame->error =
            is_upload_of_mode(frame, "on") && answer->error == -EALREADY ? 0 : answer->error;
        if (answer->error != 0)
            domt_uploads_now.error = answer->error;
        domt_uploads_now.written +=
            frame->left < DOMT_UPLOAD_PIECE ? frame->left : DOMT_UPLOAD_PIECE;
        frame->left -= frame->left < DOMT_UPLOAD_PIECE ? frame->left : DOMT_UPLOAD_PIECE;
    }
    if (is_upload_of_mode(frame, "leave"))
        return reply_with_text(stack, "left");
    if (frame->error != 0 || is_upload_of_mode(frame, "stop"))
        DOMUS_AWAIT(domus_request_cut(stack, frame->request, then));
    else if (is_upload_of_mode(frame, "tail"))
        DOMUS_AWAIT(domus_request_end(stack, frame->request, &domt_trailer_type, &trailer, then));
    else if (is_upload_of_mode(frame, "bad"))
        DOMUS_AWAIT(domus_request_end(stack, frame->request, &domus_packet_type,
                                      &(domus_packet){{NULL, 0, 0}}, then));
    else
        DOMUS_AWAIT(domus_request_end(stack, frame->request, NULL, NULL, then));
    if (answer->error != 0)
        return answer->error;
    if (!is_upload_of_mode(frame, "read"))
        return reply_with_text(stack, ((const domt_line *)answer->payload)->text);
    frame->body = ((const domt_line *)answer->payload)->body;
    frame->left = 0;
    for (;;) {
        DOMUS_AWAIT(domus_body_read(stack, frame->body, then));
        if (answer->error != 0)
            return answer->error;
        frame->left += ((const domus_piece *)answer->payload)->bytes.size;
        if (((const domus_piece *)answer->payload)->last)
            break;
    }
    char text[64];
    snprintf(text, sizeof text, "%llu", (unsigned long long)frame->left);
    return reply_with_text(stack, text);
    DOMUS_END;
}

/* --- misuse, and a stream that another actor writes ------------------------------------------- */

const domus_type domt_misuse_type = {.name = "misuse"};
static const domus_type lend_type = {.name = "lend", .size = sizeof(domus_stream)};

#define EXPECT(expected) ck_assert_int_eq(answer->error, expected)

DOMUS_SEQUENCE(misuse, send_frame)
{
    domus_request wrong = frame->request;

    DOMUS_BEGIN;
    (void)message;
    DOMUS_AWAIT(domus_request_begin(stack, domus_self(stack), &domt_line_type, &head, 0, then));
    /* the begin of a request fails, because the address is not that of a channel */
    EXPECT(-EOPNOTSUPP);
    DOMUS_AWAIT(
        domus_request_begin(stack, domt_uploads_now.to, &domt_trailer_type, &head, 0, then));
    /* the begin of a request fails, because `encodes` of the pipeline lacks the type */
    EXPECT(-EOPNOTSUPP);
    DOMUS_AWAIT(domus_request_begin(stack, domt_uploads_now.to, &domus_piece_type,
                                    &(domus_piece){{NULL, 0, 0}, false}, 0, then));
    /* the begin of a request fails, because the stage does not take this type as a head */
    EXPECT(-EPROTO);
    ck_assert_uint_eq(domus_pending(stack), 0);
    DOMUS_AWAIT(domus_request_begin(stack, domt_uploads_now.to, &domt_line_type, &head, 0, then));
    EXPECT(0);
    frame->request = *(const domus_request *)answer->payload;
    ck_assert_uint_eq(domus_pending(stack), 1); /* the answer of the request has not come yet */
    ck_assert_int_eq(domus_stream_begin(stack, frame->request.stream, &domt_line_type, &head, then),
                     -EINVAL);
    DOMUS_AWAIT(domus_request_write(stack, frame->request, (domus_slice){NULL, 0, 0}, then));
    EXPECT(0);
    wrong = frame->request;
    wrong.stream.number++;
    DOMUS_AWAIT(domus_request_write(stack, wrong, new_piece_of_size(1), then));
    EXPECT(-EPIPE);
    DOMUS_AWAIT(
        domus_ask(stack, domt_uploads_now.lender, &lend_type, &frame->request.stream, then));
    EXPECT(0);
    DOMUS_AWAIT(domus_request_end(stack, frame->request, NULL, NULL, then));
    EXPECT(0);
    DOMUS_AWAIT(domus_request_end(stack, frame->request, NULL, NULL, then));
    EXPECT(-EPIPE);
    DOMUS_AWAIT(domus_request_cut(stack, frame->request, then));
    EXPECT(-EPIPE);
    DOMUS_AWAIT(domus_request_write(stack, frame->request, new_piece_of_size(1), then));
    EXPECT(-EPIPE);
    return reply_with_text(stack, "ok");
    DOMUS_END;
}

DOMUS_SEQUENCE(lend, domus_stream)
{
    DOMUS_BEGIN;
    *frame = *(const domus_stream *)message;
    DOMUS_AWAIT(domus_stream_write(stack, *frame, new_piece_of_size(5), then));
    EXPECT(0);
    return domus_reply(stack, &domt_misuse_type, NULL);
    DOMUS_END;
}

const domus_behaviour domt_uploader = {.name = "uploader",
                                       .on = (const domus_on[]){DOMUS_ON(&domt_line_type, send),
                                                                DOMUS_ON(&domt_misuse_type, misuse),
                                                                DOMUS_ON(&lend_type, lend),
                                                                {0}}};
