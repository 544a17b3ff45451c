/* Takes looks of the observed system for the doctor (looking.h). Each figure is copied by its name,
 * so the compiler notices a name that the system does not have. */
#include "protocols/observe/looking.h"

#include "protocols/observe/observe.h"
#include "protocols/observe/pages.h"
#include "protocols/observe/sources.h"
#include "protocols/observe/texts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COPY(name) to->name = from->name;

static void copy_counters_of_source(const domus_profile *from, domi_look_counters *to)
{
    DOMI_LOOK_COUNTERS(COPY)
}

static void copy_times_of_runner(const domus_runner_profile *from, domi_look_runner *to)
{
    DOMI_LOOK_RUNNERS(COPY)
}

static void copy_counts_of_behaviour(const domus_behaviour_profile *from, domi_look_behaviour *to)
{
    DOMI_LOOK_BEHAVIOURS(COPY)
}

static void copy_counts_of_listener(const domus_listener_profile *from, domi_look_listener *to)
{
    DOMI_LOOK_LISTENERS(COPY)
}

static void copy_figures_of_memory(const domus_memory *from, domi_look_memory *to)
{
    DOMI_LOOK_MEMORY(COPY)
}

static void copy_figures_of_usage(const domus_usage *from, domi_look_usage *to)
{
    DOMI_LOOK_USAGE(COPY)
}

static void copy_figures_of_machine(const domus_machine *from, domi_look_machine *to)
{
    DOMI_LOOK_MACHINE(COPY)
}

static void copy_cpu_times_of_thread(const domus_thread_times *from, domi_look_times *to)
{
    DOMI_LOOK_TIMES(COPY)
}

static void copy_values_of_keys_for_doctor(const domus_config *from, domi_look_settings *to)
{
    static_assert(DOMI_LOOK_IO_RATIO_AUTO == DOMUS_IO_RATIO_AUTO, "the rules know it");
    *to = (domi_look_settings){
        .io_ratio = from->scheduler.io_ratio,
        .min_budget_ns = from->scheduler.min_budget_ns,
        .min_budget_busy_ns = from->scheduler.min_budget_busy_ns,
        .max_budget_ns = from->scheduler.max_budget_ns,
        .wait_max_ns = from->scheduler.wait_max_ns,
        .messages_per_run = from->scheduler.messages_per_run_max,
        .mailbox_max = from->scheduler.mailbox_max,
        .conversations_max = from->scheduler.conversations_max,
        .timers_max = from->scheduler.timers_max,
        .steal_enabled = from->scheduler.steal.enabled,
        .steal_floor = from->scheduler.steal.floor,
        .steal_aggression = from->scheduler.steal.aggression,
        .steal_min_run_ns = from->scheduler.steal.min_run_ns,
        .stand_in_ns = from->scheduler.idle.stand_in_ns,
        .buffers_count = from->io.buffers.count,
        .send_high = from->channel.send_high_bytes,
        .send_low = from->channel.send_low_bytes,
        .send_timeout_ns = from->channel.send_timeout_ns,
        .receive_buffer = from->sockets.receive_buffer_bytes,
        .requests_max = from->channel.requests_max,
        .first_byte_ns = from->connection.first_byte_timeout_ns,
        .connections_max = from->channel.connections_max,
        .address_percent = from->connection.address_percent,
        .loopback_percent = from->connection.loopback_percent,
        .helpers_max = from->blocking.threads_max,
        .names_max = from->connect.resolve.threads_max,
        .detached_max = from->detached.threads_max,
        .stall_ns = from->stall.threshold_ns,
        .memory_limit = from->memory.limit_bytes,
        .thread_max = from->memory.thread_max_bytes,
        .log_level = (uint64_t)from->log.level,
        .log_lines = from->log.queue_max,
        .backend = (uint64_t)from->io.backend,
    };
}

/* Returns the smallest number of requests that a listener of the system sets for itself; 0: none
 * does. */
static uint64_t find_least_requests_of_listeners(domus_system *system, const domus_config *config)
{
    uint64_t least = 0;

    for (size_t i = 0; i < config->listener_count; i++) {
        domus_channel_options options;
        if (domus_system_channel_options(system, i, &options) != 0 || options.requests_max == 0 ||
            options.requests_max == config->channel.requests_max)
            continue;
        if (least == 0 || options.requests_max < least)
            least = options.requests_max;
    }
    return least;
}

/* Returns on which connections TCP_NODELAY is not set: 1: on all; 2: only on those of a listener;
 * 0: on none. */
static uint64_t find_which_connections_lack_nodelay(domus_system *system,
                                                    const domus_config *config)
{
    domus_channel_options options;

    if (!config->sockets.no_delay)
        return 1;
    for (size_t i = 0; i < config->listener_count; i++) {
        if (domus_system_channel_options(system, i, &options) == 0 &&
            options.no_delay == DOMUS_NONE)
            return 2;
    }
    return 0;
}

