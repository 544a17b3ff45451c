/* This file takes CPU profiles; domus/cpu_profile.h is the manual.
 *
 * The thread that takes a profile makes a timer for each thread, waits, deletes the timers, and
 * makes the flame. It looks again and again for runners that have begun meanwhile, and for the end
 * of the system. */
#include "base/check.h"
#include "base/memory.h"
#include "runtime/control/cpu_stacks.h"
#include "runtime/control/flame.h"
#include "runtime/outside/visit.h"
#include "runtime/policies/pool.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#define MS     UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

#define DURATION_MIN_NS (10 * MS)
#define DURATION_MAX_NS (3600 * SECOND)
#define FREQUENCY_MAX   1000u
#define BYTES_MIN       (64u << 10)
#define BYTES_MAX       (256u << 20)

#define LOOK_NS (10 * MS) /* time between two looks for runners and for the end of the system */

#ifndef sigev_notify_thread_id /* a macro of newer C libraries; older ones have only the field */
#define sigev_notify_thread_id _sigev_un._tid
#endif

struct domus_cpu_profile {
    domus_cpu_profile_summary summary;
    domi_flame flame;
};

/* A thread or a runner that is sampled, and its timer. */
typedef struct subject {
    const domi_sampled *sampled;
    uint64_t tid;   /* the kernel's number of the last thread of this subject; 0: none */
    bool is_timed;  /* whether the subject has a timer */
    bool was_timed; /* whether the subject has or had a timer */
    timer_t timer;
} subject;

typedef struct session {
    domus_system *system;
    domus_cpu_profile_options options;
    domi_samples samples;
    subject *subjects; /* threads and runners, `count` of them */
    uint32_t count;
} session;

/* --- timers ----------------------------------------------------------------------------------- */

static void stop_timer(subject *one)
{
    if (one->is_timed)
        (void)timer_delete(one->timer);
    one->is_timed = false;
}

/* Begin to sample the thread whose number is `tid`. Returns 0, also if it has ended meanwhile;
 * -EAGAIN. */
static int start_timer(subject *one, uint64_t tid, uint32_t frequency)
{
    const struct itimerspec each = {
        .it_interval = {frequency == 1, frequency == 1 ? 0 : (long)(SECOND / frequency)},
        .it_value = {frequency == 1, frequency == 1 ? 0 : (long)(SECOND / frequency)},
    };
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};

    event.sigev_notify_thread_id = (pid_t)tid;
    if (timer_create((clockid_t)domi_counter_read(&one->sampled->cpu_clock), &event, &one->timer) !=
        0)
        return errno == EAGAIN ? -EAGAIN : 0;
    one->is_timed = true;
    one->was_timed = true;
    return timer_settime(one->timer, 0, &each, NULL) == 0 || errno != EAGAIN ? 0 : -EAGAIN;
}

/* Make a timer for each thread that lives and has none. Returns 0; -EAGAIN. */
static int look_at_threads(session *own)
{
    int result = 0;

    for (uint32_t i = 0; i < own->count && result == 0; i++) {
        subject *one = &own->subjects[i];
        /* acquire: pairs with domi_samples_enable_thread(), so that the clock is seen. */
        uint64_t tid = atomic_load_explicit((domi_counter *)(uintptr_t)&one->sampled->tid,
                                            memory_order_acquire);
        if (tid == one->tid)
            continue;
        stop_timer(one);
        one->tid = tid;
        if (tid != 0)
            result = start_timer(one, tid, own->options.frequency);
    }
    return result;
}

static uint32_t count_timed_subjects(const session *own)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < own->count; i++)
        count += own->subjects[i].was_timed;
    return count;
}

/* --- a session -------------------------------------------------------------------------------- */

static uint32_t count_subjects(const domus_system *system)
{
    uint32_t count = system->count;

    for (uint32_t i = 0; i < system->pool_count; i++)
        count += system->pools[i]->count;
    return count;
}

/* Make what a session needs. Returns 0; -ENOMEM. free_session() follows in both cases. */
static int init_session(session *own)
{
    domus_system *system = own->system;

    own->samples.system = system;
    own->samples.capacity = own->options.bytes_max / sizeof(uint64_t);
    own->samples.words = domi_memory_new(own->options.bytes_max);
    own->subjects = domi_memory_new(count_subjects(system) * sizeof *own->subjects);
    if (own->samples.words == NULL || own->subjects == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < system->count; i++)
        own->subjects[own->count++].sampled = &system->threads[i].sampled;
    for (uint32_t i = 0; i < system->pool_count; i++) {
        for (uint32_t j = 0; j < system->pools[i]->count; j++)
            own->subjects[own->count++].sampled = &system->pools[i]->runners[j]->sampled;
    }
    return 0;
}

static void free_session(session *own)
{
    domi_memory_free(own->samples.words);
    domi_memory_free(own->subjects);
}

/* True if nobody waits for the profile any more, or the system has begun to stop. The profile ends
 * then, because the drain waits for answers, and an answer may wait for the profile. */
static bool is_profile_ending(const session *own)
{
    const domus_cpu_profile_options *options = &own->options;

    return domi_system_read_step(own->system, memory_order_relaxed) != DOMI_STOP_NONE ||
           (options->is_over != NULL && options->is_over(options->context));
}

static void wait_until_session_ends(domus_system *system, uint64_t wait_ns)
{
    const struct timespec until = domi_clock_deadline_after(wait_ns);

    pthread_mutex_lock(&system->mutex);
    (void)pthread_cond_timedwait(&system->changed, &system->mutex, &until);
    pthread_mutex_unlock(&system->mutex);
}

