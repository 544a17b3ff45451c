/* This file sends files piece by piece: it reads a piece, hands it to a stream or a channel, and
 * reads the next piece when that one was taken.
 *
 * The conversation of the user waits for each step in turn, and is resumed by a function of this
 * file; the tag of the step is the address of the sending. At the end the user's function is called
 * in the same turn. If the conversation is dropped without a turn, because its house is gone, the
 * end of the system frees the sending. All this runs on the thread that runs the house of the
 * stack. */
#include "base/memory.h"
#include "house/conversation/stack.h"
#include "runtime/files/kinds.h"

#include <domus/channel.h>
#include <domus/file.h>

#include <errno.h>
#include <string.h>

#define PIECE_BYTES 131072u

typedef struct sending {
    /* entry in the list of work on files that is under way; must be the first field */
    domi_file_left left;
    domi_files *files;
    domus_file *file;    /* file that is sent; the sending counts as one user of its handle */
    domus_resumed *then; /* function of the user that is called at the end of the sending */
    /* stream that gets the file's bytes; without a `channel.house` the actor's own channel gets
     * them */
    domus_stream stream;
    uint64_t position; /* position in the file of the next piece that is sent, in bytes */
    uint64_t rest;     /* number of bytes of the range that were not read yet */
    uint32_t piece;    /* most bytes that one piece of the file has */
    uint32_t part;     /* index of the next entry of `parts` that is sent */
    uint32_t count;    /* number of the sending's parts in `parts` */
    domus_file_part parts[];
} sending;

static domus_resumed on_piece_read_send_it;
static domus_resumed on_piece_taken_begin_next_step;

static void free_sending(domi_file_left *left)
{
    sending *ended = (sending *)(void *)left;

    for (; ended->part < ended->count; ended->part++)
        domus_slice_free(ended->parts[ended->part].before);
    domus_file_close(ended->file);
    domi_memory_free(ended);
}

static sending *get_sending_of_answer(const domus_answer *answer)
{
    return (sending *)(uintptr_t)answer->tag;
}

/* End a sending of a file, and resume the user's conversation in the present turn. */
static int end_sending_and_resume_user(domus_stack *stack, void *self, sending *ended, int error)
{
    const domus_answer answer = {.error = error};
    domus_resumed *then = ended->then;

    domi_file_left_remove_work_that_ended(ended->files, &ended->left);
    free_sending(&ended->left);
    return then(stack, self, &answer);
}

/* Set the tag of the step that was just begun to the address of its sending, so that the step's
 * answer leads to the sending. */
static void tag_step_with_sending(domus_stack *stack, sending *now)
{
    stack->pooled->awaited->answer.tag = (uintptr_t)now;
}

static int begin_read_of_piece(domus_stack *stack, sending *now)
{
    uint32_t size = now->rest < now->piece ? (uint32_t)now->rest : now->piece;

    return domi_file_begin_operation(
        stack, &domi_file_read_verb,
        &(const domi_file_operation){
            .file = now->file, .position = now->position, .size = size, .flags = DOMI_FILE_IS_SENT},
        (uintptr_t)now, on_piece_read_send_it);
}

/* Hand a piece of the file to the stream or the channel. Returns DOMUS_PARKED; a negative errno.
 * The piece is consumed in every case. */
static int send_piece_of_file(domus_stack *stack, sending *now, domus_slice piece)
{
    if (now->stream.channel.house != NULL)
        return domus_stream_write(stack, now->stream, piece, on_piece_taken_begin_next_step);
    domus_channel *channel = domus_channel_running(stack);
    if (channel == NULL) {
        domus_slice_free(piece);
        return -EPIPE;
    }
    int error = domus_channel_write_slice(stack, channel, piece);
    return error != 0
               ? error
               : domus_channel_flush_to(stack, channel, now->piece, on_piece_taken_begin_next_step);
}

/* Begin the next step of a sending: read the next piece, or send the bytes that stand before the
 * next part. Returns DOMUS_PARKED; 0 at the end of the sending; a negative errno. */
static int begin_next_step_of_sending(domus_stack *stack, sending *now)
{
    while (now->rest == 0 && now->part != now->count) {
        const domus_file_part *part = &now->parts[now->part++];
        now->position = part->position;
        now->rest = part->size;
        if (part->before.size == 0)
            continue;
        int result = send_piece_of_file(stack, now, part->before);
        if (result == DOMUS_PARKED)
            tag_step_with_sending(stack, now);
        return result;
    }
    return now->rest != 0 ? begin_read_of_piece(stack, now) : 0;
}

static int on_piece_read_send_it(domus_stack *stack, void *self, const domus_answer *answer)
{
    sending *now = get_sending_of_answer(answer);
    int result = answer->error;

    if (result == 0) {
        domus_slice piece = *(const domus_slice *)answer->payload;
        now->position += piece.size;
        now->rest -= piece.size;
        if (piece.size == 0)
            return end_sending_and_resume_user(stack, self, now, now->rest == 0 ? 0 : -ENODATA);
        (void)domus_take_answer(stack, answer);
        result = send_piece_of_file(stack, now, piece);
    }
    if (result != DOMUS_PARKED)
        return end_sending_and_resume_user(stack, self, now, result);
    tag_step_with_sending(stack, now);
    return result;
}

