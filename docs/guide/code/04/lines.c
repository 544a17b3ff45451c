/* The protocol of the board. A request is a line, and so is its answer:
 *
 *     add NAME POINTS     the new points of the player
 *     show NAME           the points of the player
 *     best                the name and the points of the best player */
#include "board.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LINE_BYTES 64 /* of a request; a longer line ends the connection */

/* A request, while it waits for its answer. */
struct request {
    const domus_type *type; /* what it asks */
    struct score score;
};

/* Read a line. Returns whether it is a request. */
static bool parse(domus_slice line, struct request *ret_request)
{
    char text[LINE_BYTES + 1], end;
    struct request request = {.type = NULL};

    memcpy(text, domus_slice_data(line), line.size);
    text[line.size] = '\0';
    if (sscanf(text, "add %23[a-z0-9] %" SCNd64 "%c", request.score.name, &request.score.points,
               &end) == 2)
        request.type = &add_type;
    else if (sscanf(text, "show %23[a-z0-9]%c", request.score.name, &end) == 1)
        request.type = &show_type;
    else if (strcmp(text, "best") == 0)
        request.type = &best_type;
    else
        return false;
    *ret_request = request;
    return true;
}

static int answer_line(domus_stack *stack, bool with_name, const struct score *score)
{
    char text[NAME_BYTES + 32];
    domus_packet line;
    int size = snprintf(text, sizeof text, "%s%s%" PRId64, with_name ? score->name : "",
                        with_name ? " " : "", score->points);
    int error = domus_slice_copy(text, (size_t)size, &line.bytes);

    return error != 0 ? error : domus_reply(stack, &domus_packet_type, &line);
}

DOMUS_SEQUENCE(serve_line, struct request)
{
    DOMUS_BEGIN;
    if (!parse(((const domus_packet *)message)->bytes, frame))
        return -EINVAL;
    DOMUS_ASK_WITHIN(frame->type == &best_type ? board_referee : board_keepers, frame->type,
                     &frame->score, SECOND);
    if (answer->error != 0)
        return answer->error; /* the peer gets "error: ENOENT" */
    return answer_line(stack, frame->type == &best_type, answer->payload);
    DOMUS_END;
}

static const domus_line_options options = {.size_max = LINE_BYTES};
static const domus_pipeline by_lines = {
    .stages = (const domus_pipeline_stage[]){{&domus_line_stage, &options}, {0}}};

const domus_behaviour board_lines = {
    .name = "lines",
    .kind = DOMUS_CHANNELS,
    .pipeline = &by_lines,
    .on_peer =
        (const domus_on_peer[]){DOMUS_ON_PEER(&domus_packet_type, serve_line, 0), {.type = NULL}},
};
