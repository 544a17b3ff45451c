/* Frees large values in pieces (trash.h). */
#include "trash.h"

#include <stdlib.h>

#define LEAST 256u /* elements from which on a value becomes trash, and is not freed at once */

struct kv_trash {
    struct kv_trash *next;
    struct kv_list *list; /* a list that is freed; either `list` or `table` is set */
    /* a table that is freed, of the fields of a hash or of the keys of a store */
    struct kv_table *table;
    uint64_t at; /* number of buckets of the table that are empty already */
};

static bool add_value_to_trash(struct kv_memory *memory, struct kv_trash what)
{
    struct kv_trash *trash = kv_allocate_and_count_memory(memory, sizeof *trash);

    if (trash == NULL)
        return false;
    *trash = what;
    trash->next = memory->trash;
    memory->trash = trash;
    return true;
}

bool kv_trash_put_list(struct kv_memory *memory, struct kv_list *list)
{
    return list->count >= LEAST && add_value_to_trash(memory, (struct kv_trash){.list = list});
}

bool kv_trash_put_table(struct kv_memory *memory, struct kv_table *table)
{
    return table->count >= LEAST && add_value_to_trash(memory, (struct kv_trash){.table = table});
}

/* Free up to `*count` items of a table in the trash. Returns true when the table is gone. */
static bool free_some_items_of_trash_table(struct kv_memory *memory, struct kv_trash *trash,
                                           uint32_t *count)
{
    struct kv_table *table = trash->table;

    for (; trash->at < kv_table_count_buckets(table); trash->at++) {
        struct kv_item *item;
        while ((item = kv_table_first_item_of_bucket(table, trash->at)) != NULL) {
            if (*count == 0)
                return false;
            --*count;
            kv_table_remove_first_of_bucket(table, memory, trash->at);
        }
        /* eight empty buckets count as one item, because they cost time, too */
        if (trash->at % 8 == 0 && *count > 0)
            --*count;
    }
    /* only the memory of the table is left, which has no items any more */
    kv_table_clear(table, memory);
    kv_free_and_uncount_memory(memory, table);
    return true;
}

static bool free_some_nodes_of_trash_list(struct kv_memory *memory, struct kv_trash *trash,
                                          uint32_t *count)
{
    struct kv_list *list = trash->list;

    for (; *count > 0 && list->count != 0; --*count)
        kv_list_remove_first_node(memory, list);
    if (list->count != 0)
        return false;
    kv_list_free(memory, list);
    return true;
}

bool kv_trash_free_some_elements(struct kv_memory *memory)
{
    uint32_t count = KV_TRASH_PIECE;

    while (memory->trash != NULL && count > 0) {
        struct kv_trash *trash = memory->trash;
        /* take the trash out first, because values of a table may become trash, too */
        memory->trash = NULL;
        bool is_done = trash->list != NULL ? free_some_nodes_of_trash_list(memory, trash, &count)
                                           : free_some_items_of_trash_table(memory, trash, &count);
        struct kv_trash **end = &memory->trash;
        while (*end != NULL)
            end = &(*end)->next;
        *end = is_done ? trash->next : trash;
        if (is_done)
            kv_free_and_uncount_memory(memory, trash);
    }
    return memory->trash != NULL;
}
