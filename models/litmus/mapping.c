/* Each atomic access with each order that it may have, for `run --mapping`: what gcc and clang make
 * of these functions for AArch64 is what forms.py writes into the tests. */
#include <stdatomic.h>
#include <stdbool.h>

#define CHANGES(order)                                                                             \
    int exchange_##order(atomic_int *x, int value)                                                 \
    {                                                                                              \
        return atomic_exchange_explicit(x, value, memory_order_##order);                           \
    }                                                                                              \
    int fetch_add_##order(atomic_int *x, int value)                                                \
    {                                                                                              \
        return atomic_fetch_add_explicit(x, value, memory_order_##order);                          \
    }                                                                                              \
    int fetch_or_##order(atomic_int *x, int value)                                                 \
    {                                                                                              \
        return atomic_fetch_or_explicit(x, value, memory_order_##order);                           \
    }                                                                                              \
    bool compare_##order(atomic_int *x, int *expected, int value)                                  \
    {                                                                                              \
        return atomic_compare_exchange_strong_explicit(x, expected, value, memory_order_##order,   \
                                                       memory_order_relaxed);                      \
    }

#define LOADS(order)                                                                               \
    int load_##order(atomic_int *x)                                                                \
    {                                                                                              \
        return atomic_load_explicit(x, memory_order_##order);                                      \
    }

#define STORES(order)                                                                              \
    void store_##order(atomic_int *x, int value)                                                   \
    {                                                                                              \
        atomic_store_explicit(x, value, memory_order_##order);                                     \
    }

CHANGES(relaxed)
CHANGES(acquire)
CHANGES(release)
CHANGES(acq_rel)
CHANGES(seq_cst)
LOADS(relaxed)
LOADS(acquire)
LOADS(seq_cst)
STORES(relaxed)
STORES(release)
STORES(seq_cst)
