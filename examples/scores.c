/* Scores of players, of which only those that play are in memory: ./dev run scores
 *
 * Each player is a grain: a message to `ada` makes the actor of ada if there is none, which loads
 * her score. When it has had no message for a while, it ends, and saves the score. (The store is a
 * table here; a program would ask an actor that has the data, from on_mount on.) */
#include <domus/main.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const domus_type points_type = {.name = "points", .size = sizeof(long)};

/* --- the store -------------------------------------------------------------------------------- */

static struct {
    const char *name;
    long score;
} store[] = {{"ada", 10}, {"bob", 20}};

/* Returns the place of a player's score in the store; NULL if there is no such player. */
static long *find_player(const char *name)
{
    for (size_t i = 0; i < sizeof store / sizeof store[0]; i++) {
        if (strcmp(store[i].name, name) == 0)
            return &store[i].score;
    }
    return NULL;
}

/* --- a player --------------------------------------------------------------------------------- */

static int load_score(void *context, const char *name, void *self)
{
    const long *saved = find_player(name);
    (void)context;
    if (saved == NULL)
        /* there is no such player: the ask that has made this grain fails with this error */
        return -ENOENT;
    *(long *)self = *saved;
    return 0;
}

static void save_score(domus_stack *stack, void *self)
{
    *find_player(domus_grain_key(stack)) = *(const long *)self;
}

static int add_to_score(domus_stack *stack, void *self, const void *payload)
{
    *(long *)self += *(const long *)payload;
    return domus_reply(stack, &points_type, self);
}

static const domus_behaviour player = {
    .name = "player",
    .state_size = sizeof(long),
    .on = (const domus_on[]){{&points_type, add_to_score, 0}, {0}},
    .on_stop = save_score,
};

static const domus_grain_kind players = {
    .name = "player",
    .behaviour = &player,
    .make = load_score,
    .options = {.placement = DOMUS_SPREAD, .passivate_after_ns = 20000000},
    .living_max = 1000,
};

/* --- somebody who plays ----------------------------------------------------------------------- */

struct visit {
    domus_grains players;
    long ada; /* the score of the player `ada`, as it was last answered */
};

DOMUS_SEQUENCE(play, struct visit)
{
    const long points = 5;

    DOMUS_BEGIN;
    if (domus_grain_open(stack, &players, &frame->players) != 0)
        return -ENOMEM;
    DOMUS_AWAIT(domus_grain_ask(stack, frame->players, "ada", &points_type, &points, then));
    DOMUS_AWAIT(domus_grain_ask(stack, frame->players, "bob", &points_type, &points, then));
    printf("bob has %ld\n", answer->error == 0 ? *(const long *)answer->payload : answer->error);
    printf("%u players are in memory\n", domus_grain_count(frame->players));
    DOMUS_SLEEP(100000000);
    printf("a while later: %u\n", domus_grain_count(frame->players));
    DOMUS_AWAIT(domus_grain_ask(stack, frame->players, "ada", &points_type, &points, then));
    frame->ada = answer->error == 0 ? *(const long *)answer->payload : answer->error;
    printf("ada has %ld\n", frame->ada);
    DOMUS_AWAIT(domus_grain_ask(stack, frame->players, "eve", &points_type, &points, then));
    printf("eve: %s\n", answer->error == -ENOENT ? "there is no such player" : "?");
    domus_main_quit(frame->ada != 20 || answer->error != -ENOENT);
    DOMUS_END;
}

static const domus_behaviour visitor = {.name = "visitor", DOMUS_ON_MOUNT(play)};

static int start_service(domus_system *system, void *argument)
{
    domus_address address;
    (void)argument;
    return domus_outside_spawn(system, &visitor, NULL, &address);
}

int main(int argc, char **argv)
{
    return domus_main(argc, argv, &(domus_program){.name = "scores", .start = start_service});
}