/* Copy the system's current settings, which may differ from those at its start. */
static void copy_current_settings(domus_system *system, domi_look_settings *to)
{
    domus_config now;

    domus_system_config_now(system, &now);
    copy_values_of_keys_for_doctor(&now, to);
    to->listener_requests = find_least_requests_of_listeners(system, &now);
    to->delays = find_which_connections_lack_nodelay(system, &now);
}

/* --- threads and runners ---------------------------------------------------------------------- */

static void copy_figures_of_thread(const domus_system *system, const domi_source *source,
                                   domi_look_thread *to)
{
    domus_thread_times times = {0};

    static_assert(sizeof to->phases == sizeof source->counters.phase_ns,
                  "the phases are in the order of domus_phase");
    copy_counters_of_source(&source->counters, &to->counters);
    memcpy(&to->phases, source->counters.phase_ns, sizeof to->phases);
    (void)domus_system_thread_times(system, source->number, &times);
    copy_cpu_times_of_thread(&times, &to->times);
}

static void copy_figures_of_pool_runner(const domi_source *source, domi_look_pool_runner *to)
{
    domi_look_copy_name(to->pool, sizeof to->pool, source->pool);
    to->runner = source->number;
    to->is_spare = source->is_spare;
    copy_times_of_runner(&source->runner, &to->times);
    copy_counters_of_source(&source->counters, &to->counters);
}

static void copy_figures_of_sources(const domus_system *system, const domi_sources *sources,
                                    domi_look *look)
{
    uint32_t threads = 0, runners = 0;

    for (size_t i = 0; i < sources->count; i++) {
        const domi_source *source = &sources->each[i];
        if (source->kind == DOMI_SOURCE_THREAD)
            copy_figures_of_thread(system, source, &look->threads[threads++]);
        else if (source->kind == DOMI_SOURCE_RUNNER)
            copy_figures_of_pool_runner(source, &look->runners[runners++]);
        else
            copy_counters_of_source(&source->counters, &look->outside);
    }
}

/* Returns how often a thread ran an actor of a thread that slept; 0 if there is no memory to read
 * that. */
static uint64_t count_stand_ins(const domus_system *system)
{
    size_t room = domus_system_pairs(system, NULL, 0);
    domus_pair *pairs = calloc(room + 1, sizeof *pairs);
    uint64_t sum = 0;

    if (pairs == NULL)
        return 0;
    size_t count = domus_system_pairs(system, pairs, room);
    for (size_t i = 0; i < count && i < room; i++)
        sum += pairs[i].stand_ins;
    free(pairs);
    return sum;
}

/* --- behaviours ------------------------------------------------------------------------------- */

#define AT_ONE_PLACE (DOMUS_BEHAVIOURS_MAX + 1u)

/* The list of the behaviours of all places that is being made for a look, one place after the
 * other. */
struct crowd {
    domi_look_actors *actors; /* the list so far, in allocated memory */
    uint32_t count;
    /* profiles of the behaviours at the place that is being read */
    domus_behaviour_profile each[AT_ONE_PLACE];
};

/* Add the behaviours of a place to the list of a look. Returns 0; -ENOMEM. */
static int add_behaviours_of_place(struct crowd *crowd, uint32_t count, int64_t thread,
                                   const char *pool)
{
    size_t size = (crowd->count + (size_t)count + 1) * sizeof *crowd->actors;
    domi_look_actors *actors = realloc(crowd->actors, size);

    if (actors == NULL)
        return -ENOMEM;
    crowd->actors = actors;
    for (uint32_t i = 0; i < count; i++) {
        domi_look_actors *to = &actors[crowd->count++];
        *to = (domi_look_actors){.thread = thread, .is_channels = crowd->each[i].is_channels};
        domi_look_copy_name(to->name, sizeof to->name, crowd->each[i].name);
        domi_look_copy_name(to->pool, sizeof to->pool, pool);
        copy_counts_of_behaviour(&crowd->each[i], &to->counts);
    }
    return 0;
}

static int add_behaviours_of_threads(domus_system *system, struct crowd *crowd)
{
    uint32_t count = 0;
    int error = 0;

    for (uint32_t i = 0; i < domus_system_threads(system) && error == 0; i++) {
        (void)domus_system_behaviours(system, i, crowd->each, AT_ONE_PLACE, &count);
        error = add_behaviours_of_place(crowd, count, i, "");
    }
    (void)domus_outside_behaviours(system, crowd->each, AT_ONE_PLACE, &count);
    return error != 0 ? error : add_behaviours_of_place(crowd, count, DOMI_LOOK_OUTSIDE, "");
}

static int add_behaviours_of_pools(domus_system *system, struct crowd *crowd)
{
    const domus_config *config = domus_system_config(system);
    int error = 0;

    for (size_t i = 0; i < config->pool_count && error == 0; i++) {
        const char *name = config->pools[i].name;
        uint32_t count = 0;
        (void)domus_pool_behaviours(domus_outside_pool_find(system, name), crowd->each,
                                    AT_ONE_PLACE, &count);
        error = add_behaviours_of_place(crowd, count, DOMI_LOOK_POOL, name);
    }
    return error;
}

