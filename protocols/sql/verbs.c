/* The functions of domus/sql.h that ask the actor of a database or of a transaction. */
#include "protocols/sql/sql.h"

#include <domus/log.h>

/* Free what a request owns if its ask was not sent. Returns `result`. */
static int free_request_if_ask_was_not_sent(domus_sql_request *request, int result)
{
    if (result < 0) {
        domus_slice_free(request->text);
        domus_slice_free(request->more);
    }
    return result;
}

int domus_sql_query(domus_stack *stack, domus_sql sql, const domus_sql_statement *statement,
                    const domus_sql_value *values, uint32_t count, domus_resumed *then)
{
    domus_sql_request request;
    int error = domus_sql_request_make(sql, statement, NULL, values, count, &request);

    if (error != 0)
        return error;
    return free_request_if_ask_was_not_sent(
        &request, domus_ask(stack, sql.at, &domus_sql_query_type, &request, then));
}

int domus_sql_query_add(domus_stack *stack, domus_sql sql, const domus_sql_statement *statement,
                        const domus_sql_value *values, uint32_t count, uint64_t tag)
{
    domus_sql_request request;
    int error = domus_sql_request_make(sql, statement, NULL, values, count, &request);

    if (error != 0)
        return error;
    return free_request_if_ask_was_not_sent(
        &request, domus_ask_add(stack, sql.at, &domus_sql_query_type, &request, 0, tag));
}

int domus_sql_query_text(domus_stack *stack, domus_sql sql, const char *text,
                         const domus_sql_value *values, uint32_t count, domus_resumed *then)
{
    domus_sql_request request;
    int error = domus_sql_request_make(sql, NULL, text, values, count, &request);

    if (error != 0)
        return error;
    return free_request_if_ask_was_not_sent(
        &request, domus_ask(stack, sql.at, &domus_sql_query_type, &request, then));
}

int domus_sql_script(domus_stack *stack, domus_sql sql, const char *text, domus_resumed *then)
{
    domus_sql_request request;
    int error = domus_sql_request_make(sql, NULL, text, NULL, 0, &request);

    if (error != 0)
        return error;
    return free_request_if_ask_was_not_sent(
        &request, domus_ask(stack, sql.at, &domus_sql_script_type, &request, then));
}

int domus_sql_rows(domus_stack *stack, domus_sql sql, const domus_sql_statement *statement,
                   const domus_sql_value *values, uint32_t count, domus_resumed *then)
{
    domus_sql_request request;
    int error = domus_sql_request_make(sql, statement, NULL, values, count, &request);

    if (error != 0)
        return error;
    return free_request_if_ask_was_not_sent(
        &request, domus_ask(stack, sql.at, &domus_sql_rows_type, &request, then));
}

int domus_sql_fetch(domus_stack *stack, domus_sql_cursor cursor, domus_resumed *then)
{
    return domus_ask(stack, cursor.at, &domus_sql_fetch_type, &cursor, then);
}

int domus_sql_close_rows(domus_stack *stack, domus_sql_cursor cursor)
{
    return domus_notice(stack, cursor.at, &domus_sql_close_type, &cursor);
}

int domus_sql_begin(domus_stack *stack, domus_sql sql, const domus_sql_begin_options *options,
                    domus_resumed *then)
{
    static const domus_sql_begin_options none;

    /* `sql` is in a transaction, and a transaction cannot begin within another one */
    if (sql.transaction != 0)
        return -EINVAL;
    return domus_ask(stack, sql.at, &domus_sql_begin_type, options != NULL ? options : &none, then);
}

static int ask_or_abandon_to_end_transaction(domus_stack *stack, domus_sql sql, bool commits,
                                             domus_resumed *then)
{
    const domus_sql_end end = {.transaction = sql.transaction, .commits = commits};
    uint64_t deadline_ns = domus_deadline_ns(stack);
    bool is_late = deadline_ns != 0 && domus_now_ns(stack) >= deadline_ns;
    int result = domus_ask(stack, sql.at, &domus_sql_end_type, &end, then);

    /* The ask to end the transaction was not sent, so the transaction is abandoned; otherwise it
     * would hold its locks until its idle time is over. */
    if (is_late || result < 0)
        (void)domus_notice(stack, sql.at, &domus_sql_abandon_type, &sql);
    return result;
}

int domus_sql_commit(domus_stack *stack, domus_sql sql, domus_resumed *then)
{
    return ask_or_abandon_to_end_transaction(stack, sql, true, then);
}

int domus_sql_rollback(domus_stack *stack, domus_sql sql, domus_resumed *then)
{
    return ask_or_abandon_to_end_transaction(stack, sql, false, then);
}

/* --- answers ---------------------------------------------------------------------------------- */

const domus_sql_error *domus_sql_error_of(const domus_answer *answer)
{
    return answer->error == 0 && answer->type == &domus_sql_error_type ? answer->payload : NULL;
}

int domus_sql_fail(domus_stack *stack, int error, const domus_answer *answer)
{
    const domus_sql_error *failure = domus_sql_error_of(answer);

    if (failure != NULL)
        domus_log_write(stack, DOMUS_LOG_ERROR, "the database says: %s %s", failure->sqlstate,
                        failure->message);
    return error;
}

/* Returns 0 if an answer has the expected type, otherwise the negative errno of its failure. */
static int errno_unless_answer_has_type(const domus_answer *answer, const domus_type *type)
{
    const domus_sql_error *failure = domus_sql_error_of(answer);

    if (answer->error != 0)
        return answer->error;
    if (failure != NULL)
        return failure->error < 0 ? failure->error : -EIO;
    return answer->type == type ? 0 : -EPROTO;
}

int domus_sql_result_of(const domus_answer *answer, const domus_sql_result **ret_result)
{
    int error = errno_unless_answer_has_type(answer, &domus_sql_result_type);

    if (error == 0)
        *ret_result = answer->payload;
    return error;
}

int domus_sql_cursor_of(const domus_answer *answer, domus_sql_cursor *ret_cursor)
{
    int error = errno_unless_answer_has_type(answer, &domus_sql_cursor_type);

    if (error == 0)
        *ret_cursor = *(const domus_sql_cursor *)answer->payload;
    return error;
}

int domus_sql_transaction_of(const domus_answer *answer, domus_sql *ret_sql)
{
    int error = errno_unless_answer_has_type(answer, &domus_sql_begun_type);

    if (error == 0)
        *ret_sql = *(const domus_sql *)answer->payload;
    return error;
}
