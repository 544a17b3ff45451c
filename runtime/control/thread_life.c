/* The life of a thread of the loop. It begins its loop when its ring has started, and it ends its
 * actors when all threads have left their loops. */
#include "runtime/control/life.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/page.h"
#include "house/dispatch/manage.h"
#include "house/message/pool.h"
#include "io/backend/explain.h"
#include "io/completions/setup.h"
#include "runtime/files/kept.h"
#include "runtime/loop/observing.h"
#include "runtime/loop/pairs.h"
#include "runtime/loop/steps.h"
#include "runtime/os/threads.h"
#include "runtime/outside/blocking.h"
#include "runtime/outside/detached.h"
#include "runtime/outside/resolver.h"
#include "runtime/pools/pools.h"
#include "runtime/system/crash.h"
#include "runtime/system/logs.h"
#include "runtime/system/losses.h"
#include "runtime/system/manager_options.h"
#include "runtime/system/pressure.h"
#include "runtime/system/stall.h"

#include <domus/blocking.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const domi_runtime_hooks domi_hooks_of_threads = {
    .wake = domi_thread_wake_by_eventfd,
    .log = domi_log_what_happened_to_actor,
    .warn = domi_log_mistake_of_user,
    .say = domi_log_text_for_manager,
    .spawn_detached = domi_detached_spawn_actor,
    .withdraw = domi_blocking_withdraw_work,
    .block = domus_blocking,
    .resolve = domi_resolver_begin_lookup,
    .unresolve = domi_resolver_withdraw_lookup,
    .read_memory = domi_pressure_read_levels,
    .read_clock = domi_system_read_clock,
};

int domi_thread_init(domi_thread *thread, domus_system *system, uint32_t index, int cpu,
                     const domi_backend *backend, char *error, size_t error_size)
{
    uint64_t now_ns = domi_clock_now(&system->clock);
    domi_manager_options options = domi_system_make_manager_options(system, index, now_ns);

    options.hooks = system->thread_hooks;
    options.thread = thread;
    options.io_hooks = &domi_hooks_of_io;
    options.io = &thread->io;
    int result = domi_manager_init(&thread->manager, &options);

    if (result != 0) {
        snprintf(error, error_size, "no memory for a thread");
        return result;
    }
    result = domi_io_init(&thread->io, &thread->manager, backend, error, error_size);
    thread->io.shared = &system->pressure.shared;
    if (result != 0) {
        domi_manager_fini(&thread->manager);
        return result;
    }
    thread->io.next = &system->threads[(index + 1) % system->count].io;
    thread->io.peers = &system->peers;
    thread->system = system;
    thread->config = thread->manager.config;
    thread->clock = &system->clock;
    thread->level = system->config.profile.level < DOMUS_PROFILE_COUNTERS ? DOMUS_PROFILE_OFF
                                                                          : DOMUS_PROFILE_COUNTERS;
    thread->timed = thread->level != DOMUS_PROFILE_OFF;
    thread->stamp_ns = now_ns;
    thread->cpu = cpu;
    thread->stealing.victim = DOMI_NO_VICTIM;
    domi_thread_apply_config_values(thread);
    memcpy(thread->io.settings_of, system->listener_settings, sizeof thread->io.settings_of);
    domi_random_init(&thread->stealing.random, index);
    return 0;
}

/* Report to the thread that waits in domus_system_start() that this thread has started, or why it
 * could not. */
static void report_start_of_thread(domus_system *system, int result)
{
    pthread_mutex_lock(&system->mutex);
    system->running++;
    /* a thread that could not start counts as ended, so that the others do not wait for it in
     * wait_until_all_have_left_their_loops() */
    system->ended += result != 0;
    if (result != 0 && system->start_error == 0) {
        system->start_error = result;
        domi_setup_step step = system->threads[0].io.backend == &domi_backend_epoll
                                   ? DOMI_SETUP_EPOLL
                                   : DOMI_SETUP_ENABLE;
        domi_setup_explain_failure_of_ring(result, step, &system->config, system->start_text,
                                           sizeof system->start_text);
    }
    pthread_cond_broadcast(&system->changed);
    pthread_mutex_unlock(&system->mutex);
}

/* Wait until all threads and runners have left their loops. None may run any more when actors are
 * ended, because actors send to each other to the last, and a child tells its parent of its end. */
static void wait_until_all_have_left_their_loops(domus_system *system)
{
    pthread_mutex_lock(&system->mutex);
    system->ended++;
    pthread_cond_broadcast(&system->changed);
    while (system->ended < system->count || !domi_pools_have_ended(system))
        pthread_cond_wait(&system->changed, &system->mutex);
    pthread_mutex_unlock(&system->mutex);
}

