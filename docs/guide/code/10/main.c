/* Chapter 10: a scoreboard on several machines. */
#include "board.h"

#include <domus/cluster.h>
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

/* The messages that travel between nodes: their fields have numbers, which never change. */
static const domus_pickle_field fields[] = {
    {DOMUS_PICKLE(1, struct score, name, TEXT(""))},
    {DOMUS_PICKLE(2, struct score, points, INT(0))},
};
static const domus_pickle_table table = DOMUS_PICKLE_TABLE(struct score, fields);
static const domus_pickler picklers[] = {
    {.type = &add_type, .version = 1, .table = &table},
    {.type = &show_type, .version = 1, .table = &table},
    {.type = &score_type, .version = 1, .table = &table},
    {.type = NULL},
};

/* A player who is not asked for in a minute is not in memory. */
static const domus_grain_kind kinds[] = {
    {.name = "player", .behaviour = &board_player, .options = {.passivate_after_ns = 60 * SECOND}},
    {.name = NULL},
};

domus_grains board_players;
static domus_cluster *cluster;

static int start(domus_system *system, void *argument)
{
    int error = domus_outside_grain_open(system, &kinds[0], &board_players);

    (void)argument;
    board_web_begin(settings.rate);
    if (error == 0)
        error = board_begin(system, settings.database);
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
    static const domus_cluster_options part = {.picklers = picklers, .grains = kinds};
    static const domus_cluster_member member = {&domus_cluster_front, &part, &cluster};
    static const domus_program program = {.name = "board",
                                          .start = start,
                                          .end = end,
                                          .section = &section,
                                          .settings = &settings,
                                          .front = &domus_tls_front,
                                          .observe = &domus_observe_front,
                                          .cluster = &member};

    return domus_main(argc, argv, &program);
}
