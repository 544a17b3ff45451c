/* The table of the counters that the port shows. */
#ifndef DOMI_PROTOCOLS_OBSERVE_ROWS_H
#define DOMI_PROTOCOLS_OBSERVE_ROWS_H

#include <domus/profile.h>

#include <stdbool.h>

/* Which sources count a row: each value includes the sources of the one before. */
typedef enum domi_counted_by {
    DOMI_BY_THREADS,
    DOMI_BY_RUNNERS, /* threads, and runners of pools */
    DOMI_BY_ALL,     /* threads, runners of pools, and foreign threads */
} domi_counted_by;

typedef struct domi_row {
    const char *field; /* name of the counter in domus_profile, and in JSON */
    const char *name;  /* name of the family of metrics, without "_total" */
    const char *help;
    size_t offset; /* offset of a uint64_t in domus_profile */
    domi_counted_by counted_by;
    bool is_gauge; /* the value rises and falls; counters only rise */
    bool is_time;  /* the value is in ns; metrics show seconds */
} domi_row;

/* The rows, of which the last one has no name. */
extern const domi_row domi_rows[];

static inline uint64_t domi_row_value(const domi_row *row, const domus_profile *counters)
{
    return *(const uint64_t *)(const void *)((const char *)counters + row->offset);
}

#endif
