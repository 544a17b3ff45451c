/* Packed values: the form in which parameters travel to a database, and cells from it.
 *
 * Cells are domus_sql_value, one after the other, in which the pointer of a text or of bytes is the
 * place of its first byte, counted from where the bytes begin. In a request the bytes lie behind
 * the cells; a result has a slice for each, whose first cells are the names of its columns. So
 * nothing is converted or moved when a result is handed on, and a cell is found at once. */
#ifndef DOMI_PROTOCOLS_SQL_H
#define DOMI_PROTOCOLS_SQL_H

#include <domus/sql_driver.h>

#include <errno.h>

/* Returns whether the value has bytes of its own. */
static inline bool domi_sql_has_bytes(const domus_sql_value *value)
{
    return value->kind == DOMUS_SQL_TEXT || value->kind == DOMUS_SQL_BYTES;
}

/* Returns a packed cell as a value, whose bytes lie behind `bytes`. */
static inline domus_sql_value domi_sql_unpack(const domus_sql_value *cell, const char *bytes)
{
    domus_sql_value value = *cell;

    if (domi_sql_has_bytes(cell))
        value.as.bytes = bytes + cell->as.integer;
    return value;
}

/* Fill the settings of a database: the driver of the url is found, and the options get their
 * defaults (open.c). Returns 0; or -EINVAL, and `error` gets one line. */
int domi_sql_settle(const char *url, const domus_sql_options *options, char *error,
                    size_t error_size, domus_sql_settings *ret_settings);

#endif
