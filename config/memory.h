/* The reader of YAML, libcyaml included, allocates by domi_yaml_memory_realloc() only.
 *
 * A test can make the n-th allocation of its thread fail, and so reach every path that
 * undoes something. (libyaml lets nobody replace its allocator; it reports a failure
 * as YAML_MEMORY_ERROR.) */
#ifndef DOMI_CONFIG_MEMORY_H
#define DOMI_CONFIG_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Allocate, resize or free memory as realloc() does, but a size of 0 frees and returns NULL, and
 * new memory is zeroed: of the reader's 5 MB most are never touched. libcyaml requires the
 * parameter `context`, which is not used. */
void *domi_yaml_memory_realloc(void *context, void *pointer, size_t size);

/* Make room for `need` elements of `element` bytes in `*array`, at least doubling it.
 * Returns 0; -ENOMEM, and the array stays as it was. */
int domi_yaml_memory_grow(void **array, size_t *capacity, size_t need, size_t element);

/* For tests: the n-th allocation of this thread from now on fails, once; 0: none fails. */
extern _Thread_local uint32_t domi_yaml_memory_countdown;

#endif
