/* The rows of /metrics. */
#ifndef WEB_METRICS_H
#define WEB_METRICS_H

#include "web.h"

#define WEB_METRICS "text/plain; version=0.0.4; charset=utf-8"

/* A counter of the profile. */
struct web_metric {
    const char *name;
    const char *help;
    size_t offset;    /* in domus_profile, of a uint64_t */
    bool is_gauge;    /* it goes up and down; the others only grow */
    bool is_time;     /* in ns; it is written in seconds */
    bool has_outside; /* foreign threads count it, too */
};

/* The last row has no name. */
extern const struct web_metric web_metrics[];

/* Answer a request for the metrics. */
domus_handler web_answer_metrics;

#endif
