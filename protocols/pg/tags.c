/* The tags with which the server answers statements: whether a statement has begun a transaction,
 * or ended the one that it was in. The status of the session alone would not show an end behind
 * which another transaction was begun. */
#include "protocols/pg/pg.h"

#include <string.h>
#include <strings.h>

/* Returns whether the text of a statement has "AND CHAIN", with spaces or comments between the
 * words. */
static bool does_statement_have_and_chain(const char *text)
{
    for (; (text = strcasestr(text, "AND")) != NULL; text += 3) {
        const char *next = domus_sql_skip_blanks(text + 3);
        if (next != text + 3 && strncasecmp(next, "CHAIN", 5) == 0)
            return true;
    }
    return false;
}

void domi_pg_record_tag_of_done_command(domi_pg_query *query, const char *tag)
{
    bool was_rollback = query->is_rollback;

    query->is_rollback = strcmp(tag, "ROLLBACK") == 0;
    query->is_begin = strcmp(tag, "BEGIN") == 0 || strcmp(tag, "START TRANSACTION") == 0;
    /* this is a command of the pool itself, which may begin and end transactions */
    if (query->command != NULL || query->job >= DOMI_PG_LISTEN)
        return;
    /* The server also answers ROLLBACK TO, which ends no transaction, with the tag ROLLBACK. */
    query->has_ended |= strcmp(tag, "COMMIT") == 0 || strcmp(tag, "PREPARE TRANSACTION") == 0 ||
                        (was_rollback && query->is_begin) ||
                        (query->is_rollback &&
                         does_statement_have_and_chain(domus_sql_request_text(&query->request)));
}
