/* Chapter 4: a scoreboard that is asked by lines. */
#include "board.h"

#include <domus/main.h>

static int start(domus_system *system, void *argument)
{
    int error = board_begin(system);

    (void)argument;
    return error != 0 ? error : domus_main_serve(system, "lines", &board_lines, NULL);
}

int main(int argc, char **argv)
{
    static const domus_program program = {.name = "board", .start = start};

    return domus_main(argc, argv, &program);
}
