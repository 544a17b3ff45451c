/* This file runs wrk in a closed loop over 64 connections against each server (web_wrk.h). wrk
 * mostly uses its whole CPU, so the CPU time of the servers for a request is printed, too. */
#include "bench/web_wrk.h"

#include "bench/support/command.h"
#include "bench/support/measure.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#define WRK_TEXT "/usr/bin/wrk"

struct figures {
    double rate;
    double cpu_us; /* CPU time of the server for a request, in us */
};

static int run_wrk_on_port(uint16_t port, struct command_result *ret_result)
{
    char address[48];
    char *arguments[] = {(char[]){WRK_TEXT}, (char[]){"-t1"}, (char[]){"-c64"},
                         (char[]){"-d1s"},   address,         NULL};
    const struct command command = {.arguments = arguments, .cpus = 1, .seconds_max = 20};

    snprintf(address, sizeof address, "http://127.0.0.1:%u/", port);
    int error = command_run_and_read_figures(&command, ret_result);
    if (error != 0)
        return error;
    return isnan(command_first_figure_of_name(ret_result, "Requests/sec:")) ? -EBADMSG : 0;
}

static int measure_server_with_wrk(const struct versus *versus, uint32_t which,
                                   struct figures *ret_figures)
{
    struct command_result result;
    struct server server;
    struct server_usage usage;
    int error = versus_start_server(versus, which, &server);

    if (error != 0)
        return error;
    uint64_t begun_ns = measure_now_ns();
    error = run_wrk_on_port(server.port, &result);
    double seconds = (double)(measure_now_ns() - begun_ns) * 1e-9;
    int end = server_stop(&server, &usage);
    if (error != 0 || end != 0) {
        fprintf(stderr, "web: wrk with %s: error %d\n", versus->names[which], error + end);
        return error != 0 ? error : end;
    }
    ret_figures->rate = command_first_figure_of_name(&result, "Requests/sec:");
    ret_figures->cpu_us = (double)usage.cpu_ns * 1e-3 / (ret_figures->rate * seconds);
    return 0;
}

int web_wrk_run_row(const struct versus *versus)
{
    struct figures figures[VERSUS_SERVERS_MAX];
    uint32_t peer = versus->contenders;

    if (access(WRK_TEXT, X_OK) != 0) {
        fprintf(stderr, "web: no wrk (apt install wrk): its row is left out\n");
        return 0;
    }
    for (uint32_t i = 0; i < versus->servers; i++) {
        int error = measure_server_with_wrk(versus, i, &figures[i]);
        if (error != 0)
            return error;
        printf("web_wrk_%s_rate %.0f requests/s\n", versus->names[i], figures[i].rate);
        printf("web_wrk_%s_cpu %.3f us/request\n", versus->names[i], figures[i].cpu_us);
    }
    for (uint32_t i = 0; i < peer; i++)
        printf("web_wrk_%s_to_%s_rate %.3f ratio\n", versus->names[i], versus->names[peer],
               figures[i].rate / figures[peer].rate);
    fflush(stdout);
    return 0;
}
