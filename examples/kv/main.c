/* A store that clients of Redis use: keys live in actors over all threads, the shards.
 *
 *   ./dev run kv --config examples/kv/kv.yaml      and then: redis-cli -p 7004
 *
 * Begin with kv.h, which tells the way of a command. */
#include "start.h"

#include <domus/main.h>
#include <domus/tls.h>

static int start(domus_system *system, void *argument)
{
    int error = kv_start(system);

    return error != 0 ? error : domus_main_serve(system, argument, &kv_sessions, NULL);
}

static void stop(domus_system *system, void *argument)
{
    (void)argument;
    kv_stop(system);
}

static const domus_section section = {"kv", kv_keys, sizeof kv_settings, NULL};
static const domus_program program = {"kv",
                                      start,
                                      "kv",
                                      .stop = stop,
                                      .section = &section,
                                      .settings = &kv_settings,
                                      .front = &domus_tls_front};

int main(int argc, char **argv)
{
    return domus_main(argc, argv, &program);
}
