/* The issues: the handlers that list issues, show one by its number, create one, and change its
 * state. */
#include "api.h"

#include <errno.h>
#include <time.h>

#define TITLE_MAX 200u /* most bytes of the title of an issue */
#define BODY_MAX  10000u
#define PAGE_MAX  100u /* most issues in one answer */

/* An issue as JSON and as a row of the database: the fields are the columns. */
static const char *const states[] = {"open", "closed", NULL};

struct issue {
    /* `created`: time at which the issue was created, in milliseconds since 1970 */
    int64_t id, created;
    /* texts of the issue, which lie in the row of the database, or in `memory` */
    const char *title, *body, *author;
    uint32_t state, priority;
    domus_json_memory memory;
};

#define COLUMNS "id, title, body, state, priority, author, created"

static const domus_json_field issue_fields[] = {
    {DOMUS_JSON_INT("id", struct issue, id, 1, INT64_MAX)},
    {DOMUS_JSON_STRING("title", struct issue, title, TITLE_MAX)},
    {DOMUS_JSON_STRING("body", struct issue, body, BODY_MAX)},
    {DOMUS_JSON_WORD("state", struct issue, state, states)},
    {DOMUS_JSON_UINT("priority", struct issue, priority, 1, 5)},
    {DOMUS_JSON_STRING("author", struct issue, author, DOMUS_HTTP_USER_MAX)},
    {DOMUS_JSON_INT("created", struct issue, created, 0, INT64_MAX)},
};
static const domus_json_table issue_table = DOMUS_JSON_TABLE(struct issue, issue_fields);

struct page {
    struct issue items[PAGE_MAX];
    uint32_t count;
    int64_t next; /* number of the issue at which the next page begins */
    bool has_next;
};

static const domus_json_field page_fields[] = {
    {DOMUS_JSON_LIST("items", struct page, items, count, OBJECT(issue_table))},
    {DOMUS_JSON_INT("next", struct page, next, 1, INT64_MAX), .required = true,
     DOMUS_JSON_HAS(struct page, has_next)},
};
static const domus_json_table page_table = DOMUS_JSON_TABLE(struct page, page_fields);

struct query {
    int64_t limit, before;
};

static const struct query preset = {.limit = 20, .before = INT64_MAX};
static const domus_json_field query_fields[] = {
    {DOMUS_JSON_INT("limit", struct query, limit, 1, PAGE_MAX)},
    {DOMUS_JSON_INT("before", struct query, before, 1, INT64_MAX)},
};
static const domus_json_table query_table =
    DOMUS_JSON_TABLE_WITH(struct query, query_fields, .preset = &preset);

/* The fields of JSON that a new issue has, and that a request may change. */
static const domus_json_field draft_fields[] = {
    {DOMUS_JSON_STRING("title", struct issue, title, TITLE_MAX), .required = true},
    {DOMUS_JSON_STRING("body", struct issue, body, BODY_MAX), .required = true},
    {DOMUS_JSON_UINT("priority", struct issue, priority, 1, 5), .required = true},
};
static const domus_json_table draft_table = DOMUS_JSON_TABLE(struct issue, draft_fields);
static const domus_json_field change_fields[] = {
    {DOMUS_JSON_WORD("state", struct issue, state, states), .required = true}};
static const domus_json_table change_table = DOMUS_JSON_TABLE(struct issue, change_fields);

static const domus_sql_statement find = {.text = "SELECT " COLUMNS " FROM issue WHERE id = $1",
                                         .reads = true};
static const domus_sql_statement list = {
    .text = "SELECT " COLUMNS " FROM issue WHERE id < $1 ORDER BY id DESC LIMIT $2", .reads = true};
static const domus_sql_statement insert = {
    .text = "INSERT INTO issue (title, body, priority, author, created)"
            " VALUES ($1, $2, $3, $4, $5) RETURNING " COLUMNS};
static const domus_sql_statement update = {
    .text = "UPDATE issue SET state = $2 WHERE id = $1 RETURNING " COLUMNS};

/* Answer with the issue in the only row of the result. All open pages are told of an issue that is
 * new or has changed. */
