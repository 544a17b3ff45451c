/* base/histogram.c: each duration has its bucket, and a value read from the buckets is right within
 * 1 %. */
#include "base/histogram.h"
#include "base/random.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static domi_histogram measured;
static domus_histogram seen;

static void reset_counts_of_histogram(void)
{
    memset(&measured, 0, sizeof measured);
    memset(&seen, 0, sizeof seen);
}

static void check_time_lies_in_its_bucket(uint64_t time_ns)
{
    uint32_t place = domi_histogram_place_of_time(time_ns);
    uint64_t from_ns = domus_histogram_bound_ns(place);
    uint64_t to_ns = domus_histogram_bound_ns(place + 1);

    ck_assert_uint_lt(place, DOMUS_HISTOGRAM_PLACES);
    ck_assert_uint_le(from_ns, time_ns);
    if (place == DOMUS_HISTOGRAM_PLACES - 1)
        return;
    ck_assert_uint_lt(time_ns, to_ns);
    ck_assert_uint_le(64 * (to_ns - from_ns), from_ns < 64 ? 64 : from_ns);
}

DOMT_TEST(each_bucket_is_at_most_a_64th_wide)
{
    domi_random chance;

    domi_random_init(&chance, 1);
    for (uint64_t i = 0; i < 5000; i++)
        check_time_lies_in_its_bucket(i);
    for (uint32_t bit = 0; bit < 64; bit++) {
        check_time_lies_in_its_bucket((UINT64_C(1) << bit) - 1);
        check_time_lies_in_its_bucket(UINT64_C(1) << bit);
        check_time_lies_in_its_bucket((UINT64_C(1) << bit) + 1);
    }
    check_time_lies_in_its_bucket(UINT64_MAX);
    for (int i = 0; i < 100000; i++)
        check_time_lies_in_its_bucket(domi_random_next_bits(&chance) >>
                                      domi_random_below(&chance, 64));
}

DOMT_TEST(bucket_bounds_grow_without_gaps_to_68_seconds)
{
    ck_assert_uint_eq(domus_histogram_bound_ns(0), 0);
    for (uint32_t i = 0; i < DOMUS_HISTOGRAM_PLACES; i++) {
        ck_assert_uint_lt(domus_histogram_bound_ns(i), domus_histogram_bound_ns(i + 1));
        ck_assert_uint_eq(domi_histogram_place_of_time(domus_histogram_bound_ns(i)), i);
    }
    ck_assert_uint_eq(domus_histogram_bound_ns(DOMUS_HISTOGRAM_PLACES), UINT64_C(1) << 36);
    ck_assert_uint_eq(domus_histogram_bound_ns(UINT32_MAX), UINT64_C(1) << 36);
}

static int compare_times_by_size(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

    return a < b ? -1 : a > b;
}

DOMT_TEST(quantiles_are_right_within_one_percent)
{
    static uint64_t times[20001];
    static const double shares[] = {0.0001, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1};
    domi_random chance;

    reset_counts_of_histogram();
    domi_random_init(&chance, 2);
    for (size_t i = 0; i < 20001; i++) {
        times[i] = UINT64_C(100) << domi_random_below(&chance, 24);
        times[i] += domi_random_below(&chance, times[i]);
        domi_histogram_add_time(&measured, times[i]);
    }
    domi_histogram_add_all_to_copy(&measured, &seen);
    qsort(times, 20001, sizeof times[0], compare_times_by_size);
    ck_assert_uint_eq(seen.count, 20001);
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        size_t rank = (size_t)ceil(shares[i] * 20001);
        double right = (double)times[rank == 0 ? 0 : rank - 1];
        double found = (double)domus_histogram_quantile_ns(&seen, shares[i]);
        ck_assert_msg(fabs(found - right) <= right / 100, "%g: %g is not %g", shares[i], found,
                      right);
    }
}

DOMT_TEST(histogram_sums_are_exact_and_weights_count)
{
    reset_counts_of_histogram();
    domi_histogram_add_time(&measured, 1000);
    domi_histogram_add_weighted_time(&measured, 5, 3);
    domi_histogram_add_all_to_copy(&measured, &seen);
    ck_assert_uint_eq(seen.count, 4);
    ck_assert_uint_eq(seen.sum_ns, 1015);
    ck_assert_uint_eq(seen.places[5], 3);
    ck_assert_uint_eq(seen.places[domi_histogram_place_of_time(1000)], 1);
}

DOMT_TEST(histogram_snapshots_are_added_and_subtracted)
{
    domus_histogram before, both;

    reset_counts_of_histogram();
    domi_histogram_add_time(&measured, 10);
    domi_histogram_add_all_to_copy(&measured, &seen);
    before = seen;
    domi_histogram_add_time(&measured, 20);
    domi_histogram_add_time(&measured, UINT64_MAX);
    memset(&seen, 0, sizeof seen);
    domi_histogram_add_all_to_copy(&measured, &seen);
    both = seen;
    domus_histogram_merge(&both, &before);
    ck_assert_uint_eq(both.count, 4);
    ck_assert_uint_eq(both.places[10], 2);
    domus_histogram_subtract(&both, &seen);
    ck_assert_mem_eq(&both, &before, sizeof both);
}

DOMT_TEST(long_times_count_as_68_seconds)
{
    reset_counts_of_histogram();
    ck_assert_uint_eq(domus_histogram_quantile_ns(&seen, 0.5), 0);
    domi_histogram_add_time(&measured, UINT64_C(1) << 50);
    domi_histogram_add_all_to_copy(&measured, &seen);
    ck_assert_uint_eq(domus_histogram_quantile_ns(&seen, 0.5),
                      domus_histogram_bound_ns(DOMUS_HISTOGRAM_PLACES - 1));
}

DOMT_SUITE(20)
