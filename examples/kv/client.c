/* The command CLIENT: names of connections, and lists, ends and settings of connections. */
#include "desk.h"
#include "subcommand.h"
#include "wait.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BAD_NAME "ERR Client names cannot contain spaces, newlines or special characters."

/* Set the name of a client's connection (CLIENT SETNAME). Returns false if the bytes are no valid
 * name. */
bool kv_set_client_name(struct kv_session *session, domus_slice name)
{
    const char *bytes = domus_slice_data(name);

    if (name.size >= sizeof session->name)
        return false;
    for (uint32_t i = 0; i < name.size; i++) {
        if (bytes[i] < '!' || bytes[i] > '~')
            return false;
    }
    memcpy(session->name, bytes, name.size);
    session->name[name.size] = '\0';
    return true;
}

static int answer_with_verbatim_text(domus_stack *stack, domus_slice text, uint8_t version)
{
    domus_resp_builder builder = {.version = version};

    (void)domus_resp_add_verbatim(&builder, "txt", domus_slice_data(text), text.size);
    return kv_answer_what_builder_has_made(stack, &builder);
}

static int answer_with_line_of_own_client(domus_stack *stack, const struct kv_session *session,
                                          uint8_t version)
{
    domus_appender line = {0};
    domus_slice slice;

    kv_write_client_line(stack, session, &line);
    int error = domus_append_end(&line, &slice);
    if (error == 0) {
        error = answer_with_verbatim_text(stack, slice, version);
        domus_slice_free(slice);
    }
    return error;
}

/* --- all connections -------------------------------------------------------------------------- */

static int answer_with_client_lines(domus_stack *stack, void *self, const domus_answer *answers)
{
    const struct kv_scatter *frame = domus_frame(stack);
    domus_appender lines = {.size_max = kv_most_bytes_of_one_answer()};
    domus_slice slice;

    (void)self;
    for (; answers != NULL; answers = answers->next) {
        if (answers->error != 0)
            continue;
        slice = *(const domus_slice *)answers->payload;
        (void)domus_append(&lines, domus_slice_data(slice), slice.size);
    }
    int error = domus_append_end(&lines, &slice);
    if (error == 0) {
        error = answer_with_verbatim_text(stack, slice, frame->command->version);
        domus_slice_free(slice);
    }
    return error;
}

/* Read the id of a client from an argument. Returns NULL, or the text of an error. */
static const char *read_client_id(domus_slice text, const char *wrong, uint64_t *ret_id)
{
    int64_t id;

    if (!kv_read_integer_in_text(domus_slice_data(text), text.size, &id) || id <= 0)
        return wrong;
    *ret_id = (uint64_t)id;
    return NULL;
}

static bool read_client_type(domus_slice word, enum kv_client_type *ret_type)
{
    static const struct {
        const char *name;
        enum kv_client_type type;
    } types[] = {{"NORMAL", KV_NORMAL},
                 {"PUBSUB", KV_SUBSCRIBERS},
                 {"MASTER", KV_REPLICAS},
                 {"REPLICA", KV_REPLICAS},
                 {"SLAVE", KV_REPLICAS}};

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (domus_resp_is(word, types[i].name)) {
            *ret_type = types[i].type;
            return true;
        }
    }
    return false;
}

/* Answer with an error whose text repeats the argument `word`. */
static int answer_error_that_repeats_argument(domus_stack *stack, const char *what,
                                              domus_slice word)
{
    domus_resp_error error = domus_resp_error_text(
        "ERR %s '%.*s'", what, (int)(word.size < 64 ? word.size : 64), domus_slice_data(word));

    return kv_answer_error(stack, error.text);
}

