/* Frees what is large, in pieces. */
#include "trash.h"

#include <stdlib.h>

#define LEAST 256u /* elements from which on a value is not freed at once */

struct kv_trash {
    struct kv_trash *next;
    struct kv_list *list;   /* either the list or the table is set */
    struct kv_table *table; /* fields, or keys */
    uint64_t at;            /* buckets of the table that are empty */
};

static bool put_into_trash(struct kv_memory *memory, struct kv_trash what)
{
    struct kv_trash *trash = kv_allocate(memory, sizeof *trash);

    if (trash == NULL)
        return false;
    *trash = what;
    trash->next = memory->trash;
    memory->trash = trash;
    return true;
}

bool kv_trash_list(struct kv_memory *memory, struct kv_list *list)
{
    return list->count >= LEAST && put_into_trash(memory, (struct kv_trash){.list = list});
}

bool kv_trash_table(struct kv_memory *memory, struct kv_table *table)
{
    return table->count >= LEAST && put_into_trash(memory, (struct kv_trash){.table = table});
}

/* Free up to `count` items of a table. Returns true when the table is gone. */
static bool clear_some(struct kv_memory *memory, struct kv_trash *trash, uint32_t *count)
{
    struct kv_table *table = trash->table;

    for (; trash->at < kv_table_buckets(table); trash->at++) {
        struct kv_item *item;
        while ((item = kv_table_bucket(table, trash->at)) != NULL) {
            if (*count == 0)
                return false;
            --*count;
            kv_table_pop(table, memory, trash->at);
        }
        if (trash->at % 8 == 0 && *count > 0) /* an empty bucket costs some, too */
            --*count;
    }
    kv_table_clear(table, memory); /* the table has no items any more */
    kv_free(memory, table);
    return true;
}

static bool drop_some(struct kv_memory *memory, struct kv_trash *trash, uint32_t *count)
{
    struct kv_list *list = trash->list;

    for (; *count > 0 && list->count != 0; --*count)
        kv_list_drop_node(memory, list);
    if (list->count != 0)
        return false;
    kv_list_free(memory, list);
    return true;
}

bool kv_trash_step(struct kv_memory *memory)
{
    uint32_t count = KV_TRASH_PIECE;

    while (memory->trash != NULL && count > 0) {
        struct kv_trash *trash = memory->trash;
        memory->trash = NULL; /* values of a table may come to be trash, too */
        bool is_done = trash->list != NULL ? drop_some(memory, trash, &count)
                                           : clear_some(memory, trash, &count);
        struct kv_trash **end = &memory->trash;
        while (*end != NULL)
            end = &(*end)->next;
        *end = is_done ? trash->next : trash;
        if (is_done)
            kv_free(memory, trash);
    }
    return memory->trash != NULL;
}
