/* runtime/system/stall_history.c, runtime/control/stalls.c: the last stalls of a system can be
 * read, with what is known of each, while it goes on and when it is over. */
#include "tests/runtime/stalls.h"

#include <domus/stall.h>

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIGNAL 50

static const domus_type stay_type = {.name = "stay"};
static atomic_bool stays;
static domus_stall stalls[DOMUS_STALLS_KEPT];

static uint32_t read_stalls(domus_system *system)
{
    uint32_t count = 0;

    ck_assert_int_eq(domus_stalls_read(system, stalls, DOMUS_STALLS_KEPT, &count), 0);
    return count;
}

static int on_stay(domus_stack *stack, void *self, const void *payload)
{
    while (atomic_load(&stays))
        domt_burn(DOMT_MS, NULL);
    return 0;
}

static const domus_behaviour stuck = {
    .name = "stuck",
    .on = (const domus_on[]){{&stay_type, on_stay, 0}, {NULL, NULL, 0}},
};

static bool has_frame(const domus_stall *stall, const char *function)
{
    for (uint32_t i = 0; i < stall->frame_count; i++)
        if (strcmp(stall->frames[i], function) == 0)
            return true;
    return false;
}

static uint64_t utc_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

DOMT_TEST(a_stall_is_seen_while_it_lasts_and_afterwards)
{
    domus_config config = domt_config(2);

    config.stall.threshold_ns = 10 * DOMT_MS;
    config.stall.signal = SIGNAL;
    ck_assert_int_eq(domus_stall_signal(SIGNAL), 0);
    domus_system *system = domt_start_logging(&config);
    domus_address address = domt_spawn(system, 1, &stuck, NULL);
    ck_assert_uint_eq(read_stalls(system), 0);

    uint64_t before_ns = domt_now_ns(), before_utc_ns = utc_ns();
    atomic_store(&stays, true);
    domt_notice(system, address, &stay_type, NULL);
    DOMT_WAIT_FOR(20, read_stalls(system) == 1);
    ck_assert(!stalls[0].is_over);
    ck_assert_uint_ge(stalls[0].length_ns, 10 * DOMT_MS);
    uint64_t length_ns = stalls[0].length_ns;
    domt_pause_ns(5 * DOMT_MS);
    ck_assert_uint_eq(read_stalls(system), 1);
    ck_assert_uint_ge(stalls[0].length_ns, length_ns + 5 * DOMT_MS);
    ck_assert_str_eq(stalls[0].behaviour, "stuck");
    ck_assert_str_eq(stalls[0].type, "stay");
    ck_assert_str_eq(stalls[0].pool, "");
    ck_assert_uint_eq(stalls[0].index, 1);
    ck_assert(has_frame(&stalls[0], "on_stay")); /* it is static, so it has no name in dladdr() */

    atomic_store(&stays, false);
    DOMT_WAIT_FOR(20, read_stalls(system) == 1 && stalls[0].is_over);
    length_ns = stalls[0].length_ns;
    ck_assert_uint_le(length_ns, domt_now_ns() - before_ns + 50 * DOMT_MS);
    /* the begin is known to a look of the watch, and both clocks tell of one moment */
    ck_assert_uint_ge(stalls[0].began_ns, before_ns - 50 * DOMT_MS);
    ck_assert_uint_le(stalls[0].began_ns, domt_now_ns());
    int64_t apart = (int64_t)(stalls[0].began_ns - before_ns) -
                    (int64_t)(stalls[0].began_utc_ns - before_utc_ns);
    ck_assert_int_lt(apart < 0 ? -apart : apart, (int64_t)(50 * DOMT_MS));
    domt_pause_ns(5 * DOMT_MS);
    ck_assert_uint_eq(read_stalls(system), 1);
    ck_assert_uint_eq(stalls[0].length_ns, length_ns);
    domt_end(system);
}

/* --- the ring --------------------------------------------------------------------------------- */

static domus_system *make(void)
{
    domus_config config = domt_config(1);
    domus_system *system = NULL;

    ck_assert_int_eq(domus_system_new(&config, NULL, 0, &system), 0);
    return system;
}

