/* Chapter 3: what does not compile, a local variable that would have to live across a wait. */
#include <domus/domus.h>
#include <domus/main.h>

#include <stdio.h>

DOMUS_SEQUENCE(play, char)
{
    DOMUS_BEGIN;
    int games = 5;
    DOMUS_SLEEP(1000000);
    printf("%d games\n", games);
    DOMUS_END;
}

static const domus_behaviour player = {.name = "player", DOMUS_ON_MOUNT(play)};

static int start(domus_system *system, void *argument)
{
    domus_address address;

    (void)argument;
    return domus_outside_spawn(system, &player, NULL, &address);
}

int main(int argc, char **argv)
{
    static const domus_program program = {.name = "wrong", .start = start};

    return domus_main(argc, argv, &program);
}
