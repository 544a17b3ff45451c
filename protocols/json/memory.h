/* The memory that a struct points to: blocks in a list, which are freed together. Bytes are taken
 * from the first block; each new one is twice as large as that before. */
#ifndef DOMI_PROTOCOLS_JSON_MEMORY_H
#define DOMI_PROTOCOLS_JSON_MEMORY_H

#include <domus/json.h>

typedef struct domi_json_arena {
    domus_json_memory memory;
    uint64_t left; /* bytes that further blocks may have together */
} domi_json_arena;

/* Allocate memory for the struct, aligned for any type. Returns 0; -EMSGSIZE when the limit is
 * reached; -ENOMEM. */
int domi_json_take_bytes_of_arena(domi_json_arena *arena, uint64_t size, void **ret_bytes);

#endif
