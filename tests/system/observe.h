/* The example web with its observation port, and requests to that port. */
#ifndef DOMT_OBSERVE_H
#define DOMT_OBSERVE_H

#include "tests/system/site.h"

/* The service, and its observation port as a site: `web` is that port, and $URL of a judge. */
typedef struct domt_observed {
    domt_site site;
    domt_site port;
} domt_observed;

/* Start it with settings, and with a file of the configuration (NULL: none) over that of the
 * example. */
void domt_observed_start(domt_observed *observed, const char *const settings[], const char *file);
void domt_observed_stop(domt_observed *observed);

/* Run the program with a setting that is wrong. Returns its exit status; what it said is in the
 * service. */
int domt_observed_try(domt_observed *observed, const char *const settings[]);

/* Ask a Unix socket for a path, and hold the status and a part of the answer. */
void domt_observed_holds_unix(const char *socket, const char *path, unsigned status,
                              const char *part);

/* Start it as domt_observed_start() does, and let tests/system/observe_judge.py look at one matter
 * of it. */
void domt_observed_judge(domt_observed *observed, const char *what, const char *const settings[],
                         const char *file);

#endif
