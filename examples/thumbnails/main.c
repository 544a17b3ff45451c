/* A service whose answers cost 20 ms of CPU each, beside requests that cost nothing:
 *   ./dev run thumbnails --config examples/thumbnails/thumbnails.yaml --set thumbnails.where=pool
 *
 * GET /thumbnail/N draws a picture of 384 by 192 points and answers with one of 32 by 16 letters;
 * GET / answers at once. The drawing is done on the loop, which keeps all other requests of that
 * thread waiting; as blocking work, on a helper thread for each; or by actors of a pool, which are
 * as many as its runners can work on. docs/pools.md has what a client of GET / sees of it. */
#include "thumbnail.h"

#include <domus/domus.h>
#include <domus/http_router.h>
#include <domus/main.h>

#include <errno.h>

enum { LOOP, BLOCKING, POOL };

static const char *const places[] = {"loop", "blocking", "pool", NULL};
static struct settings {
    uint32_t where;
} settings; /* settings of the service, constant while the program runs */

static const domus_type draw_type = {.name = "draw", .size = sizeof(struct thumbnail)};
static domus_address artists; /* address of the router to the actors of the pool that draw */

/* --- actors of the pool ----------------------------------------------------------------------- */

static int answer_with_thumbnail(domus_stack *stack, void *self, const void *wanted)
{
    struct thumbnail made = *(const struct thumbnail *)wanted;

    (void)self;
    (void)thumbnail_draw(&made);
    return domus_reply(stack, &draw_type, &made);
}

static const domus_behaviour artist = {
    .name = "artist", .on = (const domus_on[]){{&draw_type, answer_with_thumbnail, 0}, {0}}};

/* --- the service ------------------------------------------------------------------------------ */

static const domus_http_route routes[] = {
    {DOMUS_HTTP_ON(GET), "/", 0}, {DOMUS_HTTP_ON(GET), "/thumbnail/{number}", 1}, {0, NULL, 0}};

/* Returns true for a request of a thumbnail, with the number of the picture. Otherwise makes the
 * answer to the request. */
static bool is_for_thumbnail(const void *request, domus_http_response *response, long *number)
{
    domus_http_match match = domus_http_find_route(routes, request);

    if (match.route == NULL)
        /* the answer is 404 or 405, because no route fits */
        (void)domus_http_unrouted(&match, response);
    else if (match.route->id == 0)
        (void)domus_slice_copy("hello\n", 6, &response->body);
    if (match.route == NULL || match.route->id == 0)
        return false;
    domus_slice digits = domus_http_route_value(&match, "number");
    for (uint32_t i = 0; i < digits.size && i < 9; i++)
        *number = *number * 10 + (domus_slice_data(digits)[i] & 15);
    return true;
}

DOMUS_SEQUENCE(answer_request, struct thumbnail)
{
    domus_http_response response = {.status = 200, .media = "text/plain"};

    DOMUS_BEGIN;
    if (!is_for_thumbnail(message, &response, &frame->number))
        return domus_reply(stack, &domus_http_response_type, &response);
    if (settings.where == LOOP)
        (void)thumbnail_draw(frame);
    if (settings.where == BLOCKING)
        DOMUS_AWAIT(domus_blocking(stack, thumbnail_draw, frame, then));
    if (settings.where == POOL) {
        DOMUS_AWAIT(domus_ask(stack, artists, &draw_type, frame, then));
        if (answer->error == 0)
            *frame = *(const struct thumbnail *)answer->payload;
    }
    if (answer->error != 0)
        return answer->error;
    if (domus_slice_copy(frame->letters, sizeof frame->letters, &response.body) != 0)
        return -ENOMEM;
    return domus_reply(stack, &domus_http_response_type, &response);
    DOMUS_END;
}

static const domus_pipeline pipeline = {
    .stages = (const domus_pipeline_stage[]){{&domus_http_stage, NULL}, {NULL, NULL}}};
static const domus_behaviour channel = {
    .name = "thumbnails",
    .kind = DOMUS_CHANNELS,
    .pipeline = &pipeline,
    .on_peer = (const domus_on_peer[]){DOMUS_ON_PEER(&domus_http_request_type, answer_request, 0),
                                       {.type = NULL}}};
static const domus_behaviour service = {
    .name = "service", .kind = DOMUS_CHANNELS, .channel = &channel};

static int start_service(domus_system *system, void *argument)
{
    const domus_spawn_options options = {.pool = domus_outside_pool_find(system, "work")};
    int error = 0;

    /* spawn the actors of the pool, each of which draws one thumbnail at a time */
    if (settings.where == POOL)
        error = domus_outside_spawn_many(system, &artist, NULL, 16, NULL, &options, &artists);
    return error != 0 ? error : domus_main_serve(system, argument, &service, NULL);
}

static const domus_config_key keys[] = {
    {DOMUS_KEY_WORD("where", struct settings, where, places, POOL)}, {0}};
static const domus_section section = {"thumbnails", keys, sizeof settings, NULL};
static const domus_program program = {"thumbnails", start_service, "thumbnails",
                                      .section = &section, .settings = &settings};

int main(int argc, char **argv)
{
    return domus_main(argc, argv, &program);
}
