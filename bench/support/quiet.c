/* This file reads from /proc/stat how busy the machine's CPUs are (quiet.h). */
#include "bench/support/quiet.h"

#include "bench/support/measure.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOOK_S 0.2

bool quiet_parse_cpu_line(const char *line, struct quiet *ret_quiet)
{
    uint64_t user, nice, system, idle, wait, irq, softirq, steal;

    /* a line that begins with "cpu0" or the like is about one CPU only */
    if (strncmp(line, "cpu ", 4) != 0 ||
        sscanf(line,
               "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
               " %" SCNu64 " %" SCNu64,
               &user, &nice, &system, &idle, &wait, &irq, &softirq, &steal) != 8)
        return false;
    *ret_quiet = (struct quiet){
        .busy = user + nice + system + irq + softirq + steal,
        .idle = idle + wait,
    };
    return true;
}

bool quiet_read_cpu_ticks_of_machine(struct quiet *ret_quiet)
{
    char line[256];
    FILE *file = fopen("/proc/stat", "re");
    bool well = file != NULL && fgets(line, sizeof line, file) != NULL;

    if (file != NULL)
        fclose(file);
    return well && quiet_parse_cpu_line(line, ret_quiet);
}

double quiet_share_of_cpu_used_by_others(const struct quiet *from, const struct quiet *to,
                                         uint64_t own_ns)
{
    double busy = (double)(to->busy - from->busy);
    double all = busy + (double)(to->idle - from->idle);
    double own = (double)own_ns * 1e-9 * (double)sysconf(_SC_CLK_TCK);

    return all == 0 || busy <= own ? 0 : (busy - own) / all;
}

bool quiet_await_quiet_machine(double part, uint64_t end_ns)
{
    struct quiet from, to;

    while (quiet_read_cpu_ticks_of_machine(&from)) {
        measure_sleep_seconds(LOOK_S);
        if (!quiet_read_cpu_ticks_of_machine(&to))
            return false;
        if (quiet_share_of_cpu_used_by_others(&from, &to, 0) <= part)
            return true;
        if (measure_now_ns() >= end_ns)
            return false;
    }
    return false;
}
