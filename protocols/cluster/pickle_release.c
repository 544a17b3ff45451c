/* Frees by its table everything that a struct owns. Each pointer is NULL afterwards, so a struct
 * may be released twice, or when it was read only in part. */
#include "protocols/cluster/pickle.h"

#include <stdlib.h>

/* Tables in tables end at a depth of DOMUS_PICKLE_DEPTH_MAX, which pickle_table.c holds.
 * NOLINTBEGIN(misc-no-recursion) */

static bool does_field_own_memory(const domus_pickle_field *field)
{
    switch ((domus_pickle_kind)field->kind) {
    case DOMUS_PICKLE_KIND_OWNED_TEXT:
    case DOMUS_PICKLE_KIND_SLICE:
        return true;
    case DOMUS_PICKLE_KIND_STRUCT:
        return domi_pickle_does_table_own_memory(field->table);
    default:
        return false;
    }
}

bool domi_pickle_does_table_own_memory(const domus_pickle_table *table)
{
    for (uint32_t i = 0; i < table->count; i++) {
        const domus_pickle_field *field = &table->fields[i];
        if (field->shape == DOMUS_PICKLE_POINTED || does_field_own_memory(field))
            return true;
    }
    return false;
}

static void release_value_of_field(const domus_pickle_field *field, void *at)
{
    if (field->kind == DOMUS_PICKLE_KIND_OWNED_TEXT) {
        free(*(char **)at);
        *(char **)at = NULL;
    } else if (field->kind == DOMUS_PICKLE_KIND_SLICE) {
        domus_slice_free(*(domus_slice *)at);
        *(domus_slice *)at = (domus_slice){NULL, 0, 0};
    } else if (field->kind == DOMUS_PICKLE_KIND_STRUCT) {
        domus_pickle_release(field->table, at);
    }
}

static void release_all_values_of_field(const domus_pickle_field *field, char *value)
{
    char *at = value + field->offset;
    uint64_t count = 1;

    if (field->shape == DOMUS_PICKLE_FIXED)
        count = field->count_max;
    else if (field->shape != DOMUS_PICKLE_ONE)
        count = domi_load_unsigned_member(value + field->count_offset, field->count_size);
    if (count > field->count_max && field->shape != DOMUS_PICKLE_ONE)
        count = field->count_max; /* the user has set a count that exceeds the bound of the field */
    if (field->shape == DOMUS_PICKLE_POINTED) {
        memcpy(&at, value + field->offset, sizeof at);
        if (at == NULL)
            return;
    }
    for (uint64_t i = 0; i < count; i++)
        release_value_of_field(field, at + i * field->size);
    if (field->shape == DOMUS_PICKLE_POINTED) {
        free(at);
        memset(value + field->offset, 0, sizeof(void *));
        domi_store_unsigned_member(value + field->count_offset, field->count_size, 0);
    }
}

void domus_pickle_release(const domus_pickle_table *table, void *value)
{
    for (uint32_t i = 0; i < table->count; i++) {
        const domus_pickle_field *field = &table->fields[i];
        if (field->shape == DOMUS_PICKLE_POINTED || does_field_own_memory(field))
            release_all_values_of_field(field, value);
    }
}

/* NOLINTEND(misc-no-recursion) */
