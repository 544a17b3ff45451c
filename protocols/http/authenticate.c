/* The part of a chain that finds the user of a request by its credentials. Runs on the thread of
 * the connection. */
#include "protocols/http/chars.h"

#include <domus/http_auth.h>

#include <errno.h>
#include <string.h>

/* --- options ---------------------------------------------------------------------------------- */

static bool is_valid_realm(const char *realm)
{
    size_t size = realm != NULL ? strlen(realm) : 0;

    return size != 0 && size <= DOMUS_HTTP_REALM_MAX &&
           domi_http_count_text_bytes(realm, size) == size && strpbrk(realm, "\"\\") == NULL;
}

static bool is_sha256_in_hexadecimal(const char *text)
{
    return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

/* Returns whether a row of the table of users is valid: it has either a secret or the hash of one,
 * so that no row accepts everybody. */
static bool is_valid_row_of_users(const domus_http_user *user, unsigned schemes)
{
    size_t size = strlen(user->name);

    if (size == 0 || size > DOMUS_HTTP_USER_MAX ||
        domi_http_count_text_bytes(user->name, size) != size ||
        ((schemes & DOMUS_HTTP_BASIC) != 0 && strchr(user->name, ':') != NULL))
        return false;
    return user->secret != NULL ? user->sha256 == NULL && user->secret[0] != '\0'
                                : user->sha256 != NULL && is_sha256_in_hexadecimal(user->sha256);
}

static int check_options_of_authentication(const void *options)
{
    const domus_http_auth *auth = options;
    const unsigned all = DOMUS_HTTP_BASIC | DOMUS_HTTP_BEARER;

    if (auth == NULL || !is_valid_realm(auth->realm) || auth->schemes == 0 ||
        (auth->schemes & ~all) != 0 || (auth->users == NULL && auth->verify == NULL))
        return -EINVAL;
    for (const domus_http_user *user = auth->users; user != NULL && user->name != NULL; user++) {
        if (!is_valid_row_of_users(user, auth->schemes))
            return -EINVAL;
    }
    return 0;
}

/* --- the answer 401 --------------------------------------------------------------------------- */

int domus_http_unauthorized(domus_stack *stack, const domus_http_auth *auth, bool is_wrong)
{
    domus_appender fields = {0};

    if ((auth->schemes & DOMUS_HTTP_BASIC) != 0)
        (void)domus_append_text(
            &fields, "WWW-Authenticate: Basic realm=\"%s\", charset=\"UTF-8\"\r\n", auth->realm);
    if ((auth->schemes & DOMUS_HTTP_BEARER) != 0)
        (void)domus_append_text(&fields, "WWW-Authenticate: Bearer realm=\"%s\"%s\r\n", auth->realm,
                                is_wrong ? ", error=\"invalid_token\"" : "");
    int result = domus_http_answer(stack, 401, &fields, NULL, NULL);
    return result == DOMUS_HTTP_ANSWERED ? 0 : result;
}

/* --- users ------------------------------------------------------------------------------------ */

static bool are_credentials_of_user(const domus_http_user *user,
                                    const domus_http_credentials *given)
{
    bool is_right = user->secret != NULL
                        ? domus_http_is_secret(given->secret, given->secret_size, user->secret,
                                               strlen(user->secret))
                        : domus_http_has_sha256(given->secret, given->secret_size, user->sha256);
    bool is_name = given->user == NULL || domus_http_is_secret(given->user, strlen(given->user),
                                                               user->name, strlen(user->name));

    return is_right & is_name;
}

/* Find the user with these credentials. Every row is compared, so that the time tells a stranger
 * nothing. Returns NULL if no user has them. */
static const domus_http_user *find_user_with_credentials(const domus_http_user *users,
                                                         const domus_http_credentials *given)
{
    const domus_http_user *found = NULL;

    for (; users != NULL && users->name != NULL; users++) {
        if (are_credentials_of_user(users, given))
            found = users;
    }
    return found;
}

/* --- entering the chain ----------------------------------------------------------------------- */

/* Verify the credentials of a request. Returns 0; -EACCES; or what `verify` of the options has
 * returned. */
static int verify_credentials_of_request(domus_stack *stack, domus_http_exchange *exchange,
                                         const domus_http_auth *auth,
                                         const domus_http_credentials *given)
{
    const domus_http_user *user = find_user_with_credentials(auth->users, given);

    if (user != NULL)
        return domus_http_set_user(exchange, user->name, strlen(user->name));
    return auth->verify != NULL ? auth->verify(stack, exchange, given, auth->context) : -EACCES;
}

static int authenticate_by_basic(domus_stack *stack, domus_http_exchange *exchange,
                                 const domus_http_auth *auth, domus_slice fields)
{
    domus_http_basic basic;
    int result = domus_http_read_basic(fields, &basic);

    if (result == 0) {
        const domus_http_credentials given = {DOMUS_HTTP_BASIC, basic.user, basic.password,
                                              strlen(basic.password)};
        result = verify_credentials_of_request(stack, exchange, auth, &given);
    } else if (result != -ENOENT) {
        result = -EACCES;
    }
    explicit_bzero(&basic, sizeof basic);
    return result;
}

static int authenticate_by_bearer(domus_stack *stack, domus_http_exchange *exchange,
                                  const domus_http_auth *auth, domus_slice fields)
{
    domus_slice token;
    int error = domus_http_read_bearer(fields, &token);

    if (error != 0)
        return error == -ENOENT ? error : -EACCES;
    const domus_http_credentials given = {DOMUS_HTTP_BEARER, NULL, domus_slice_data(token),
                                          token.size};
    return verify_credentials_of_request(stack, exchange, auth, &given);
}

static int authenticate_request(domus_stack *stack, domus_http_exchange *exchange,
                                domus_http_request *request, const void *options)
{
    const domus_http_auth *auth = options;
    int result = -ENOENT;

    if ((auth->schemes & DOMUS_HTTP_BASIC) != 0)
        result = authenticate_by_basic(stack, exchange, auth, request->fields);
    if (result == -ENOENT && (auth->schemes & DOMUS_HTTP_BEARER) != 0)
        result = authenticate_by_bearer(stack, exchange, auth, request->fields);
    if (result != -ENOENT && result != -EACCES)
        return result;
    int error = domus_http_unauthorized(stack, auth, result == -EACCES);
    return error != 0 ? error : DOMUS_HTTP_ANSWERED;
}

const domus_http_part domus_http_authenticate = {.name = "authenticate",
                                                 .check = check_options_of_authentication,
                                                 .enter = authenticate_request};
