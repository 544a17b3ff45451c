/* How quiet the machine is: the part of its CPUs that other processes take while a bench measures.
 *
 * It is read from the first line of /proc/stat, whose unit is a tick of 10 ms, so it tells nothing
 * of a time shorter than some ticks. Time that a hypervisor takes counts as that of others. */
#ifndef DOMUS_BENCH_QUIET_H
#define DOMUS_BENCH_QUIET_H

#include <stdbool.h>
#include <stdint.h>

/* How long all CPUs together were busy and idle since the machine started, in ticks of 10 ms. */
struct quiet {
    uint64_t busy;
    uint64_t idle;
};

/* Read the ticks from the line `cpu user nice system idle iowait irq softirq steal ...` of
 * /proc/stat. Returns false for any other line. */
bool quiet_parse_cpu_line(const char *line, struct quiet *ret_quiet);

/* Read the present ticks of the machine. Returns false if they cannot be read. */
bool quiet_read_cpu_ticks_of_machine(struct quiet *ret_quiet);

/* Returns which share (0 to 1) of all CPUs other processes took between two readings, in which the
 * bench and its processes took `own_ns`; 0 if no tick lies between the readings. */
double quiet_share_of_cpu_used_by_others(const struct quiet *from, const struct quiet *to,
                                         uint64_t own_ns);

/* Wait until other processes take at most the share `part` of all CPUs for a fifth of a second.
 * Returns false if that has not come at `end_ns` of measure_now_ns(). */
bool quiet_await_quiet_machine(double part, uint64_t end_ns);

#endif
