/* Floods in a real memory cgroup: refused in time, never killed, and gone when they are over.
 *
 * Each flood runs in a child that is moved into a cgroup of DOMT_FLOOD_LIMIT bytes: what comes in
 * faster than it is handled would take many times that. The parent holds that nobody was killed
 * there, that all that was accepted was handled, and that the memory is back. Where no cgroup can
 * be made this is said and skipped. A sanitizer's own memory is several times the program's, grows
 * when something is freed, and stays: under one the same floods run against memory.limit, and what
 * is used in the end is not looked at. */
#include "tests/runtime/flood.h"
#include "tests/support/suite.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define CLIENTS 32

/* --- the parent ------------------------------------------------------------------------------- */

static bool make_cgroup(void)
{
    if (!DOMT_SANITIZED && !domt_cgroup_make_memory(&domt_flood_cgroup, DOMT_FLOOD_LIMIT)) {
        printf("skipped: no memory cgroup can be made: %s\n", domt_flood_cgroup.why);
        return false;
    }
    domt_flood_shared = mmap(NULL, sizeof *domt_flood_shared, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(domt_flood_shared != MAP_FAILED);
    return true;
}

static pid_t run_in_cgroup(void (*run)(void))
{
    pid_t parent = getpid();
    pid_t child = fork();

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        domt_flood_need(
            getppid() == parent && (DOMT_SANITIZED || domt_cgroup_enter(&domt_flood_cgroup)), 9);
        run();
        _exit(0);
    }
    return child;
}

static void print_report(void)
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

static void finish_child(pid_t child)
{
    int status = 0;

    ck_assert_int_eq(waitpid(child, &status, 0), child);
    uint64_t kills = DOMT_SANITIZED ? 0 : domt_cgroup_kills(&domt_flood_cgroup);
    if (!DOMT_SANITIZED)
        domt_cgroup_remove(&domt_flood_cgroup);
    print_report();
    ck_assert_uint_eq(kills, 0);
    ck_assert_msg(WIFEXITED(status), "killed by signal %d", WTERMSIG(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    ck_assert(domt_flood_shared->done);
    ck_assert_int_eq(domt_flood_shared->stopped, 0);
    ck_assert_uint_eq(domt_flood_shared->most.limit_bytes, DOMT_FLOOD_LIMIT);
}

/* Check what holds at the end of each flood of messages. */
static void finish_recovered(pid_t child)
{
    finish_child(child);
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
    if (!make_cgroup())
        return;
    finish_recovered(run_in_cgroup(domt_flood_notices));
    ck_assert_uint_ge(domt_flood_shared->refused, 1);
    ck_assert_uint_ge(domt_flood_shared->after.criticals, 1);
}

DOMT_TEST(a_flood_of_large_notices_is_refused_and_goes_away)
{
    if (!make_cgroup())
        return;
    finish_recovered(run_in_cgroup(domt_flood_large_notices));
    ck_assert_uint_ge(domt_flood_shared->refused, 1);
}

DOMT_TEST(a_flood_of_asks_is_refused_and_goes_away)
{
    if (!make_cgroup())
        return;
    finish_recovered(run_in_cgroup(domt_flood_asks));
    ck_assert_uint_ge(domt_flood_shared->refused, 1);
}

DOMT_TEST(a_flood_from_foreign_threads_is_refused_and_goes_away)
{
    if (!make_cgroup())
        return;
    finish_recovered(run_in_cgroup(domt_flood_foreign));
    ck_assert_uint_ge(domt_flood_shared->refused, 1);
}

static int connect_to(uint16_t port)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    int few = 65536; /* bytes that a socket still holds must be handled, too */

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &few, sizeof few), 0);
    ck_assert(connect(fd, (const struct sockaddr *)&to, sizeof to) == 0 || errno == EINPROGRESS);
    return fd;
}

/* Write to all clients as fast as they accept bytes, while the child goes on. Returns how many
 * bytes were accepted. */
static uint64_t write_to_all(const int *clients, pid_t child)
{
    static char bytes[65536];
    uint64_t sum = 0;

    while (domt_flood_lasts() && kill(child, 0) == 0) {
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

    if (!make_cgroup())
        return;
    pid_t child = run_in_cgroup(domt_flood_connections);
    while (atomic_load(&domt_flood_shared->port) == 0 && waitpid(child, NULL, WNOHANG) == 0)
        domt_sleep_ms(1);
    atomic_store(&domt_flood_shared->clients, CLIENTS);
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = connect_to((uint16_t)atomic_load(&domt_flood_shared->port));
    uint64_t sent = write_to_all(clients, child);
    for (int i = 0; i < CLIENTS; i++)
        close(clients[i]);
    finish_recovered(child);
    ck_assert_uint_ge(domt_flood_shared->pressed, 1);
    ck_assert_uint_gt(sent, 0);
}

DOMT_TEST(a_flood_of_actors_ends_for_want_of_memory_and_all_goes_on)
{
    if (!make_cgroup())
        return;
    finish_child(run_in_cgroup(domt_flood_actors));
    ck_assert_uint_ge(domt_flood_shared->after.highs, 1);
    ck_assert_uint_eq(domt_flood_shared->handled, domt_flood_shared->accepted);
    ck_assert_uint_eq(domt_flood_shared->failed, 0);
    if (!DOMT_SANITIZED)
        ck_assert_int_eq(domt_flood_shared->after.level, DOMUS_MEMORY_NORMAL);
}

DOMT_SUITE(120)
