/* This file has the life of a system, from its new to its free; domus/system.h is the manual. */
#include "runtime/control/life.h"

#include "base/check.h"
#include "base/memory.h"
#include "house/dispatch/manage.h"
#include "io/backend/choose.h"
#include "io/completions/setup.h"
#include "runtime/control/figures.h"
#include "runtime/files/handle.h"
#include "runtime/outside/detached.h"
#include "runtime/outside/outside.h"
#include "runtime/outside/seat.h"
#include "runtime/pools/pools.h"
#include "runtime/system/live_copy.h"
#include "runtime/system/logs.h"
#include "runtime/system/monitor.h"
#include "runtime/system/pressure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int choose_cpus_for_threads(domus_system *system, const domus_config *config, char *error,
                                   size_t error_size)
{
    if (system->simulator == NULL)
        return domi_cpus_choose_for_threads(config, "", &system->cpus, error, error_size);
    DOMI_CHECK(config->system.threads != 0);
    /* a simulation has as many threads as the configuration says, whatever CPUs the machine has */
    system->cpus.threads = config->system.threads;
    return 0;
}

/* Nanoseconds that a thread spins if scheduler.idle.spin is `auto`: about the cost of a park and a
 * wake-up, as measured on the machine of the project. */
#define SPIN_AUTO_NS UINT64_C(20000)

uint64_t domi_system_choose_spin_time(const domus_system *system, uint64_t spin_ns)
{
    if (system->simulator != NULL)
        return 0; /* a simulated thread never spins, because its clock stands still meanwhile */
    if (spin_ns != DOMUS_SPIN_AUTO)
        return spin_ns;
    return system->cpus.few ? 0 : SPIN_AUTO_NS;
}

/* Draw a random key for a hash; this fails if a system call filter refuses getrandom. */
static int draw_random_key(uint64_t key[2], char *error, size_t error_size)
{
    if (getentropy(key, 2 * sizeof key[0]) == 0)
        return 0;
    int result = -errno;
    if (error_size != 0)
        snprintf(error, error_size, "no random numbers: getrandom: %s", strerror(-result));
    return result;
}

/* Make the routers, the kinds of grains and the groups, which all threads share. */
static int init_routers_grains_and_groups(domus_system *system, char *error, size_t error_size)
{
    int result = 0;
    const domus_config *config = &system->config;
    uint64_t key[2] = {0, 0}; /* a simulation has a constant key, so that its runs repeat */

    domi_remotes_init(&system->remotes);
    domi_routers_init(&system->routers, config->routers.max, config->routers.routees_max);
    if (system->simulator == NULL)
        result = draw_random_key(key, error, error_size);
    if (result != 0)
        return result;
    domi_grains_init(&system->grains, config->grains.kinds_max, config->grains.max, key);
    return domi_groups_init(&system->groups, config->groups.max, config->groups.members_max,
                            system->count, (uint32_t)config->pool_count, key);
}

/* Free the groups, the kinds of grains and the routers. */
static void fini_routers_grains_and_groups(domus_system *system)
{
    domi_grains_fini(&system->grains);
    domi_groups_fini(&system->groups);
    domi_routers_fini(&system->routers);
    domi_remotes_fini(&system->remotes);
}

static int init_names_of_actors(domus_system *system, char *error, size_t error_size)
{
    uint64_t key[2] = {0, 0}; /* a simulation has a constant key, so that its runs repeat */
    int result = 0;

    if (system->simulator == NULL)
        result = draw_random_key(key, error, error_size);
    if (result != 0)
        return result;
    return domi_names_init(&system->names, system->config.names.max, key);
}

static int init_connection_counts_of_peers(domus_system *system)
{
    const domi_peers_limits limits = {
        .connections_max = system->config.channel.connections_max,
        .share_percent = system->config.connection.address_percent,
        .local_share_percent = system->config.connection.loopback_percent,
    };
    uint64_t key[2] = {0, 0}; /* a simulation has a constant key, so that its runs repeat */

    if (system->simulator == NULL && getentropy(key, sizeof key) != 0)
        return -errno;
    return domi_peers_init(&system->peers, &limits, key);
}

static void init_levels_of_profile_and_log(domus_system *system)
{
    system->profile_level = system->config.profile.level;
    system->log_level = system->config.log.level;
}

