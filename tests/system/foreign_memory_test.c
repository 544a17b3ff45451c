/* Memory of other programs: a neighbour of the echo service in a real cgroup takes memory above
 * memory.high and then above memory.critical. The service goes on serving all its clients, because
 * nothing that it could do would free any of that memory.
 *
 * Under a sanitizer no cgroup is small enough, so only tests/runtime/foreign_memory_test.c tests
 * this. */
#include "tests/support/cgroup.h"
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define MIB     (UINT64_C(1) << 20)
#define LIMIT   (192 * MIB)
#define WAIT_MS 2000 /* longest allowed round trip in ms, for a busy machine, too */

static domt_service service;
static domt_cgroup cgroup;

static void enter_cgroup_of_service(void)
{
    (void)domt_cgroup_enter_process(&cgroup);
}

/* --- the neighbour ---------------------------------------------------------------------------- */

/* Let the neighbour fill the cgroup up to `bytes` bytes, and report when that is done. */
typedef struct neighbour {
    _Atomic uint64_t wanted;
    _Atomic uint64_t reached;
} neighbour;

static neighbour *shared;

/* The neighbour process: it takes memory as the test tells it, until the test kills it. */
static _Noreturn void run_neighbour_that_holds_memory(void)
{
    char *memory = mmap(NULL, LIMIT, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t held = 0;

    if (memory == MAP_FAILED)
        _exit(1);
    for (;;) {
        uint64_t wanted = atomic_load(&shared->wanted);
        while (held + MIB / 4 <= LIMIT && domt_cgroup_used_bytes(&cgroup) < wanted) {
            memset(memory + held, 1, MIB / 4);
            held += MIB / 4;
        }
        atomic_store(&shared->reached, wanted);
        domt_sleep_ms(1);
    }
}

static pid_t start_neighbour_in_cgroup(void)
{
    pid_t parent = getpid();

    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(shared != MAP_FAILED);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent || !domt_cgroup_enter_process(&cgroup))
            _exit(1);
        run_neighbour_that_holds_memory();
    }
    return child;
}

static void kill_neighbour(pid_t child)
{
    int status;

    (void)kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    (void)munmap(shared, sizeof *shared);
}

static void let_neighbour_fill_cgroup(uint64_t percent)
{
    uint64_t wanted = LIMIT / 100 * percent;

    atomic_store(&shared->wanted, wanted);
    for (int i = 0; i < 10000 && atomic_load(&shared->reached) != wanted; i++)
        domt_sleep_ms(1);
    ck_assert_uint_eq(atomic_load(&shared->reached), wanted);
}

/* --- the service ------------------------------------------------------------------------------ */

static bool does_service_log_in_time(const char *text)
{
    for (int i = 0; i < 500; i++) {
        domt_service_read_error(&service);
        if (strstr(service.error, text) != NULL)
            return true;
        domt_sleep_ms(10);
    }
    return false;
}

/* Check a client that is connected already, and clients that connect now. */
static void check_old_and_new_clients(int early)
{
    uint64_t most_ns = 0;

    for (int i = 0; i < 50; i++) {
        uint64_t start_ns = domt_monotonic_ns();
        ck_assert(domt_send_and_get_echo(early, "are you there?"));
        int late = domt_connect_to_port(service.port);
        ck_assert(domt_send_and_get_echo(late, "a new one is served too"));
        close(late);
        uint64_t took_ns = domt_monotonic_ns() - start_ns;
        most_ns = took_ns > most_ns ? took_ns : most_ns;
        domt_sleep_ms(5);
    }
    printf("%llu of %llu MiB used: round trips of an old and a new client took at most %.1f ms\n",
           (unsigned long long)(domt_cgroup_used_bytes(&cgroup) / MIB),
           (unsigned long long)(LIMIT / MIB), (double)most_ns / 1e6);
    ck_assert_uint_le(most_ns / 1000000, WAIT_MS);
}

DOMT_TEST(a_neighbour_that_fills_the_cgroup_stops_nothing)
{
    if (DOMT_SANITIZED || !domt_cgroup_make_with_memory_limit(&cgroup, LIMIT)) {
        printf("skipped: no memory cgroup: %s\n", DOMT_SANITIZED ? "sanitized" : cgroup.why);
        return;
    }
    service.prepare = enter_cgroup_of_service;
    domt_service_start(&service, DOMT_ECHO_ARGUMENTS("--set", "system.threads=2", ));
    int early = domt_connect_to_port(service.port);
    pid_t child = start_neighbour_in_cgroup();
    check_old_and_new_clients(early);
    let_neighbour_fill_cgroup(86);
    ck_assert(does_service_log_in_time("held by others than domus"));
    check_old_and_new_clients(early);
    let_neighbour_fill_cgroup(92);
    check_old_and_new_clients(early);
    kill_neighbour(child);
    ck_assert(does_service_log_in_time("no longer short"));
    check_old_and_new_clients(early);
    close(early);
    domt_service_signal(&service, SIGTERM);
    int status = domt_service_wait(&service, 30000);
    uint64_t kills = domt_cgroup_count_oom_kills(&cgroup);
    domt_cgroup_remove(&cgroup);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_eq(kills, 0);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "paused for memory"), 0);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "channels reset"), 0);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "memory limit"), LIMIT);
    const char *line = strstr(service.error, "held by others than domus");
    /* the line about foreign memory is logged only once */
    ck_assert_ptr_null(strstr(line + 1, "held by others than domus"));
}

DOMT_SUITE(60)
