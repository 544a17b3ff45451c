/* Chapter 9: a scoreboard that can be looked at. */
#include "board.h"

#include <domus/main.h>
#include <domus/observe.h>
#include <domus/tls.h>

/* The section `board` of the configuration. */
struct settings {
    char database[256];
    uint32_t rate; /* requests of one address in a minute, over HTTP */
};

static struct settings settings; /* constant once the program has started */

static const domus_config_key keys[] = {
    {DOMUS_KEY_TEXT("database", TEXT, struct settings, database, 1, "sqlite:board.db"),
     .secret = true},
    {DOMUS_KEY("rate", COUNT, struct settings, rate, 1, 1000000, 600)},
    {.path = NULL},
};
static const domus_section section = {.name = "board", .keys = keys, .size = sizeof settings};

static int start(domus_system *system, void *argument)
{
    int error = board_begin(system, settings.database);

    (void)argument;
    board_web_begin(settings.rate);
    if (error == 0)
        error = domus_main_serve(system, "lines", &board_lines, NULL);
    if (error == 0)
        error = domus_main_serve(system, "web", &board_web, NULL);
    return error;
}

static void end(domus_system *system, void *argument)
{
    (void)system, (void)argument;
    board_web_end();
}

int main(int argc, char **argv)
{
    static const domus_program program = {.name = "board",
                                          .start = start,
                                          .end = end,
                                          .section = &section,
                                          .settings = &settings,
                                          .front = &domus_tls_front,
                                          .observe = &domus_observe_front};

    return domus_main(argc, argv, &program);
}
