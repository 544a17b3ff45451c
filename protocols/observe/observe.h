/* Parts that the files of the observation port share: the observed system, and the texts about it.
 *
 * The port runs in a system of its own (port.c). It reads only those parts of the observed
 * system that foreign threads may read. */
#ifndef DOMI_PROTOCOLS_OBSERVE_H
#define DOMI_PROTOCOLS_OBSERVE_H

#include <domus/domus.h>
#include <domus/log.h>

#include <stdatomic.h>

/* The observation port of the process. It is constant while the port's own system runs, except the
 * atomic members, `log`, which is set once before `has_log`, and members that only the port's
 * thread uses. */
typedef struct domi_observation {
    domus_system *observed;
    domus_system *own; /* the port's own system, which serves viewers */
    /* time at which the port was opened, on the clock of domi_observe_clock_ns() */
    uint64_t opened_ns;
    /* requests must name a loopback host, because the port is on TCP and not public */
    bool checks_host;
    domus_address sampler; /* address of the sampler of /live (live.h), in the port's system */
    atomic_bool is_ready;  /* /ready says that the program is ready; relaxed: it orders nothing */
    atomic_bool is_ending; /* the program has begun to stop; relaxed: it orders nothing */
    /* the port closes, so answers that do not end by themselves must end; relaxed: it orders
     * nothing */
    atomic_bool is_closing;
    /* `log` is set; the release of the setter and the acquire of readers order `log` before it */
    atomic_bool has_log;
    domus_log_source log; /* the source from which viewers get the program's log lines */
    /* --- members that only the port's thread uses --- */
    bool is_traced, is_profiled; /* a viewer's trace, or a viewer's CPU profile, is under way */
    /* a trace has raised the profile level, and `level_before` must be set at its end */
    bool is_raised;
    domus_profile_level level_before;
} domi_observation;

extern domi_observation domi_observed;

/* The behaviour of the port's channels, which serve the requests of viewers (site.c). */
extern const domus_behaviour domi_observe_site;

/* Returns the time in ns by CLOCK_MONOTONIC. */
uint64_t domi_observe_clock_ns(void);

/* --- texts about the system ------------------------------------------------------------------- */

/* Write the counters of a system for Prometheus: in OpenMetrics 1.0, or in the text format 0.0.4.
 * Returns 0; -ENOMEM. Ownership: the slice is the caller's. */
int domi_observe_write_metrics(domus_system *system, bool is_open, domus_slice *ret_text);

/* Write the counters of a system as JSON, with the wanted kinds of histograms (writers.h), and
 * with the figures of the machine for the doctor (looking.h). Returns and ownership: as
 * domi_observe_write_metrics(). */
int domi_observe_write_profile_json(domus_system *system, int histograms, bool has_machine,
                                    domus_slice *ret_text);

#endif