static void init_locks_of_system(domus_system *system)
{
    pthread_condattr_t attributes;

    pthread_mutex_init(&system->mutex, NULL);
    pthread_mutex_init(&system->outside_mutex, NULL);
    pthread_mutex_init(&system->stall_history.mutex, NULL);
    pthread_mutex_init(&system->figures.mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&system->changed, &attributes);
    pthread_cond_init(&system->nobody_asks, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* Make the system's tables of threads and managers. A table without memory is NULL afterwards. */
static void make_tables_of_threads(domus_system *system)
{
    uint32_t detached_max = system->config.detached.threads_max;

    system->count = system->cpus.threads;
    system->threads_bytes = system->count * sizeof(domi_thread);
    system->threads = domi_memory_map_pages(system->threads_bytes);
    system->pools_from = system->count + 1 + detached_max;
    system->managers_count = system->pools_from + domi_pools_count_managers(system);
    system->managers = domi_memory_new(system->managers_count * sizeof(domi_manager *));
    system->detached = domi_memory_new((detached_max + 1) * sizeof(struct domi_detached *));
}

static int make_system_without_start(const domus_config *config, domi_simulator *simulator,
                                     const domus_hooks *hooks, char *error, size_t error_size,
                                     domus_system **ret_system)
{
    int result = domus_config_check(config, error, error_size);

    if (result == 0)
        result = domi_fork_begin_to_count_forks();
    if (result != 0)
        return result;
    domus_system *system = domi_memory_map_pages(sizeof *system);
    if (system == NULL || domi_config_copy_into_system(system, config) != 0) {
        result = -ENOMEM;
        goto fail_system;
    }
    init_levels_of_profile_and_log(system);
    system->simulator = simulator;
    system->thread_hooks = simulator != NULL ? simulator->thread_hooks : &domi_hooks_of_threads;
    result = choose_cpus_for_threads(system, config, error, error_size);
    if (result != 0)
        goto fail_config;

    system->config.scheduler.idle.spin_ns =
        domi_system_choose_spin_time(system, config->scheduler.idle.spin_ns);
    domi_live_init_from_config(system, config->scheduler.idle.spin_ns);
    make_tables_of_threads(system);
    if (sched_getaffinity(0, sizeof system->all_cpus, &system->all_cpus) != 0)
        /* a system call filter refuses the call, so all CPUs count as allowed */
        memset(&system->all_cpus, 0xff, sizeof system->all_cpus);
    result = init_routers_grains_and_groups(system, error, error_size);
    if (result == 0 &&
        (system->threads == NULL || system->managers == NULL || system->detached == NULL))
        result = -ENOMEM;
    if (result != 0)
        goto fail_threads;
    result = init_names_of_actors(system, error, error_size);
    if (result == 0 && (result = init_connection_counts_of_peers(system)) != 0)
        domi_names_fini(&system->names);
    if (result != 0)
        goto fail_threads;
    result = domi_helpers_init(system);
    if (result != 0)
        goto fail_names;
    if (hooks != NULL)
        system->hooks = *hooks;
    atomic_store_explicit(&system->started_under, domi_fork_number_of_process(),
                          memory_order_relaxed);
    domi_letters_init(&system->letters);
    domi_processes_init(&system->processes);
    if (simulator == NULL)
        domi_clock_init(&system->clock);
    else
        domi_clock_init_virtual(&system->clock, simulator->start_ns);
    init_locks_of_system(system);
    domi_pressure_init(system);
    *ret_system = system;
    return 0;

fail_names:
    domi_peers_fini(&system->peers);
    domi_names_fini(&system->names);
fail_threads:
    domi_live_fini(system);
    fini_routers_grains_and_groups(system);
    domi_memory_free(system->detached);
    domi_memory_unmap_pages(system->threads, system->threads_bytes);
    domi_memory_free(system->managers);
fail_config:
    domi_config_free_copy_of_system(system);
fail_system:
    domi_memory_unmap_pages(system, sizeof *system);
    return result;
}

/* Make a system; if this fails, `error` always holds one line that says why. */
static int make_system_or_explain(const domus_config *config, domi_simulator *simulator,
                                  const domus_hooks *hooks, char *error, size_t error_size,
                                  domus_system **ret_system)
{
    if (error_size != 0)
        error[0] = '\0';
    int result = make_system_without_start(config, simulator, hooks, error, error_size, ret_system);
    if (result == 0 || error_size == 0 || error[0] != '\0')
        return result;
    if (result == -ENOMEM)
        snprintf(error, error_size, "no memory for a system");
    else
        snprintf(error, error_size, "a system cannot be made: %s", strerror(-result));
    return result;
}

int domi_system_new(const domus_config *config, domi_simulator *simulator, char *error,
                    size_t error_size, domus_system **ret_system)
{
    return make_system_or_explain(config, simulator, NULL, error, error_size, ret_system);
}

int domus_system_new_with(const domus_config *config, const domus_hooks *hooks, char *error,
                          size_t error_size, domus_system **ret_system)
{
    const domus_allocator *before =
        domi_memory_set_allocator(hooks != NULL ? hooks->allocator : NULL);
    int result = make_system_or_explain(config, NULL, hooks, error, error_size, ret_system);

    (void)domi_memory_set_allocator(before);
    return result;
}

int domus_system_new(const domus_config *config, char *error, size_t error_size,
                     domus_system **ret_system)
{
    return domus_system_new_with(config, NULL, error, error_size, ret_system);
}

/* Choose the backend, the same for all threads of a system. */
static int choose_backend_of_system(domus_system *system, const domi_backend **ret_backend)
{
    char reason[sizeof system->error];

    if (system->simulator != NULL) {
        *ret_backend = system->simulator->backend;
        system->backend_name = (*ret_backend)->name;
        return 0;
    }
    int result = domi_backend_choose(&system->config, reason, sizeof reason, ret_backend);
    if (result != 0) {
        memcpy(system->error, reason, sizeof system->error);
        return result;
    }
    system->backend_name = (*ret_backend)->name;
    snprintf(system->backend_why, sizeof system->backend_why, "%s", reason);
    if (reason[0] != '\0')
        domi_log_line(system, DOMUS_LOG_WARNING, DOMUS_LOG_OUTSIDE,
                      "epoll is used, which is slower (io.backend: auto): %s", reason);
    return result;
}

/* Make threads until one fails. Returns their number; `ret_result` is 0 or the first error. */
static uint32_t make_threads_of_system(domus_system *system, int *ret_result)
{
    const domi_backend *backend = NULL;
    uint32_t made = 0;

    *ret_result = choose_backend_of_system(system, &backend);
    for (; made < system->count && *ret_result == 0; made++) {
        int cpu = system->cpus.count != 0 ? system->cpus.cpu[made % system->cpus.count] : -1;
        system->managers[made] = &system->threads[made].manager;
        *ret_result = domi_thread_init(&system->threads[made], system, made, cpu, backend,
                                       system->error, sizeof system->error);
        if (*ret_result != 0)
            break;
    }
    return made;
}

static int start_threads_and_wait(domus_system *system)
{
    uint32_t started = 0;
    int result = 0;

    for (; started < system->count && result == 0; started++)
        result = domi_thread_start(&system->threads[started], system->error, sizeof system->error);
    if (result != 0)
        started--;
    pthread_mutex_lock(&system->mutex);
    while (system->running < started)
        pthread_cond_wait(&system->changed, &system->mutex);
    if (result == 0 && system->start_error != 0) {
        result = system->start_error;
        memcpy(system->error, system->start_text, sizeof system->error);
    }
    if (result != 0)
        /* threads never started count as ended, so the started ones do not wait for them */
        system->ended += system->count - started;
    pthread_mutex_unlock(&system->mutex);
    return result;
}

/* Start the rings of simulated threads. No OS thread runs their loops: the test kit takes their
 * steps. */
static int start_rings_of_simulated_threads(domus_system *system)
{
    int result = 0;

    for (uint32_t i = 0; i < system->count && result == 0; i++)
        result = domi_io_start_ring(&system->threads[i].io);
    /* the start cannot fail, because the ring of a simulated thread always starts */
    DOMI_CHECK(result == 0);
    return result;
}

static void free_threads_of_system(domus_system *system, uint32_t made)
{
    for (uint32_t i = 0; i < made; i++)
        domi_thread_fini(&system->threads[i]);
}

static int make_and_start_all_threads(domus_system *system)
{
    uint32_t made;
    int result;

    atomic_store_explicit(&system->started_under, domi_fork_number_of_process(),
                          memory_order_relaxed);
    system->managers[system->count] = &system->outside;
    result = domi_outside_init(system);
    if (result != 0) {
        snprintf(system->error, sizeof system->error, "no memory for a system");
        return result;
    }
    result = domi_pools_init(system);
    if (result != 0) {
        if (system->error[0] == '\0')
            snprintf(system->error, sizeof system->error, "no memory for the pools");
        domi_outside_fini(system);
        memset(&system->outside, 0,
               /* a system that is started again begins with an empty outside */
               sizeof system->outside);
        return result;
    }
    domi_pressure_begin_to_measure(system);
    if (system->simulator == NULL)
        domi_log_missing_folders(system);
    made = make_threads_of_system(system, &result);
    if (result == 0) {
        result = system->simulator != NULL ? start_rings_of_simulated_threads(system)
                                           : start_threads_and_wait(system);
        if (result == 0 && system->simulator == NULL)
            result = domi_pools_start_runner_threads(system);
        if (result == 0 && (result = domi_monitor_start(system)) != 0)
            snprintf(system->error, sizeof system->error, "the monitor's thread cannot be made: %s",
                     strerror(-result));
        if (result == 0) {
            domi_system_set_stage(system, DOMI_STAGE_RUNNING);
            return 0;
        }
        (void)domi_system_end_threads(system, UINT64_MAX);
    }
    domi_pressure_end_measuring(system);
    domi_outside_fini(system);
    free_threads_of_system(system, made);
    domi_pools_fini(system);
    memset(system->threads, 0, system->threads_bytes);
    memset(&system->outside, 0, sizeof system->outside);
    atomic_store_explicit(&system->orders, 0, memory_order_relaxed);
    system->running = system->ended = 0;
    system->detached_closed = false;
    system->start_error = 0;
    return result;
}

int domus_system_start(domus_system *system)
{
    if (system->stage != DOMI_STAGE_NEW) {
        snprintf(system->error, sizeof system->error, "a system starts once");
        return -EALREADY;
    }
    const domus_allocator *before = domi_memory_set_allocator(system->hooks.allocator);
    int result = make_and_start_all_threads(system);
    (void)domi_memory_set_allocator(before);
    return result;
}

/* nanoseconds that abandoned blocking work gets to return before domus_system_free() gives up */
#define ABANDONED_NS UINT64_C(1000000000)

/* End the actors that the stop has left because their blocking work was abandoned; that work has
 * returned by now. */
static void end_actors_left_by_abandoned_work(domus_system *system)
{
    for (uint32_t i = 0; i < system->count; i++) {
        domi_manager *manager = &system->threads[i].manager;
        domi_manager_become_owner(
            manager); /* this thread may own the manager, whose own thread has ended */
        manager->ending.work_over = true;
        domi_manager_end_actors(manager);
    }
    for (uint32_t i = 0; i < system->detached_count; i++) {
        domi_manager *manager = &system->detached[i]->manager;
        domi_manager_become_owner(
            manager); /* this thread may own the manager, whose own thread has ended */
        manager->ending.work_over = true;
        domi_manager_end_actors(manager);
    }
    domi_pools_end_abandoned_actors(system);
}

void domus_system_free(domus_system *system)
{
    /* In a forked child this memory is a copy of what the parent's threads were using, or is shared
     * with the parent, so it is not freed before the child ends. */
    if (system == NULL || (system->stage != DOMI_STAGE_NEW && domi_system_is_forked(system)))
        return;
    (void)domus_system_stop(system);
    if (system->stage != DOMI_STAGE_NEW && system->stage != DOMI_STAGE_STOPPED)
        return; /* the system is not freed: a thread whose handler has not returned still uses it */
    if (system->workers != NULL && domi_workers_stop(system->workers, ABANDONED_NS) != 0)
        return; /* the system is not freed: abandoned blocking work still uses it */
    const domus_allocator *before = domi_memory_set_allocator(system->hooks.allocator);
    if (system->stage == DOMI_STAGE_STOPPED) {
        domi_seats_fini(system);
        end_actors_left_by_abandoned_work(system);
    }
    /* the files are freed before the pools of memory, in which abandoned operations on files lie */
    domi_files_free(system->files);
    if (system->stage == DOMI_STAGE_STOPPED) {
        domi_outside_fini(system);
        free_threads_of_system(system, system->count);
        domi_detached_fini(system);
        domi_pools_fini(system);
    }
    domi_helpers_fini(system);
    fini_routers_grains_and_groups(system);
    domi_peers_fini(&system->peers);
    domi_names_fini(&system->names);
    domi_live_fini(system);
    domi_memory_free(system->inspectors);
    domi_memory_free(system->entries);
    pthread_cond_destroy(&system->nobody_asks);
    pthread_cond_destroy(&system->changed);
    pthread_mutex_destroy(&system->outside_mutex);
    pthread_mutex_destroy(&system->stall_history.mutex);
    domi_figures_end_all_tables(system);
    pthread_mutex_destroy(&system->mutex);
    domi_memory_free(system->detached);
    domi_memory_unmap_pages(system->threads, system->threads_bytes);
    domi_memory_free(system->managers);
    domi_config_free_copy_of_system(system);
    domi_memory_unmap_pages(system, sizeof *system);
    (void)domi_memory_set_allocator(before);
}

const char *domus_system_error(const domus_system *system)
{
    return system->error;
}

const char *domus_system_warning(const domus_system *system)
{
    return system->cpus.warning;
}

const domus_config *domus_system_config(const domus_system *system)
{
    return &system->config;
}

uint32_t domus_system_threads(const domus_system *system)
{
    return system->count;
}