/* Handle CLIENT LIST, also with TYPE or ID. */
static int ask_clerks_for_lines_of_clients(domus_stack *stack, const domus_resp_command *command)
{
    struct kv_scatter *frame = domus_frame(stack);
    struct kv_search search = {.kind = KV_LIST_THEM};
    domus_slice word = domus_resp_argument(command, 2);
    const char *wrong = NULL;

    frame->command = command;
    if (command->count == 4 && domus_resp_is(word, "TYPE")) {
        if (!read_client_type(domus_resp_argument(command, 3), &search.type))
            return answer_error_that_repeats_argument(stack, "Unknown client type",
                                                      domus_resp_argument(command, 3));
    } else if (command->count > 3 && domus_resp_is(word, "ID")) {
        if (command->count - 3 > KV_IDS_MOST)
            return kv_answer_error(stack, "ERR too many client IDs");
        for (uint32_t i = 3; i < command->count && wrong == NULL; i++)
            wrong = read_client_id(domus_resp_argument(command, i), "ERR Invalid client ID",
                                   &search.ids[search.id_count++]);
    } else if (command->count != 2) {
        wrong = KV_SYNTAX;
    }
    return wrong != NULL ? kv_answer_error(stack, wrong)
                         : kv_ask_all_clerks_to_search(stack, &search, answer_with_client_lines);
}

/* --- ending them ------------------------------------------------------------------------------ */

/* Answer CLIENT KILL with the number of connections that were ended. If its own connection is one
 * of them, that ends after the answer. */
static int answer_kill_with_count_of_ended(domus_stack *stack, void *self,
                                           const domus_answer *answers)
{
    const struct kv_scatter *frame = domus_frame(stack);
    const struct kv_session *session = self;
    bool is_old = frame->command->count == 3;
    int64_t ended = session->seat.is_ending;

    for (; answers != NULL; answers = answers->next) {
        if (answers->error == 0)
            ended += ((const domus_resp_integer *)answers->payload)->value;
    }
    int error = !is_old      ? kv_answer_integer(stack, ended)
                : ended != 0 ? kv_answer_ok(stack)
                             : kv_answer_error(stack, "ERR No such client");
    if (session->seat.is_ending)
        (void)domus_channel_close(stack, domus_channel_running(stack));
    return error;
}

/* Copy the text of an endpoint from an argument. A text that is too long matches no connection, so
 * it is not copied. */
static void copy_endpoint(domus_slice text, char endpoint[64])
{
    bool fits = text.size != 0 && text.size < 64;

    memcpy(endpoint, fits ? domus_slice_data(text) : "?", fits ? text.size : 1);
    endpoint[fits ? text.size : 1] = '\0';
}

/* Read a filter of CLIENT KILL and its value. Returns 0; if the filter is wrong, the result of the
 * answer, with `ret_answered` set. */
static int read_kill_filter(domus_stack *stack, domus_slice word, domus_slice value,
                            struct kv_search *search, bool *ret_skips, bool *ret_answered)
{
    const char *wrong = NULL;

    *ret_answered = true;
    if (domus_resp_is(word, "ADDR"))
        copy_endpoint(value, search->address);
    else if (domus_resp_is(word, "LADDR"))
        copy_endpoint(value, search->local);
    else if (domus_resp_is(word, "SKIPME"))
        *ret_skips = domus_resp_is(value, "YES");
    else if (domus_resp_is(word, "ID"))
        wrong = read_client_id(value, "ERR client-id should be greater than 0", &search->ids[0]);
    else if (domus_resp_is(word, "TYPE") && !read_client_type(value, &search->type))
        return answer_error_that_repeats_argument(stack, "Unknown client type", value);
    else if (domus_resp_is(word, "USER") && !domus_slice_equals(value, "default", 7))
        return answer_error_that_repeats_argument(stack, "No such user", value);
    else if (!domus_resp_is(word, "TYPE") && !domus_resp_is(word, "USER"))
        wrong = KV_SYNTAX;
    if (domus_resp_is(word, "SKIPME") && !*ret_skips && !domus_resp_is(value, "NO"))
        wrong = KV_SYNTAX;
    if (domus_resp_is(word, "ID"))
        search->id_count = 1;
    *ret_answered = wrong != NULL;
    return wrong != NULL ? kv_answer_error(stack, wrong) : 0;
}

