/* Chapter 3: the player reads from top to bottom, and sees each kind of error. */
#include <domus/domus.h>
#include <domus/main.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define KEEPERS     4
#define NAME_BYTES  23   /* bytes of a player's name */
#define PLAYERS_MAX 1000 /* players of one keeper */

/* --- messages --------------------------------------------------------------------------------- */

struct score {
    char name[NAME_BYTES + 1];
    int64_t points;
};

static const domus_type add_type = {.name = "add", .size = sizeof(struct score)};
static const domus_type show_type = {.name = "show", .size = sizeof(struct score)};
static const domus_type best_type = {.name = "best"};
static const domus_type score_type = {.name = "score", .size = sizeof(struct score)};

/* --- a keeper --------------------------------------------------------------------------------- */

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

    if (more->points <= 0)
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

/* All keepers have one address together. A name is the key that chooses one of them. */
static domus_address keepers; /* constant once the program has started */

static uint64_t key_of(const domus_type *type, const void *payload)
{
    uint64_t key = 14695981039346656037u;

    (void)type;
    for (const char *name = ((const struct score *)payload)->name; *name != '\0'; name++)
        key = (key ^ (unsigned char)*name) * 1099511628211u;
    return key;
}

/* --- a judge, who thinks before he answers ---------------------------------------------------- */

DOMUS_SEQUENCE(judge_score, char)
{
    DOMUS_BEGIN;
    DOMUS_SLEEP(UINT64_C(1000000000)); /* 1 s */
    return domus_fail(stack, -EPERM);
    DOMUS_END;
}

static const domus_behaviour judge = {
    .name = "judge",
    .on = (const domus_on[]){DOMUS_ON(&show_type, judge_score), {0}},
};

/* --- a player --------------------------------------------------------------------------------- */

/* The variables of `play` that outlive a wait. */
struct game {
    domus_address judge;
    domus_address keepers[KEEPERS];
    struct score score;
};

static void print(const char *what, const domus_answer *answer)
{
    const struct score *score = answer->payload;

    if (answer->error != 0)
        printf("%s: %s\n", what, strerror(-answer->error));
    else
        printf("%s: %s has %" PRId64 " points\n", what, score->name, score->points);
}

/* Print the best of the answers of all keepers. */
static void print_best(const domus_answer *answer)
{
    const struct score *most = NULL;

    for (; answer != NULL; answer = answer->next) {
        const struct score *score = answer->payload;
        if (answer->error == 0 && (most == NULL || score->points > most->points))
            most = score;
    }
    printf("the best: %s\n", most != NULL ? most->name : "nobody");
}

DOMUS_SEQUENCE(play, struct game)
{
    static const struct score ada = {"ada", 0}, bob = {"bob", 12}, eve = {"eve", -1};

    DOMUS_BEGIN;
    for (frame->score = ada; frame->score.points < 5;) {
        frame->score.points++;
        DOMUS_ASK(keepers, &add_type, &frame->score);
    }
    print("after five games", answer);
    DOMUS_ASK(keepers, &add_type, &bob);
    print("one game", answer);

    DOMUS_ASK(keepers, &add_type, &eve);
    print("points of -1", answer);
    DOMUS_ASK(keepers, &show_type, &eve);
    print("a player who is not there", answer);

    if (domus_spawn(stack, &judge, NULL, &frame->judge) != 0)
        return -ENOMEM;
    DOMUS_ASK_WITHIN(frame->judge, &show_type, &ada, UINT64_C(50000000)); /* 50 ms */
    print("a judge who takes too long", answer);
    DOMUS_ASK(frame->judge, &show_type, &ada);
    print("a judge who has time", answer);

    if (domus_routees(stack, keepers, frame->keepers, KEEPERS) != KEEPERS)
        return -ESTALE;
    for (uint32_t i = 0; i < KEEPERS; i++)
        (void)domus_ask_add(stack, frame->keepers[i], &best_type, NULL, 0, i);
    DOMUS_WAIT_ALL();
    print_best(answer);
    domus_main_quit(0);
    DOMUS_END;
}

static const domus_behaviour player = {.name = "player", DOMUS_ON_MOUNT(play)};

/* --- the program ------------------------------------------------------------------------------ */

static int start(domus_system *system, void *argument)
{
    static const domus_routing by_name = {DOMUS_ROUTE_HASH, key_of};
    domus_address address;
    int error = domus_outside_spawn_many(system, &keeper, NULL, KEEPERS, &by_name, NULL, &keepers);

    (void)argument;
    return error != 0 ? error : domus_outside_spawn(system, &player, NULL, &address);
}

int main(int argc, char **argv)
{
    static const domus_program program = {.name = "board", .start = start};

    return domus_main(argc, argv, &program);
}
