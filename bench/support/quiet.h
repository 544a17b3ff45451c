/* How quiet the machine is: the part of its CPUs that other processes take while a bench measures.
 *
 * It is read from the first line of /proc/stat, whose unit is a tick of 10 ms, so it tells nothing
 * of a time shorter than some ticks. Time that a hypervisor takes counts as that of others. */
#ifndef DOMUS_BENCH_QUIET_H
#define DOMUS_BENCH_QUIET_H

#include <stdbool.h>
#include <stdint.h>

/* Ticks of all CPUs since the machine started, in 10 ms. */
struct quiet {
    uint64_t busy;
    uint64_t idle;
};

/* Read the line `cpu user nice system idle iowait irq softirq steal ...`. Returns false if it is no
 * such line. */
bool quiet_parse(const char *line, struct quiet *ret_quiet);

/* Read the ticks of now. Returns false if they cannot be read. */
bool quiet_read(struct quiet *ret_quiet);

/* Returns which part (0 to 1) of all CPUs others took between two readings, in which the bench and
 * its processes took `own_ns`; 0 if no tick lies between them. */
double quiet_others(const struct quiet *from, const struct quiet *to, uint64_t own_ns);

/* Wait until others take at most `part` for a fifth of a second. Returns false if that has not come
 * at `end_ns` of measure_now_ns(). */
bool quiet_await(double part, uint64_t end_ns);

#endif
