/* The product of two numbers of 64 bits has 128. A compiler for 32 bits has no type for that, so it
 * multiplies the halves of the numbers. kv_high_half_of_product() is there for each processor, so
 * that it is tested on each. */
#ifndef KV_WIDE_H
#define KV_WIDE_H

#include <stdint.h>

/* Returns the upper 64 bits of the product of two numbers. */
static inline uint64_t kv_high_half_of_product(uint64_t a, uint64_t b)
{
    uint64_t a_low = a & UINT32_MAX, a_high = a >> 32;
    uint64_t b_low = b & UINT32_MAX, b_high = b >> 32;
    /* fits into 64 bits: at most (2^32 - 1) * 2^32 */
    uint64_t middle = a_high * b_low + (a_low * b_low >> 32);
    uint64_t other = a_low * b_high + (middle & UINT32_MAX);

    return a_high * b_high + (middle >> 32) + (other >> 32);
}

/* Returns the two halves of the product of two numbers, combined by exclusive or. */
static inline uint64_t kv_fold_product(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
    return a * b ^ kv_high_half_of_product(a, b);
#endif
}

#endif
