/* A system from new to free; see domus/system.h. */
#include "runtime/system.h"

#include "base/check.h"
#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ABORT_NS UINT64_C(5000000000) /* for cancelled operations to come back */

static char *copy_string(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = domi_memory_new(bytes);

    if (copy != NULL)
        memcpy(copy, text, bytes);
    return copy;
}

static void config_free(domus_system *system)
{
    for (size_t i = 0; i < system->config.listener_count; i++) {
        domi_memory_free((void *)(uintptr_t)system->listeners[i].name);
        domi_memory_free((void *)(uintptr_t)system->listeners[i].address);
    }
    domi_memory_free((void *)(uintptr_t)system->config.system.cpus);
}

static int config_copy(domus_system *system, const domus_config *config)
{
    bool whole = true;

    system->config = *config;
    system->config.listeners = system->listeners;
    system->config.system.cpus = copy_string(config->system.cpus);
    whole = system->config.system.cpus != NULL;
    for (size_t i = 0; i < config->listener_count; i++) {
        system->listeners[i] = config->listeners[i];
        system->listeners[i].name = copy_string(config->listeners[i].name);
        system->listeners[i].address = copy_string(config->listeners[i].address);
        whole = whole && system->listeners[i].name != NULL && system->listeners[i].address != NULL;
    }
    if (!whole)
        config_free(system);
    return whole ? 0 : -ENOMEM;
}

int domus_system_new(const domus_config *config, char *error, size_t error_size,
                     domus_system **ret_system)
{
    int result = domus_config_check(config, error, error_size);

    if (result != 0)
        return result;
    domus_system *system = domi_memory_map(sizeof *system);
    if (system == NULL || config_copy(system, config) != 0) {
        result = -ENOMEM;
        goto fail_system;
    }
    result = domi_cpus_choose(config, "", &system->cpus, error, error_size);
    if (result != 0)
        goto fail_config;

    system->count = system->cpus.threads;
    system->threads_bytes = system->count * sizeof(domi_thread);
    system->threads = domi_memory_map(system->threads_bytes);
    system->managers = domi_memory_new((system->count + 1) * sizeof(domi_manager *));
    if (system->threads == NULL || system->managers == NULL) {
        result = -ENOMEM;
        goto fail_threads;
    }
    domi_clock_init(&system->clock);
    pthread_mutex_init(&system->mutex, NULL);
    pthread_mutex_init(&system->outside_mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&system->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    *ret_system = system;
    return 0;

fail_threads:
    domi_memory_unmap(system->threads, system->threads_bytes);
    domi_memory_free(system->managers);
fail_config:
    config_free(system);
fail_system:
    if (result == -ENOMEM && error_size != 0)
        snprintf(error, error_size, "no memory for a system");
    domi_memory_unmap(system, sizeof *system);
    return result;
}

/* Returns how many threads are made; fewer than all: `result` says why. */
static uint32_t init_threads(domus_system *system, int *ret_result)
{
    uint32_t made = 0;

    *ret_result = 0;
    for (; made < system->count; made++) {
        int cpu = system->cpus.count != 0 ? system->cpus.cpu[made % system->cpus.count] : -1;
        system->managers[made] = &system->threads[made].manager;
        *ret_result = domi_thread_init(&system->threads[made], system, made, cpu,
                                       &domi_backend_uring, system->error, sizeof system->error);
        if (*ret_result != 0)
            break;
    }
    return made;
}

static int run_threads(domus_system *system)
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
        system->ended += system->count - started; /* who never began does not hold up the others */
    pthread_mutex_unlock(&system->mutex);
    return result;
}

static void set_stage(domus_system *system, domi_stage stage)
{
    pthread_mutex_lock(&system->outside_mutex);
    system->stage = stage;
    pthread_mutex_unlock(&system->outside_mutex);
}

static void end_threads(domus_system *system)
{
    domi_system_want(system, DOMI_WANTED_END);
    for (uint32_t i = 0; i < system->count; i++)
        domi_thread_join(&system->threads[i]);
    /* What was put after its receiver had ended is late mail now. */
    for (uint32_t i = 0; i < system->count; i++)
        (void)domi_manager_arrivals(&system->threads[i].manager);
}

