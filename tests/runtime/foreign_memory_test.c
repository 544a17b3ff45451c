/* Memory that is short for real: foreign memory, and floods in a memory cgroup, which are refused
 * in time. */
#include "runtime/system/pressure.h"
#include "runtime/system/system.h"
#include "tests/runtime/flood.h"
#include "tests/runtime/pressed.h"
#include "tests/support/suite.h"

#include <domus/pools.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* A system whose memory is short acts by the holder of the memory: the system itself, or others
 * (foreign memory). If foreign memory is to blame, an actor that holds memory of the application
 * is told of it, also on a thread that sleeps, and nothing else is stopped. The cgroup is made of
 * files. */

#define MIB UINT64_C(1048576)

static domus_system *system_;
static const domus_type note = {.name = "note"};
static const domus_type go = {.name = "go"};
static domus_address counter;
static _Atomic int heard_error;

static int record_error_of_ask(domus_stack *stack, void *self, const domus_answer *answer)
{
    atomic_store(&heard_error, answer->error);
    return 0;
}

static int begin_ticking_in_mount(domus_stack *stack, void *self)
{
    return domus_after(stack, DOMT_MS, &go, NULL, NULL);
}

static int ask_counter_at_each_tick(domus_stack *stack, void *self, const void *payload)
{
    ck_assert_int_eq(domus_after(stack, 2 * DOMT_MS, &go, NULL, NULL), 0);
    return domus_ask(stack, counter, &note, NULL, record_error_of_ask);
}

static const domus_behaviour counting = {
    .name = "counting", .on = (const domus_on[]){{&note, domt_ignore_message, 0}, {0}}};
static const domus_behaviour asking = {
    .name = "asking",
    .on = (const domus_on[]){{&go, ask_counter_at_each_tick, 0}, {0}},
    .on_mount = begin_ticking_in_mount};

static void start_pressed_system(bool enabled)
{
    system_ = domt_pressed_start_logged(enabled);
    domt_pressed_serve_echo();
}

/* Set the used memory, and send notices until the system has this level: a thread that sleeps does
 * not look at memory while nothing is short. */
static void use_memory_until_level(uint64_t percent, domus_memory_level level)
{
    domt_pressed_set_used_percent(percent);
    DOMT_WAIT_FOR(20, ((void)domus_outside_notice(system_, counter, &note, NULL),
                       domt_pressed_read_memory().level == level));
}

/* Wait until both threads have counted that they pause, which each does at its next tick. */
static void wait_until_paused(int fd)
{
    DOMT_WAIT_FOR(10,
                  (domt_pressed_send_byte(fd), domt_profile_of_all_threads(system_).pressed == 2));
    while (domt_pressed_is_byte_echoed(fd, 50))
        continue;
}

DOMT_TEST(accepting_pauses_and_goes_on_by_itself_and_reading_goes_on)
{
    start_pressed_system(true);
    counter = domt_spawn(system_, 0, &counting, NULL);
    int early[4], late[4];
    for (int i = 0; i < 4; i++) {
        early[i] = domt_pressed_connect();
        domt_pressed_send_byte(early[i]);
        ck_assert(domt_pressed_is_byte_echoed(early[i], 10000));
    }
    use_memory_until_level(85, DOMUS_MEMORY_HIGH);
    wait_until_paused(early[0]);
    uint64_t accepted = domt_profile_of_all_threads(system_).accepted;
    for (int i = 0; i < 4; i++) {
        /* while threads do not accept, this connection waits in the backlog */
        late[i] = domt_pressed_connect();
        domt_pressed_send_byte(late[i]);
        domt_pressed_send_byte(early[i]);
    }
    for (int i = 0; i < 4; i++)
        ck_assert(domt_pressed_is_byte_echoed(early[i], 10000) &&
                  !domt_pressed_is_byte_echoed(late[i], 10));
    ck_assert_uint_eq(domt_profile_of_all_threads(system_).accepted, accepted);
    use_memory_until_level(92, DOMUS_MEMORY_CRITICAL);
    for (int i = 0; i < 8; i++) {
        domt_pressed_send_byte(early[i % 4]);
        ck_assert(domt_pressed_is_byte_echoed(early[i % 4], 10000));
    }
    domt_pressed_set_used_percent(
        20); /* memory is no longer short, but no message wakes a sleeping thread */
    for (int i = 0; i < 4; i++)
        ck_assert(domt_pressed_is_byte_echoed(late[i], 10000));
    for (int i = 0; i < 4; i++) {
        close(late[i]);
        close(early[i]);
    }
    domt_pressed_end();
}

