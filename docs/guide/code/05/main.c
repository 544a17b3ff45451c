/* Chapter 5: a scoreboard that is asked by lines, and by HTTP. */
#include "board.h"

#include <domus/main.h>

static int start(domus_system *system, void *argument)
{
    int error = board_begin(system);

    (void)argument;
    if (error == 0)
        error = domus_main_serve(system, "lines", &board_lines, NULL);
    if (error == 0)
        error = domus_main_serve(system, "web", &board_web, NULL);
    return error;
}

int main(int argc, char **argv)
{
    static const domus_program program = {.name = "board", .start = start};

    return domus_main(argc, argv, &program);
}
