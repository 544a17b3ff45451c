/* The issues: a list, one by its number, a new one, a change of its state. */
#include "api.h"

#include <domus/http_form.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- an issue as JSON ------------------------------------------------------------------------- */

static const char *const states[] = {"open", "closed", NULL};

struct issue {
    int64_t id, created;               /* in milliseconds since 1970 */
    const char *title, *body, *author; /* lie in the row of the database */
    uint32_t state, priority;
};

static const domus_json_field issue_fields[] = {
    {DOMUS_JSON_INT("id", struct issue, id, 1, INT64_MAX)},
    {DOMUS_JSON_STRING("title", struct issue, title, API_TITLE_MAX)},
    {DOMUS_JSON_STRING("body", struct issue, body, API_BODY_MAX)},
    {DOMUS_JSON_WORD("state", struct issue, state, states)},
    {DOMUS_JSON_UINT("priority", struct issue, priority, 1, 5)},
    {DOMUS_JSON_STRING("author", struct issue, author, API_NAME_SIZE)},
    {DOMUS_JSON_INT("created", struct issue, created, 0, INT64_MAX)},
};
static const domus_json_table issue_table = DOMUS_JSON_TABLE(struct issue, issue_fields);

struct page {
    struct issue items[API_PAGE_MAX];
    uint32_t count;
    int64_t next; /* where the page behind this one begins */
    bool has_next;
};

static const domus_json_field page_fields[] = {
    {DOMUS_JSON_LIST("items", struct page, items, count, OBJECT(issue_table))},
    {DOMUS_JSON_INT("next", struct page, next, 1, INT64_MAX), .required = true,
     DOMUS_JSON_HAS(struct page, has_next)},
};
static const domus_json_table page_table = DOMUS_JSON_TABLE(struct page, page_fields);

/* The body of a new issue. */
struct draft {
    const char *title, *body;
    uint32_t priority;
    domus_json_memory memory;
};

static const domus_json_field draft_fields[] = {
    {DOMUS_JSON_STRING("title", struct draft, title, API_TITLE_MAX), .required = true},
    {DOMUS_JSON_STRING("body", struct draft, body, API_BODY_MAX), .required = true},
    {DOMUS_JSON_UINT("priority", struct draft, priority, 1, 5), .required = true},
};
static const domus_json_table draft_table = DOMUS_JSON_TABLE(struct draft, draft_fields);

struct change {
    uint32_t state;
};

static const domus_json_field change_fields[] = {
    {DOMUS_JSON_WORD("state", struct change, state, states), .required = true}};
static const domus_json_table change_table = DOMUS_JSON_TABLE(struct change, change_fields);

/* --- an issue as a row ------------------------------------------------------------------------ */

#define COLUMNS "id, title, body, state, priority, author, created"

static const domus_sql_statement find = {.text = "SELECT " COLUMNS " FROM issue WHERE id = $1",
                                         .repeatable = true};
static const domus_sql_statement list = {
    .text = "SELECT " COLUMNS " FROM issue WHERE id < $1 ORDER BY id DESC LIMIT $2",
    .repeatable = true};
static const domus_sql_statement insert = {
    .text = "INSERT INTO issue (title, body, priority, author, created)"
            " VALUES ($1, $2, $3, $4, $5) RETURNING " COLUMNS};
static const domus_sql_statement update = {
    .text = "UPDATE issue SET state = $2 WHERE id = $1 RETURNING " COLUMNS};

/* Take an issue out of a row, whose texts it shows where they are. */
static struct issue issue_of(const domus_sql_result *rows, uint32_t row)
{
    domus_sql_value state = domus_sql_cell(rows, row, 3);

    return (struct issue){
        .id = domus_sql_cell(rows, row, 0).as.integer,
        .title = domus_sql_cell(rows, row, 1).as.bytes,
        .body = domus_sql_cell(rows, row, 2).as.bytes,
        .state = strcmp(state.as.bytes, states[1]) == 0 ? 1 : 0,
        .priority = (uint32_t)domus_sql_cell(rows, row, 4).as.integer,
        .author = domus_sql_cell(rows, row, 5).as.bytes,
        .created = domus_sql_cell(rows, row, 6).as.integer,
    };
}

/* --- handlers --------------------------------------------------------------------------------- */

/* Answer with the issue of the only row. */
static int answer_issue(domus_stack *stack, uint16_t status, const domus_answer *answer,
                        struct issue *ret_issue)
{
    const domus_sql_result *rows;
    char location[64];
    int error = domus_sql_result_of(answer, &rows);

