/* Reading of histograms; domus/histogram.h and base/histogram.h say how a histogram lies in
 * memory. */
#include "base/histogram.h"

uint64_t domus_histogram_bound_ns(uint32_t place)
{
    uint32_t places = 1u << DOMI_HISTOGRAM_BITS;

    if (place > DOMUS_HISTOGRAM_PLACES)
        place = DOMUS_HISTOGRAM_PLACES;
    if (place < places)
        return place;
    uint32_t shift = place / places - 1;
    return (uint64_t)(places + place % places) << shift;
}

uint64_t domus_histogram_quantile_ns(const domus_histogram *histogram, double share)
{
    double wanted = share * (double)histogram->count;
    uint64_t count = 0;
    uint32_t last = 0; /* last place of the histogram so far that has times in it */

    for (uint32_t place = 0; place < DOMUS_HISTOGRAM_PLACES; place++) {
        if (histogram->places[place] == 0)
            continue;
        last = place;
        count += histogram->places[place];
        if ((double)count >= wanted)
            break;
    }
    uint64_t from_ns = domus_histogram_bound_ns(last);
    if (last == DOMUS_HISTOGRAM_PLACES - 1)
        return from_ns;
    return from_ns + (domus_histogram_bound_ns(last + 1) - from_ns) / 2;
}

void domus_histogram_merge(domus_histogram *to, const domus_histogram *from)
{
    to->count += from->count;
    to->sum_ns += from->sum_ns;
    for (uint32_t i = 0; i < DOMUS_HISTOGRAM_PLACES; i++)
        to->places[i] += from->places[i];
}

void domus_histogram_subtract(domus_histogram *now, const domus_histogram *before)
{
    now->count -= before->count;
    now->sum_ns -= before->sum_ns;
    for (uint32_t i = 0; i < DOMUS_HISTOGRAM_PLACES; i++)
        now->places[i] -= before->places[i];
}

void domi_histogram_add_all_to_copy(const domi_histogram *histogram, domus_histogram *to)
{
    to->sum_ns += domi_counter_read(&histogram->sum_ns);
    for (uint32_t i = 0; i < DOMUS_HISTOGRAM_PLACES; i++) {
        uint64_t count = domi_counter_read(&histogram->places[i]);
        to->places[i] += count;
        to->count += count;
    }
}
