/* Reads the body of an upload (domus/http_upload.h).
 *
 * A call handles the answer for which the upload has waited, and then parses the current piece of
 * the body until an event needs another wait, or the piece has ended and the next one is asked for.
 * There is one wait at a time, and at most one piece. Owner thread: that of the actor. */
#include "protocols/http/multipart/uploaded.h"

#include <errno.h>
#include <stdlib.h>

#define FILES       8u
#define FILES_MOST  1000u
#define FIELD       (64u << 10)
#define FIELD_MOST  (16u << 20)
#define FIELDS      (256u << 10)
#define FIELDS_MOST (64u << 20)
#define MODE        0600u
#define MODE_MOST   07777u

/* --- begin and end ---------------------------------------------------------------------------- */

/* Replace zeros in an upload's options by defaults. Returns 0; -EINVAL. */
static int fill_in_defaults_of_upload(domus_http_upload_options *options)
{
    if (options->files_max == 0)
        options->files_max = FILES;
    if (options->field_max == 0)
        options->field_max = FIELD;
    if (options->fields_max == 0)
        options->fields_max = FIELDS;
    if (options->mode == 0)
        options->mode = MODE;
    return options->files_max > FILES_MOST || options->field_max > FIELD_MOST ||
                   options->fields_max > FIELDS_MOST || options->mode > MODE_MOST
               ? -EINVAL
               : 0;
}

int domus_http_upload_open(const domus_http_request *request,
                           const domus_http_upload_options *options, domus_http_upload **ret_upload)
{
    domus_http_upload_options made = *options;
    uint64_t whole_max = made.limits.whole_max;
    domus_slice type = {NULL, 0, 0};
    int error = fill_in_defaults_of_upload(&made);

    if (error != 0)
        return error;
    domus_http_upload *upload = calloc(1, sizeof *upload);
    if (upload == NULL)
        return -ENOMEM;
    upload->options = made;
    upload->body = request->stream;
    upload->is_last = request->stream.number == 0;
    upload->wrong = "";
    (void)domus_http_field(request->fields, "content-type", &type);
    error = domus_http_multipart_open(type, &made.limits, &upload->form);
    if (error == 0 && whole_max != 0 && request->length > whole_max)
        error = -EMSGSIZE;
    if (error == 0 && upload->is_last)
        error = domus_slice_keep(request->body, &upload->piece);
    if (error != 0)
        (void)domus_http_upload_close(upload);
    else
        *ret_upload = upload;
    return error;
}

domus_http_upload *domus_http_upload_close(domus_http_upload *upload)
{
    if (upload == NULL)
        return NULL;
    domi_upload_free_parts(upload);
    domus_http_multipart_close(upload->form);
    domus_slice_free(upload->piece);
    domus_slice_free(upload->pending);
    free(upload);
    return NULL;
}

int domus_http_upload_error(const domus_http_upload *upload)
{
    return upload->error;
}

const char *domus_http_upload_wrong(const domus_http_upload *upload)
{
    return upload->wrong;
}

/* --- waits ------------------------------------------------------------------------------------ */

/* Record that the upload has begun to wait for an answer, or the error because of which it could
 * not. Returns whether it waits. */
static bool store_wait_or_error_of_upload(domus_http_upload *upload, domi_upload_wait wait,
                                          int result)
{
    if (result < 0)
        (void)domi_upload_set_error(upload, result, "");
    else
        upload->wait = wait;
    return result >= 0;
}

static bool ask_for_piece_of_body(domus_stack *stack, domus_http_upload *upload,
                                  domus_resumed *then)
{
    domus_slice_free(upload->piece);
    upload->piece = (domus_slice){NULL, 0, 0};
    upload->at = 0;
    return store_wait_or_error_of_upload(upload, DOMI_UPLOAD_FOR_PIECE,
                                         domus_body_read(stack, upload->body, then));
}

