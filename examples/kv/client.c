/* CLIENT: what a connection is called, and all connections. */
#include "desk.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BAD_NAME "ERR Client names cannot contain spaces, newlines or special characters."

/* Returns whether the bytes may be a name; the session has it then. */
bool kv_session_name(struct kv_session *session, domus_slice name)
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

static int answer_text(domus_stack *stack, domus_slice text, uint8_t version)
{
    domus_resp_builder builder = {.version = version};

    (void)domus_resp_add_verbatim(&builder, "txt", domus_slice_data(text), text.size);
    return kv_reply(stack, &builder);
}

static int answer_own_line(domus_stack *stack, const struct kv_session *session, uint8_t version)
{
    domus_appender line = {0};
    domus_slice slice;

    kv_describe(stack, session, &line);
    int error = domus_append_end(&line, &slice);
    if (error == 0) {
        error = answer_text(stack, slice, version);
        domus_slice_free(slice);
    }
    return error;
}

/* --- all connections -------------------------------------------------------------------------- */

static int answer_list(domus_stack *stack, void *self, const domus_answer *answers)
{
    const struct kv_scatter *frame = domus_frame(stack);
    domus_appender lines = {.size_max = kv_answer_max()};
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
        error = answer_text(stack, slice, frame->command->version);
        domus_slice_free(slice);
    }
    return error;
}

/* Read the type of a client. Returns false, and the answer, if there is no such type. */
static bool read_type(domus_stack *stack, domus_slice word, enum kv_client_type *ret_type,
                      int *ret_result)
{
    bool is_other = domus_resp_is(word, "MASTER") || domus_resp_is(word, "REPLICA") ||
                    domus_resp_is(word, "SLAVE");
    domus_resp_error error;

    *ret_type = domus_resp_is(word, "NORMAL")   ? KV_NORMAL_CLIENT
                : domus_resp_is(word, "PUBSUB") ? KV_LISTENING_CLIENT
                                                : KV_NO_CLIENT;
    if (*ret_type != KV_NO_CLIENT || is_other)
        return true;
    error = domus_resp_error_text("ERR Unknown client type '%.*s'",
                                  (int)(word.size < 64 ? word.size : 64), domus_slice_data(word));
    *ret_result = kv_error(stack, error.text);
    return false;
}

static int list(domus_stack *stack, const domus_resp_command *command)
{
    int result;

    struct kv_scatter *frame = domus_frame(stack);
    struct kv_search search = {.id = 0};
    domus_slice text = domus_resp_argument(command, 3);
    int64_t id;

    frame->command = command;
    if (command->count == 4 && domus_resp_is(domus_resp_argument(command, 2), "ID")) {
        if (!kv_to_integer(domus_slice_data(text), text.size, &id) || id <= 0)
            return kv_error(stack, "ERR Invalid client ID");
        search.id = (uint64_t)id;
    } else if (command->count == 4 && domus_resp_is(domus_resp_argument(command, 2), "TYPE")) {
        if (!read_type(stack, text, &search.type, &result))
            return result;
    } else if (command->count != 2) {
        return kv_error(stack, KV_SYNTAX);
    }
    return kv_ask_clerks(stack, &search, answer_list);
}

static int answer_killed(domus_stack *stack, void *self, const domus_answer *answers)
{
    const struct kv_scatter *frame = domus_frame(stack);
    int64_t ended = 0;

    (void)self;
    for (; answers != NULL; answers = answers->next) {
        if (answers->error == 0)
            ended += ((const domus_resp_integer *)answers->payload)->value;
    }
    if (frame->command->count > 3)
        return kv_integer(stack, ended);
    return ended != 0 ? kv_ok(stack) : kv_error(stack, "ERR No such client");
}

