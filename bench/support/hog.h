/* A hog: a process that only computes, pinned to the CPU of a server.
 *
 * On loopback an echo costs its client as much CPU as its server, so in a closed loop a client of
 * one thread reaches its limit before the server does. A server that shares its CPU with a hog has
 * half of that CPU, and reaches its limit while the client still has time; then the rate of the
 * closed loop is that of the server. */
#ifndef DOMUS_BENCH_HOG_H
#define DOMUS_BENCH_HOG_H

#include <sys/types.h>

/* Start a hog on a CPU, which is killed if the bench dies. Returns its process, or a negative
 * errno. */
pid_t hog_start_on_cpu(int cpu);

/* End a hog. If `hog` is an error of hog_start_on_cpu() instead of a process, nothing happens. */
void hog_stop(pid_t hog);

#endif
