/* Chapter 6: a scoreboard with a database. */
#include "board.h"

#include <domus/main.h>

/* The section `board` of the configuration. */
struct settings {
    char database[256];
};

static struct settings settings; /* constant once the program has started */

static const domus_config_key keys[] = {
    {DOMUS_KEY_TEXT("database", TEXT, struct settings, database, 1, "sqlite:board.db"),
     .secret = true},
    {.path = NULL},
};
static const domus_section section = {.name = "board", .keys = keys, .size = sizeof settings};

static int start(domus_system *system, void *argument)
{
    int error = board_begin(system, settings.database);

    (void)argument;
    if (error == 0)
        error = domus_main_serve(system, "lines", &board_lines, NULL);
    if (error == 0)
        error = domus_main_serve(system, "web", &board_web, NULL);
    return error;
}

int main(int argc, char **argv)
{
    static const domus_program program = {
        .name = "board", .start = start, .section = &section, .settings = &settings};

    return domus_main(argc, argv, &program);
}
