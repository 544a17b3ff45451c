/* A log-linear histogram of latencies: each power of two is cut into 128 equal buckets.
 *
 * A percentile is therefore right to within 0.4 % (half a bucket) at any magnitude, in 30 KiB of
 * which a run touches a few lines. Values beyond the last bucket (about 68 s) count in it. */
#ifndef DOMUS_BENCH_HISTOGRAM_H
#define DOMUS_BENCH_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_SPLIT_BITS 7
#define HISTOGRAM_SPLIT      (1u << HISTOGRAM_SPLIT_BITS)
#define HISTOGRAM_VALUE_BITS 36
#define HISTOGRAM_BUCKETS    ((HISTOGRAM_VALUE_BITS - HISTOGRAM_SPLIT_BITS + 1) * HISTOGRAM_SPLIT)

struct histogram {
    uint64_t count;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

/* Returns the bucket of a value. Values below HISTOGRAM_SPLIT have a bucket each; a larger value is
 * put by its leading bit and the bits below that. */
static inline uint32_t histogram_bucket_of_value(uint64_t value)
{
    if (value < HISTOGRAM_SPLIT)
        return (uint32_t)value;
    if (value >> HISTOGRAM_VALUE_BITS != 0)
        return HISTOGRAM_BUCKETS - 1;

    uint32_t shift = 63 - (uint32_t)__builtin_clzll(value) - HISTOGRAM_SPLIT_BITS;
    return shift * HISTOGRAM_SPLIT + (uint32_t)(value >> shift);
}

static inline void histogram_add_value(struct histogram *histogram, uint64_t value)
{
    histogram->count++;
    histogram->buckets[histogram_bucket_of_value(value)]++;
}

/* Returns the smallest value that at least `share` (0 to 1) of all values do not exceed, as the
 * middle of its bucket; 0 if the histogram is empty. */
double histogram_value_at_share(const struct histogram *histogram, double share);

#endif
