/* The command line of `domus tune`. */
#ifndef DOMUS_TOOL_TUNE_REQUEST_H
#define DOMUS_TOOL_TUNE_REQUEST_H

#include "tools/domus/options.h"
#include "tools/domus/tune/bounds.h"
#include "tools/domus/tune/keys.h"
#include "tools/domus/tune/search.h"
#include "tools/domus/tune/trial.h"

typedef struct tune_request {
    tune_setup setup;
    tune_keys keys;
    tune_plan plan;
    char goal[TUNE_NAME_SIZE];
    size_t bounds_count;
    tune_bound bounds[TUNE_BOUNDS_MAX];
    const char *bound_texts[TUNE_BOUNDS_MAX];
    const char *plot, *json; /* file names; NULL: the file is not wanted */
    bool is_dry, has_seed;
    int argc; /* words of the command line, from "tune" on */
    char **argv;
} tune_request;

/* Read the command line. Returns whether it is valid; otherwise `ret_status` gets the exit
 * status. */
bool tune_request_read(const command *self, int argc, char **argv, tune_request *ret_request,
                       int *ret_status);

#endif
