/* This file takes CPU profiles; domus/cpu_profile.h is the manual.
 *
 * The thread that takes a profile makes a timer for each sampled thread, waits, deletes the
 * timers, and makes the flame (flame.h). It looks again and again for runners that have begun
 * meanwhile, and for the end of the system. */
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

/* nanoseconds between two looks for new runners and for the end of the system, while a profile
 * is taken */
#define LOOK_NS (10 * MS)

/* newer C libraries define this macro of timer_create(); older ones have only the field */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

struct domus_cpu_profile {
    domus_cpu_profile_summary summary;
    domi_flame flame;
};

/* A subject of a profile: a thread of the loop or a runner that is sampled, with its timer. */
typedef struct subject {
    const domi_sampled *sampled;
    /* kernel's number (tid) of the thread that the subject had at the last look; 0: it had none */
    uint64_t tid;
    bool is_timed;  /* whether a timer samples the subject now */
    bool was_timed; /* whether a timer samples the subject or has sampled it */
    timer_t timer;
} subject;

typedef struct session {
    domus_system *system;
    domus_cpu_profile_options options;
    domi_samples samples;
    /* array of subjects: all threads and runners of the system, `count` of them */
    subject *subjects;
    uint32_t count;
} session;

/* --- timers ----------------------------------------------------------------------------------- */

static void stop_timer_of_subject(subject *one)
{
    if (one->is_timed)
        (void)timer_delete(one->timer);
    one->is_timed = false;
}

/* Let a timer sample the thread whose number is `tid`, for a subject of the profile. Returns 0,
 * also if the thread has ended meanwhile; -EAGAIN. */
static int start_timer_of_subject(subject *one, uint64_t tid, uint32_t frequency)
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

/* Make a timer for each subject whose thread lives and has no timer yet, and stop the timers of
 * ended threads. Returns 0; -EAGAIN. */
static int update_timers_of_subjects(session *own)
{
    int result = 0;

    for (uint32_t i = 0; i < own->count && result == 0; i++) {
        subject *one = &own->subjects[i];
        /* acquire: pairs with the release of the tid in domi_samples_enable_thread(), so that the
         * thread's CPU clock is seen. */
        uint64_t tid = atomic_load_explicit((domi_counter *)(uintptr_t)&one->sampled->tid,
                                            memory_order_acquire);
        if (tid == one->tid)
            continue;
        stop_timer_of_subject(one);
        one->tid = tid;
        if (tid != 0)
            result = start_timer_of_subject(one, tid, own->options.frequency);
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

/* Make what the session of a profile needs: its buffer of samples and its subjects. Returns 0;
 * -ENOMEM. free_session_of_profile() follows in both cases. */
static int init_session_of_profile(session *own)
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

static void free_session_of_profile(session *own)
{
    domi_memory_free(own->samples.words);
    domi_memory_free(own->subjects);
}

/* True if the caller does not want the profile any more, or the system has begun to stop. The
 * profile then ends early, because the drain waits for answers, and an answer may wait for the
 * profile. */
static bool is_profile_ending(const session *own)
{
    const domus_cpu_profile_options *options = &own->options;

    return domi_system_read_stop_step(own->system, memory_order_relaxed) != DOMI_STOP_NONE ||
           (options->is_over != NULL && options->is_over(options->context));
}

static void wait_for_change_of_system(domus_system *system, uint64_t wait_ns)
{
    const struct timespec until = domi_clock_deadline_after(wait_ns);

    pthread_mutex_lock(&system->mutex);
    (void)pthread_cond_timedwait(&system->changed, &system->mutex, &until);
    pthread_mutex_unlock(&system->mutex);
}

/* Sample all subjects for the duration of the profile, and measure how long that took. Returns 0;
 * -EACCES if no thread can be sampled; -EAGAIN. */
static int sample_threads_for_duration(session *own, uint64_t *ret_wall_ns)
{
    domus_system *system = own->system;
    uint64_t from_ns = domi_clock_now(&system->clock);
    uint64_t passed_ns = 0;
    int result = update_timers_of_subjects(own);

    if (result == 0 && count_timed_subjects(own) == 0)
        result = -EACCES;
    while (result == 0 && passed_ns < own->options.duration_ns && !is_profile_ending(own)) {
        uint64_t left_ns = own->options.duration_ns - passed_ns;
        wait_for_change_of_system(system, left_ns < LOOK_NS ? left_ns : LOOK_NS);
        result = update_timers_of_subjects(own);
        passed_ns = domi_clock_now(&system->clock) - from_ns;
    }
    for (uint32_t i = 0; i < own->count; i++)
        stop_timer_of_subject(&own->subjects[i]);
    *ret_wall_ns = passed_ns;
    return result;
}

static void fill_summary_of_samples(const session *own, domus_cpu_profile_summary *summary)
{
    summary->samples = atomic_load_explicit(&own->samples.taken, memory_order_relaxed);
    summary->dropped = atomic_load_explicit(&own->samples.dropped, memory_order_relaxed);
    summary->frequency = own->options.frequency;
    summary->threads = count_timed_subjects(own);
}

/* Make the profile of a session whose sampling is over: its flame and its summary. Returns 0;
 * -ENOMEM. */
static int make_profile_of_session(const session *own, uint64_t wall_ns,
                                   domus_cpu_profile **ret_profile)
{
    domus_cpu_profile *made = domi_memory_new(sizeof *made);

    if (made == NULL)
        return -ENOMEM;
    int result = domi_flame_init(&made->flame);
    if (result != 0) {
        domi_memory_free(made);
        return result;
    }
    result = domi_cpu_stacks_add_to_flame(&own->samples, &made->flame);
    if (result != 0) {
        domus_cpu_profile_free(made);
        return result;
    }
    made->summary.wall_ns = wall_ns;
    fill_summary_of_samples(own, &made->summary);
    *ret_profile = made;
    return 0;
}

/* --- the verbs -------------------------------------------------------------------------------- */

static int check_options_of_profile(const domus_cpu_profile_options *given,
                                    domus_cpu_profile_options *options)
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

/* Check whether the calling thread may wait for a profile of this system. Returns 0, or a negative
 * errno that domus/cpu_profile.h lists. */
static int check_thread_may_wait_for_profile(domus_system *system)
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
    int result = check_options_of_profile(given, &own.options);

    if (result == 0)
        result = check_thread_may_wait_for_profile(system);
    if (result != 0)
        return result;
    result = init_session_of_profile(&own);
    if (result == 0)
        result = domi_samples_make_set_active(&own.samples);
    if (result == 0) {
        result = sample_threads_for_duration(&own, &wall_ns);
        domi_samples_end_active_set(&own.samples);
        if (result == 0)
            result = make_profile_of_session(&own, wall_ns, ret_profile);
    }
    free_session_of_profile(&own);
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
