/* This file measures servers of requests beside each other, in paired rounds (versus.h). */
#include "bench/versus.h"

#include "bench/support/hog.h"
#include "bench/support/measure.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CALIBRATION_NS UINT64_C(250000000)
#define STALL_NS       UINT64_C(5000000000)

struct figures {
    double offered; /* requests per second that the paced load offers */
    /* requests per second that each server did under the saturated load, in each round */
    double rate[VERSUS_SERVERS_MAX][VERSUS_ROUNDS_MAX];
    double cpu_us[VERSUS_SERVERS_MAX][VERSUS_ROUNDS_MAX];
    double p50_us[VERSUS_SERVERS_MAX][VERSUS_ROUNDS_MAX];
    double p99_us[VERSUS_SERVERS_MAX][VERSUS_ROUNDS_MAX];
    double busy; /* greatest share of its CPU that any load of the row has used */
};

uint16_t versus_find_free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return 0;
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        address.sin_port = 0;
    close(fd);
    return ntohs(address.sin_port);
}

bool versus_parse_options(struct versus *versus, int argc, char **argv, char **config)
{
    static const struct option options[] = {{"rounds", required_argument, NULL, 'r'},
                                            {"seconds", required_argument, NULL, 's'},
                                            {"config", required_argument, NULL, 'c'},
                                            {NULL, 0, NULL, 0}};

    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == 'r')
            versus->rounds = (uint32_t)strtoul(optarg, NULL, 10);
        else if (option == 's')
            versus->duration_ns = (uint64_t)(strtod(optarg, NULL) * 1e9);
        else if (option == 'c' && config != NULL)
            *config = optarg;
        else
            return false;
    }
    return versus->rounds >= 1 && versus->rounds <= VERSUS_ROUNDS_MAX && versus->duration_ns != 0;
}

int versus_start_server(const struct versus *versus, uint32_t which, struct server *server)
{
    int error = versus->start(which, server);

    if (error != 0)
        fprintf(stderr, "%s: %s does not start: %s\n", versus->bench, versus->names[which],
                server->error);
    return error;
}

/* --- one load --------------------------------------------------------------------------------- */

static int send_requests_that_fill_server(const struct versus_row *row, const struct server *server)
{
    const struct request_load_options options = {.port = server->port,
                                                 .kind = row->fill,
                                                 .connections = 1,
                                                 .depth = 16,
                                                 .watched = server->pid,
                                                 .requests_least = row->fills,
                                                 .stall_ns = STALL_NS};
    struct request_load_result result;

    return request_load_run_to_its_end(&options, &result);
}

/* Run a load on a server, which is started for it and ended after it. */
static int run_load_on_new_server(const struct versus *versus, const struct versus_row *row,
                                  uint32_t which, double rate, uint64_t time_ns, bool with_hog,
                                  struct request_load_result *ret_result)
{
    struct server server;
    struct server_usage usage;
    struct request_load_options options = {.link = row->link,
                                           .kind = row->kind,
                                           .connections = row->connections,
                                           .depth = row->depth,
                                           .rate = rate,
                                           .duration_ns = time_ns,
                                           .stall_ns = STALL_NS};
    pid_t hog = -1;
    int error = versus_start_server(versus, which, &server);

    if (error != 0)
        return error;
    options.port = server.port;
    options.watched = server.pid;
    if (row->fill != NULL)
        error = send_requests_that_fill_server(row, &server);
    if (with_hog)
        hog = hog_start_on_cpu(VERSUS_SERVER_CPU);
    if (error == 0)
        error = (row->run != NULL ? row->run : request_load_run_to_its_end)(&options, ret_result);
    if (with_hog)
        hog_stop(hog);
    int end = server_stop(&server, &usage);
    if (error == 0 && end != 0)
        fprintf(stderr, "%s: %s: %s\n", versus->bench, versus->names[which], server.error);
    if (error != 0)
        fprintf(stderr, "%s: %s, %s: %s\n", versus->bench, versus->names[which], row->name,
                strerror(-error));
    return error != 0 ? error : end;
}

/* --- a row ------------------------------------------------------------------------------------ */

static int find_paced_rate(const struct versus *versus, const struct versus_row *row,
                           struct figures *figures)
{
    struct request_load_result result;

    if (row->offered == 0) {
        figures->offered = row->rate;
        return 0;
    }
    for (uint32_t which = 0; which < versus->servers; which++) {
        int error = run_load_on_new_server(versus, row, which, 0, CALIBRATION_NS, false, &result);
        if (error != 0)
            return error;
        if (which == 0 || row->offered * result.rate < figures->offered)
            figures->offered = row->offered * result.rate;
    }
    return 0;
}

