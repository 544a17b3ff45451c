/* Takes memory for the texts and arrays of a struct, and frees it. */
#include "protocols/json/memory.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define BLOCK_LEAST 1024u
#define BLOCK_MOST  (1u << 20)

typedef struct domi_json_block {
    struct domi_json_block *next;
    size_t size; /* bytes in `bytes` */
    size_t used;
    max_align_t bytes[];
} domi_json_block;

int domi_json_take(domi_json_arena *arena, uint64_t size, void **ret_bytes)
{
    domi_json_block *block = arena->memory.blocks;

    if (size > arena->left)
        return -EMSGSIZE;
    uint64_t rounded = (size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    if (block == NULL || block->size - block->used < rounded) {
        size_t wanted = block == NULL              ? BLOCK_LEAST
                        : block->size < BLOCK_MOST ? 2 * block->size
                                                   : BLOCK_MOST;
        if (wanted < rounded)
            wanted = rounded;
        domi_json_block *made = malloc(sizeof *made + wanted);
        if (made == NULL)
            return -ENOMEM;
        *made = (domi_json_block){.next = block, .size = wanted};
        arena->memory.blocks = made;
        block = made;
    }
    *ret_bytes = (char *)block->bytes + block->used;
    block->used += rounded;
    arena->left -= size;
    return 0;
}

void domus_json_release(domus_json_memory *memory)
{
    if (memory == NULL)
        return;
    for (domi_json_block *block = memory->blocks, *next; block != NULL; block = next) {
        next = block->next;
        free(block);
    }
    memory->blocks = NULL;
}
