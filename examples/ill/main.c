/* An echo service that may be ill, to try docs/observe.md:
 *
 *   ./dev run ill --set observe.listen=127.0.0.1:7006 --set ill.kind=1
 *
 * Beside the echo there are workers, state actors with a little work for each message. With
 * ill.kind 0 the service is well. The others change how much work there is and who has it; what
 * else makes a program ill, such as a wrong value in the configuration, can be set with each. The
 * names of the kinds stand in its files alone, so that one can look for the illness as one would
 * for one of one's own. With `ill.mended: true` the same work is done in another way, so that one
 * can see what was won; a kind that the configuration can mend is not changed by it. */
#include "ill.h"

#include <domus/main.h>
#include <domus/observe.h>

struct ill_settings ill_settings;

static const domus_config_key keys[] = {
    {DOMUS_KEY("kind", COUNT, struct ill_settings, kind, 0, ILL_NEAR, 0)},
    {DOMUS_KEY_SWITCH("mended", struct ill_settings, mended, false)},
    {.path = NULL},
};
static const domus_section section = {.name = "ill", .keys = keys, .size = sizeof ill_settings};

static int echo_read(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    (void)self;
    return domus_channel_write(stack, event->channel, event->bytes);
}

static const domus_behaviour echo = {
    .name = "echo", .kind = DOMUS_CHANNELS, .on_read = {echo_read, 0}};

static int start_actors(domus_system *system, void *argument)
{
    uint32_t threads = ill_settings.kind == ILL_NEAR ? 1 : domus_system_threads(system);
    domus_address address;
    int error = 0;

    for (uint32_t i = 0; i < threads && error == 0; i++) {
        struct ill_dispatcher one = {.threads = threads,
                                     .count = ill_settings.kind == ILL_NEAR ? ILL_WORKERS
                                                                            : ILL_WORKERS / 2,
                                     .has_ledger = i == 0};
        error = domus_outside_spawn_on(system, i, &ill_dispatcher, &one, &address);
    }
    return error != 0 ? error : domus_main_serve(system, argument, &echo, NULL);
}

static const domus_program program = {.name = "ill",
                                      .start = start_actors,
                                      .argument = "echo",
                                      .section = &section,
                                      .settings = &ill_settings,
                                      .observe = &domus_observe_front};

int main(int argc, char **argv)
{
    return domus_main(argc, argv, &program);
}
