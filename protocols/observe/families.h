/* Families of metrics and their samples, which are the lines of /metrics.
 *
 * The text is OpenMetrics 1.0 or the older format 0.0.4, which differ here in two points. The name
 * of a family of counters is without "_total" in OpenMetrics, and with it in the older format. Only
 * OpenMetrics has a line for the unit. */
#ifndef DOMI_PROTOCOLS_OBSERVE_FAMILIES_H
#define DOMI_PROTOCOLS_OBSERVE_FAMILIES_H

#include "protocols/observe/sources.h"

#include <domus/slice.h>

#include <stdbool.h>

/* bytes of the labels of a source in a metric; the name of its pool has at most 63 */
#define DOMI_LABELS_SIZE 128

/* bytes of the name of a behaviour in a label, in which each byte may be escaped */
#define DOMI_LABEL_SIZE (5 * DOMUS_BEHAVIOUR_NAME_SIZE)

typedef struct domi_metrics {
    domus_appender out;
    bool is_open; /* the text is in the format OpenMetrics, and not in the older format 0.0.4 */
} domi_metrics;

typedef enum domi_family_kind { DOMI_COUNTER, DOMI_GAUGE, DOMI_HISTOGRAM } domi_family_kind;

/* Begin a family of metrics: write its type, unit and help. `name` is without "_total". */
void domi_begin_metric_family(domi_metrics *to, const char *name, domi_family_kind kind,
                              const char *help);

/* Write the beginning of a sample's line: the name of its family with `end` behind it, and its
 * labels. */
void domi_write_metric_name_and_labels(domi_metrics *to, const char *name, const char *end,
                                       const char *labels);

/* Write the value of a sample, as a count or as seconds, and end the sample's line. */
void domi_write_metric_count_and_line_end(domi_metrics *to, uint64_t count);
void domi_write_metric_time_and_line_end(domi_metrics *to, uint64_t time_ns);

/* Write the name of a behaviour for a label. The program chooses names, so characters that a label
 * cannot have are escaped, such that different names stay different. */
void domi_escape_name_for_label(const char *name, char label[DOMI_LABEL_SIZE]);

/* Write the labels that tell a source (a thread, the outside, or a runner) from other sources. */
void domi_format_metric_labels_of_source(const domi_source *source, char labels[DOMI_LABELS_SIZE]);

#endif
