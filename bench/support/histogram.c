/* This file reads percentiles from a histogram; adding a value, which has to be fast, is in
 * histogram.h. */
#include "bench/support/histogram.h"

/* Returns the middle of the values that histogram_bucket_of_value() puts into `bucket`. */
static double get_middle_of_bucket(uint32_t bucket)
{
    if (bucket < HISTOGRAM_SPLIT)
        return bucket;

    uint32_t shift = bucket / HISTOGRAM_SPLIT - 1;
    uint64_t lowest = (uint64_t)(bucket - shift * HISTOGRAM_SPLIT) << shift;
    return (double)lowest + (double)((UINT64_C(1) << shift) - 1) / 2;
}

double histogram_value_at_share(const struct histogram *histogram, double share)
{
    double wanted = (double)histogram->count * share;
    uint64_t seen = 0;

    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (histogram->buckets[i] != 0 && (double)seen >= wanted)
            return get_middle_of_bucket(i);
    }
    return 0;
}
