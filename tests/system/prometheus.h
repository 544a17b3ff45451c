/* A checker of Prometheus' text format, version 0.0.4. It is stricter than the format: each family
 * has HELP and TYPE, in this order and once, and its samples follow them. */
#ifndef DOMT_PROMETHEUS_H
#define DOMT_PROMETHEUS_H

#include <stdint.h>

/* Check that the text is valid by this format. Returns the number of families. */
uint32_t domt_prometheus_check_text(const char *text);

/* Returns the sum of all samples of a name, whatever their labels are; -1 if there is none. */
double domt_prometheus_sum_samples_of_name(const char *text, const char *name);

#endif
