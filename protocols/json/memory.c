/* Takes memory for the texts and arrays that a struct points to, and frees it. The limit counts
 * whole blocks, so it holds for what malloc() gives, however small the pieces are. */
#include "protocols/json/memory.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define BLOCK_LEAST 1024u
#define BLOCK_MOST  (1u << 20)

typedef struct domi_json_block {
    struct domi_json_block *next;
    uint64_t size; /* how many bytes `bytes` has */
    uint64_t used;
    max_align_t bytes[];
} domi_json_block;

static_assert(sizeof(domi_json_block) == DOMUS_JSON_MEMORY_BLOCK, "as the header tells");
static_assert(DOMUS_JSON_MEMORY_STEP % _Alignof(max_align_t) == 0, "what is taken is aligned");

/* Add a block of at least `least` bytes to the list. The last block is only as large as the limit
 * allows. */
static int add_block_of_memory(domi_json_arena *arena, uint64_t least)
{
    const domi_json_block *before = arena->memory.blocks;
    uint64_t size = before == NULL              ? BLOCK_LEAST
                    : before->size < BLOCK_MOST ? 2 * before->size
                                                : BLOCK_MOST;

    if (least + sizeof *before > arena->left)
        return -EMSGSIZE;
    if (size > arena->left - sizeof *before)
        size = arena->left - sizeof *before;
    if (size < least)
        size = least;
    domi_json_block *block = malloc(sizeof *block + (size_t)size);
    if (block == NULL)
        return -ENOMEM;
    *block = (domi_json_block){.next = arena->memory.blocks, .size = size};
    arena->memory.blocks = block;
    arena->left -= sizeof *block + size;
    return 0;
}

int domi_json_take_bytes_of_arena(domi_json_arena *arena, uint64_t size, void **ret_bytes)
{
    domi_json_block *block = arena->memory.blocks;
    uint64_t rounded = (size + DOMUS_JSON_MEMORY_STEP - 1) / DOMUS_JSON_MEMORY_STEP;

    rounded *= DOMUS_JSON_MEMORY_STEP;
    if (block == NULL || block->size - block->used < rounded) {
        int error = add_block_of_memory(arena, rounded);
        if (error != 0)
            return error;
        block = arena->memory.blocks;
    }
    *ret_bytes = (char *)block->bytes + block->used;
    block->used += rounded;
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