/* Sample the threads for the duration of the profile. Returns 0; -EACCES; -EAGAIN. */
static int sample_threads(session *own, uint64_t *ret_wall_ns)
{
    domus_system *system = own->system;
    uint64_t from_ns = domi_clock_now(&system->clock);
    uint64_t passed_ns = 0;
    int result = look_at_threads(own);

    if (result == 0 && count_timed_subjects(own) == 0)
        result = -EACCES;
    while (result == 0 && passed_ns < own->options.duration_ns && !is_profile_ending(own)) {
        uint64_t left_ns = own->options.duration_ns - passed_ns;
        wait_until_session_ends(system, left_ns < LOOK_NS ? left_ns : LOOK_NS);
        result = look_at_threads(own);
        passed_ns = domi_clock_now(&system->clock) - from_ns;
    }
    for (uint32_t i = 0; i < own->count; i++)
        stop_timer(&own->subjects[i]);
    *ret_wall_ns = passed_ns;
    return result;
}

static void sum_up_samples(const session *own, domus_cpu_profile_summary *summary)
{
    summary->samples = atomic_load_explicit(&own->samples.taken, memory_order_relaxed);
    summary->dropped = atomic_load_explicit(&own->samples.dropped, memory_order_relaxed);
    summary->frequency = own->options.frequency;
    summary->threads = count_timed_subjects(own);
}

/* Make the profile of a session that is over. Returns 0; -ENOMEM. */
static int make_profile(const session *own, uint64_t wall_ns, domus_cpu_profile **ret_profile)
{
    domus_cpu_profile *made = domi_memory_new(sizeof *made);

    if (made == NULL)
        return -ENOMEM;
    int result = domi_flame_init(&made->flame);
    if (result != 0) {
        domi_memory_free(made);
        return result;
    }
    result = domi_cpu_stacks_add(&own->samples, &made->flame);
    if (result != 0) {
        domus_cpu_profile_free(made);
        return result;
    }
    made->summary.wall_ns = wall_ns;
    sum_up_samples(own, &made->summary);
    *ret_profile = made;
    return 0;
}

/* --- the verbs -------------------------------------------------------------------------------- */

static int read_options(const domus_cpu_profile_options *given, domus_cpu_profile_options *options)
{
    *options = given != NULL ? *given : (domus_cpu_profile_options){0};
    if (options->duration_ns == 0)
        options->duration_ns = 10 * SECOND;
    if (options->frequency == 0)
        options->frequency = 99;
    if (options->bytes_max == 0)
        options->bytes_max = 8u << 20;
    bool is_right = options->duration_ns >= DURATION_MIN_NS &&
                    options->duration_ns <= DURATION_MAX_NS &&
                    options->frequency <= FREQUENCY_MAX && options->bytes_max >= BYTES_MIN &&
                    options->bytes_max <= BYTES_MAX;
    return is_right ? 0 : -EINVAL;
}

/* Check whether the calling thread may wait for this system. Returns 0; a negative errno of the
 * header. */
static int check_may_wait(domus_system *system)
{
    domi_visit visit;

    if (domi_thread_manager != NULL && domi_thread_manager->system == system)
        return -EDEADLK;
    if (system->simulator != NULL)
        return -EOPNOTSUPP;
    int result = domi_outside_enter(system, DOMI_LAST_TO_SEND, &visit);
    if (result == 0)
        domi_outside_leave(system, &visit);
    return result;
}

int domus_cpu_profile_take(domus_system *system, const domus_cpu_profile_options *given,
                           domus_cpu_profile **ret_profile)
{
    session own = {.system = system};
    uint64_t wall_ns = 0;
    int result = read_options(given, &own.options);

    if (result == 0)
        result = check_may_wait(system);
    if (result != 0)
        return result;
    result = init_session(&own);
    if (result == 0)
        result = domi_samples_begin(&own.samples);
    if (result == 0) {
        result = sample_threads(&own, &wall_ns);
        domi_samples_end(&own.samples);
        if (result == 0)
            result = make_profile(&own, wall_ns, ret_profile);
    }
    free_session(&own);
    return result;
}

void domus_cpu_profile_free(domus_cpu_profile *profile)
{
    if (profile == NULL)
        return;
    domi_flame_fini(&profile->flame);
    domi_memory_free(profile);
}

void domus_cpu_profile_sum(const domus_cpu_profile *profile, domus_cpu_profile_summary *ret_summary)
{
    *ret_summary = profile->summary;
}

int domus_cpu_profile_write_folded(const domus_cpu_profile *profile, domus_cpu_profile_write *write,
                                   void *context)
{
    return domi_flame_write_folded(&profile->flame, write, context);
}

int domus_cpu_profile_write_svg(const domus_cpu_profile *profile, domus_cpu_profile_write *write,
                                void *context)
{
    const domus_cpu_profile_summary *summary = &profile->summary;
    char title[192];

    snprintf(title, sizeof title,
             "CPU profile: %" PRIu64 " samples at %" PRIu32 " Hz of %" PRIu32 " threads in %" PRIu64
             ".%" PRIu64 " s, %" PRIu64 " dropped",
             summary->samples, summary->frequency, summary->threads, summary->wall_ns / SECOND,
             summary->wall_ns % SECOND / (100 * MS), summary->dropped);
    return domi_flame_write_svg(&profile->flame, title, write, context);
}
