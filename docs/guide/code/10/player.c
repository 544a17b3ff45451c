/* A player is a grain: one actor in the whole cluster has the points of ada, on whichever node she
 * was asked for first, as long as she is asked for. Points are in the database before they are
 * told, so the next life of ada, on another node if this one is gone, goes on from there. */
#include "board.h"

#include <domus/sql.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>

struct player {
    int64_t points; /* 0: nobody knows the player */
};

static const domus_sql_statement insert = {
    .text = "INSERT INTO score (name, points) VALUES ($1, $2) ON CONFLICT (name)"
            " DO UPDATE SET points = score.points + excluded.points RETURNING points"};
static const domus_sql_statement find = {.text = "SELECT points FROM score WHERE name = $1",
                                         .reads = true};

/* Take the points out of the only row. */
static int take_points(domus_stack *stack, struct player *player, const domus_answer *answer)
{
    const domus_sql_result *rows;
    int error = domus_sql_result_of(answer, &rows);

    if (error == 0 && rows->rows != 0)
        error = domus_sql_get_int(rows, 0, 0, &player->points);
    return error != 0 ? domus_sql_fail(stack, error, answer) : 0;
}

static int answer_score(domus_stack *stack, const struct player *player)
{
    struct score score = {.points = player->points};

    if (player->points == 0)
        return -ENOENT;
    strcpy(score.name, domus_grain_key(stack)); /* a key that came as a name of up to NAME_BYTES */
    return domus_reply(stack, &score_type, &score);
}

static int loaded(domus_stack *stack, void *self, const domus_answer *answer)
{
    const struct player *player = self;
    int error = take_points(stack, self, answer);

    if (error == 0)
        domus_log_write(stack, DOMUS_LOG_INFO, "%s lives here, with %" PRId64 " points",
                        domus_grain_key(stack), player->points);
    return error;
}

static int load(domus_stack *stack, void *self)
{
    int error = domus_barrier(stack); /* asks wait until the points are there */

    (void)self;
    if (error != 0)
        return error;
    return domus_sql_query(stack, board_database, &find,
                           DOMUS_SQL_VALUES(domus_sql_text(domus_grain_key(stack))), loaded);
}

static int stored(domus_stack *stack, void *self, const domus_answer *answer)
{
    int error = take_points(stack, self, answer);

    return error != 0 ? error : answer_score(stack, self);
}

static int add(domus_stack *stack, void *self, const void *payload)
{
    const struct score *more = payload;

    (void)self;
    if (more->points < 1 || more->points > POINTS_MAX)
        return -EINVAL;
    int error = domus_barrier(stack); /* one change at a time */
    if (error != 0)
        return error;
    return domus_sql_query(
        stack, board_database, &insert,
        DOMUS_SQL_VALUES(domus_sql_text(more->name), domus_sql_int(more->points)), stored);
}

static int show(domus_stack *stack, void *self, const void *payload)
{
    (void)payload;
    return answer_score(stack, self); /* the database is not asked */
}

const domus_behaviour board_player = {
    .name = "player",
    .state_size = sizeof(struct player),
    .on_mount = load,
    .on = (const domus_on[]){{&add_type, add, 0}, {&show_type, show, 0}, {0}},
};
