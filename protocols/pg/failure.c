/* Turns an error of the server into a domus_sql_error. */
#include "protocols/pg/pg.h"

#include <stdlib.h>
#include <string.h>

void domi_pg_read_failure_of_result(const PGresult *result, domus_sql_error *ret_failure)
{
    static const struct {
        int field;
        size_t offset;
        size_t size;
    } fields[] = {
#define FIELD(code, name)                                                                          \
    {code, offsetof(domus_sql_error, name), sizeof(((domus_sql_error *)NULL)->name)}
        FIELD(PG_DIAG_SQLSTATE, sqlstate),     FIELD(PG_DIAG_MESSAGE_PRIMARY, message),
        FIELD(PG_DIAG_MESSAGE_DETAIL, detail), FIELD(PG_DIAG_CONSTRAINT_NAME, constraint),
        FIELD(PG_DIAG_TABLE_NAME, table),      FIELD(PG_DIAG_COLUMN_NAME, column),
#undef FIELD
    };
    const char *position = PQresultErrorField(result, PG_DIAG_STATEMENT_POSITION);

    memset(ret_failure, 0, sizeof *ret_failure);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        domus_sql_error_text((char *)ret_failure + fields[i].offset, fields[i].size,
                             PQresultErrorField(result, fields[i].field));
    /* if the server's error has no message, the message of libpq is taken */
    if (ret_failure->message[0] == '\0')
        domus_sql_error_text(ret_failure->message, sizeof ret_failure->message,
                             PQresultErrorMessage(result));
    /* 08P01: the server calls a wrong number of parameters a violation of the protocol. */
    ret_failure->error = strcmp(ret_failure->sqlstate, "08P01") == 0
                             ? -EINVAL
                             : domus_sql_errno(ret_failure->sqlstate);
    ret_failure->position = position != NULL ? (uint32_t)strtoul(position, NULL, 10) : 0;
}