/* Handle CLIENT KILL ADDRESS, and CLIENT KILL with filters, all of which must match. */
static int ask_clerks_to_end_matching_clients(domus_stack *stack, struct kv_session *session,
                                              const domus_resp_command *command)
{
    struct kv_scatter *frame = domus_frame(stack);
    struct kv_search search = {.kind = KV_END_THEM};
    bool skips = command->count > 3, was_answered;

    frame->command = command;
    if (command->count == 3)
        copy_endpoint(domus_resp_argument(command, 2), search.address);
    for (uint32_t i = 2; command->count > 3 && i < command->count; i += 2) {
        if (i + 1 == command->count)
            return kv_answer_error(stack, KV_SYNTAX);
        int result =
            read_kill_filter(stack, domus_resp_argument(command, i),
                             domus_resp_argument(command, i + 1), &search, &skips, &was_answered);
        if (was_answered)
            return result;
    }
    bool is_self = !skips && kv_session_matches_search(session, &search);
    search.but = session->id;
    int error = kv_ask_all_clerks_to_search(stack, &search, answer_kill_with_count_of_ended);
    session->seat.is_ending = is_self && error == DOMUS_PARKED;
    return error;
}

/* --- ending their waiting --------------------------------------------------------------------- */

static int answer_unblock_as_shard_answered(domus_stack *stack, void *self,
                                            const domus_answer *answer)
{
    (void)self;
    /* the answer of the shard is an integer, or an error from its door (door.h) */
    return kv_pass_answer_of_shard_to_client(stack, answer);
}

/* Handle the answers of the clerks (desk.h) to CLIENT UNBLOCK: if one of them knows the waiting
 * client, ask the client's shard to end the wait. */
static int ask_shard_of_found_client_to_unblock(domus_stack *stack, void *self,
                                                const domus_answer *answers)
{
    const struct kv_scatter *frame = domus_frame(stack);
    domus_slice reason = domus_resp_argument(frame->command, 3);
    struct kv_unblock unblock = {.why = domus_resp_is(reason, "ERROR") ? KV_BY_ERROR : KV_BY_TIME};

    (void)self;
    for (; answers != NULL; answers = answers->next) {
        const struct kv_found *found = answers->payload;
        if (answers->error != 0 || !found->is_there)
            continue;
        unblock.who = found->who;
        return domus_ask(stack, kv_shards[found->shard], &kv_unblock_type, &unblock,
                         answer_unblock_as_shard_answered);
    }
    return kv_answer_integer(stack, 0);
}

