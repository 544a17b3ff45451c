/* The board over HTTP, in JSON.
 *
 *     POST /scores/NAME   {"points": 5} adds points; the answer is the score of the player
 *     GET /scores/NAME    the score of the player
 *     GET /best           the score of the best player */
#include "board.h"

#include <domus/http_json.h>
#include <domus/http_limit.h>

#include <errno.h>
#include <string.h>

static const domus_json_field score_fields[] = {
    {DOMUS_JSON_TEXT("name", struct score, name)},
    {DOMUS_JSON_INT("points", struct score, points, 0, INT64_MAX)},
};
static const domus_json_table score_table = DOMUS_JSON_TABLE(struct score, score_fields);

/* The body of a POST has no name, because the path has it. */
static const domus_json_field points_fields[] = {
    {DOMUS_JSON_INT("points", struct score, points, 1, POINTS_MAX), .required = true},
};
static const domus_json_table points_table = DOMUS_JSON_TABLE(struct score, points_fields);

/* Take the name out of the path. Returns false if it is none. */
static bool take_name(const domus_http_match *match, struct score *score)
{
    domus_slice name = domus_http_route_value(match, "name");

    if (name.size > NAME_BYTES)
        return false;
    memcpy(score->name, domus_slice_data(name), name.size);
    score->name[name.size] = '\0';
    return strspn(score->name, "abcdefghijklmnopqrstuvwxyz0123456789") == name.size;
}

static int answered(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)self;
    if (answer->error != 0)
        return answer->error; /* -ENOENT is 404, -ETIMEDOUT 504, and so on */
    return domus_http_reply_json(stack, 200, &score_table, answer->payload, NULL);
}

static int add_points(domus_stack *stack, void *self, const domus_http_request *request,
                      const domus_http_match *match)
{
    struct score score;
    int result;

    (void)self;
    if (!domus_http_read_json(stack, request, &points_table, &score, NULL, &result))
        return result; /* it has answered, and has said what is wrong */
    if (!take_name(match, &score))
        return domus_http_refuse(stack, 422, "name: up to 23 small letters and digits");
    return domus_ask_within(stack, board_keepers, &add_type, &score, SECOND, answered);
}

static int show_score(domus_stack *stack, void *self, const domus_http_request *request,
                      const domus_http_match *match)
{
    struct score score = {.points = 0};

    (void)self, (void)request;
    if (!take_name(match, &score))
        return -ENOENT;
    return domus_ask_within(stack, board_keepers, &show_type, &score, SECOND, answered);
}

static int show_best(domus_stack *stack, void *self, const domus_http_request *request,
                     const domus_http_match *match)
{
    static const struct score nobody = {.points = 0};

    (void)self, (void)request, (void)match;
    return domus_ask_within(stack, board_referee, &best_type, &nobody, SECOND, answered);
}

static const domus_http_row rows[] = {
    {{DOMUS_HTTP_ON(POST), "/scores/{name}", 0}, add_points, NULL},
    {{DOMUS_HTTP_ON(GET), "/scores/{name}", 0}, show_score, NULL},
    {{DOMUS_HTTP_ON(GET), "/best", 0}, show_best, NULL},
    {{0, NULL, 0}, NULL, NULL},
};

static domus_http_limit limit; /* constant once the program has started, but for its table */

static const domus_http_chain chain = {
    .parts = (const domus_http_step[]){{&domus_http_problems, NULL},
                                       {&domus_http_limits, &limit},
                                       {NULL, NULL}},
    .rows = rows,
};
static const domus_http_options options = {.body_max = 4096, .chain = &chain};
static const domus_pipeline http = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, &options}, {0}}};

const domus_behaviour board_web = {
    .name = "web",
    .kind = DOMUS_CHANNELS,
    .pipeline = &http,
    .on_peer =
        (const domus_on_peer[]){{.type = &domus_http_request_type, .handle = domus_http_dispatch},
                                {.type = NULL}},
};

void board_web_begin(uint32_t rate)
{
    limit.count = rate;
    limit.period_ns = 60 * SECOND;
}

void board_web_end(void)
{
    domus_http_limit_clear(&limit);
}
