/* Who asks: sessions in a signed cookie, and the parts of the chain that read it.
 *
 * Anybody may take any name here. A real service looks for a password, or lets another one say who
 * somebody is, before it gives a session. */
#include "api.h"

#include <domus/http_auth.h>
#include <domus/http_session.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static domus_http_keys keys;
static domus_http_session_cookie cookie;

int api_people_begin(char *words, size_t words_size)
{
    unsigned char own[DOMUS_HTTP_KEY_LEAST];

    cookie.insecure = !api_settings.https;
    if (api_settings.keys[0] != '\0')
        return domus_http_keys_read(api_settings.keys, &keys, words, words_size);
    /* Sessions of a key that is drawn here end with the program. */
    domus_http_session_id half[2];
    int error = domus_http_session_make_id(&half[0]);
    if (error == 0)
        error = domus_http_session_make_id(&half[1]);
    memcpy(own, half, sizeof own);
    return error != 0 ? error : domus_http_keys_add(&keys, own, sizeof own);
}

/* --- parts of the chain ----------------------------------------------------------------------- */

/* Read the session, if there is one: the user of the exchange is also what the log names. */
static int read_session(domus_stack *stack, domus_http_exchange *exchange,
                        domus_http_request *request, const void *options)
{
    char name[API_NAME_SIZE];
    int64_t size = domus_http_session_unseal(request->fields, &cookie, &keys, api_now_ms() / 1000,
                                             name, sizeof name);

    (void)stack, (void)options;
    return size > 0 ? domus_http_set_user(exchange, name, (size_t)size) : 0;
}

static int want_person(domus_stack *stack, domus_http_exchange *exchange,
                       domus_http_request *request, const void *options)
{
    (void)request, (void)options;
    if (exchange->user[0] != '\0')
        return 0;
    return domus_http_answer(stack, 401, NULL, NULL, NULL);
}

const domus_http_part api_session = {.name = "session", .enter = read_session};
const domus_http_part api_wants_person = {.name = "wants_person", .enter = want_person};

const char *api_user(domus_stack *stack, const domus_http_request *request)
{
    const domus_http_exchange *exchange = domus_http_exchange_of(stack, request);

    return exchange != NULL ? exchange->user : "";
}

/* --- handlers --------------------------------------------------------------------------------- */

struct person {
    char name[API_NAME_SIZE];
};

static const domus_json_field person_fields[] = {
    {DOMUS_JSON_TEXT("name", struct person, name), .required = true}};
static const domus_json_table person_table = DOMUS_JSON_TABLE(struct person, person_fields);

/* Answer with a cookie, or with one that lets the browser forget it. */
static int answer_cookie(domus_stack *stack, const char *name)
{
    domus_http_response response = {.status = 204};
    domus_appender fields = {0};

    if (name != NULL)
        (void)domus_http_session_seal(&fields, &cookie, &keys, api_now_ms() / 1000, name,
                                      strlen(name));
    else
        (void)domus_http_session_clear(&fields, &cookie);
    int error = domus_append_end(&fields, &response.fields);
    if (error == 0)
        error = domus_reply(stack, &domus_http_response_type, &response);
    if (error != 0)
        domus_slice_free(response.fields);
    return error;
}

int api_login(domus_stack *stack, void *self, const domus_http_request *request,
              const domus_http_match *match)
{
    struct person person;
    int result;

    (void)self, (void)match;
    if (!api_read(stack, request, &person_table, &person, NULL, &result))
        return result;
    if (person.name[0] == '\0')
        return api_refuse(stack, 422, "name: it is empty");
    return answer_cookie(stack, person.name);
}

int api_logout(domus_stack *stack, void *self, const domus_http_request *request,
               const domus_http_match *match)
{
    (void)self, (void)request, (void)match;
    return answer_cookie(stack, NULL);
}
