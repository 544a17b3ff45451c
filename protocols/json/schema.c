/* Writes a table as JSON Schema. The functions recurse as deep as tables are nested, which the
 * depth of a writer bounds. NOLINTBEGIN(misc-no-recursion) */
#include "protocols/json/schema.h"

#include <string.h>

/* The tables that enclose the current one. A table that is nested in itself by a list is described
 * at the inner place as any object. */
typedef struct trail {
    const struct trail *before;
    const domus_json_table *table;
} trail;

static void put_schema_of_table(domus_json_writer *writer, const domus_json_table *table,
                                const trail *before);

static void put_type_of_schema(domus_json_writer *writer, const char *type)
{
    domus_json_put_key(writer, "type");
    domus_json_put_text(writer, type);
}

static void put_key_and_uint(domus_json_writer *writer, const char *name, uint64_t value)
{
    domus_json_put_key(writer, name);
    domus_json_put_uint(writer, value);
}

static void put_range_of_number(domus_json_writer *writer, const domus_json_field *field)
{
    domus_json_put_key(writer, "minimum");
    if (field->kind == DOMUS_JSON_KIND_REAL)
        domus_json_put_real(writer, field->real_low);
    else if (field->kind == DOMUS_JSON_KIND_INT)
        domus_json_put_int(writer, (int64_t)field->low);
    else
        domus_json_put_uint(writer, field->low);
    domus_json_put_key(writer, "maximum");
    if (field->kind == DOMUS_JSON_KIND_REAL)
        domus_json_put_real(writer, field->real_high);
    else if (field->kind == DOMUS_JSON_KIND_INT)
        domus_json_put_int(writer, (int64_t)field->high);
    else
        domus_json_put_uint(writer, field->high);
}

/* Write the members of the JSON Schema for one value of a field. */
static void put_schema_of_value(domus_json_writer *writer, const domus_json_field *field,
                                const trail *here)
{
    switch ((domus_json_kind)field->kind) {
    case DOMUS_JSON_KIND_BOOL:
        put_type_of_schema(writer, "boolean");
        break;
    case DOMUS_JSON_KIND_INT:
    case DOMUS_JSON_KIND_UINT:
        put_type_of_schema(writer, "integer");
        put_range_of_number(writer, field);
        break;
    case DOMUS_JSON_KIND_REAL:
        put_type_of_schema(writer, "number");
        put_range_of_number(writer, field);
        break;
    case DOMUS_JSON_KIND_TEXT:
        put_type_of_schema(writer, "string");
        put_key_and_uint(writer, "maxLength", field->size - 1);
        break;
    case DOMUS_JSON_KIND_STRING:
        put_type_of_schema(writer, "string");
        put_key_and_uint(writer, "maxLength", field->bytes_max);
        break;
    case DOMUS_JSON_KIND_WORD:
        domus_json_put_key(writer, "enum");
        domus_json_put_array(writer);
        for (uint32_t i = 0; field->words[i] != NULL; i++)
            domus_json_put_text(writer, field->words[i]);
        domus_json_put_end(writer);
        break;
    case DOMUS_JSON_KIND_OBJECT:
        put_schema_of_table(writer, field->table, here);
        break;
    case DOMUS_JSON_KIND_RAW:
        break;
    }
}

static void put_schema_of_elements(domus_json_writer *writer, const domus_json_field *field,
                                   const trail *here)
{
    put_type_of_schema(writer, "array");
    put_key_and_uint(writer, "maxItems", field->count_max);
    domus_json_put_key(writer, "items");
    domus_json_put_object(writer);
    put_schema_of_value(writer, field, here);
    domus_json_put_end(writer);
}

static void put_schema_of_field(domus_json_writer *writer, const domus_json_field *field,
                                const trail *here)
{
    bool may_be_null = field->has || field->nullable;

    domus_json_put_object(writer);
    if (may_be_null) {
        domus_json_put_key(writer, "anyOf");
        domus_json_put_array(writer);
        domus_json_put_raw(writer, "{\"type\":\"null\"}", 15);
        domus_json_put_object(writer);
    }
    if (field->shape == DOMUS_JSON_ONE)
        put_schema_of_value(writer, field, here);
    else
        put_schema_of_elements(writer, field, here);
    if (may_be_null) {
        domus_json_put_end(writer);
        domus_json_put_end(writer);
    }
    domus_json_put_end(writer);
}

static void put_list_of_required_fields(domus_json_writer *writer, const domus_json_table *table)
{
    bool has_some = false;

    for (uint32_t i = 0; i < table->count; i++) {
        if (!table->fields[i].required)
            continue;
        if (!has_some) {
            domus_json_put_key(writer, "required");
            domus_json_put_array(writer);
        }
        has_some = true;
        domus_json_put_text(writer, table->fields[i].name);
    }
    if (has_some)
        domus_json_put_end(writer);
}

static void put_schema_of_table(domus_json_writer *writer, const domus_json_table *table,
                                const trail *before)
{
    trail here = {before, table};

    put_type_of_schema(writer, "object");
    for (const trail *at = before; at != NULL; at = at->before) {
        if (at->table == table)
            return;
    }
    if (writer->error != 0)
        return;
    domus_json_put_key(writer, "properties");
    domus_json_put_object(writer);
    for (uint32_t i = 0; i < table->count; i++) {
        domus_json_put_key(writer, table->fields[i].name);
        put_schema_of_field(writer, &table->fields[i], &here);
    }
    domus_json_put_end(writer);
    put_list_of_required_fields(writer, table);
    if (!table->skips_unknown) {
        domus_json_put_key(writer, "additionalProperties");
        domus_json_put_bool(writer, false);
    }
}

int domi_json_put_field_schema(domus_json_writer *writer, const domus_json_field *field)
{
    put_schema_of_field(writer, field, NULL);
    return writer->error;
}

int domus_json_put_schema(domus_json_writer *writer, const domus_json_table *table)
{
    domus_json_put_object(writer);
    put_schema_of_table(writer, table, NULL);
    return domus_json_put_end(writer);
}

/* NOLINTEND(misc-no-recursion) */
