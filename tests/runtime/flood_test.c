/* Floods in a real memory cgroup: the system refuses messages in time, the kernel never kills it,
 * and it gives back the memory when the flood is over.
 *
 * Each flood runs in a child process in a cgroup of DOMT_FLOOD_LIMIT bytes. Messages come in faster
 * than they are handled, so without refusals they would take many times that memory. The parent
 * checks that nothing was killed, that all accepted messages were handled, and that the memory was
 * given back. Where no cgroup can be made, a test says so and is skipped. A sanitizer needs several
 * times the memory of the program, and keeps freed memory; so under a sanitizer the floods run
 * against memory.limit, and the memory at the end is not checked. */
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

static bool make_memory_cgroup_and_report(void)
{
    if (!DOMT_SANITIZED && !domt_cgroup_make_with_memory(&domt_flood_cgroup, DOMT_FLOOD_LIMIT)) {
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
