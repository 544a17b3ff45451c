/* The store of a node: it hands on what is asked for a player, and asks the database for the best.
 */
#include "board.h"

#include <domus/pg.h>
#include <domus/sqlite.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

const domus_type add_type = {.name = "add", .size = sizeof(struct score)};
const domus_type show_type = {.name = "show", .size = sizeof(struct score)};
const domus_type best_type = {.name = "best", .size = sizeof(struct score)};
const domus_type score_type = {.name = "score", .size = sizeof(struct score)};

domus_address board_keepers, board_referee;
domus_sql board_database; /* constant once the program has started */

static const domus_sql_migration steps[] = {
    {.name = "score", .text = "CREATE TABLE score (name TEXT PRIMARY KEY, points BIGINT NOT NULL)"},
    {.name = NULL},
};
static const domus_sql_statement most = {
    .text = "SELECT name, points FROM score ORDER BY points DESC, name LIMIT 1", .reads = true};

/* Answer with the score of the only row. */
static int answer_row(domus_stack *stack, void *self, const domus_answer *answer)
{
    const domus_sql_result *rows;
    struct score score;
    int error = domus_sql_result_of(answer, &rows);

    (void)self;
    if (error == 0 && rows->rows == 0)
        return -ENOENT;
    if (error == 0)
        error = domus_sql_get_text(rows, 0, 0, score.name, sizeof score.name);
    if (error == 0)
        error = domus_sql_get_int(rows, 0, 1, &score.points);
    if (error != 0)
        return domus_sql_fail(stack, error, answer); /* the log gets the words of the database */
    return domus_reply(stack, &score_type, &score);
}

/* The player has answered, on whichever node. */
static int answered(domus_stack *stack, void *self, const domus_answer *answer)
{
    (void)self;
    return answer->error != 0 ? answer->error : domus_reply(stack, &score_type, answer->payload);
}

static int add(domus_stack *stack, void *self, const void *payload)
{
    (void)self;
    return domus_grain_ask(stack, board_players, ((const struct score *)payload)->name, &add_type,
                           payload, answered);
}

static int show(domus_stack *stack, void *self, const void *payload)
{
    (void)self;
    return domus_grain_ask(stack, board_players, ((const struct score *)payload)->name, &show_type,
                           payload, answered);
}

static int best(domus_stack *stack, void *self, const void *payload)
{
    (void)self, (void)payload;
    return domus_sql_query(stack, board_database, &most, NULL, 0, answer_row);
}

static const domus_behaviour store = {
    .name = "store",
    .on =
        (const domus_on[]){{&add_type, add, 0}, {&show_type, show, 0}, {&best_type, best, 0}, {0}},
};

int board_begin(domus_system *system, const char *url)
{
    static const domus_sql_driver *const drivers[] = {&domus_sqlite_driver, &domus_pg_driver, NULL};
    const domus_sql_options options = {.drivers = drivers};
    char words[256] = "";
    int error = domus_sql_check(url, &options, words, sizeof words);

    if (error == 0)
        error = domus_outside_sql_open(system, url, &options, &board_database);
    if (error == 0)
        error = domus_outside_sql_migrate(system, board_database, steps, 0, words, sizeof words);
    if (error != 0)
        fprintf(stderr, "board.database: %s\n", words[0] != '\0' ? words : strerror(-error));
    if (error == 0)
        error = domus_outside_spawn_many(system, &store, NULL, DOMUS_PER_THREAD, NULL, NULL,
                                         &board_keepers);
    board_referee = board_keepers;
    return error;
}
