/* Sends several queries of a desk at once; crowd.h describes the functions. */
#include "tests/sqlite/crowd.h"

#include "tests/support/suite.h"

#define WAIT_NS UINT64_C(30000000000)

static void send_request_with_number(domt_desk *desk, const domus_sql_request *request,
                                     uint64_t number)
{
    ck_assert_int_eq(domus_outsider_ask_add(desk->outsider, desk->sql.at, &domus_sql_query_type,
                                            request, WAIT_NS, number),
                     0);
}

void domt_crowd_send_query_text(domt_desk *desk, domus_sql sql, const char *text, uint64_t number)
{
    domus_sql_request request;

    ck_assert_int_eq(domus_sql_request_make(sql, NULL, text, NULL, 0, &request), 0);
    send_request_with_number(desk, &request, number);
}

void domt_crowd_send_statement(domt_desk *desk, const domus_sql_statement *statement,
                               const domus_sql_value *values, uint32_t count, uint64_t number)
{
    domus_sql_request request;

    ck_assert_int_eq(domus_sql_request_make(desk->sql, statement, NULL, values, count, &request),
                     0);
    send_request_with_number(desk, &request, number);
}

int domt_crowd_receive_answer(domt_desk *desk, uint64_t *ret_number)
{
    domus_outside_message message;

    ck_assert_int_eq(domus_outside_receive(desk->outsider, NULL, WAIT_NS, &message), 0);
    ck_assert_int_eq(message.kind, DOMUS_OUTSIDE_ANSWER);
    *ret_number = message.tag;
    if (message.type == &domus_outsider_failed_type)
        return *(const int *)message.payload;
    if (message.type == &domus_sql_error_type)
        return ((const domus_sql_error *)message.payload)->error;
    return 0;
}