static uint64_t add(domus_system *system, uint32_t index)
{
    domi_stall_record record = {.began_ns = domi_clock_now(&system->clock), .index = index};

    return domi_stall_history_add(&system->stall_history, &system->clock, &record);
}

DOMT_TEST(the_last_ones_are_kept_the_oldest_first)
{
    domus_system *system = make();
    uint32_t count = 0;

    for (uint32_t i = 1; i <= DOMUS_STALLS_KEPT + 4; i++) {
        ck_assert_uint_eq(add(system, i), i);
        ck_assert_uint_eq(read_stalls(system), i < DOMUS_STALLS_KEPT ? i : DOMUS_STALLS_KEPT);
        ck_assert_uint_eq(stalls[0].index, i < DOMUS_STALLS_KEPT ? 1 : i - DOMUS_STALLS_KEPT + 1);
    }
    for (uint32_t i = 0; i < DOMUS_STALLS_KEPT; i++)
        ck_assert_uint_eq(stalls[i].index, i + 5);
    ck_assert_int_eq(domus_stalls_read(system, stalls, 2, &count), 0);
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(stalls[0].index, DOMUS_STALLS_KEPT + 3);
    ck_assert_int_eq(domus_stalls_read(system, NULL, 0, &count), 0);
    ck_assert_uint_eq(count, 0);
    domus_system_free(system);
}

/* The end of a stall is never written to the one that has taken its place. */
DOMT_TEST(an_end_goes_to_its_own_stall)
{
    domus_system *system = make();
    uint64_t first = add(system, 1);

    domi_stall_history_end(&system->stall_history, 0, 7);
    ck_assert_uint_eq(read_stalls(system), 1);
    ck_assert(!stalls[0].is_over);
    domi_stall_history_end(&system->stall_history, first, 7);
    ck_assert_uint_eq(read_stalls(system), 1);
    ck_assert(stalls[0].is_over);
    ck_assert_uint_eq(stalls[0].length_ns, 7);
    for (uint32_t i = 0; i < DOMUS_STALLS_KEPT; i++)
        (void)add(system, i);
    domi_stall_history_end(&system->stall_history, first, 7);
    ck_assert_uint_eq(read_stalls(system), DOMUS_STALLS_KEPT);
    for (uint32_t i = 0; i < DOMUS_STALLS_KEPT; i++)
        ck_assert(!stalls[i].is_over);
    domus_system_free(system);
}

DOMT_TEST(long_names_and_deep_stacks_are_cut)
{
    static domi_backtrace trace = {.first = 3};
    domus_system *system = make();
    domi_stall_record record = {.index = 1};
    char name[200];

    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    trace.count = DOMI_BACKTRACE_FRAMES_MAX + DOMI_BACKTRACE_OWN_MAX;
    for (uint32_t i = 0; i < trace.count; i++)
        trace.frames[i] = (void *)(uintptr_t)(i + 1);
    domi_stall_record_name(record.behaviour, name);
    domi_stall_record_trace(&record, &trace);
    ck_assert_ptr_eq(record.frames[0], (void *)(uintptr_t)4);
    (void)domi_stall_history_add(&system->stall_history, &system->clock, &record);
    ck_assert_uint_eq(read_stalls(system), 1);
    ck_assert_uint_eq(strlen(stalls[0].behaviour), DOMUS_STALL_NAME_SIZE - 1);
    ck_assert_uint_eq(stalls[0].frame_count, DOMUS_STALL_FRAMES_MAX);
    ck_assert_str_eq(stalls[0].frames[0], "code without a module");
    trace.count = 2; /* fewer than belong to the handler */
    domi_stall_record_trace(&record, &trace);
    ck_assert_uint_eq(record.count, 0);
    domus_system_free(system);
}

DOMT_TEST(a_forked_child_reads_none)
{
    domus_system *system = make();
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        uint32_t count;
        _exit(domus_stalls_read(system, stalls, 1, &count) == -ECHILD ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    domus_system_free(system);
}

DOMT_SUITE(60)