static int run_round_of_row(const struct versus *versus, const struct versus_row *row,
                            uint32_t round, struct figures *figures)
{
    struct request_load_result result;

    for (uint32_t i = 0; i < versus->servers; i++) {
        uint32_t which = (round + i) % versus->servers;
        int error = 0;
        if (!versus->only_paced)
            error = run_load_on_new_server(versus, row, which, 0, versus->duration_ns / 2, true,
                                           &result);
        if (error != 0)
            return error;
        figures->rate[which][round] = versus->only_paced ? 0 : result.rate;
        error = run_load_on_new_server(versus, row, which, figures->offered, versus->duration_ns,
                                       false, &result);
        if (error != 0)
            return error;
        figures->cpu_us[which][round] =
            (double)result.watched_cpu_ns * 1e-3 / (double)result.requests;
        figures->p50_us[which][round] = result.p50_us;
        figures->p99_us[which][round] = result.p99_us;
        if (result.busy > figures->busy)
            figures->busy = result.busy;
    }
    fprintf(stderr, "%s %s, round %u:", versus->bench, row->name, round + 1);
    for (uint32_t i = 0; i < versus->servers; i++)
        fprintf(stderr, "%s %s %.3f us", i == 0 ? "" : ",", versus->names[i],
                figures->cpu_us[i][round]);
    fprintf(stderr, "\n");
    return 0;
}

static double get_median_of_ratios_by_round(const struct versus *versus, const double one[],
                                            const double other[])
{
    double ratios[VERSUS_ROUNDS_MAX];

    for (uint32_t i = 0; i < versus->rounds; i++)
        ratios[i] = one[i] / other[i];
    return measure_sort_and_get_median(ratios, versus->rounds);
}

static void print_ratios_of_servers(const struct versus *versus, const struct versus_row *row,
                                    const char *name, const struct figures *figures)
{
    const char *unit = figures->busy > VERSUS_BUSY_MAX ? "void" : "ratio";

    for (uint32_t i = 0; i < versus->contenders; i++) {
        for (uint32_t j = versus->contenders; j < versus->servers; j++) {
            printf("%s_%s_to_%s_cpu %.3f %s\n", name, versus->names[i], versus->names[j],
                   get_median_of_ratios_by_round(versus, figures->cpu_us[i], figures->cpu_us[j]),
                   unit);
            if (row->bytes != 0)
                printf(
                    "%s_%s_to_%s_bytes %.3f %s\n", name, versus->names[i], versus->names[j],
                    get_median_of_ratios_by_round(versus, figures->cpu_us[j], figures->cpu_us[i]),
                    unit);
            if (!versus->only_paced)
                printf("%s_%s_to_%s_rate %.3f ratio\n", name, versus->names[i], versus->names[j],
                       get_median_of_ratios_by_round(versus, figures->rate[i], figures->rate[j]));
        }
    }
}

static void print_figures_of_row(const struct versus *versus, const struct versus_row *row,
                                 struct figures *figures)
{
    char name[64];

    snprintf(name, sizeof name, "%s_%s", versus->bench, row->name);
    printf("%s_offered %.0f requests/s\n", name, figures->offered);
    printf("%s_load_busy %.2f of its CPU, at most\n", name, figures->busy);
    print_ratios_of_servers(versus, row, name, figures);
    for (uint32_t i = 0; i < versus->servers; i++) {
        const char *server = versus->names[i];
        printf("%s_%s_cpu %.3f us/request\n", name, server,
               measure_sort_and_get_median(figures->cpu_us[i], versus->rounds));
        if (row->bytes != 0)
            printf("%s_%s_bytes %.2f GB/CPU-second\n", name, server,
                   (double)row->bytes * 1e-3 /
                       measure_sort_and_get_median(figures->cpu_us[i], versus->rounds));
        if (!versus->only_paced)
            printf("%s_%s_rate %.0f requests/s (beside a hog)\n", name, server,
                   measure_sort_and_get_median(figures->rate[i], versus->rounds));
        printf("%s_%s_p50 %.1f us\n", name, server,
               measure_sort_and_get_median(figures->p50_us[i], versus->rounds));
        printf("%s_%s_p99 %.1f us\n", name, server,
               measure_sort_and_get_median(figures->p99_us[i], versus->rounds));
    }
    fflush(stdout);
}

int versus_run_row_and_print_figures(const struct versus *versus, const struct versus_row *row)
{
    static struct figures figures;

    memset(&figures, 0, sizeof figures);
    int error = find_paced_rate(versus, row, &figures);
    for (uint32_t round = 0; error == 0 && round < versus->rounds; round++)
        error = run_round_of_row(versus, row, round, &figures);
    if (error == 0)
        print_figures_of_row(versus, row, &figures);
    return error;
}
