/* Chapter 2: scores live in actors, the keepers, which are spread over all threads. */
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
static const domus_type tell_type = {.name = "tell", .size = sizeof(struct score)};
static const domus_type show_type = {.name = "show", .size = sizeof(struct score)};
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

    (void)stack;
    if (score == NULL && keeper->count == PLAYERS_MAX)
        return -ENOSPC;
    if (score == NULL) {
        score = &keeper->scores[keeper->count++];
        *score = *more;
    } else {
        score->points += more->points;
    }
    return 0;
}

/* Tell the sender of a notice its score, by another notice. */
static int tell(domus_stack *stack, void *self, const void *payload)
{
    const struct score *wanted = payload;
    const struct score *score = find(self, wanted->name);

    return score == NULL ? 0 : domus_notice(stack, domus_sender(stack), &score_type, score);
}

/* The same for an ask, whose asker waits for the answer. */
static int show(domus_stack *stack, void *self, const void *payload)
{
    const struct score *wanted = payload;
    const struct score *score = find(self, wanted->name);

    return score == NULL ? -ENOENT : domus_reply(stack, &score_type, score);
}

static const domus_behaviour keeper = {
    .name = "keeper",
    .state_size = sizeof(struct keeper),
    .on =
        (const domus_on[]){{&add_type, add, 0}, {&tell_type, tell, 0}, {&show_type, show, 0}, {0}},
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

/* --- a player --------------------------------------------------------------------------------- */

static const struct score ada = {.name = "ada"};

static int shown(domus_stack *stack, void *self, const domus_answer *answer)
{
    const struct score *score = answer->payload;

    (void)stack, (void)self;
    if (answer->error != 0)
        return answer->error; /* there is no payload then */
    printf("by ask: %s has %" PRId64 " points\n", score->name, score->points);
    domus_main_quit(0);
    return 0;
}

static int told(domus_stack *stack, void *self, const void *payload)
{
    const struct score *score = payload;

    (void)self;
    printf("by notice: %s has %" PRId64 " points\n", score->name, score->points);
    return domus_ask(stack, keepers, &show_type, &ada, shown); /* goes on in shown() */
}

static int play(domus_stack *stack, void *self)
{
    struct score more = ada;
    int error = 0;

    (void)self;
    for (more.points = 1; error == 0 && more.points <= 5; more.points++)
        error = domus_notice(stack, keepers, &add_type, &more);
    return error != 0 ? error : domus_notice(stack, keepers, &tell_type, &ada);
}

static const domus_behaviour player = {
    .name = "player",
    .on_mount = play,
    .on = (const domus_on[]){{&score_type, told, 0}, {0}},
};

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
