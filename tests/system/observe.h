/* The example web with its observation port, and requests to that port. */
#ifndef DOMT_OBSERVE_H
#define DOMT_OBSERVE_H

#include "tests/system/site.h"

/* The service under test, and its observation port as a site: `web.port` is that port, and the $URL
 * of judges. */
typedef struct domt_observed {
    domt_site site;
    domt_site port;
} domt_observed;

/* Start the example web with settings, and with a further file of the configuration (NULL:
 * none). */
void domt_observed_start_web(domt_observed *observed, const char *const settings[],
                             const char *file);
void domt_observed_stop_web(domt_observed *observed);

/* Run the example web with a wrong setting. Returns its exit status; the service has its output. */
int domt_observed_run_with_wrong_setting(domt_observed *observed, const char *const settings[]);

/* Request a path from the port over a Unix socket, and check the status and a part of the
 * answer. */
void domt_observed_expect_answer_over_unix(const char *socket, const char *path, unsigned status,
                                           const char *part);

/* Start the example web as domt_observed_start_web() does, and run one part of
 * tests/system/observe_judge.py. */
void domt_observed_run_python_judge(domt_observed *observed, const char *what,
                                    const char *const settings[], const char *file);

#endif
