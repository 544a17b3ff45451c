/* The table of the counters that the observation port shows. */
#ifndef DOMI_PROTOCOLS_OBSERVE_ROWS_H
#define DOMI_PROTOCOLS_OBSERVE_ROWS_H

#include <domus/profile.h>

#include <stdbool.h>

/* Which sources count the counter of a row. Each value includes the sources of the value before. */
typedef enum domi_counted_by {
    DOMI_BY_THREADS,
    DOMI_BY_RUNNERS, /* threads and runners of pools count it */
    DOMI_BY_ALL,     /* threads, runners of pools, and foreign threads count it */
} domi_counted_by;

typedef struct domi_row {
    const char *field; /* name of the counter, as in domus_profile and in JSON */
    const char *name;  /* name of the counter's family of metrics, without "_total" */
    const char *help;
    size_t offset; /* offset of the counter, a uint64_t, in domus_profile */
    domi_counted_by counted_by;
    bool is_gauge; /* the counter's value rises and falls; that of other counters only rises */
    bool is_time;  /* the counter's value is in ns; metrics show it in seconds */
} domi_row;

/* The rows of all counters. The last row has no name, and ends the table. */
extern const domi_row domi_rows[];

static inline uint64_t domi_row_read_its_counter(const domi_row *row, const domus_profile *counters)
{
    return *(const uint64_t *)(const void *)((const char *)counters + row->offset);
}

#endif