static void *run_loop_of_thread(void *thread_)
{
    domi_thread *thread = thread_;
    int result = domi_io_start_ring(&thread->io);

    domi_thread_manager = &thread->manager;
    domi_manager_become_owner(&thread->manager);
    if (thread->config->stall.signal != 0)
        domi_backtrace_enable_thread(&thread->stall.backtrace, (int)thread->config->stall.signal,
                                     domi_stall_record_in_interrupted_thread, thread);
    domi_samples_enable_thread(&thread->sampled, &thread->manager);
    domi_crash_prepare_thread(&thread->recorder);
    (void)domi_memory_set_allocator(thread->system->hooks.allocator);
    (void)domi_memory_set_meter(&thread->system->pressure.meter);
    report_start_of_thread(thread->system, result);
    if (result != 0) {
        domi_crash_unprepare_thread();
        return NULL;
    }
    domi_pages_begin_to_keep_freed_pages();
    thread->stamp_ns = thread->manager.now_ns = domi_clock_now(thread->clock);
    clockid_t cpu_clock = CLOCK_THREAD_CPUTIME_ID;
    (void)pthread_getcpuclockid(pthread_self(), &cpu_clock);
    atomic_store_explicit(&thread->counters.cpu_clock, (uint64_t)cpu_clock, memory_order_relaxed);
    thread->uncounted_from_ns = domi_clock_read_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    domi_counter_add(&thread->counters.cpu_start_ns, thread->uncounted_from_ns);
    domi_counter_add(&thread->counters.tid, (uint64_t)gettid());
    domi_counter_add(&thread->counters.stamp_ns, thread->stamp_ns);
    domi_thread_run_loop(thread);
    domi_samples_disable_thread(&thread->sampled);
    domi_thread_stamp_time(thread, DOMI_SPAN_OTHER);
    domi_counter_add(&thread->counters.cpu_end_ns, domi_clock_read_cpu_ns(CLOCK_THREAD_CPUTIME_ID));
    wait_until_all_have_left_their_loops(thread->system);
    domi_system_record_left_actors(thread->system, &thread->manager);
    domi_manager_end_actors(&thread->manager);
    domi_io_end_tries_and_connects(&thread->io);
    domi_pages_free_kept();
    (void)domi_memory_set_meter(NULL);
    domi_crash_unprepare_thread();
    return NULL;
}

#ifdef DOMI_LIBC_WITHOUT_ATTR_AFFINITY

/* The C library (musl) has no CPUs in a thread's attributes, so the new thread inherits the CPUs of
 * the thread that makes it. */
static int create_thread_on_cpus(domi_thread *thread, pthread_attr_t *attributes,
                                 const cpu_set_t *set, size_t bytes)
{
    cpu_set_t before;
    int result = pthread_getaffinity_np(pthread_self(), sizeof before, &before);

    if (result == 0)
        result = pthread_setaffinity_np(pthread_self(), bytes, set);
    if (result != 0)
        return result;
    result = pthread_create(&thread->pthread, attributes, run_loop_of_thread, thread);
    (void)pthread_setaffinity_np(pthread_self(), sizeof before, &before);
    return result;
}

#else

static int create_thread_on_cpus(domi_thread *thread, pthread_attr_t *attributes,
                                 const cpu_set_t *set, size_t bytes)
{
    int result = pthread_attr_setaffinity_np(attributes, bytes, set);

    return result != 0 ? result
                       : pthread_create(&thread->pthread, attributes, run_loop_of_thread, thread);
}

#endif

static int create_os_thread(domi_thread *thread, pthread_attr_t *attributes)
{
    int cpu = thread->cpu;

    if (cpu < 0)
        return pthread_create(&thread->pthread, attributes, run_loop_of_thread, thread);
    size_t bytes = CPU_ALLOC_SIZE((size_t)cpu + 1);
    cpu_set_t *set = domi_memory_new(bytes);
    if (set == NULL)
        return ENOMEM;
    CPU_SET_S((size_t)cpu, bytes, set);
    int result = create_thread_on_cpus(thread, attributes, set, bytes);
    domi_memory_free(set);
    return result;
}

/* Create the OS thread of a thread of the loop, pinned to its CPU if it has one. Returns 0 or an
 * errno. */
static int create_pinned_thread(domi_thread *thread)
{
    pthread_attr_t attributes;
    sigset_t before;
    int result = pthread_attr_init(&attributes);

    if (result == 0) {
        domi_signals_block_for_new_thread(&before);
        result = create_os_thread(thread, &attributes);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    (void)pthread_attr_destroy(&attributes);
    return result;
}

/* Create an OS thread that is not pinned, after the kernel refused a pinned one with `refusal`. If
 * that succeeds, a system call filter refuses sched_setaffinity(), so all threads run on any CPU,
 * which is logged once. With a list of CPUs in the configuration the refusal stays an error,
 * because the list is a demand. */
static int create_unpinned_thread(domi_thread *thread, int refusal)
{
    domus_system *system = thread->system;

    if (strcmp(system->config.system.cpus, "auto") != 0)
        return refusal;
    thread->cpu = -1;
    int result = create_pinned_thread(thread);
    if (result == 0 && thread->manager.index == 0)
        domi_log_line(system, DOMUS_LOG_WARNING, DOMUS_LOG_OUTSIDE,
                      "threads are not pinned to CPUs: sched_setaffinity is refused (%s): allow "
                      "it, or set system.cpus to none",
                      strerror(refusal));
    return result;
}

int domi_thread_start(domi_thread *thread, char *error, size_t error_size)
{
    char name[16];
    int cpu = thread->cpu;
    int result = create_pinned_thread(thread);

    if ((result == EPERM || result == EACCES || result == ENOSYS) && cpu >= 0)
        result = create_unpinned_thread(thread, result);
    if (result != 0) {
        snprintf(error, error_size, "a thread cannot be made (CPU %d): %s%s", cpu, strerror(result),
                 result == EPERM ? ": clone3 is refused, which a filter of system calls has to do "
                                   "by ENOSYS, or sched_setaffinity (system.cpus: none)"
                                 : "");
        return -result;
    }
    thread->started = true;
    snprintf(name, sizeof name, "domus-%u", thread->manager.index);
    (void)pthread_setname_np(thread->pthread, name);
    return 0;
}

void domi_thread_wait_for_end(domi_thread *thread)
{
    if (!thread->started)
        return;
    pthread_join(thread->pthread, NULL);
    thread->started = false;
}

void domi_thread_fini(domi_thread *thread)
{
    thread->kept = domi_kept_free(thread->kept);
    domi_observing_free_histograms(thread);
    domi_pairs_free_counters(thread);
    domi_io_fini(&thread->io);
    domi_manager_fini(&thread->manager);
}
