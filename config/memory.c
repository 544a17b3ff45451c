/* The allocations of the reader of YAML. Each thread has a countdown of its own to a failure for a
 * test, so it needs no lock. */
#include "config/memory.h"

#include <errno.h>
#include <stdlib.h>

#define ELEMENTS_FIRST 64

_Thread_local uint32_t domi_yaml_memory_countdown;

void *domi_yaml_memory_realloc(void *context, void *pointer, size_t size)
{
    (void)context;
    if (size == 0) {
        free(pointer);
        return NULL;
    }
    if (domi_yaml_memory_countdown > 0 && --domi_yaml_memory_countdown == 0)
        return NULL;
    return pointer == NULL ? calloc(1, size) : realloc(pointer, size);
}

int domi_yaml_memory_grow(void **array, size_t *capacity, size_t need, size_t element)
{
    size_t wanted = *capacity < ELEMENTS_FIRST ? ELEMENTS_FIRST : *capacity;

    if (need <= *capacity)
        return 0;
    /* `need` is bounded by the size of the file, so this multiplication does not overflow */
    while (wanted < need)
        wanted *= 2;

    void *grown = domi_yaml_memory_realloc(NULL, *array, wanted * element);
    if (grown == NULL)
        return -ENOMEM;
    *array = grown;
    *capacity = wanted;
    return 0;
}
