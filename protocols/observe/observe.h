/* Parts that the files of the observation port share: what is observed, and the texts about it.
 *
 * The port runs in a system of its own (port.c). Whatever it reads of the observed system may be
 * read by foreign threads. */
#ifndef DOMI_PROTOCOLS_OBSERVE_H
#define DOMI_PROTOCOLS_OBSERVE_H

#include <domus/domus.h>
#include <domus/log.h>

#include <stdatomic.h>

/* The port of the process. It is constant while the port's system runs, but for the atomic fields,
 * for `log`, which is set once, before `has_log`, and for what only the port's thread uses. */
typedef struct domi_observation {
    domus_system *observed;
    domus_system *own;      /* of the port */
    uint64_t opened_ns;     /* when it was opened; of domi_observe_now_ns() */
    bool checks_host;       /* a request has to name a host of loopback */
    domus_address sampler;  /* of /live (live.h), in the port's system */
    atomic_bool is_ready;   /* relaxed: it orders nothing */
    atomic_bool is_ending;  /* likewise; the program has begun to stop */
    atomic_bool is_closing; /* likewise; what has no end of its own ends */
    atomic_bool has_log;    /* release and acquire: `log` is set */
    domus_log_source log;   /* the lines of the program */
    /* --- of the port's thread --- */
    bool is_traced, is_profiled; /* a trace or a CPU profile is under way */
    bool is_raised;              /* the level is that of a trace, and level_before is put back */
    domus_profile_level level_before;
} domi_observation;

extern domi_observation domi_observed;

/* The port for requests (site.c). */
extern const domus_behaviour domi_observe_site;

/* The time of CLOCK_MONOTONIC. */
uint64_t domi_observe_now_ns(void);

/* --- texts ------------------------------------------------------------------------------------ */

/* Write the counters of a system for Prometheus: in OpenMetrics 1.0, or in the text format 0.0.4.
 * Returns 0; -ENOMEM. Ownership: the slice is the caller's. */
int domi_observe_metrics(domus_system *system, bool is_open, domus_slice *ret_text);

/* Write them as JSON, with histograms of these kinds (histograms.h), and with what the doctor needs
 * of the machine (looking.h). Returns and ownership: as domi_observe_metrics(). */
int domi_observe_profile(domus_system *system, int histograms, bool has_machine,
                         domus_slice *ret_text);

#endif
