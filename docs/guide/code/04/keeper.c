/* The keepers, which have the scores, and the referee, who knows the best player. */
#include "board.h"

#include <errno.h>
#include <string.h>

#define KEEPERS     4
#define PLAYERS_MAX 1000 /* players of one keeper */

const domus_type add_type = {.name = "add", .size = sizeof(struct score)};
const domus_type show_type = {.name = "show", .size = sizeof(struct score)};
const domus_type best_type = {.name = "best", .size = sizeof(struct score)};
const domus_type score_type = {.name = "score", .size = sizeof(struct score)};

domus_address board_keepers, board_referee;

struct keeper {
    uint32_t count;
    struct score scores[PLAYERS_MAX];
};

/* Returns the score of a player; NULL if this keeper has none of that name. */
static struct score *find(struct keeper *keeper, const char *name)
{
    for (uint32_t i = 0; i < keeper->count; i++) {
        if (strcmp(keeper->scores[i].name, name) == 0)
            return &keeper->scores[i];
    }
    return NULL;
}

static int add(domus_stack *stack, void *self, const void *payload)
{
    const struct score *more = payload;
    struct keeper *keeper = self;
    struct score *score = find(keeper, more->name);

    if (more->points < 1 || more->points > POINTS_MAX)
        return -EINVAL;
    if (score == NULL && keeper->count == PLAYERS_MAX)
        return -ENOSPC;
    if (score == NULL) {
        score = &keeper->scores[keeper->count++];
        *score = (struct score){.points = 0};
        strcpy(score->name, more->name);
    }
    score->points += more->points;
    return domus_reply(stack, &score_type, score);
}

static int show(domus_stack *stack, void *self, const void *payload)
{
    const struct score *wanted = payload;
    const struct score *score = find(self, wanted->name);

    return score == NULL ? -ENOENT : domus_reply(stack, &score_type, score);
}

/* Answer with the best player of this keeper. */
static int best(domus_stack *stack, void *self, const void *payload)
{
    const struct keeper *keeper = self;
    const struct score *most = NULL;

    (void)payload;
    for (uint32_t i = 0; i < keeper->count; i++) {
        if (most == NULL || keeper->scores[i].points > most->points)
            most = &keeper->scores[i];
    }
    return most == NULL ? -ENOENT : domus_reply(stack, &score_type, most);
}

static const domus_behaviour keeper = {
    .name = "keeper",
    .state_size = sizeof(struct keeper),
    .on =
        (const domus_on[]){{&add_type, add, 0}, {&show_type, show, 0}, {&best_type, best, 0}, {0}},
};

static uint64_t key_of(const domus_type *type, const void *payload)
{
    uint64_t key = 14695981039346656037u;

    (void)type;
    for (const char *name = ((const struct score *)payload)->name; *name != '\0'; name++)
        key = (key ^ (unsigned char)*name) * 1099511628211u;
    return key;
}

/* --- the referee ------------------------------------------------------------------------------ */

struct survey {
    domus_address keepers[KEEPERS];
};

DOMUS_SEQUENCE(find_best, struct survey)
{
    const struct score *most = NULL;

    DOMUS_BEGIN;
    if (domus_routees(stack, board_keepers, frame->keepers, KEEPERS) != KEEPERS)
        return -ESTALE;
    for (uint32_t i = 0; i < KEEPERS; i++)
        (void)domus_ask_add(stack, frame->keepers[i], &best_type, message, 0, i);
    DOMUS_WAIT_ALL();
    for (; answer != NULL; answer = answer->next) {
        const struct score *score = answer->payload;
        if (answer->error == 0 && (most == NULL || score->points > most->points))
            most = score;
    }
    return most == NULL ? -ENOENT : domus_reply(stack, &score_type, most);
    DOMUS_END;
}

static const domus_behaviour referee = {
    .name = "referee",
    .on = (const domus_on[]){DOMUS_ON(&best_type, find_best), {0}},
};

int board_begin(domus_system *system)
{
    static const domus_routing by_name = {DOMUS_ROUTE_HASH, key_of};
    int error =
        domus_outside_spawn_many(system, &keeper, NULL, KEEPERS, &by_name, NULL, &board_keepers);

    return error != 0 ? error : domus_outside_spawn(system, &referee, NULL, &board_referee);
}
