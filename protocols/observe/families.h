/* Families of metrics and their samples, as the lines of /metrics.
 *
 * The text is OpenMetrics 1.0 or the older format 0.0.4, which differ in two points here. A family
 * of counters has the name without "_total" in OpenMetrics, and with it in the older format. Units
 * have a line of their own only in OpenMetrics. */
#ifndef DOMI_PROTOCOLS_OBSERVE_FAMILIES_H
#define DOMI_PROTOCOLS_OBSERVE_FAMILIES_H

#include "protocols/observe/sources.h"

#include <domus/slice.h>

#include <stdbool.h>

#define DOMI_LABELS_SIZE 128 /* bytes of the labels of a source; a name has up to 63 */

#define DOMI_LABEL_SIZE (5 * DOMUS_BEHAVIOUR_NAME_SIZE) /* bytes of a name in a label, escaped */

typedef struct domi_metrics {
    domus_appender out;
    bool is_open; /* the text is OpenMetrics */
} domi_metrics;

typedef enum domi_family_kind { DOMI_COUNTER, DOMI_GAUGE, DOMI_HISTOGRAM } domi_family_kind;

/* Begin a family, whose name is without "_total". */
void domi_family_begin(domi_metrics *to, const char *name, domi_family_kind kind, const char *help);

/* Write the name of a sample and its labels, up to the value. */
void domi_sample_begin(domi_metrics *to, const char *name, const char *end, const char *labels);

/* Write the value of a sample, and end its line. */
void domi_sample_count(domi_metrics *to, uint64_t count);
void domi_sample_seconds(domi_metrics *to, uint64_t time_ns);

/* Write the name of a behaviour for a label. Names are the program's, so what a label may not hold
 * is escaped, in a way that leaves two names two. */
void domi_label_escape(const char *name, char label[DOMI_LABEL_SIZE]);

/* Write the labels that tell a source from others. */
void domi_source_labels(const domi_source *source, char labels[DOMI_LABELS_SIZE]);

#endif
