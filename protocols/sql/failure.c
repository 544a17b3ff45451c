/* Turns the SQLSTATE of a database's error into an errno, and the error's texts into a form that is
 * safe to print. */
#include "protocols/sql/sql.h"

#include <stdarg.h>
#include <stdio.h>

/* A SQLSTATE, or its class (the first two characters), and the errno for it. The first row that
 * fits counts. */
static const struct {
    const char *state;
    int error;
} errors[] = {
    {"23505", -EEXIST}, /* unique_violation: a row with this key exists already */
    {"23", -EPERM},     /* the class of integrity constraint violations */
    {"22", -EINVAL},    /* the class of data exceptions, such as a number that is out of range */
    {"42501", -EACCES}, /* insufficient_privilege: the user may not do this */
    {"42", -EINVAL},    /* the class of syntax errors and violations of access rules */
    {"07", -EINVAL},    /* the class of errors of dynamic SQL: a wrong number of parameters */
    {"25006", -EROFS},  /* read_only_sql_transaction: the transaction may only read */
    /* in_failed_sql_transaction: an earlier statement of the transaction has failed */
    {"25P02", -EINVAL},
    {"28", -EACCES}, /* the class of invalid authorization specifications: the login was refused */
    {"40", -EAGAIN}, /* the class of transaction rollbacks: serialization failure, deadlock */
    {"55P03", -EAGAIN}, /* lock_not_available: a lock was not free in time */
    {"53", -ENOSPC},    /* the class of insufficient resources, such as a full disk */
    /* query_canceled: another session of the database has cancelled the query */
    {"57014", -ECANCELED},
    /* admin_shutdown and the like: the server shuts down, or an administrator has ended the
     * connection */
    {"57P", -EPIPE},
    {"08", -EPIPE}, /* the class of connection exceptions */
};

int domus_sql_errno(const char *sqlstate)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        if (strncmp(sqlstate, errors[i].state, strlen(errors[i].state)) == 0)
            return errors[i].error;
    }
    return -EIO;
}

/* Returns a byte of an error's text as it is printed: line ends and tabs become blanks, other
 * control bytes "?". */
static char printable_byte_for(char byte)
{
    if (byte == '\n' || byte == '\t' || byte == '\r')
        return ' ';
    return (unsigned char)byte < ' ' || byte == 0x7f ? '?' : byte;
}

void domus_sql_error_text(char *field, size_t field_size, const char *text)
{
    size_t size = text != NULL ? strnlen(text, field_size - 1) : 0;

    for (size_t i = 0; i < size; i++)
        field[i] = printable_byte_for(text[i]);
    /* A character of UTF-8 that does not fit as a whole is left out. */
    if (size == field_size - 1 && text[size] != '\0') {
        while (size > 0 && ((unsigned char)text[size] & 0xc0u) == 0x80u)
            size--;
    }
    memset(field + size, 0, field_size - size);
}

domus_sql_error domus_sql_error_make(int error, const char *sqlstate, const char *format, ...)
{
    domus_sql_error failure = {.error = error};
    char message[sizeof failure.message];
    va_list list;

    va_start(list, format);
    if (vsnprintf(message, sizeof message, format, list) < 0)
        message[0] = '\0';
    va_end(list);
    domus_sql_error_text(failure.sqlstate, sizeof failure.sqlstate, sqlstate);
    domus_sql_error_text(failure.message, sizeof failure.message, message);
    return failure;
}
