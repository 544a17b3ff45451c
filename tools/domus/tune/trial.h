/* One run of a candidate: the service is started with the candidate's values, gets its load, and is
 * ended. */
#ifndef DOMUS_TOOL_TUNE_TRIAL_H
#define DOMUS_TOOL_TUNE_TRIAL_H

#include "tools/domus/tune/figures.h"
#include "tools/domus/tune/process.h"

typedef struct tune_setup {
    const char *service;
    const char *load;
    /* user's command that exits with 0 when the service is ready; NULL: its line `listening ...`
     * tells so */
    const char *ready;
    /* most ms for the service's start, the load, and the service's end */
    long start_ms, load_ms, stop_ms;
} tune_setup;

typedef enum tune_result {
    TUNE_RAN,
    TUNE_REFUSED, /* result of a run: the service has ended before it was ready */
    TUNE_FAILED,
    TUNE_STOPPED, /* result of a run: a signal was noted (say_begin_to_note_signals()) */
} tune_result;

typedef struct tune_trial {
    tune_result result;
    char why[256]; /* reason why the run has failed */
    tune_figures figures;
    double cpu;     /* CPU time of the service during the load, in seconds */
    double seconds; /* seconds that the whole run of the candidate took */
    /* exit status of a service that has refused the candidate's values; -1: a signal has ended
     * it */
    int status;
    tune_process service, load; /* the processes of the run, with their outputs */
} tune_trial;

/* Do a run of a candidate. `words` are added to the service's command; NULL ends them. No process
 * of the run is left when this returns. The figure `cpu` is CPU time for each request, if the load
 * tells how many there were (count, or rate), otherwise CPU time of the run. */
void tune_trial_run_service_with_load(const tune_setup *setup, char *const *words,
                                      tune_trial *ret_trial);

#endif
