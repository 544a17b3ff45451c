/* `bench cluster` trusts its contenders as little as possible: it reads the CPU clocks of their
 * processes itself, ends a run if a side ends or is silent, and leaves no process. In most tests
 * both sides are shell scripts. */
#include "tests/support/suite.h"

#include "bench/cluster_pair.h"
#include "bench/support/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *who;
static struct cluster_result result;
static uint32_t seconds_max = 30;

/* Run two shell scripts as the sides. */
static int run_pair(const char *responder, const char *requester)
{
    char script[] = "/tmp/cluster-test-XXXXXX";
    int fd = mkstemp(script);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

    ck_assert_ptr_nonnull(file);
    fprintf(file,
            "#!/bin/sh\n"
            "if [ $1 = responder ]; then\n%s\nelse\n%s\nfi\n",
            responder, requester);
    fclose(file);
    ck_assert_int_eq(chmod(script, 0700), 0);
    struct cluster_contender contender = {.name = "script", .program = script};
    struct cluster_work work = {.row = "ask", .count = 10, .seconds_max = seconds_max};
    result = (struct cluster_result){.took_ns = 77};
    int error = cluster_pair_run(&contender, &work, &result, &who);
    unlink(script);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD); /* no child process is left */
    ck_assert(error == 0 || result.took_ns == 77);
    return error;
}

#define RESPONDER    "echo ready; cat >/dev/null"
#define BEGIN        "echo ready; read go; begin=$(date +%s%N); "
#define END          "; took=$(($(date +%s%N) - begin)); "
#define SAY(verdict) "echo \"ask: $3 in $took ns, " verdict "\"; cat >/dev/null"

DOMT_TEST(pair_that_does_its_work_has_a_result)
{
    ck_assert_int_eq(run_pair(RESPONDER, BEGIN "sleep 0.2" END SAY("ok")), 0);
    ck_assert_uint_ge(result.took_ns, 200000000);
    ck_assert_uint_eq(result.broker_cpu_ns, 0);
}

/* One side computes while the other one waits. The CPU time that a side uses before it is ready is
 * not counted. The requester waits for a file that the responder makes after it has computed. */
DOMT_TEST(clock_of_each_side_is_its_own_and_begins_at_go)
{
#define COMPUTE "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done"
    ck_assert_int_eq(run_pair(RESPONDER, COMPUTE "; " BEGIN "sleep 0.1" END SAY("ok")), 0);
    uint64_t idle_ns = result.requester_cpu_ns;

    ck_assert_int_eq(run_pair(RESPONDER, BEGIN COMPUTE END SAY("ok")), 0);
    ck_assert_uint_gt(result.requester_cpu_ns, 4 * idle_ns);
    ck_assert_uint_gt(result.requester_cpu_ns, 4 * result.responder_cpu_ns);
    ck_assert_int_eq(run_pair(COMPUTE "; " RESPONDER, BEGIN COMPUTE END SAY("ok")), 0);
    ck_assert_uint_gt(result.requester_cpu_ns, 4 * result.responder_cpu_ns);
    ck_assert_int_eq(run_pair("echo ready; " COMPUTE "; : >$0.done; cat >/dev/null", BEGIN
                              "until [ -e $0.done ]; do sleep 0.1; done; rm $0.done" END SAY("ok")),
                     0);
    ck_assert_uint_gt(result.responder_cpu_ns, 4 * result.requester_cpu_ns);
}

DOMT_TEST(pair_whose_result_is_no_result_has_none)
{
    ck_assert_int_eq(run_pair(RESPONDER, BEGIN "sleep 0.1" END SAY("wrong: x")), -EBADMSG);
    ck_assert_str_eq(who, "requester");
    ck_assert_int_eq(run_pair(RESPONDER, BEGIN "sleep 0.1" END "set 1 2 9; " SAY("ok")), -EPROTO);
    ck_assert_int_eq(run_pair(RESPONDER, BEGIN "sleep 0.3" END "took=$((took / 1000)); " SAY("ok")),
                     -ERANGE);
}

DOMT_TEST(side_that_ends_or_is_silent_ends_the_run)
{
    ck_assert_int_eq(run_pair("exit 1", BEGIN), -ECHILD);
    ck_assert_str_eq(who, "responder");
    ck_assert_int_eq(run_pair("echo hello; cat >/dev/null", BEGIN), -EPROTO);
    ck_assert_str_eq(who, "responder");
    ck_assert_int_eq(run_pair(RESPONDER, "exit 1"), -ECHILD);
    ck_assert_str_eq(who, "requester");
    ck_assert_int_eq(run_pair(RESPONDER, "echo ready"), -ECHILD);
    ck_assert_int_eq(run_pair(RESPONDER, BEGIN "printf %0300d 0; cat >/dev/null"), -EMSGSIZE);
    seconds_max = 1;
    ck_assert_int_eq(run_pair(RESPONDER, BEGIN "sleep 10"), -ETIMEDOUT);
}

DOMT_TEST(program_that_is_not_there_ends_the_run)
{
    struct cluster_contender contender = {.name = "none", .program = "/nonexistent/program"};
    struct cluster_work work = {.row = "ask", .count = 10, .seconds_max = 2};

    ck_assert_int_eq(cluster_pair_run(&contender, &work, &result, &who), -ECHILD);
    ck_assert_str_eq(who, "responder");
}

/* ---- The bench ------------------------------------------------------------------------------- */

static int run_bench(char *contender, struct command_result *ret_result)
{
    char *const arguments[] = {(char[]){DOMT_BIN_DIR "/bench_cluster"},
                               (char[]){"--rounds"},
                               (char[]){"2"},
                               (char[]){"--asks"},
                               (char[]){"1001"},
                               (char[]){"--notices"},
                               (char[]){"20500"},
                               contender,
                               NULL};
    struct command command = {.arguments = arguments, .cpus = 2, .seconds_max = 100};

    return command_run(&command, ret_result);
}

/* The counts are no multiples of the number of asks under way, and more notices are sent than may
 * be under way. */
DOMT_TEST(bench_measures_domus_and_the_bare_protocol)
{
    char *const contenders[] = {(char[]){"domus"}, (char[]){"bare"}, (char[]){"bare_batch"}};
    static const char *const names[] = {"rate", "cpu", "cpu_requester", "cpu_responder",
                                        "cpu_broker"};
    struct command_result figures;
    char name[64];

    ck_assert_msg(cluster_broker_is_there(CLUSTER_NATS), "nats-server is missing: ./dev setup");
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(run_bench(contenders[i], &figures), 0);
        for (size_t j = 0; j < sizeof names / sizeof names[0]; j++) {
            snprintf(name, sizeof name, "cluster.ask.%s.%s", contenders[i], names[j]);
            ck_assert_msg(command_figure(&figures, name) > 0, "%s", name);
            snprintf(name, sizeof name, "cluster.notice.%s.%s", contenders[i], names[j]);
            ck_assert_msg(command_figure(&figures, name) > 0, "%s", name);
        }
    }
}

DOMT_SUITE(120)