/* --- foreign memory --------------------------------------------------------------------------- */

static bool is_new_connection_served(void)
{
    int fd = domt_pressed_connect();

    domt_pressed_send_byte(fd);
    bool served = domt_pressed_is_byte_echoed(fd, 10000);
    close(fd);
    return served;
}

DOMT_TEST(foreign_memory_stops_nothing_and_is_logged_once)
{
    start_pressed_system(true);
    counter = domt_spawn(system_, 0, &counting, NULL);
    (void)domt_spawn(system_, 1, &asking, NULL);
    domt_pressed_set_used_and_foreign(94, 92);
    DOMT_WAIT_FOR(10, domt_pressed_read_memory().level == DOMUS_MEMORY_CRITICAL);
    ck_assert_int_eq(domt_pressed_read_memory().own_level, DOMUS_MEMORY_NORMAL);
    for (int i = 0; i < 5; i++) {
        ck_assert(is_new_connection_served());
        ck_assert_int_eq(domus_outside_notice(system_, counter, &note, NULL), 0);
        domt_pause_ns(10 * DOMT_MS);
    }
    ck_assert_int_ne(atomic_load(&heard_error), -EBUSY);
    ck_assert_uint_eq(domt_profile_of_all_threads(system_).pressed, 0);
    domus_memory memory = domt_pressed_read_memory();
    ck_assert_uint_eq(memory.used_bytes, 940 * MIB);
    ck_assert_uint_eq(memory.own_bytes + memory.foreign_bytes, memory.used_bytes);
    ck_assert_uint_ge(memory.own_bytes, 20 * MIB);
    ck_assert_uint_lt(memory.own_bytes, 40 * MIB);
    ck_assert_uint_eq(memory.budget_bytes, 125 * MIB);
    ck_assert_uint_eq(memory.last_budget_bytes, 125 * MIB);
    ck_assert_uint_eq(domt_pressed_count_lines("held by others than domus"), 1);
    domt_pressed_set_used_and_foreign(30, 20);
    DOMT_WAIT_FOR(10, domt_pressed_count_lines("no longer short") == 1);
    ck_assert_uint_eq(domt_pressed_count_lines("memory"), 2);
    domt_pressed_end();
}

DOMT_TEST(beside_much_foreign_memory_the_library_has_an_eighth)
{
    start_pressed_system(true);
    counter = domt_spawn(system_, 0, &counting, NULL);
    domt_pressed_set_used_and_foreign(88, 77);
    DOMT_WAIT_FOR(10, domt_pressed_read_memory().own_bytes >= 110 * MIB);
    ck_assert_int_eq(domt_pressed_read_memory().own_level, DOMUS_MEMORY_NORMAL);
    /* own memory is 130 of 1000 MiB, and the budgets are 125 and 130 MiB */
    domt_pressed_set_used_and_foreign(90, 77);
    DOMT_WAIT_FOR(10, domt_pressed_read_memory().own_level != DOMUS_MEMORY_NORMAL);
    domt_pressed_set_used_and_foreign(88, 77);
    DOMT_WAIT_FOR(10, domt_pressed_read_memory().own_level == DOMUS_MEMORY_NORMAL);
    domt_pressed_end();
}