static void fini_threads(domus_system *system, uint32_t made)
{
    for (uint32_t i = 0; i < made; i++)
        domi_thread_fini(&system->threads[i]);
}

int domus_system_start(domus_system *system)
{
    uint32_t made;
    int result;

    if (system->stage != DOMI_STAGE_NEW) {
        snprintf(system->error, sizeof system->error, "a system starts once");
        return -EALREADY;
    }
    system->managers[system->count] = &system->outside;
    result = domi_manager_init(&system->outside, system->count, system->count + 1, system->managers,
                               &system->config, domi_clock_now(&system->clock));
    if (result != 0) {
        snprintf(system->error, sizeof system->error, "no memory for a system");
        return result;
    }
    made = init_threads(system, &result);
    if (result == 0) {
        result = run_threads(system);
        if (result == 0) {
            set_stage(system, DOMI_STAGE_RUNNING);
            return 0;
        }
        end_threads(system);
    }
    fini_threads(system, made);
    domi_manager_fini(&system->outside);
    memset(system->threads, 0, system->threads_bytes);
    memset(&system->outside, 0, sizeof system->outside);
    atomic_store_explicit(&system->wanted, DOMI_WANTED_RUN, memory_order_relaxed);
    system->running = system->ended = 0;
    system->start_error = 0;
    return result;
}

static bool is_quiet(const domus_system *system)
{
    for (uint32_t i = 0; i < system->count; i++) {
        /* acquire: pairs with domi_thread_follow(); before it has followed, a thread may be about
         * to hand a connection over that nobody counts yet. */
        if (atomic_load_explicit((domi_counter *)(uintptr_t)&system->threads[i].counters.following,
                                 memory_order_acquire) < DOMI_WANTED_DRAIN ||
            domi_counter_read(&system->threads[i].io.counters.listening) != 0)
            return false;
    }
    return domi_system_connections(system) == 0;
}

/* Until nothing is open anywhere, or the time is over; looks every millisecond. Connections are
 * counted before they are handed over, so none after the acceptors stopped means that none is on
 * its way. */
static bool wait_quiet(domus_system *system, uint64_t until_ns)
{
    bool quiet = false;

    pthread_mutex_lock(&system->mutex);
    while (!(quiet = is_quiet(system)) && domi_clock_now(&system->clock) < until_ns) {
        const struct timespec next = domi_clock_after(1000000);
        (void)pthread_cond_timedwait(&system->changed, &system->mutex, &next);
    }
    pthread_mutex_unlock(&system->mutex);
    return quiet;
}

int domus_system_stop(domus_system *system)
{
    uint32_t aborted = 0;

    if (system->stage != DOMI_STAGE_RUNNING)
        return 0;
    uint64_t drain_until_ns =
        domi_clock_now(&system->clock) + system->config.shutdown.drain_timeout_ns;
    set_stage(system, DOMI_STAGE_DRAINING);
    domi_system_want(system, DOMI_WANTED_DRAIN);
    if (!wait_quiet(system, drain_until_ns)) {
        domi_system_want(system, DOMI_WANTED_ABORT);
        (void)wait_quiet(system, domi_clock_now(&system->clock) + ABORT_NS);
    }
    set_stage(system, DOMI_STAGE_ENDING);
    end_threads(system);
    for (uint32_t i = 0; i < system->count; i++)
        aborted += system->threads[i].aborted;
    set_stage(system, DOMI_STAGE_STOPPED);
    return aborted < INT32_MAX ? (int)aborted : INT32_MAX;
}

void domus_system_free(domus_system *system)
{
    if (system == NULL)
        return;
    (void)domus_system_stop(system);
    if (system->stage == DOMI_STAGE_STOPPED) {
        fini_threads(system, system->count);
        domi_manager_fini(&system->outside);
    }
    pthread_cond_destroy(&system->changed);
    pthread_mutex_destroy(&system->outside_mutex);
    pthread_mutex_destroy(&system->mutex);
    domi_memory_unmap(system->threads, system->threads_bytes);
    domi_memory_free(system->managers);
    config_free(system);
    domi_memory_unmap(system, sizeof *system);
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
