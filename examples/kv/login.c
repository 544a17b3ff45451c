/* Commands with which a connection begins: HELLO and AUTH. */
#include "kv.h"

#include <stdio.h>
#include <string.h>

#define WRONG_PASSWORD "WRONGPASS invalid username-password pair or user is disabled."

/* Returns whether the bytes are the password. It takes the same time whatever number of bytes is
 * right. */
static bool is_password(domus_slice bytes)
{
    size_t size = strlen(kv_settings.password);
    unsigned char wrong = bytes.size != size;

    for (size_t i = 0; i < size && i < bytes.size; i++)
        wrong |= (unsigned char)(domus_slice_data(bytes)[i] ^ kv_settings.password[i]);
    return wrong == 0;
}

/* Returns whether this user may enter with this password. If no password is configured, every one
 * is right. */
static bool is_login_right(domus_slice user, domus_slice password)
{
    return domus_slice_equals(user, "default", 7) &&
           (kv_settings.password[0] == '\0' || is_password(password));
}

int kv_serve_auth(domus_stack *stack, void *self, const void *payload)
{
    const domus_resp_command *command = payload;
    struct kv_session *session = self;
    domus_resp_builder builder = {.version = command->version};
    domus_slice last = domus_resp_argument(command, command->count - 1);
    domus_slice user = domus_resp_argument(command, 1);

    if (command->count > 3)
        return kv_answer_error(stack, "ERR syntax error");
    if (kv_settings.password[0] == '\0' && command->count == 2)
        return kv_answer_error(stack,
                               "ERR AUTH <password> called without any password configured for the "
                               "default user. Are you sure your configuration is correct?");
    if (command->count == 3 ? !is_login_right(user, last) : !is_password(last))
        return kv_answer_error(stack, WRONG_PASSWORD);
    session->admitted = true;
    kv_session_update_whether_plain(session);
    if (kv_are_answers_gathered()) /* AUTH in a transaction comes from a client that is admitted
                                      already. */
        return kv_answer_ok(stack);
    (void)domus_resp_add_simple(&builder, "OK");
    return kv_answer_and_set_answering_of_client(stack, session, &builder, DOMUS_RESP_AS_BEFORE);
}

static void add_name_and_text_to_answer(domus_resp_builder *builder, const char *name,
                                        const char *value)
{
    (void)domus_resp_add_bulk(builder, name, strlen(name));
    (void)domus_resp_add_bulk(builder, value, strlen(value));
}

static int answer_hello_with_facts_of_server(domus_stack *stack, const struct kv_session *session)
{
    domus_resp_builder builder = {.version = session->version};

    (void)domus_resp_add_map(&builder, 7);
    add_name_and_text_to_answer(&builder, "server", "kv");
    add_name_and_text_to_answer(&builder, "version", KV_VERSION);
    (void)domus_resp_add_bulk(&builder, "proto", 5);
    (void)domus_resp_add_integer(&builder, session->version);
    (void)domus_resp_add_bulk(&builder, "id", 2);
    (void)domus_resp_add_integer(&builder, (int64_t)session->id);
    add_name_and_text_to_answer(&builder, "mode", "standalone");
    add_name_and_text_to_answer(&builder, "role", "master");
    (void)domus_resp_add_bulk(&builder, "modules", 7);
    (void)domus_resp_add_array(&builder, 0);
    return kv_answer_and_set_answering_of_client(stack, session, &builder, DOMUS_RESP_AS_BEFORE);
}

/* Refuse a HELLO that is wrong. If it has given the right password before the error, the client
 * stays admitted. */
static int refuse_hello(domus_stack *stack, const struct kv_session *session, const char *format,
                        domus_slice word)
{
    domus_resp_builder builder = {.version = session->version};

    (void)domus_resp_add_error(&builder, format, (int)(word.size < 128 ? word.size : 128),
                               domus_slice_data(word));
    return kv_answer_and_set_answering_of_client(stack, session, &builder, DOMUS_RESP_AS_BEFORE);
}

int kv_serve_hello(domus_stack *stack, void *self, const void *payload)
{
    const domus_resp_command *command = payload;
    struct kv_session *session = self;
    domus_slice text = domus_resp_argument(command, 1);
    int64_t version = command->version;

    if (command->count > 1 && !kv_read_integer_in_text(domus_slice_data(text), text.size, &version))
        return kv_answer_error(stack, "ERR Protocol version is not an integer or out of range");
    if (version != 2 && version != 3)
        return kv_answer_error(stack, "NOPROTO unsupported protocol version");
    for (uint32_t i = 2; i < command->count; i++) {
        domus_slice word = domus_resp_argument(command, i);
        if (domus_resp_is(word, "AUTH") && i + 2 < command->count) {
            if (!is_login_right(domus_resp_argument(command, i + 1),
                                domus_resp_argument(command, i + 2)))
                return kv_answer_error(stack, WRONG_PASSWORD);
            session->admitted = true;
            kv_session_update_whether_plain(session);
            i += 2;
        } else if (domus_resp_is(word, "SETNAME") && i + 1 < command->count) {
            if (!kv_set_client_name(session, domus_resp_argument(command, ++i)))
                return refuse_hello(stack, session,
                                    "ERR Client names cannot contain spaces, newlines or special "
                                    "characters.%.*s",
                                    (domus_slice){NULL, 0, 0});
        } else {
            return refuse_hello(stack, session, "ERR Syntax error in HELLO option '%.*s'", word);
        }
    }
    if (!session->admitted)
        return kv_answer_error(
            stack, "NOAUTH HELLO must be called with the client already authenticated, "
                   "otherwise the HELLO AUTH <user> <pass> option can be used to "
                   "authenticate the client and select the RESP protocol version at the "
                   "same time");
    session->version = (uint8_t)version;
    kv_session_update_whether_plain(session);
    return answer_hello_with_facts_of_server(stack, session);
}
