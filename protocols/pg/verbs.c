/* The functions of domus/pg.h, and the types of their messages. */
#include "protocols/pg/pg.h"

#include <string.h>

static void release_request(void *payload)
{
    domus_sql_request *request = payload;

    domus_slice_free(request->text);
    domus_slice_free(request->more);
}

static void release_write(void *payload)
{
    domus_slice_free(((domus_pg_write *)payload)->bytes);
}

static void release_piece(void *payload)
{
    domus_slice_free(((domus_pg_piece *)payload)->bytes);
}

static void release_notification(void *payload)
{
    domus_slice_free(((domus_pg_notification *)payload)->payload);
}

const domus_type domus_pg_copy_in_type = {
    .name = "pg_copy_in", .size = sizeof(domus_sql_request), .release = release_request};
const domus_type domus_pg_copy_out_type = {
    .name = "pg_copy_out", .size = sizeof(domus_sql_request), .release = release_request};
const domus_type domus_pg_copy_write_type = {
    .name = "pg_copy_write", .size = sizeof(domus_pg_write), .release = release_write};
const domus_type domus_pg_copy_end_type = {.name = "pg_copy_end", .size = sizeof(domus_sql_cursor)};
const domus_type domus_pg_copy_read_type = {.name = "pg_copy_read",
                                            .size = sizeof(domus_sql_cursor)};
const domus_type domus_pg_piece_type = {
    .name = "pg_piece", .size = sizeof(domus_pg_piece), .release = release_piece};
const domus_type domus_pg_listen_type = {.name = "pg_listen", .size = sizeof(domus_pg_channel)};
const domus_type domus_pg_unlisten_type = {.name = "pg_unlisten", .size = sizeof(domus_pg_channel)};
const domus_type domus_pg_notification_type = {.name = "pg_notification",
                                               .size = sizeof(domus_pg_notification),
                                               .release = release_notification};

/* --- notifications ---------------------------------------------------------------------------- */

static int fill_channel_of_listen_or_unlisten(domus_sql sql, const char *channel,
                                              domus_pg_channel *ret_channel)
{
    size_t size = strlen(channel);

    if (size == 0 || size >= sizeof ret_channel->name)
        return -EINVAL;
    memset(ret_channel, 0, sizeof *ret_channel);
    ret_channel->at = sql.at;
    memcpy(ret_channel->name, channel, size);
    return 0;
}

int domus_pg_listen(domus_stack *stack, domus_sql sql, const char *channel, domus_resumed *then)
{
    domus_pg_channel named;
    int error = fill_channel_of_listen_or_unlisten(sql, channel, &named);

    return error != 0 ? error : domus_ask(stack, sql.at, &domus_pg_listen_type, &named, then);
}

int domus_pg_unlisten(domus_stack *stack, domus_sql sql, const char *channel, domus_resumed *then)
{
    domus_pg_channel named;
    int error = fill_channel_of_listen_or_unlisten(sql, channel, &named);

    return error != 0 ? error : domus_ask(stack, sql.at, &domus_pg_unlisten_type, &named, then);
}

/* --- copies ----------------------------------------------------------------------------------- */

static int ask_database_to_begin_copy(domus_stack *stack, domus_sql sql, const domus_type *type,
                                      const char *text, domus_resumed *then)
{
    domus_sql_request request;
    int error = domus_sql_request_make(sql, NULL, text, NULL, 0, &request);

    if (error != 0)
        return error;
    int result = domus_ask(stack, sql.at, type, &request, then);
    if (result < 0)
        release_request(&request);
    return result;
}

int domus_pg_copy_in(domus_stack *stack, domus_sql sql, const char *text, domus_resumed *then)
{
    return ask_database_to_begin_copy(stack, sql, &domus_pg_copy_in_type, text, then);
}

int domus_pg_copy_out(domus_stack *stack, domus_sql sql, const char *text, domus_resumed *then)
{
    return ask_database_to_begin_copy(stack, sql, &domus_pg_copy_out_type, text, then);
}

int domus_pg_copy_write(domus_stack *stack, domus_sql_cursor copy, domus_slice bytes,
                        domus_resumed *then)
{
    const domus_pg_write write = {.copy = copy, .bytes = bytes};

    if (bytes.size > DOMUS_PG_WRITE_MAX)
        return -EMSGSIZE;
    return domus_ask(stack, copy.at, &domus_pg_copy_write_type, &write, then);
}

int domus_pg_copy_end(domus_stack *stack, domus_sql_cursor copy, domus_resumed *then)
{
    return domus_ask(stack, copy.at, &domus_pg_copy_end_type, &copy, then);
}

int domus_pg_copy_read(domus_stack *stack, domus_sql_cursor copy, domus_resumed *then)
{
    return domus_ask(stack, copy.at, &domus_pg_copy_read_type, &copy, then);
}

int domus_pg_piece_of(const domus_answer *answer, const domus_pg_piece **ret_piece)
{
    const domus_sql_error *failure = domus_sql_error_of(answer);

    if (answer->error != 0)
        return answer->error;
    if (failure != NULL)
        return failure->error;
    if (answer->type != &domus_pg_piece_type)
        return -EPROTO;
    *ret_piece = answer->payload;
    return 0;
}
