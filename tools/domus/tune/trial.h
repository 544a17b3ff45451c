/* One run: the service begins with a candidate's values, gets its load, and is ended. */
#ifndef DOMUS_TOOL_TUNE_TRIAL_H
#define DOMUS_TOOL_TUNE_TRIAL_H

#include "tools/domus/tune/figures.h"
#include "tools/domus/tune/process.h"

typedef struct tune_setup {
    const char *service;
    const char *load;
    const char *ready; /* a command whose status is 0 when the service is ready; NULL: its first
                          line `listening ...` says so */
    long start_ms, load_ms, stop_ms; /* the longest times of the service's start, the load and the
                                        service's end */
} tune_setup;

typedef enum tune_result {
    TUNE_RAN,
    TUNE_REFUSED, /* the service has ended before it was ready */
    TUNE_FAILED,
    TUNE_STOPPED, /* a signal was noted (say_note_signals()) */
} tune_result;

typedef struct tune_trial {
    tune_result result;
    char why[256]; /* the reason why the trial has not run */
    tune_figures figures;
    double cpu;     /* the service's CPU time during the load, in seconds */
    double seconds; /* seconds that the whole run took */
    int status;     /* the exit status of a service that has refused; -1: a signal has ended it */
    tune_process service, load; /* with what they have printed */
} tune_trial;

/* Do a run. `words` are put behind the service's command; NULL ends them. Nothing of it runs
 * when this returns. The figure `cpu` is CPU time for each request, if the load tells how many
 * there were (count, or rate), else that of the run. */
void tune_trial_run(const tune_setup *setup, char *const *words, tune_trial *ret_trial);

#endif
