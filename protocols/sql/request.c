/* Makes requests for a database: a statement and its parameters, packed into the message, or into a
 * page when they are long (sql.h). */
#include "protocols/sql/sql.h"

#include <assert.h>

static_assert(sizeof(domus_sql_value) == 16, "cells lie behind each other");
static_assert(DOMUS_SQL_INLINE % sizeof(domus_sql_value) == 0, "cells are aligned in a request");

/* Count the bytes that the parameters of a request take when packed. Returns 0; -EINVAL;
 * -EMSGSIZE. */
static int count_bytes_of_packed_parameters(const domus_sql_value *values, uint32_t count,
                                            uint32_t *ret_size)
{
    uint64_t size = (uint64_t)count * sizeof *values;

    if (count > DOMUS_SQL_PARAMETERS_MAX)
        return -EINVAL;
    for (uint32_t i = 0; i < count; i++) {
        if (values[i].kind > DOMUS_SQL_BYTES)
            return -EINVAL;
        if (!domi_sql_is_value_text_or_bytes(&values[i]))
            continue;
        if (values[i].as.bytes == NULL && values[i].size != 0)
            return -EINVAL;
        size += values[i].size;
    }
    if (size > DOMUS_SQL_VALUE_MAX)
        return -EMSGSIZE;
    *ret_size = (uint32_t)size;
    return 0;
}

static void pack_values_of_request(const domus_sql_value *values, uint32_t count, char *to)
{
    uint32_t at = 0;
    char *bytes = to + count * sizeof *values;

    for (uint32_t i = 0; i < count; i++) {
        domus_sql_value cell = values[i];

        memset(cell.reserved, 0, sizeof cell.reserved);
        if (domi_sql_is_value_text_or_bytes(&cell)) {
            if (cell.size != 0)
                memcpy(bytes + at, values[i].as.bytes, cell.size);
            cell.as.integer = at;
            at += cell.size;
        }
        memcpy(to + i * sizeof cell, &cell, sizeof cell);
    }
}

int domus_sql_request_make(domus_sql sql, const domus_sql_statement *statement, const char *text,
                           const domus_sql_value *values, uint32_t count,
                           domus_sql_request *ret_request)
{
    domus_sql_request request = {
        .statement = statement, .transaction = sql.transaction, .count = count};
    domus_appender more = {0};
    uint32_t size;

    if ((statement != NULL) == (text != NULL) || (statement != NULL && statement->text == NULL))
        return -EINVAL;
    int error = count_bytes_of_packed_parameters(values, count, &size);
    if (error != 0)
        return error;
    if (text != NULL) {
        size_t text_size = strlen(text) + 1;

        if (text_size > DOMUS_SQL_VALUE_MAX)
            return -EMSGSIZE;
        error = domus_slice_copy(text, text_size, &request.text);
        if (error != 0)
            return error;
    }
    if (size <= sizeof request.bytes) {
        pack_values_of_request(values, count, (char *)request.bytes);
        request.size = size;
        *ret_request = request;
        return 0;
    }
    char *room = domus_append_room(&more, size);
    if (room != NULL) {
        pack_values_of_request(values, count, room);
        domus_append_written(&more, size);
    }
    error = domus_append_end(&more, &request.more);
    if (error != 0) {
        domus_slice_free(request.text);
        return error;
    }
    *ret_request = request;
    return 0;
}

const char *domus_sql_request_text(const domus_sql_request *request)
{
    return request->statement != NULL ? request->statement->text : domus_slice_data(request->text);
}

const char *domus_sql_skip_blanks(const char *text)
{
    for (;;) {
        text += strspn(text, " \t\r\n\f;");
        if (text[0] == '-' && text[1] == '-') {
            text += strcspn(text, "\n");
        } else if (text[0] == '/' && text[1] == '*') {
            const char *end = strstr(text + 2, "*/");
            text = end != NULL ? end + 2 : text + strlen(text);
        } else {
            return text;
        }
    }
}

domus_sql_value domus_sql_request_value(const domus_sql_request *request, uint32_t index)
{
    const char *packed =
        request->more.page != NULL ? domus_slice_data(request->more) : (const char *)request->bytes;
    domus_sql_value cell;

    if (index >= request->count)
        return domus_sql_null();
    memcpy(&cell, packed + index * sizeof cell, sizeof cell);
    return domi_sql_unpack_cell(&cell, packed + request->count * sizeof cell);
}