DOMT_TEST(accepting_pauses_when_memory_is_full_by_whomever)
{
    start_pressed_system(true);
    counter = domt_spawn(system_, 0, &counting, NULL);
    domt_pressed_begin_large_spawns(1);
    int early = domt_pressed_connect();
    domt_pressed_send_byte(early);
    ck_assert(domt_pressed_is_byte_echoed(early, 10000));
    domt_pressed_set_used_and_foreign(96, 95);
    DOMT_WAIT_FOR(20, domt_pressed_error_of_spawns() == -ENOMEM);
    wait_until_paused(early);
    ck_assert_int_eq(domt_pressed_read_memory().own_level, DOMUS_MEMORY_NORMAL);
    int late = domt_pressed_connect();
    domt_pressed_send_byte(late);
    ck_assert(!domt_pressed_is_byte_echoed(late, 50));
    domt_pressed_send_byte(early);
    ck_assert(domt_pressed_is_byte_echoed(early, 10000));
    DOMT_WAIT_FOR(10, domt_pressed_count_lines("almost used up") == 1);
    domt_pressed_set_used_percent(20);
    ck_assert(domt_pressed_is_byte_echoed(late, 10000));
    close(late);
    close(early);
    domt_pressed_end();
}

/* The kernel counts socket buffers against the limit of a cgroup of version 2, and the system
 * counts them as own memory. */
DOMT_TEST(socket_buffers_are_own_memory)
{
    start_pressed_system(true);
    counter = domt_spawn(system_, 0, &counting, NULL);
    domt_tree_write(&domt_pressed_tree, "sys/fs/cgroup/a/memory.stat",
                    "inactive_file 0\nsock 629145600\n");
    domt_pressed_set_used_and_foreign(85, 80);
    DOMT_WAIT_FOR(10, ((void)domus_outside_notice(system_, counter, &note, NULL),
                       domt_pressed_read_memory().own_level == DOMUS_MEMORY_HIGH));
    ck_assert_uint_ge(domt_pressed_read_memory().own_bytes, 650 * MIB);
    ck_assert(domi_pressure_get_state_for_io(&system_->pressure).counts_sockets);
    domt_pressed_end();
}

/* --- who hears of it -------------------------------------------------------------------------- */

static _Atomic uint32_t heard;
static _Atomic uint32_t heard_level;
static _Atomic uint32_t heard_own_level;
static _Atomic uint64_t foreign_bytes;

static int watch_memory_in_mount(domus_stack *stack, void *self)
{
    return domus_watch_memory(stack);
}

static int record_change_of_memory(domus_stack *stack, void *self, const void *payload)
{
    const domus_memory_change *change = payload;

    /* The bytes are stored first, because the test waits for the levels and then reads the
     * bytes. */
    atomic_store(&foreign_bytes, change->foreign_bytes);
    atomic_store(&heard_own_level, change->own_level);
    atomic_store(&heard_level, change->level);
    atomic_fetch_add(&heard, 1);
    return 0;
}

static const domus_behaviour holding = {
    .name = "holding",
    .on = (const domus_on[]){{&domus_memory_type, record_change_of_memory, 0}, {0}},
    .on_mount = watch_memory_in_mount};

static void expect_levels_heard(domus_memory_level wanted, domus_memory_level wanted_own)
{
    DOMT_WAIT_FOR(20, atomic_load(&heard_level) == wanted &&
                          atomic_load(&heard_own_level) == wanted_own);
}

static void check_foreign_and_own_levels(domus_spawn_options options, const char *pool)
{
    domus_address address;

    atomic_store(&heard, 0);
    system_ = domt_pressed_start_logged(true);
    options.pool = pool != NULL ? domus_outside_pool_find(system_, pool) : NULL;
    ck_assert_int_eq(domus_outside_spawn_with(system_, &holding, NULL, &options, &address), 0);
    domt_pressed_set_used_and_foreign(85, 80);
    expect_levels_heard(DOMUS_MEMORY_HIGH, DOMUS_MEMORY_NORMAL);
    /* at least 74 %: foreign memory is 80 %, or 75 % if the system looked between the two figures
     * that the test sets */
    ck_assert_uint_ge(atomic_load(&foreign_bytes), UINT64_C(740) << 20);
    domt_pressed_set_used_and_foreign(92, 87);
    expect_levels_heard(DOMUS_MEMORY_CRITICAL, DOMUS_MEMORY_NORMAL);
    domt_pressed_set_used_and_foreign(92, 10);
    expect_levels_heard(DOMUS_MEMORY_CRITICAL, DOMUS_MEMORY_CRITICAL);
    domt_pressed_set_used_and_foreign(20, 10);
    expect_levels_heard(DOMUS_MEMORY_NORMAL, DOMUS_MEMORY_NORMAL);
    ck_assert_uint_ge(atomic_load(&heard), 4);
    domt_pressed_end();
}