    if (error != 0)
        return api_fail(stack, error, answer);
    if (rows->rows == 0)
        return api_refuse(stack, 404, "there is no such issue");
    *ret_issue = issue_of(rows, 0);
    snprintf(location, sizeof location, "/issues/%lld", (long long)ret_issue->id);
    return api_answer(stack, status, &issue_table, ret_issue, status == 201 ? location : NULL);
}

static int found(domus_stack *stack, void *self, const domus_answer *answer)
{
    struct issue issue;

    (void)self;
    return answer_issue(stack, 200, answer, &issue);
}

int api_show_issue(domus_stack *stack, void *self, const domus_http_request *request,
                   const domus_http_match *match)
{
    int64_t id;

    (void)self, (void)request;
    if (!api_issue_number(match, &id))
        return api_refuse(stack, 404, "there is no such issue");
    return domus_sql_query(stack, api_database, &find, DOMUS_SQL_VALUES(domus_sql_int(id)), found);
}

static int listed(domus_stack *stack, void *self, const domus_answer *answer)
{
    const domus_sql_result *rows;
    struct page page = {.count = 0};
    int error = domus_sql_result_of(answer, &rows);

    (void)self;
    if (error != 0)
        return api_fail(stack, error, answer);
    for (; page.count < rows->rows && page.count < API_PAGE_MAX; page.count++)
        page.items[page.count] = issue_of(rows, page.count);
    if (page.count > 0) {
        page.next = page.items[page.count - 1].id;
        page.has_next = page.next > 1;
    }
    return api_answer(stack, 200, &page_table, &page, NULL);
}

/* Read a number of the query, if it is there. Returns false if it is wrong. */
static bool read_parameter(const domus_http_request *request, const char *name, int64_t most,
                           int64_t *number)
{
    domus_http_form query;
    int error = domus_http_form_read(domus_http_query(request), NULL, &query, NULL);

    if (error == 0)
        error = domus_http_form_number(&query, name, 1, most, number);
    return error == 0 || error == -ENOENT;
}

int api_list_issues(domus_stack *stack, void *self, const domus_http_request *request,
                    const domus_http_match *match)
{
    int64_t limit = 20, before = INT64_MAX;

    (void)self, (void)match;
    if (!read_parameter(request, "limit", API_PAGE_MAX, &limit) ||
        !read_parameter(request, "before", INT64_MAX, &before))
        return api_refuse(stack, 422, "limit is 1..100, and before the number of an issue");
    return domus_sql_query(stack, api_database, &list,
                           DOMUS_SQL_VALUES(domus_sql_int(before), domus_sql_int(limit)), listed);
}

static int created(domus_stack *stack, void *self, const domus_answer *answer)
{
    struct issue issue = {.id = 0};
    int result = answer_issue(stack, 201, answer, &issue);

    (void)self;
    if (issue.id != 0)
        api_tell(stack, issue.id);
    return result;
}

int api_create_issue(domus_stack *stack, void *self, const domus_http_request *request,
                     const domus_http_match *match)
{
    struct draft draft;
    int result;

    (void)self, (void)match;
    if (!api_read(stack, request, &draft_table, &draft, &draft.memory, &result))
        return result;
    result = domus_sql_query(
        stack, api_database, &insert,
        DOMUS_SQL_VALUES(domus_sql_text(draft.title), domus_sql_text(draft.body),
                         domus_sql_int(draft.priority), domus_sql_text(api_user(stack, request)),
                         domus_sql_int(api_now_ms())),
        created);
    domus_json_release(&draft.memory);
    return result;
}

static int changed(domus_stack *stack, void *self, const domus_answer *answer)
{
    struct issue issue = {.id = 0};
    int result = answer_issue(stack, 200, answer, &issue);

    (void)self;
    if (issue.id != 0)
        api_tell(stack, issue.id);
    return result;
}

int api_change_issue(domus_stack *stack, void *self, const domus_http_request *request,
                     const domus_http_match *match)
{
    int64_t id;
    struct change change;
    int result;

    (void)self;
    if (!api_issue_number(match, &id))
        return api_refuse(stack, 404, "there is no such issue");
    if (!api_read(stack, request, &change_table, &change, NULL, &result))
        return result;
    return domus_sql_query(
        stack, api_database, &update,
        DOMUS_SQL_VALUES(domus_sql_int(id), domus_sql_text(states[change.state])), changed);
}
