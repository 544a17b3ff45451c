/* Starts a broker and both sides of a contender, lets them do a row, and ends them
 * (cluster_pair.h).
 *
 * nats-server gets a temporary folder for its log and its JetStream store, which is removed with
 * it. */
#include "bench/cluster_pair.h"

#include "bench/support/dialog.h"
#include "bench/support/measure.h"
#include "bench/support/quiet.h"
#include "bench/support/server.h"
#include "bench/versus.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define START_NS_MAX  UINT64_C(20000000000)
#define ARGUMENTS_MAX 32
#define REMOVE_FDS    16

static const char *const nats_paths[] = {"/usr/sbin/nats-server", "/usr/bin/nats-server",
                                         "/usr/local/bin/nats-server"};
static const char *const epmd_paths[] = {"/usr/bin/epmd", "/usr/local/bin/epmd"};

struct pair {
    const struct cluster_contender *contender;
    uint16_t port;
    char cookie[17]; /* the cookie by which nodes of Erlang accept each other */
    char folder[64]; /* the pair's temporary folder; "": there is none */
    bool has_broker;
    struct server broker;
    struct dialog responder;
    struct dialog requester;
};

static const char *first_executable_path(const char *const *paths, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (access(paths[i], X_OK) == 0)
            return paths[i];
    }
    return NULL;
}

/* Returns the path of a broker's program; NULL if the broker is not installed. */
static const char *broker_path(enum cluster_broker broker)
{
    if (broker == CLUSTER_NATS)
        return first_executable_path(nats_paths, sizeof nats_paths / sizeof nats_paths[0]);
    return first_executable_path(epmd_paths, sizeof epmd_paths / sizeof epmd_paths[0]);
}

bool cluster_is_broker_installed(enum cluster_broker broker)
{
    return broker == CLUSTER_NO_BROKER || broker_path(broker) != NULL;
}

static int remove_file_or_folder(const char *path, const struct stat *status, int kind,
                                 struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

static int start_broker(struct pair *pair)
{
    enum cluster_broker broker = pair->contender->broker;
    char path[PATH_MAX], log[128], port[8];

    if (broker == CLUSTER_NO_BROKER)
        return 0;
    const char *found = broker_path(broker);
    if (found == NULL)
        return -ENOENT;
    snprintf(path, sizeof path, "%s", found);
    snprintf(port, sizeof port, "%u", pair->port);
    char *address = (char[]){"127.0.0.1"};
    /* the shell hides stderr, on which epmd would complain of the connection by which the bench
     * notices that it listens */
    char *epmd[] = {(char[]){"/bin/sh"},
                    (char[]){"-c"},
                    (char[]){"exec \"$0\" -port \"$1\" -address \"$2\" 2>/dev/null"},
                    path,
                    port,
                    address,
                    NULL};
    char *nats[] = {path, (char[]){"-a"},  address,         (char[]){"-p"}, port, (char[]){"-l"},
                    log,  (char[]){"-js"}, (char[]){"-sd"}, pair->folder,   NULL};
    if (broker == CLUSTER_NATS) {
        snprintf(pair->folder, sizeof pair->folder, "/tmp/bench-cluster-XXXXXX");
        if (mkdtemp(pair->folder) == NULL) {
            pair->folder[0] = '\0';
            return -errno;
        }
        snprintf(log, sizeof log, "%s/nats.log", pair->folder);
    }
    int error = server_start_at_port(&pair->broker, SERVER_ANY_CPU,
                                     broker == CLUSTER_NATS ? nats : epmd, pair->port, SIGTERM);
    pair->has_broker = error == 0;
    return error;
}

/* The words of the command line of one side of a pair. */
struct words {
    size_t count;
    char *arguments[ARGUMENTS_MAX];
    char texts[ARGUMENTS_MAX][PATH_MAX];
};

static void add_word_to_command_line(struct words *words, const char *text)
{
    if (words->count == ARGUMENTS_MAX - 1)
        /* there is no room for the word, so it is left out, and the program will complain */
        return;
    snprintf(words->texts[words->count], PATH_MAX, "%s", text);
    words->arguments[words->count] = words->texts[words->count];
    words->count++;
}

/* Add the arguments with which erl runs one side. With one scheduler, one thread runs all
 * processes. */
static void add_arguments_of_erl(struct words *words, const struct pair *pair, const char *side)
{
    char name[64];
    const char *const before[] = {"erl", "-noshell", "-start_epmd", "false", "+S", "1:1", "-name"};
    const char *const after[] = {"-setcookie",
                                 pair->cookie,
                                 "-kernel",
                                 "inet_dist_use_interface",
                                 "{127,0,0,1}",
                                 "-pa",
                                 pair->contender->program,
                                 "-run",
                                 "cluster",
                                 "main"};

    snprintf(name, sizeof name, "%s@127.0.0.1", side);
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++)
        add_word_to_command_line(words, before[i]);
    add_word_to_command_line(words, name);
    for (size_t i = 0; i < sizeof after / sizeof after[0]; i++)
        add_word_to_command_line(words, after[i]);
}