DOMT_TEST(an_actor_hears_of_memory_that_others_hold_and_of_the_librarys)
{
    check_foreign_and_own_levels((domus_spawn_options){0}, NULL);
}

DOMT_TEST(detached_actor_hears_of_foreign_memory)
{
    check_foreign_and_own_levels((domus_spawn_options){.detached = true}, NULL);
}

DOMT_TEST(pool_actor_hears_of_foreign_memory)
{
    check_foreign_and_own_levels((domus_spawn_options){0}, "work");
}

/* --- flood ------------------------------------------------------------------------------------ */

/* Floods in a real memory cgroup: the system refuses messages in time, the kernel never kills it,
 * and it gives back the memory when the flood is over. Each flood runs in a child process in a
 * cgroup of DOMT_FLOOD_LIMIT bytes. Messages come in faster than they are handled, so without
 * refusals they would take many times that memory. The parent checks that nothing was killed, that
 * all accepted messages were handled, and that the memory was given back. Where no cgroup can be
 * made, a test says so and is skipped. A sanitizer needs several times the memory of the program,
 * and keeps freed memory; so under a sanitizer the floods run against memory.limit, and the memory
 * at the end is not checked. */

#define CLIENTS 32

/* --- the parent ------------------------------------------------------------------------------- */

static bool make_memory_cgroup_and_report(void)
{
    if (!DOMT_SANITIZED &&
        !domt_cgroup_make_with_memory_limit(&domt_flood_cgroup, DOMT_FLOOD_LIMIT)) {
        printf("skipped: no memory cgroup can be made: %s\n", domt_flood_cgroup.why);
        return false;
    }
    domt_flood_shared = mmap(NULL, sizeof *domt_flood_shared, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(domt_flood_shared != MAP_FAILED);
    return true;
}

static pid_t fork_into_cgroup(void (*run)(void))
{
    pid_t parent = getpid();
    pid_t child = fork();

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        domt_flood_exit_unless(getppid() == parent && (DOMT_SANITIZED || domt_cgroup_enter_process(
                                                                             &domt_flood_cgroup)),
                               9);
        run();
        _exit(0);
    }
    return child;
}

