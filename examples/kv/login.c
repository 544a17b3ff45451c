/* Commands with which a connection begins: HELLO and AUTH. */
#include "kv.h"

#include <stdio.h>
#include <string.h>

#define WRONG_PASSWORD "WRONGPASS invalid username-password pair or user is disabled."

/* Whether the bytes are the password. The time does not tell how many of them are right. */
static bool is_password(domus_slice bytes)
{
    size_t size = strlen(kv_settings.password);
    unsigned char wrong = bytes.size != size;

    for (size_t i = 0; i < size && i < bytes.size; i++)
        wrong |= (unsigned char)(domus_slice_data(bytes)[i] ^ kv_settings.password[i]);
    return wrong == 0;
}

/* Whether this user may enter with this password: without one, with any. */
static bool may_enter(domus_slice user, domus_slice password)
{
    return domus_slice_equals(user, "default", 7) &&
           (kv_settings.password[0] == '\0' || is_password(password));
}

int kv_serve_auth(domus_stack *stack, void *self, const void *payload)
{
    const domus_resp_command *command = payload;
    struct kv_session *session = self;
    domus_slice last = domus_resp_argument(command, command->count - 1);
    domus_slice user = domus_resp_argument(command, 1);

    if (command->count > 3)
        return kv_error(stack, "ERR syntax error");
    if (kv_settings.password[0] == '\0' && command->count == 2)
        return kv_error(stack, "ERR AUTH <password> called without any password configured for the "
                               "default user. Are you sure your configuration is correct?");
    if (command->count == 3 ? !may_enter(user, last) : !is_password(last))
        return kv_error(stack, WRONG_PASSWORD);
    session->admitted = true;
    kv_session_settle(session);
    return kv_ok(stack);
}

static int answer_hello(domus_stack *stack, const struct kv_session *session, uint32_t version)
{
    domus_resp_builder builder = {.version = (uint8_t)version};
    domus_resp_version answer = {.version = version};
    static const char *const pairs[][2] = {
        {"server", "kv"}, {"version", KV_VERSION}, {"mode", "standalone"}, {"role", "master"}};

    (void)domus_resp_add_map(&builder, 7);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        (void)domus_resp_add_bulk(&builder, pairs[i][0], strlen(pairs[i][0]));
        (void)domus_resp_add_bulk(&builder, pairs[i][1], strlen(pairs[i][1]));
    }
    (void)domus_resp_add_bulk(&builder, "proto", 5);
    (void)domus_resp_add_integer(&builder, version);
    (void)domus_resp_add_bulk(&builder, "id", 2);
    (void)domus_resp_add_integer(&builder, (int64_t)session->id);
    (void)domus_resp_add_bulk(&builder, "modules", 7);
    (void)domus_resp_add_array(&builder, 0);
    int error = domus_resp_end(&builder, &answer.reply);
    if (error != 0)
        return error;
    error = domus_reply(stack, &domus_resp_version_type, &answer);
    if (error != 0)
        domus_slice_free(answer.reply.bytes);
    return error;
}

int kv_serve_hello(domus_stack *stack, void *self, const void *payload)
{
    const domus_resp_command *command = payload;
    struct kv_session *session = self;
    domus_slice text = domus_resp_argument(command, 1);
    int64_t version = command->version;

    if (command->count > 1 && !kv_to_integer(domus_slice_data(text), text.size, &version))
        return kv_error(stack, "ERR Protocol version is not an integer or out of range");
    if (version != 2 && version != 3)
        return kv_error(stack, "NOPROTO unsupported protocol version");
    for (uint32_t i = 2; i < command->count; i++) {
        domus_slice word = domus_resp_argument(command, i);
        if (domus_resp_is(word, "AUTH") && i + 2 < command->count) {
            if (!may_enter(domus_resp_argument(command, i + 1),
                           domus_resp_argument(command, i + 2)))
                return kv_error(stack, WRONG_PASSWORD);
            session->admitted = true;
            kv_session_settle(session);
            i += 2;
        } else if (domus_resp_is(word, "SETNAME") && i + 1 < command->count) {
            if (!kv_session_name(session, domus_resp_argument(command, ++i)))
                return kv_error(stack, "ERR Client names cannot contain spaces, newlines or "
                                       "special characters.");
        } else {
            return kv_error(stack, "ERR Syntax error in HELLO");
        }
    }
    if (!session->admitted)
        return kv_error(stack, "NOAUTH HELLO must be called with the client already authenticated");
    session->version = (uint8_t)version;
    kv_session_settle(session);
    return answer_hello(stack, session, (uint32_t)version);
}