static int ask_clerks_for_client_to_unblock(domus_stack *stack, const domus_resp_command *command)
{
    struct kv_scatter *frame = domus_frame(stack);
    struct kv_search search = {.kind = KV_FIND_THEM, .id_count = 1};
    domus_slice text = domus_resp_argument(command, 2), reason = domus_resp_argument(command, 3);
    int64_t id;

    frame->command = command;
    if (command->count > 4)
        return kv_answer_error_of_wrong_subcommand(stack, command);
    if (command->count == 4 && !domus_resp_is(reason, "TIMEOUT") && !domus_resp_is(reason, "ERROR"))
        return kv_answer_error(stack, "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
    if (!kv_read_integer_in_text(domus_slice_data(text), text.size, &id))
        return kv_answer_error(stack, KV_NO_INTEGER);
    search.ids[0] = (uint64_t)id;
    return kv_ask_all_clerks_to_search(stack, &search, ask_shard_of_found_client_to_unblock);
}

/* Handle CLIENT REPLY, which sets whether this connection gets answers. */
static int set_whether_client_gets_answers(domus_stack *stack, const struct kv_session *session,
                                           domus_slice word)
{
    domus_resp_builder builder = {.version = session->version};
    domus_resp_answering answering = domus_resp_is(word, "ON")     ? DOMUS_RESP_ANSWERS
                                     : domus_resp_is(word, "OFF")  ? DOMUS_RESP_SILENT
                                     : domus_resp_is(word, "SKIP") ? DOMUS_RESP_SKIPS
                                                                   : DOMUS_RESP_AS_BEFORE;

    if (answering == DOMUS_RESP_AS_BEFORE)
        return kv_answer_error(stack, KV_SYNTAX);
    /* after OFF and SKIP the client gets no answer, not even "OK" */
    (void)domus_resp_add_simple(&builder, "OK");
    return kv_answer_and_set_answering_of_client(stack, session, &builder, answering);
}

/* --- the command ------------------------------------------------------------------------------ */

static const struct kv_subcommand subcommands[] = {
    {"getname", 2, 2, "GETNAME", "    Return the name of the current connection."},
    {"getredir", 2, 2, "GETREDIR", "    Always -1: there is no tracking."},
    {"id", 2, 2, "ID", "    Return the ID of the current connection."},
    {"info", 2, 2, "INFO", "    Return information about the current client connection."},
    {"kill", 3, KV_ANY_NUMBER, "KILL <option>",
     "    Kill connections: <ip:port>, or ADDR, LADDR, TYPE, USER, ID, SKIPME with values."},
    {"list", 2, KV_ANY_NUMBER, "LIST [TYPE <type>|ID <id> [...]]",
     "    Return information about client connections."},
    {"no-evict", 3, 3, "NO-EVICT (ON|OFF)", "    Nothing is evicted anyway."},
    {"reply", 3, 3, "REPLY (ON|OFF|SKIP)", "    Control the replies sent to the connection."},
    {"setinfo", 4, 4, NULL, NULL},
    {"setname", 3, 3, "SETNAME <name>", "    Assign the name <name> to the current connection."},
    {"unblock", 3, KV_ANY_NUMBER, "UNBLOCK <clientid> [TIMEOUT|ERROR]",
     "    Unblock the specified blocked client."},
    {NULL, 0, 0, NULL, NULL}};

/* Handle the subcommands of CLIENT that have to ask other actors. */
static int serve_list_kill_or_unblock(domus_stack *stack, struct kv_session *session,
                                      const char *name, const domus_resp_command *command)
{
    if (kv_are_answers_gathered()) /* a command of a transaction must not wait for another actor */
        return kv_answer_error(stack, "ERR Command not allowed inside a transaction");
    if (strcmp(name, "list") == 0)
        return ask_clerks_for_lines_of_clients(stack, command);
    if (strcmp(name, "kill") == 0)
        return ask_clerks_to_end_matching_clients(stack, session, command);
    return ask_clerks_for_client_to_unblock(stack, command);
}

int kv_serve_client(domus_stack *stack, void *self, const void *payload)
{
    const domus_resp_command *command = payload;
    struct kv_session *session = self;
    domus_slice value = domus_resp_argument(command, 2);
    int result;
    const struct kv_subcommand *row =
        kv_find_subcommand_or_answer_error(stack, command, subcommands, &result);

    if (row == NULL)
        return result;
    const char *name = session->seat.word = row->name;
    if (strcmp(name, "id") == 0)
        return kv_answer_integer(stack, (int64_t)session->id);
    if (strcmp(name, "getname") == 0)
        return session->name[0] == '\0'
                   ? kv_answer_null(stack)
                   : kv_answer_bytes_as_bulk_string(
                         stack, (domus_resp_bytes){session->name, strlen(session->name)});
    if (strcmp(name, "setname") == 0)
        return kv_set_client_name(session, value) ? kv_answer_ok(stack)
                                                  : kv_answer_error(stack, BAD_NAME);
    if (strcmp(name, "info") == 0)
        return answer_with_line_of_own_client(stack, session, command->version);
    if (strcmp(name, "setinfo") == 0)
        return kv_answer_ok(stack);
    if (strcmp(name, "getredir") == 0)
        return kv_answer_integer(stack, -1);
    if (strcmp(name, "reply") == 0)
        return set_whether_client_gets_answers(stack, session, value);
    if (strcmp(name, "no-evict") == 0)
        return domus_resp_is(value, "ON") || domus_resp_is(value, "OFF")
                   ? kv_answer_ok(stack)
                   : kv_answer_error(stack, KV_SYNTAX);
    return serve_list_kill_or_unblock(stack, session, name, command);
}
