/* Parts that the files of the observation port share: the observed system, and the texts about it.
 *
 * The port runs in a system of its own (port.c). It reads only what foreign threads may read of the
 * observed system. */
#ifndef DOMI_PROTOCOLS_OBSERVE_H
#define DOMI_PROTOCOLS_OBSERVE_H

#include <domus/domus.h>
#include <domus/log.h>

#include <stdatomic.h>

/* The port of the process. It is constant while the port's system runs, except the atomic members,
 * `log`, which is set once before `has_log`, and members that only the port's thread uses. */
typedef struct domi_observation {
    domus_system *observed;
    domus_system *own;     /* the system of the port */
    uint64_t opened_ns;    /* time at which the port was opened, by domi_observe_now_ns() */
    bool checks_host;      /* requests must name a loopback host */
    domus_address sampler; /* address of the sampler of /live (live.h), in the port's system */
    atomic_bool is_ready;  /* the program is ready; relaxed: it orders nothing */
    atomic_bool is_ending; /* the program has begun to stop; relaxed: it orders nothing */
    /* answers without an end of their own must end; relaxed: it orders nothing */
    atomic_bool is_closing;
    atomic_bool has_log;  /* `log` is set; release and acquire order both */
    domus_log_source log; /* source of the program's log lines */
    /* --- members that only the port's thread uses --- */
    bool is_traced, is_profiled; /* a trace or a CPU profile is under way */
    /* a trace has raised the level, and level_before must be set back */
    bool is_raised;
    domus_profile_level level_before;
} domi_observation;

extern domi_observation domi_observed;

/* The behaviour of the channels that serve requests (site.c). */
extern const domus_behaviour domi_observe_site;

/* Returns the time of CLOCK_MONOTONIC in ns. */
uint64_t domi_observe_now_ns(void);

/* --- texts about the system ------------------------------------------------------------------- */

/* Write the counters of a system for Prometheus: in OpenMetrics 1.0, or in the text format 0.0.4.
 * Returns 0; -ENOMEM. Ownership: the slice is the caller's. */
int domi_observe_metrics(domus_system *system, bool is_open, domus_slice *ret_text);

/* Write the counters of a system as JSON, with the wanted kinds of histograms (writers.h), and
 * with the figures of the machine for the doctor (looking.h). Returns and ownership: as
 * domi_observe_metrics(). */
int domi_observe_profile(domus_system *system, int histograms, bool has_machine,
                         domus_slice *ret_text);

#endif