/* Start one side of a pair, and wait until it says that it is ready. */
static int start_side_of_pair(const struct pair *pair, const struct cluster_work *work,
                              const char *side, struct dialog *dialog)
{
    static struct words words;
    char count[24], port[8], line[DIALOG_LINE_MAX];

    words.count = 0;
    if (pair->contender->is_erlang)
        add_arguments_of_erl(&words, pair, side);
    else
        add_word_to_command_line(&words, pair->contender->program);
    snprintf(count, sizeof count, "%" PRIu64, work->count);
    snprintf(port, sizeof port, "%u", pair->port);
    add_word_to_command_line(&words, side);
    add_word_to_command_line(&words, work->row);
    add_word_to_command_line(&words, count);
    add_word_to_command_line(&words, port);
    if (pair->contender->style != NULL)
        add_word_to_command_line(&words, pair->contender->style);
    words.arguments[words.count] = NULL;
    int error = dialog_start_program(dialog, words.arguments);
    if (error == 0)
        error = dialog_read_line(dialog, START_NS_MAX, line);
    if (error == 0 && strcmp(line, "ready") != 0)
        error = -EPROTO;
    return error;
}

/* Read the CPU clocks of the requester, the responder and the broker. */
static int read_cpu_clocks_of_pair(const struct pair *pair, struct cluster_result *ret_clocks)
{
    int error = measure_cpu_ns_of_other_process(pair->requester.pid, &ret_clocks->requester_cpu_ns);

    if (error == 0)
        error = measure_cpu_ns_of_other_process(pair->responder.pid, &ret_clocks->responder_cpu_ns);
    ret_clocks->broker_cpu_ns = 0;
    if (error == 0 && pair->has_broker)
        error = measure_cpu_ns_of_other_process(pair->broker.pid, &ret_clocks->broker_cpu_ns);
    return error;
}

static int run_and_measure_pair(struct pair *pair, const struct cluster_work *work,
                                struct cluster_result *ret_result)
{
    struct cluster_result before, after;
    struct quiet from = {0}, to = {0};
    char line[DIALOG_LINE_MAX];
    int error =
        quiet_read_cpu_ticks_of_machine(&from) ? read_cpu_clocks_of_pair(pair, &before) : -EIO;
    uint64_t began_ns = measure_now_ns();

    if (error == 0)
        error = dialog_write_text(&pair->requester, "go\n");
    if (error == 0)
        error = dialog_read_line(&pair->requester, work->seconds_max * UINT64_C(1000000000), line);
    uint64_t waited_ns = measure_now_ns() - began_ns;
    if (error == 0)
        error = quiet_read_cpu_ticks_of_machine(&to) ? read_cpu_clocks_of_pair(pair, &after) : -EIO;
    if (error == 0)
        error = cluster_result_read_line(line, work->row, work->count, waited_ns, &after.took_ns);
    if (error != 0)
        return error;
    *ret_result = (struct cluster_result){
        .took_ns = after.took_ns,
        .requester_cpu_ns = after.requester_cpu_ns - before.requester_cpu_ns,
        .responder_cpu_ns = after.responder_cpu_ns - before.responder_cpu_ns,
        .broker_cpu_ns = after.broker_cpu_ns - before.broker_cpu_ns,
    };
    ret_result->others = quiet_share_of_cpu_used_by_others(
        &from, &to,
        ret_result->requester_cpu_ns + ret_result->responder_cpu_ns + ret_result->broker_cpu_ns);
    return 0;
}

static int prepare_port_and_cookie_of_pair(struct pair *pair)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    char port[8];
    uint64_t number;

    /* SIGPIPE is ignored, because the end of a side is noticed when its line is read */
    if (sigaction(SIGPIPE, &ignore, NULL) != 0)
        return -errno;
    pair->port = versus_find_free_port();
    if (pair->port == 0)
        return -EADDRNOTAVAIL;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return -EIO;
    snprintf(pair->cookie, sizeof pair->cookie, "%016" PRIx64, number);
    snprintf(port, sizeof port, "%u", pair->port);
    return setenv("ERL_EPMD_PORT", port, 1) == 0 ? 0 : -errno;
}

static void end_pair_and_broker(struct pair *pair)
{
    struct server_usage unused;

    dialog_end_program(&pair->requester);
    dialog_end_program(&pair->responder);
    /* when they are ended, both kinds of brokers exit with a status other than 0, which is no
     * failure */
    if (pair->has_broker)
        (void)server_stop(&pair->broker, &unused);
    if (pair->folder[0] != '\0')
        (void)nftw(pair->folder, remove_file_or_folder, REMOVE_FDS, FTW_DEPTH | FTW_PHYS);
}

int cluster_run_fresh_pair(const struct cluster_contender *contender,
                           const struct cluster_work *work, struct cluster_result *ret_result,
                           const char **ret_who)
{
    struct pair pair = {.contender = contender, .requester.pid = -1, .responder.pid = -1};
    int error = prepare_port_and_cookie_of_pair(&pair);

    *ret_who = "broker";
    if (error == 0)
        error = start_broker(&pair);
    if (error == 0) {
        *ret_who = "responder";
        error = start_side_of_pair(&pair, work, "responder", &pair.responder);
    }
    if (error == 0) {
        *ret_who = "requester";
        error = start_side_of_pair(&pair, work, "requester", &pair.requester);
    }
    if (error == 0)
        error = run_and_measure_pair(&pair, work, ret_result);
    end_pair_and_broker(&pair);
    return error;
}
