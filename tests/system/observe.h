/* The example web with its observation port, and requests to that port. */
#ifndef DOMT_OBSERVE_H
#define DOMT_OBSERVE_H

#include "tests/system/site.h"

/* The service, and its observation port as a site: `web` is that port, and the $URL of judges. */
typedef struct domt_observed {
    domt_site site;
    domt_site port;
} domt_observed;

/* Start the example with settings, and with a further file of the configuration (NULL: none). */
void domt_observed_start(domt_observed *observed, const char *const settings[], const char *file);
void domt_observed_stop(domt_observed *observed);

/* Run the program with a wrong setting. Returns its exit status; the service has its output. */
int domt_observed_run_wrong(domt_observed *observed, const char *const settings[]);

/* Request a path over a Unix socket, and check the status and a part of the answer. */
void domt_observed_expect_unix(const char *socket, const char *path, unsigned status,
                               const char *part);

/* Start the example as domt_observed_start() does, and run one part of
 * tests/system/observe_judge.py. */
void domt_observed_judge(domt_observed *observed, const char *what, const char *const settings[],
                         const char *file);

#endif