static void print_report_of_flood(void)
{
    const domt_flood_report *told = domt_flood_shared;
    const unsigned long long figures[] = {
        told->accepted,
        told->refused,
        told->failed,
        told->most.used_bytes / DOMT_MIB,
        told->used_after / DOMT_MIB,
        told->after.highs,
        told->after.criticals,
        told->after.fulls,
        told->after.looks,
        told->trimmed_bytes / DOMT_MIB,
    };
    static const char *const names[] = {"accepted",  "refused",    "failed",    "used MiB",
                                        "after MiB", "highs",      "criticals", "fulls",
                                        "looks",     "trimmed MiB"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        printf("%s %llu%s", names[i], figures[i],
               i + 1 < sizeof names / sizeof names[0] ? ", " : "\n");
}

static void wait_for_child_of_flood(pid_t child)
{
    int status = 0;

    ck_assert_int_eq(waitpid(child, &status, 0), child);
    uint64_t kills = DOMT_SANITIZED ? 0 : domt_cgroup_count_oom_kills(&domt_flood_cgroup);
    if (!DOMT_SANITIZED)
        domt_cgroup_remove(&domt_flood_cgroup);
    print_report_of_flood();
    ck_assert_uint_eq(kills, 0);
    ck_assert_msg(WIFEXITED(status), "killed by signal %d", WTERMSIG(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    ck_assert(domt_flood_shared->done);
    ck_assert_int_eq(domt_flood_shared->stopped, 0);
    ck_assert_uint_eq(domt_flood_shared->most.limit_bytes, DOMT_FLOOD_LIMIT);
}

/* Check that the flood of messages in the child has ended well, and that its memory was given
 * back. */
static void check_child_has_recovered(pid_t child)
{
    wait_for_child_of_flood(child);
    ck_assert_uint_eq(domt_flood_shared->handled, domt_flood_shared->accepted);
    ck_assert_uint_eq(domt_flood_shared->failed, 0);
    ck_assert_uint_ge(domt_flood_shared->after.highs, 1);
    if (DOMT_SANITIZED)
        return;
    ck_assert_int_eq(domt_flood_shared->after.level, DOMUS_MEMORY_NORMAL);
    ck_assert_uint_lt(domt_flood_shared->used_after, DOMT_FLOOD_BACK);
}

DOMT_TEST(a_flood_of_notices_is_refused_and_goes_away)
{
    if (!make_memory_cgroup_and_report())
        return;
    check_child_has_recovered(fork_into_cgroup(domt_flood_with_notices));
    ck_assert_uint_ge(domt_flood_shared->refused, 1);
    ck_assert_uint_ge(domt_flood_shared->after.criticals, 1);
}

DOMT_TEST(a_flood_of_large_notices_is_refused_and_goes_away)
{
    if (!make_memory_cgroup_and_report())
        return;
    check_child_has_recovered(fork_into_cgroup(domt_flood_with_large_notices));
    ck_assert_uint_ge(domt_flood_shared->refused, 1);
}

DOMT_TEST(a_flood_of_asks_is_refused_and_goes_away)
{
    if (!make_memory_cgroup_and_report())
        return;
    check_child_has_recovered(fork_into_cgroup(domt_flood_with_asks));
    ck_assert_uint_ge(domt_flood_shared->refused, 1);
}

DOMT_TEST(a_flood_from_foreign_threads_is_refused_and_goes_away)
{
    if (!make_memory_cgroup_and_report())
        return;
    check_child_has_recovered(fork_into_cgroup(domt_flood_with_foreign_notices));
    ck_assert_uint_ge(domt_flood_shared->refused, 1);
}

static int connect_to_flooded_port(uint16_t port)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    /* a small send buffer, because bytes that a socket still holds at the end must be handled, too
     */
    int few = 65536;

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &few, sizeof few), 0);
    ck_assert(connect(fd, (const struct sockaddr *)&to, sizeof to) == 0 || errno == EINPROGRESS);
    return fd;
}

/* Write to all connections as fast as they accept bytes, while the child runs. Returns how many
 * bytes were accepted. */
static uint64_t write_to_all_connections(const int *clients, pid_t child)
{
    static char bytes[65536];
    uint64_t sum = 0;

    while (domt_flood_still_lasts() && kill(child, 0) == 0) {
        for (int i = 0; i < CLIENTS; i++) {
            ssize_t count = send(clients[i], bytes, sizeof bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
            sum += count > 0 ? (uint64_t)count : 0;
        }
    }
    return sum;
}

DOMT_TEST(a_flood_by_connections_is_not_read_and_goes_away)
{
    int clients[CLIENTS];

    if (!make_memory_cgroup_and_report())
        return;
    pid_t child = fork_into_cgroup(domt_flood_with_connections);
    while (atomic_load(&domt_flood_shared->port) == 0 && waitpid(child, NULL, WNOHANG) == 0)
        domt_sleep_ms(1);
    atomic_store(&domt_flood_shared->clients, CLIENTS);
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = connect_to_flooded_port((uint16_t)atomic_load(&domt_flood_shared->port));
    uint64_t sent = write_to_all_connections(clients, child);
    for (int i = 0; i < CLIENTS; i++)
        close(clients[i]);
    check_child_has_recovered(child);
    ck_assert_uint_ge(domt_flood_shared->pressed, 1);
    ck_assert_uint_gt(sent, 0);
}

DOMT_TEST(a_flood_of_actors_ends_for_want_of_memory_and_all_goes_on)
{
    if (!make_memory_cgroup_and_report())
        return;
    wait_for_child_of_flood(fork_into_cgroup(domt_flood_with_actors));
    ck_assert_uint_ge(domt_flood_shared->after.highs, 1);
    ck_assert_uint_eq(domt_flood_shared->handled, domt_flood_shared->accepted);
    ck_assert_uint_eq(domt_flood_shared->failed, 0);
    if (!DOMT_SANITIZED)
        ck_assert_int_eq(domt_flood_shared->after.level, DOMUS_MEMORY_NORMAL);
}

DOMT_SUITE(120)