static int answer_with_issue(domus_stack *stack, void *self, const domus_answer *answer)
{
    const domus_http_request *request = domus_asked(stack, &domus_http_request_type);
    const domus_sql_result *rows;
    domus_appender place = {0};
    struct issue issue;
    int error = domus_sql_result_of(answer, &rows);

    (void)self;
    if (error == 0 && rows->rows == 0)
        return -ENOENT;
    if (error == 0)
        error = domus_sql_read(rows, 0, 1, &issue_table, &issue);
    if (error != 0)
        return domus_sql_fail(stack, error, answer);
    if (request->method == DOMUS_HTTP_GET || request->method == DOMUS_HTTP_HEAD)
        return domus_http_reply_json_tagged(stack, &issue_table, &issue);
    api_tell_board_that_issue_changed(stack, issue.id);
    if (request->method == DOMUS_HTTP_PATCH)
        return domus_http_reply_json(stack, 200, &issue_table, &issue, NULL);
    (void)domus_append_text(&place, "Location: /issues/%lld\r\n", (long long)issue.id);
    return domus_http_reply_json(stack, 201, &issue_table, &issue, &place);
}

int api_show_issue(domus_stack *stack, void *self, const domus_http_request *request,
                   const domus_http_match *match)
{
    int64_t id;

    (void)self, (void)request;
    if (domus_http_route_number(match, "id", 1, INT64_MAX, &id) != 0)
        return -ENOENT;
    return domus_sql_query(stack, api_database, &find, DOMUS_SQL_VALUES(domus_sql_int(id)),
                           answer_with_issue);
}

int api_create_issue(domus_stack *stack, void *self, const domus_http_request *request,
                     const domus_http_match *match)
{
    struct issue draft;
    int result;

    (void)self, (void)match;
    if (!domus_http_read_json(stack, request, &draft_table, &draft, &draft.memory, &result))
        return result;
    result =
        domus_sql_query(stack, api_database, &insert,
                        DOMUS_SQL_VALUES(domus_sql_text(draft.title), domus_sql_text(draft.body),
                                         domus_sql_int(draft.priority),
                                         domus_sql_text(domus_http_user_of(stack, request)),
                                         domus_sql_int((int64_t)time(NULL) * 1000)),
                        answer_with_issue);
    domus_json_release(&draft.memory);
    return result;
}

int api_change_issue(domus_stack *stack, void *self, const domus_http_request *request,
                     const domus_http_match *match)
{
    struct issue change;
    int64_t id;
    int result;

    (void)self;
    if (domus_http_route_number(match, "id", 1, INT64_MAX, &id) != 0)
        return -ENOENT;
    if (!domus_http_read_json(stack, request, &change_table, &change, NULL, &result))
        return result;
    return domus_sql_query(
        stack, api_database, &update,
        DOMUS_SQL_VALUES(domus_sql_int(id), domus_sql_text(states[change.state])),
        answer_with_issue);
}

static int answer_with_page_of_issues(domus_stack *stack, void *self, const domus_answer *answer)
{
    const domus_sql_result *rows;
    struct page page;
    int error = domus_sql_result_of(answer, &rows);

    (void)self;
    if (error == 0)
        error = domus_sql_read(rows, 0, rows->rows, &issue_table, page.items);
    if (error != 0)
        return domus_sql_fail(stack, error, answer);
    page.count = rows->rows;
    page.next = page.count != 0 ? page.items[page.count - 1].id : 0;
    page.has_next = page.next > 1;
    return domus_http_reply_json_tagged(stack, &page_table, &page);
}

int api_list_issues(domus_stack *stack, void *self, const domus_http_request *request,
                    const domus_http_match *match)
{
    struct query query;
    int result;

    (void)self, (void)match;
    if (!domus_http_read_query(stack, request, &query_table, &query, NULL, &result))
        return result;
    return domus_sql_query(
        stack, api_database, &list,
        DOMUS_SQL_VALUES(domus_sql_int(query.before), domus_sql_int(query.limit)),
        answer_with_page_of_issues);
}
