/* The table of the counters that the port shows. */
#ifndef DOMI_PROTOCOLS_OBSERVE_ROWS_H
#define DOMI_PROTOCOLS_OBSERVE_ROWS_H

#include <domus/profile.h>

#include <stdbool.h>

/* Which sources count it: each word is those of the word before, and more. */
typedef enum domi_counted_by {
    DOMI_BY_THREADS,
    DOMI_BY_RUNNERS, /* and runners of pools */
    DOMI_BY_ALL,     /* and foreign threads */
} domi_counted_by;

typedef struct domi_row {
    const char *field; /* its name in domus_profile, and in JSON */
    const char *name;  /* of the family of metrics, without "_total" */
    const char *help;
    size_t offset; /* in domus_profile, of a uint64_t */
    domi_counted_by counted_by;
    bool is_gauge; /* the value goes up and down; counters only grow */
    bool is_time;  /* in ns; as a metric it is written in seconds */
} domi_row;

/* The last row has no name. */
extern const domi_row domi_rows[];

static inline uint64_t domi_row_value(const domi_row *row, const domus_profile *counters)
{
    return *(const uint64_t *)(const void *)((const char *)counters + row->offset);
}

#endif
