/* People: a session in a signed cookie identifies the user.
 *
 * Anybody may choose any name here. A real service checks a password, or lets another service
 * identify the user, before it begins a session. */
#include "api.h"

#include <stdio.h>
#include <time.h>

static domus_http_keys keys;
static domus_http_session_cookie cookie;

const domus_http_user_session api_session = {.keys = &keys, .cookie = &cookie};

int api_read_session_keys(void)
{
    char words[DOMUS_HTTP_KEYS_WORDS] = "cannot be drawn";
    int error = api_settings.keys[0] == '\0'
                    ? domus_http_keys_draw(&keys)
                    : domus_http_keys_read(api_settings.keys, &keys, words, sizeof words);

    if (error != 0)
        fprintf(stderr, "api: api.keys: %s\n", words);
    cookie.insecure = !api_settings.https;
    return error;
}

struct person {
    char name[DOMUS_HTTP_USER_MAX + 1];
};

static const domus_json_field person_fields[] = {
    {DOMUS_JSON_TEXT("name", struct person, name), .required = true}};
static const domus_json_table person_table = DOMUS_JSON_TABLE(struct person, person_fields);

int api_login(domus_stack *stack, void *self, const domus_http_request *request,
              const domus_http_match *match)
{
    domus_appender fields = {0};
    struct person person;
    int result;

    (void)self, (void)match;
    if (!domus_http_read_json(stack, request, &person_table, &person, NULL, &result))
        return result;
    if (person.name[0] == '\0')
        return domus_http_refuse(stack, 422, "name: it is empty");
    (void)domus_http_session_seal(&fields, &cookie, &keys, time(NULL), person.name,
                                  strlen(person.name));
    return domus_http_reply_json(stack, 204, NULL, NULL, &fields);
}

int api_logout(domus_stack *stack, void *self, const domus_http_request *request,
               const domus_http_match *match)
{
    domus_appender fields = {0};

    (void)self, (void)request, (void)match;
    (void)domus_http_session_clear(&fields, &cookie);
    return domus_http_reply_json(stack, 204, NULL, NULL, &fields);
}