/* Read the behaviours of all places of a system into an allocated list. Returns 0; -ENOMEM. */
static int read_behaviours_of_all_places(domus_system *system, domi_look_actors **ret_actors,
                                         uint32_t *ret_count)
{
    struct crowd *crowd = calloc(1, sizeof *crowd);
    int error = crowd != NULL ? add_behaviours_of_threads(system, crowd) : -ENOMEM;

    if (error == 0)
        error = add_behaviours_of_pools(system, crowd);
    if (error == 0) {
        *ret_actors = crowd->actors;
        *ret_count = crowd->count;
    } else if (crowd != NULL) {
        free(crowd->actors);
    }
    free(crowd);
    return error;
}

/* --- the whole look --------------------------------------------------------------------------- */

static void copy_figures_of_listeners(const domus_system *system, domi_look *look)
{
    domus_listener_profile listener;

    for (uint32_t i = 0; i < look->port_count; i++) {
        if (domus_system_listener(system, i, &listener) != 0)
            continue;
        domi_look_copy_name(look->ports[i].name, sizeof look->ports[i].name, listener.name);
        copy_counts_of_listener(&listener, &look->ports[i].counts);
    }
}

static void copy_usage_of_system_and_machine(domus_system *system, domi_look *look)
{
    domus_memory memory;
    domus_usage usage;
    domus_machine machine;

    domus_system_memory(system, &memory);
    copy_figures_of_memory(&memory, &look->memory);
    domus_system_usage(system, &usage);
    copy_figures_of_usage(&usage, &look->usage);
    domus_system_machine(system, &machine);
    copy_figures_of_machine(&machine, &look->machine);
    copy_current_settings(system, &look->settings);
    domi_look_copy_name(look->backend, sizeof look->backend, machine.backend);
    domi_look_copy_name(look->backend_why, sizeof look->backend_why, machine.backend_why);
}

static void copy_identity_of_program(const domus_system *system, domi_look *look)
{
    look->now_ns = domi_observe_clock_ns();
    look->pid = (uint64_t)getpid();
    look->uptime_ns = look->now_ns - domi_observed.opened_ns;
    domi_look_copy_name(look->program, sizeof look->program, program_invocation_short_name);
    domi_look_copy_name(look->level, sizeof look->level,
                        domi_observe_word_of_level(domus_system_profile_level(system)));
}

int domi_take_look_at_program(domus_system *system, domi_look *ret_look)
{
    uint32_t threads = domus_system_threads(system);
    domi_sources sources;
    domi_look look;
    int error = domi_sources_read_profiles(system, &sources);

    if (error != 0)
        return error;
    error = domi_look_allocate_lists(&look, threads, sources.count - threads - 1, 0,
                                     domus_system_config(system)->listener_count + 1);
    if (error == 0) {
        copy_identity_of_program(system, &look);
        copy_figures_of_sources(system, &sources, &look);
        look.stand_ins = count_stand_ins(system);
        free(look.actors);
        look.actors = NULL;
        error = read_behaviours_of_all_places(system, &look.actors, &look.actors_count);
        copy_figures_of_listeners(system, &look);
        copy_usage_of_system_and_machine(system, &look);
        if (error == 0)
            *ret_look = look;
        else
            domi_look_free_lists(&look);
    }
    domi_sources_free_profiles(&sources);
    return error;
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void write_group_of_figures(domus_appender *json, const char *before,
                                   const char *const names[], void *group)
{
    for (size_t i = 0; names[i] != NULL; i++)
        (void)domus_append_text(json, "%s\"%s\":%" PRIu64, i == 0 ? before : ",", names[i],
                                *domi_look_figure_at_place_of_group(group, i));
}

static void write_cpu_times_of_threads(domus_appender *json, const domus_system *system)
{
    for (uint32_t i = 0; i < domus_system_threads(system); i++) {
        domus_thread_times read = {0};
        domi_look_times times;
        (void)domus_system_thread_times(system, i, &read);
        copy_cpu_times_of_thread(&read, &times);
        write_group_of_figures(json, i == 0 ? "{" : ",{", domi_look_time_names, &times);
        (void)domus_append_text(json, "}");
    }
}

void domi_write_look_as_json(domus_appender *json, domus_system *system)
{
    domi_look_settings settings;
    domi_look_machine figures;
    domus_machine machine;

    domus_system_machine(system, &machine);
    copy_figures_of_machine(&machine, &figures);
    copy_current_settings(system, &settings);
    write_group_of_figures(json, ",\"machine\":{", domi_look_machine_names, &figures);
    (void)domus_append_text(json, ",\"backend\":");
    domi_json_append_string(json, machine.backend);
    (void)domus_append_text(json, ",\"backend_why\":");
    domi_json_append_string(json, machine.backend_why);
    write_group_of_figures(json, ",\"settings\":{", domi_look_setting_names, &settings);
    (void)domus_append_text(json, "},\"threads\":[");
    write_cpu_times_of_threads(json, system);
    (void)domus_append_text(json, "]}");
}