static bool begin_write_of_pending_bytes(domus_stack *stack, domus_http_upload *upload,
                                         domus_resumed *then)
{
    const domus_http_upload_part *part = &domi_upload_newest_part(upload)->seen;
    domus_slice bytes = upload->pending;
    int result = domus_file_write(stack, part->file, part->size - bytes.size, bytes, then);

    upload->writing = bytes.size;
    if (result >= 0) /* the write has begun, so it owns the bytes */
        upload->pending = (domus_slice){NULL, 0, 0};
    return store_wait_or_error_of_upload(upload, DOMI_UPLOAD_FOR_WRITE, result);
}

static bool open_file_for_upload(domus_stack *stack, domus_http_upload *upload, domus_resumed *then)
{
    const uint32_t flags = DOMUS_FILE_READ | DOMUS_FILE_WRITE | DOMUS_FILE_UNNAMED;

    return store_wait_or_error_of_upload(
        upload, DOMI_UPLOAD_FOR_FILE,
        domus_file_open(stack, upload->options.directory, ".", flags, upload->options.mode, then));
}

/* Handle the answer of a read of the body: its next piece, or its end. */
static int take_piece_of_body_for_upload(domus_stack *stack, domus_http_upload *upload,
                                         const domus_answer *answer)
{
    upload->is_last = true;
    if (answer->type != &domus_piece_type)
        return 0; /* the answer is the trailers of the body, which mean nothing for an upload */
    const domus_piece *piece = answer->payload;
    int error = domus_take_answer(stack, answer);
    if (error != 0)
        return error;
    upload->piece = piece->bytes;
    upload->is_last = piece->last;
    return 0;
}

static int take_opened_file_for_newest_part(domus_stack *stack, domus_http_upload *upload,
                                            const domus_answer *answer)
{
    domus_file *file = *(domus_file *const *)answer->payload;
    int error = domus_take_answer(stack, answer);

    if (error == 0)
        domi_upload_newest_part(upload)->seen.file = file;
    return error;
}

static int check_that_all_bytes_were_written(const domus_http_upload *upload,
                                             const domus_answer *answer)
{
    const domus_file_written *written = answer->payload;

    if (written->error != 0)
        return written->error;
    return written->bytes == upload->writing ? 0 : -EIO;
}

/* Handle the answer for which the upload has waited. */
static void end_wait_of_upload_with_answer(domus_stack *stack, domus_http_upload *upload,
                                           const domus_answer *answer)
{
    domi_upload_wait wait = upload->wait;
    int error = answer->error;

    upload->wait = DOMI_UPLOAD_FOR_NOTHING;
    if (error == 0 && wait == DOMI_UPLOAD_FOR_PIECE)
        error = take_piece_of_body_for_upload(stack, upload, answer);
    else if (error == 0 && wait == DOMI_UPLOAD_FOR_FILE)
        error = take_opened_file_for_newest_part(stack, upload, answer);
    else if (error == 0 && wait == DOMI_UPLOAD_FOR_WRITE)
        error = check_that_all_bytes_were_written(upload, answer);
    if (error == -EMFILE || error == -ENFILE)
        error = -EBUSY;
    if (error != 0)
        (void)domi_upload_set_error(upload, error, "");
}

/* --- events ----------------------------------------------------------------------------------- */

/* Make a slice of the bytes of a parser's event: a part of the current piece, or a copy of bytes
 * that the parser has held back. Returns 0; -ENOMEM. */
static int share_or_copy_bytes_of_event(const domus_http_upload *upload,
                                        const domus_http_multipart_event *event,
                                        domus_slice *ret_slice)
{
    const char *data = domus_slice_data(upload->piece);
    domus_slice part = upload->piece;

    if (event->bytes < data || event->bytes >= data + part.size)
        return domus_slice_copy(event->bytes, event->size, ret_slice);
    part.offset += (uint32_t)(event->bytes - data);
    part.size = (uint32_t)event->size;
    return domus_slice_keep(part, ret_slice);
}

/* Pass bytes of an uploaded file, or its end, to the user's function. Returns whether the upload
 * waits now. */
