/* Packed values: the form in which parameters travel to a database, and cells travel back.
 *
 * Cells are domus_sql_value, one after the other. The pointer of a text or of bytes is here the
 * offset of its first byte from the start of all bytes. In a request the bytes lie behind the
 * cells. A result has a slice of cells and a slice of bytes, and its first cells are the names of
 * its columns. So nothing is converted or moved when a result is handed on, and a cell is found at
 * once. */
#ifndef DOMI_PROTOCOLS_SQL_H
#define DOMI_PROTOCOLS_SQL_H

#include <domus/sql_driver.h>

#include <errno.h>

/* Returns whether a value is a text or bytes, whose bytes lie outside of its cell. */
static inline bool domi_sql_is_value_text_or_bytes(const domus_sql_value *value)
{
    return value->kind == DOMUS_SQL_TEXT || value->kind == DOMUS_SQL_BYTES;
}

/* Returns a packed cell as a value with a pointer; `bytes` is the start of the bytes of all
 * cells. */
static inline domus_sql_value domi_sql_unpack_cell(const domus_sql_value *cell, const char *bytes)
{
    domus_sql_value value = *cell;

    if (domi_sql_is_value_text_or_bytes(cell))
        value.as.bytes = bytes + cell->as.integer;
    return value;
}

/* Fill in the settings of a database: find the driver of the url, and replace zeros in the options
 * by the defaults (open.c). Returns 0; or -EINVAL, and `error` gets one line. */
int domi_sql_make_settings(const char *url, const domus_sql_options *options, char *error,
                           size_t error_size, domus_sql_settings *ret_settings);

#endif