/* CLIENT KILL ADDRESS; CLIENT KILL ID n ADDR a SKIPME yes|no. */
static int end_clients(domus_stack *stack, const struct kv_session *session,
                       const domus_resp_command *command)
{
    struct kv_scatter *frame = domus_frame(stack);
    struct kv_search search = {.ends = true, .but = command->count > 3 ? session->id : 0};
    int64_t id = 0;
    int result;

    frame->command = command;
    if (command->count != 3 && command->count % 2 != 0)
        return kv_error(stack, KV_SYNTAX);
    for (uint32_t i = 2; i < command->count; i += 2) {
        bool is_old = command->count == 3;
        domus_slice word = domus_resp_argument(command, i);
        domus_slice value = domus_resp_argument(command, is_old ? i : i + 1);
        if (is_old || domus_resp_is(word, "ADDR")) {
            size_t size = value.size < sizeof search.address ? value.size : 0;
            memcpy(search.address, size != 0 ? domus_slice_data(value) : "?", size != 0 ? size : 1);
        } else if (domus_resp_is(word, "SKIPME")) {
            search.but = domus_resp_is(value, "NO") ? 0 : session->id;
        } else if (domus_resp_is(word, "TYPE")) {
            if (!read_type(stack, value, &search.type, &result))
                return result;
        } else if (!domus_resp_is(word, "ID")) {
            return kv_error(stack, KV_SYNTAX);
        } else if (!kv_to_integer(domus_slice_data(value), value.size, &id) || id <= 0) {
            return kv_error(stack, "ERR client-id should be greater than 0");
        }
    }
    search.id = (uint64_t)id;
    return kv_ask_clerks(stack, &search, answer_killed);
}

/* CLIENT REPLY: whether this connection is answered. */
static int set_answering(domus_stack *stack, const struct kv_session *session, domus_slice word)
{
    domus_resp_builder builder = {.version = session->version};
    domus_resp_answering answering = domus_resp_is(word, "ON")     ? DOMUS_RESP_ANSWERS
                                     : domus_resp_is(word, "OFF")  ? DOMUS_RESP_SILENT
                                     : domus_resp_is(word, "SKIP") ? DOMUS_RESP_SKIPS
                                                                   : DOMUS_RESP_AS_BEFORE;

    if (answering == DOMUS_RESP_AS_BEFORE)
        return kv_error(stack, KV_SYNTAX);
    (void)domus_resp_add_simple(&builder, "OK"); /* which OFF and SKIP do not send */
    return kv_reply_change(stack, session, &builder, answering);
}

/* --- the command ------------------------------------------------------------------------------ */

static int refuse(domus_stack *stack, domus_slice word)
{
    static const char *const known[] = {"ID",    "GETNAME",  "SETNAME", "INFO",
                                        "REPLY", "NO-EVICT", "KILL",    NULL};

    return kv_refuse_word(stack, "CLIENT", word, known);
}

int kv_serve_client(domus_stack *stack, void *self, const void *payload)
{
    const domus_resp_command *command = payload;
    struct kv_session *session = self;
    domus_slice word = domus_resp_argument(command, 1), value = domus_resp_argument(command, 2);
    uint32_t count = command->count;

    if (domus_resp_is(word, "ID") && count == 2)
        return kv_integer(stack, (int64_t)session->id);
    if (domus_resp_is(word, "GETNAME") && count == 2)
        return session->name[0] == '\0'
                   ? kv_null(stack)
                   : kv_bytes(stack, (domus_resp_bytes){session->name, strlen(session->name)});
    if (domus_resp_is(word, "SETNAME") && count == 3)
        return kv_session_name(session, value) ? kv_ok(stack) : kv_error(stack, BAD_NAME);
    if (domus_resp_is(word, "INFO") && count == 2)
        return answer_own_line(stack, session, command->version);
    if (domus_resp_is(word, "SETINFO") && count == 4)
        return kv_ok(stack);
    if (domus_resp_is(word, "REPLY") && count == 3)
        return set_answering(stack, session, value);
    if (domus_resp_is(word, "NO-EVICT") && count == 3) /* nothing is evicted anyway */
        return domus_resp_is(value, "ON") || domus_resp_is(value, "OFF")
                   ? kv_ok(stack)
                   : kv_error(stack, KV_SYNTAX);
    if (kv_is_gathering())
        return refuse(stack, word); /* the others wait for threads, and a transaction does not */
    if (domus_resp_is(word, "LIST"))
        return list(stack, command);
    if (domus_resp_is(word, "KILL") && count > 2)
        return end_clients(stack, session, command);
    return refuse(stack, word);
}
