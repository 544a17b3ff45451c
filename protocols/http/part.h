/* Parts of slices, which own nothing. */
#ifndef DOMI_PROTOCOLS_HTTP_PART_H
#define DOMI_PROTOCOLS_HTTP_PART_H

#include <domus/slice.h>

/* The `size` bytes of a slice from `at` on. */
static inline domus_slice domi_http_part_of(domus_slice from, size_t at, size_t size)
{
    return (domus_slice){from.page, from.offset + (uint32_t)at, (uint32_t)size};
}

#endif
