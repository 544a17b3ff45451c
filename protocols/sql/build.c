/* Builds results of queries: names of columns and cells are appended in their order, and their
 * bytes to a second buffer, so that nothing is moved at the end (sql.h). */
#include "protocols/sql/sql.h"

/* Returns how many more bytes the result that is being built may get. */
static uint32_t count_bytes_left_in_result(const domus_sql_builder *builder)
{
    uint32_t most = builder->bytes_max != 0 && builder->bytes_max < DOMUS_SLICE_MAX
                        ? builder->bytes_max
                        : DOMUS_SLICE_MAX;
    uint32_t used = domus_sql_built_size(builder);

    return used < most ? most - used : 0;
}

static int set_error_of_builder(domus_sql_builder *builder, int error)
{
    if (builder->cells.error == 0)
        builder->cells.error = error;
    return builder->cells.error;
}

/* Append a cell to a result, and make room for its bytes. Returns that room; NULL after an
 * error. */
static char *add_cell_to_result(domus_sql_builder *builder, domus_sql_value cell)
{
    uint32_t size = domi_sql_is_value_text_or_bytes(&cell) ? cell.size : 0;
    uint32_t room = count_bytes_left_in_result(builder);

    if (builder->cells.error != 0)
        return NULL;
    if (room < sizeof cell || room - sizeof cell < size) {
        set_error_of_builder(builder, -EFBIG);
        return NULL;
    }
    /* A zero byte follows the bytes of every cell, because a name is read as a string of C, and
     * even an empty cell needs a place. */
    char *bytes =
        domi_sql_is_value_text_or_bytes(&cell) ? domus_append_room(&builder->bytes, size + 1u) : "";
    if (bytes == NULL) {
        set_error_of_builder(builder, builder->bytes.error);
        return NULL;
    }
    if (domi_sql_is_value_text_or_bytes(&cell)) {
        cell.as.integer = builder->bytes.size;
        bytes[size] = '\0';
        domus_append_written(&builder->bytes, size + 1u);
    }
    if (domus_append(&builder->cells, &cell, sizeof cell) != 0)
        return NULL;
    builder->added++;
    return bytes;
}

int domus_sql_build_columns(domus_sql_builder *builder, uint32_t columns)
{
    if (builder->begun || columns > UINT16_MAX)
        return set_error_of_builder(builder, -EINVAL);
    builder->columns = columns;
    builder->begun = true;
    return builder->cells.error;
}

int domus_sql_build_name(domus_sql_builder *builder, const char *name)
{
    size_t size = strlen(name);

    if (!builder->begun || builder->added >= builder->columns)
        return set_error_of_builder(builder, -EINVAL);
    char *bytes = add_cell_to_result(builder, domus_sql_text_of(NULL, size));
    if (bytes == NULL)
        return builder->cells.error;
    memcpy(bytes, name, size + 1);
    return 0;
}

char *domus_sql_build_room(domus_sql_builder *builder, domus_sql_kind kind, uint32_t size)
{
    domus_sql_value cell = domus_sql_bytes(NULL, size);

    cell.kind = (uint8_t)kind;
    if (builder->columns == 0 || builder->added < builder->columns ||
        !domi_sql_is_value_text_or_bytes(&cell)) {
        set_error_of_builder(builder, -EINVAL);
        return NULL;
    }
    return add_cell_to_result(builder, cell);
}

int domus_sql_build_cell(domus_sql_builder *builder, const domus_sql_value *value)
{
    domus_sql_value cell = *value;

    if (builder->columns == 0 || builder->added < builder->columns || cell.kind > DOMUS_SQL_BYTES)
        return set_error_of_builder(builder, -EINVAL);
    memset(cell.reserved, 0, sizeof cell.reserved);
    char *bytes = add_cell_to_result(builder, cell);
    if (bytes == NULL)
        return builder->cells.error;
    if (domi_sql_is_value_text_or_bytes(&cell) && cell.size != 0)
        memcpy(bytes, value->as.bytes, cell.size);
    return 0;
}

uint32_t domus_sql_built_size(const domus_sql_builder *builder)
{
    return builder->cells.size + builder->bytes.size;
}

int domus_sql_build_end(domus_sql_builder *builder, domus_sql_result *ret_result)
{
    domus_sql_result result = {.columns = (uint16_t)builder->columns};

    if (builder->columns != 0) {
        if (builder->added < builder->columns || builder->added % builder->columns != 0)
            set_error_of_builder(builder, -EINVAL);
        result.rows = builder->added / builder->columns - 1;
    }
    int error = domus_append_end(&builder->cells, &result.cells);
    if (error == 0) {
        error = domus_append_end(&builder->bytes, &result.bytes);
        if (error != 0)
            domus_slice_free(result.cells);
    }
    domus_sql_build_drop(builder);
    if (error == 0)
        *ret_result = result;
    return error;
}

void domus_sql_build_drop(domus_sql_builder *builder)
{
    domus_append_drop(&builder->cells);
    domus_append_drop(&builder->bytes);
    *builder = (domus_sql_builder){.bytes_max = builder->bytes_max};
}