static int on_piece_taken_begin_next_step(domus_stack *stack, void *self,
                                          const domus_answer *answer)
{
    sending *now = get_sending_of_answer(answer);

    int result = answer->error != 0 ? answer->error : begin_next_step_of_sending(stack, now);
    return result != DOMUS_PARKED ? end_sending_and_resume_user(stack, self, now, result) : result;
}

static bool is_range_of_file_valid(uint64_t position, uint64_t size)
{
    return position <= INT64_MAX && size <= INT64_MAX - position;
}

/* Make a sending that has no range of the file yet, with room for `count` parts. Returns 0;
 * -EINVAL; -ENOMEM. */
static int make_sending_of_file(domus_stack *stack, domus_file *file, uint32_t count,
                                domus_stream stream, domus_resumed *then, sending **ret_sending)
{
    uint64_t read_max = stack->manager->config->files.read_max_bytes;

    if (file == NULL)
        return -EINVAL;
    sending *now = domi_memory_new(sizeof *now + count * sizeof now->parts[0]);
    if (now == NULL)
        return -ENOMEM;
    *now = (sending){
        .left.drop = free_sending,
        .files = ((domus_system *)stack->manager->system)->files,
        .file = domus_file_keep(file),
        .then = then,
        .stream = stream,
        .piece = read_max < PIECE_BYTES ? (uint32_t)read_max : PIECE_BYTES,
    };
    *ret_sending = now;
    return 0;
}

/* Finish the begin of a sending, whose first step has returned `result`: unless that is
 * DOMUS_PARKED, the sending is freed. */
static int end_sending_unless_it_began(domus_stack *stack, sending *now, int result)
{
    if (result != DOMUS_PARKED) {
        free_sending(&now->left);
        return result;
    }
    tag_step_with_sending(stack, now);
    domi_file_left_add_work_under_way(now->files, &now->left);
    return result;
}

static int begin_sending_of_range(domus_stack *stack, domus_file *file, uint64_t position,
                                  uint64_t size, domus_stream stream, domus_resumed *then)
{
    sending *now;
    int error = is_range_of_file_valid(position, size)
                    ? make_sending_of_file(stack, file, 0, stream, then, &now)
                    : -EINVAL;

    if (error != 0)
        return error;
    now->position = position;
    now->rest = size;
    /* A sending of 0 bytes also reads once, and ends with the answer to that read. */
    return end_sending_unless_it_began(stack, now, begin_read_of_piece(stack, now));
}

int domus_file_stream(domus_stack *stack, domus_file *file, uint64_t position, uint64_t size,
                      domus_stream stream, domus_resumed *then)
{
    return stream.channel.house != NULL
               ? begin_sending_of_range(stack, file, position, size, stream, then)
               : -EINVAL;
}

int domus_file_reply(domus_stack *stack, domus_file *file, uint64_t position, uint64_t size,
                     domus_resumed *then)
{
    domus_stream stream;
    int error = domus_reply_stream(stack, &stream);

    return error != 0 ? error : begin_sending_of_range(stack, file, position, size, stream, then);
}

int domus_file_send(domus_stack *stack, domus_file *file, uint64_t position, uint64_t size,
                    domus_resumed *then)
{
    const domus_stream none = {.number = 0};

    return domus_channel_running(stack) != NULL
               ? begin_sending_of_range(stack, file, position, size, none, then)
               : -EPERM;
}

/* --- sending a whole answer ------------------------------------------------------------------- */

static int on_head_sent_begin_file(domus_stack *stack, void *self, const domus_answer *answer)
{
    sending *now = get_sending_of_answer(answer);
    int result = answer->error != 0 ? answer->error : begin_next_step_of_sending(stack, now);

    return result != DOMUS_PARKED ? end_sending_and_resume_user(stack, self, now, result) : result;
}

static int on_file_sent_end_answer(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)self;
    return answer->error != 0 ? answer->error : domus_reply_end(stack, NULL, NULL);
}

int domus_file_answer(domus_stack *stack, const domus_type *type, const void *head,
                      domus_file *file, uint64_t position, uint64_t size)
{
    const domus_file_part whole = {.position = position, .size = size};

    return domus_file_answer_parts(stack, type, head, file, &whole, 1);
}

int domus_file_answer_parts(domus_stack *stack, const domus_type *type, const void *head,
                            domus_file *file, const domus_file_part *parts, uint32_t count)
{
    domus_stream stream;
    sending *now;
    int error = count <= DOMUS_FILE_PARTS_MAX ? domus_reply_stream(stack, &stream) : -EINVAL;

    for (uint32_t i = 0; error == 0 && i < count; i++)
        error = is_range_of_file_valid(parts[i].position, parts[i].size) ? 0 : -EINVAL;
    if (error == 0)
        error = make_sending_of_file(stack, file, count, stream, on_file_sent_end_answer, &now);
    if (error != 0)
        return error;
    int result = end_sending_unless_it_began(
        stack, now, domus_stream_begin(stack, stream, type, head, on_head_sent_begin_file));
    if (result == DOMUS_PARKED) {
        memcpy(now->parts, parts, count * sizeof *parts);
        now->count = count;
    }
    return result;
}