static bool hand_bytes_to_user(domus_stack *stack, domus_http_upload *upload, domus_slice bytes,
                               bool is_last, domus_resumed *then)
{
    const domus_http_upload_options *options = &upload->options;
    int result = options->take(stack, options->context, &domi_upload_newest_part(upload)->seen,
                               bytes, is_last, then);

    if (result == 0)
        return false;
    return store_wait_or_error_of_upload(upload, DOMI_UPLOAD_FOR_TAKER, result);
}

/* Pass bytes of an uploaded file to the user's function, or write them to a file on disk. Returns
 * whether the upload waits now. */
static bool give_file_bytes_to_user_or_disk(domus_stack *stack, domus_http_upload *upload,
                                            const domus_http_multipart_event *event,
                                            domus_resumed *then)
{
    domus_slice bytes;
    int error = domi_upload_count_file_bytes(upload, event->size);

    if (error != 0)
        return false;
    error = share_or_copy_bytes_of_event(upload, event, &bytes);
    if (error != 0) {
        (void)domi_upload_set_error(upload, error, "");
        return false;
    }
    if (upload->options.take != NULL)
        return hand_bytes_to_user(stack, upload, bytes, false, then);
    upload->pending = bytes;
    return domi_upload_newest_part(upload)->seen.file == NULL
               ? open_file_for_upload(stack, upload, then)
               : begin_write_of_pending_bytes(stack, upload, then);
}

/* Handle an event of the parser. Returns whether the upload waits now. */
static bool update_upload_by_parser_event(domus_stack *stack, domus_http_upload *upload,
                                          const domus_http_multipart_event *event,
                                          domus_resumed *then)
{
    bool is_file = upload->count != 0 && domi_upload_newest_part(upload)->seen.filename != NULL;

    switch (event->kind) {
    case DOMUS_HTTP_PART:
        (void)domi_upload_add_part(upload, event);
        return false;
    case DOMUS_HTTP_BYTES:
        if (is_file)
            return give_file_bytes_to_user_or_disk(stack, upload, event, then);
        (void)domi_upload_append_to_field(upload, event->bytes, event->size);
        return false;
    case DOMUS_HTTP_PART_END:
        if (!is_file)
            (void)domi_upload_end_field(upload);
        else if (upload->options.take != NULL)
            return hand_bytes_to_user(stack, upload, (domus_slice){NULL, 0, 0}, true, then);
        return false;
    default:
        return false;
    }
}

/* Finish the upload when the end of the body has come. */
static void check_that_form_is_complete(domus_http_upload *upload)
{
    int error = domus_http_multipart_end(upload->form);

    if (error != 0)
        (void)domi_upload_set_error(upload, error, domus_http_multipart_wrong(upload->form));
}

bool domus_http_upload_goes_on(domus_stack *stack, domus_http_upload *upload,
                               const domus_answer *answer, domus_resumed *then)
{
    domus_http_multipart_event event;
    bool waits = false;

    if (upload->wait != DOMI_UPLOAD_FOR_NOTHING)
        end_wait_of_upload_with_answer(stack, upload, answer);
    if (upload->error == 0 && upload->pending.size != 0)
        waits = begin_write_of_pending_bytes(stack, upload, then);
    while (!waits && upload->error == 0) {
        if (upload->at == upload->piece.size) {
            if (!upload->is_last)
                return ask_for_piece_of_body(stack, upload, then);
            check_that_form_is_complete(upload);
            return false;
        }
        int64_t used =
            domus_http_multipart_next(upload->form, domus_slice_data(upload->piece) + upload->at,
                                      upload->piece.size - upload->at, &event);
        if (used < 0) {
            (void)domi_upload_set_error(upload, (int)used,
                                        domus_http_multipart_wrong(upload->form));
            break;
        }
        upload->at += (uint32_t)used;
        waits = update_upload_by_parser_event(stack, upload, &event, then);
    }
    return waits;
}
