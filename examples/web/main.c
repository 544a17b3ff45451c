/* A web site, the store of kv, the rooms of the chat, and echo, in one system.
 *
 *   ./dev serve          or: ./dev run web --config examples/web/web.yaml
 *
 * Begin with web.h, which tells the way of a request. */
#include "web.h"

#include <kv/start.h>

#include <domus/main.h>
#include <domus/observe.h>
#include <domus/tls.h>

#include <stdio.h>
#include <string.h>

struct web_settings web_settings;
domus_system *web_system;
domus_address web_clock;

/* Serve the listener called `name`, if the configuration has one. */
static int serve_listener_if_configured(domus_system *system, const char *name,
                                        const domus_behaviour *behaviour)
{
    const domus_config *config = domus_system_config(system);

    for (size_t i = 0; i < config->listener_count; i++) {
        if (strcmp(config->listeners[i].name, name) == 0)
            return domus_main_serve(system, name, behaviour, NULL);
    }
    return 0;
}

static int start_services(domus_system *system, void *argument)
{
    static const domus_spawn_options options = {.mailbox_max = UINT16_MAX};

    (void)argument;
    web_system = system;
    kv_settings = web_settings.kv;
    rooms_settings = web_settings.rooms;
    int error = kv_start_actors_of_store(system);
    if (error == 0)
        error = domus_outside_spawn_with(system, &web_clock_behaviour, NULL, &options, &web_clock);
    if (error == 0 && (error = web_open_files(system)) != 0)
        fprintf(stderr, "web: web.root: cannot open %s\n", web_settings.root);
    if (error == 0 && (error = web_open_proxy_pool(system)) != 0)
        fprintf(stderr, "web: web.upstream: %s is no address\n", web_settings.upstream);
    if (error == 0)
        error = web_set_up_site();
    if (error == 0)
        error = serve_listener_if_configured(system, "web", &web_site);
    if (error == 0)
        error = serve_listener_if_configured(system, "kv", &kv_sessions);
    if (error == 0)
        error = serve_listener_if_configured(system, "rooms", &rooms_behaviour);
    if (error == 0)
        error = serve_listener_if_configured(system, "echo", &web_echo_port);
    return error;
}

/* Events have no end of their own, and would hold up the drain. If there is no memory to tell the
 * clock, it ends itself, and they with it. */
static void stop_services(domus_system *system, void *argument)
{
    (void)argument;
    if (domus_outside_notice(system, web_clock, &web_end_type, NULL) != 0)
        (void)domus_outside_stop(system, web_clock);
    kv_stop_store(system);
}

static void close_services(domus_system *system, void *argument)
{
    (void)system, (void)argument;
    web_close_files();
    web_free_site();
}

/* --- the section ------------------------------------------------------------------------------ */

static const domus_config_key own_keys[] = {
    {DOMUS_KEY("bodyMax", SIZE, struct web_settings, body_max_bytes, 1, UINT64_C(1) << 40,
               UINT64_C(1) << 30)},
    {DOMUS_KEY("valueMax", SIZE, struct web_settings, value_max_bytes, 1, 64 * 1048576, 1048576)},
    {DOMUS_KEY("gatheredMax", SIZE, struct web_settings, gathered_max_bytes, 1048576,
               UINT64_C(1) << 40, 64 * 1048576)},
    {DOMUS_KEY("tick", DURATION, struct web_settings, tick_ns, 100 * UINT64_C(1000000),
               60 * UINT64_C(1000000000), UINT64_C(1000000000))},
    {DOMUS_KEY("eventsMax", COUNT, struct web_settings, events_max, 1, 65535, 1000)},
    {DOMUS_KEY_TEXT("upstream", TEXT, struct web_settings, upstream, 0, "")},
    {DOMUS_KEY_TEXT("root", TEXT, struct web_settings, root, 1, "examples/web/static")},
    {DOMUS_KEY("gzipStreams", COUNT, struct web_settings, gzip_streams, 0, 65536, 64)},
    {DOMUS_KEY_SWITCH("checkHost", struct web_settings, checks_host, true)},
    {0}};

static domus_config_key keys[DOMUS_SECTION_KEYS_MAX + 1];
/* memory for the paths of the rows that are added behind own_keys */
static char paths[DOMUS_SECTION_KEYS_MAX][64];

/* Add the keys of another example to those of this program, as a section within its own. */
static void add_keys_of_example(const char *section, const domus_config_key *from, size_t offset)
{
    size_t count = 0;

    while (keys[count].path != NULL)
        count++;
    for (; from->path != NULL && count < DOMUS_SECTION_KEYS_MAX; from++, count++) {
        (void)snprintf(paths[count], sizeof paths[count], "%s.%s", section, from->path);
        keys[count] = *from;
        keys[count].path = paths[count];
        keys[count].offset += (uint32_t)offset;
        if (from->list_max != 0)
            keys[count].count_offset += (uint32_t)offset;
    }
}

int main(int argc, char **argv)
{
    static const domus_section section = {"web", keys, sizeof web_settings, NULL};
    static const domus_program program = {.name = "web",
                                          .start = start_services,
                                          .stop = stop_services,
                                          .end = close_services,
                                          .section = &section,
                                          .settings = &web_settings,
                                          .front = &domus_tls_front,
                                          .observe = &domus_observe_front};

    memcpy(keys, own_keys, sizeof own_keys);
    add_keys_of_example("kv", kv_keys, offsetof(struct web_settings, kv));
    add_keys_of_example("rooms", rooms_keys, offsetof(struct web_settings, rooms));
    return domus_main(argc, argv, &program);
}
