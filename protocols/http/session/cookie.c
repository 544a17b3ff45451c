/* The cookies of browsers' sessions: with a signed value, or with an id (domus/http_session.h). */
#include "protocols/http/session/signing.h"

#include <domus/http_session.h>

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define LIFETIME (INT64_C(12) * 3600)
/* seconds that a cookie may live, at most; browsers shorten a longer lifetime to this */
#define LIFETIME_MOST (INT64_C(400) * 86400)
#define ID_64         DOMI_HTTP_64_SIZE(DOMUS_HTTP_SESSION_ID_BYTES)
#define PURPOSE       "cookie:"
#define PURPOSE_ROOM  (sizeof PURPOSE + DOMUS_HTTP_COOKIE_NAME_MAX)
/* bytes of a cookie's name and value together that browsers keep, at most */
#define BROWSERS_MAX 4096u

static_assert(PURPOSE_ROOM - 1 <= DOMUS_HTTP_PURPOSE_MAX, "it is a purpose");
static_assert(DOMUS_HTTP_COOKIE_NAME_MAX + 1 +
                      DOMUS_HTTP_SIGNED_SIZE(DOMUS_HTTP_SESSION_VALUE_MAX) <=
                  BROWSERS_MAX,
              "browsers keep it");

static bool does_text_begin_with(const char *text, const char *begin)
{
    return strncasecmp(text, begin, strlen(begin)) == 0;
}

/* Replace zeros in the options of a session's cookie by defaults. Returns 0; -EINVAL. */
static int fill_in_defaults_of_cookie(const domus_http_session_cookie *cookie,
                                      domus_http_session_cookie *ret_made)
{
    domus_http_session_cookie made = {.name = NULL};

    if (cookie != NULL)
        made = *cookie;
    if (made.name == NULL)
        made.name = made.insecure ? "session" : "__Host-session";
    if (made.lifetime_s == 0)
        made.lifetime_s = LIFETIME;
    if (made.site == DOMUS_HTTP_SITE_DEFAULT)
        made.site = DOMUS_HTTP_SITE_LAX;
    bool wants_secure =
        does_text_begin_with(made.name, "__Host-") || does_text_begin_with(made.name, "__Secure-");
    if (strnlen(made.name, DOMUS_HTTP_COOKIE_NAME_MAX + 1) > DOMUS_HTTP_COOKIE_NAME_MAX ||
        made.lifetime_s < 1 || made.lifetime_s > LIFETIME_MOST || (made.insecure && wants_secure))
        return -EINVAL;
    *ret_made = made;
    return 0;
}

/* Add the field Set-Cookie for the value of a session's cookie, which ends with a zero. */
static int add_set_cookie_field(domus_appender *fields, const domus_http_session_cookie *cookie,
                                const char *value, int64_t max_age)
{
    const domus_http_set_cookie made = {
        .name = cookie->name,
        .value = value,
        .path = "/",
        .max_age = max_age,
        .secure = !cookie->insecure,
        .http_only = true,
        .site = cookie->site,
    };

    return domus_http_add_cookie(fields, &made);
}

static int64_t choose_max_age_of_cookie(const domus_http_session_cookie *cookie)
{
    return cookie->with_browser ? 0 : cookie->lifetime_s;
}

int domus_http_session_clear(domus_appender *fields, const domus_http_session_cookie *cookie)
{
    domus_http_session_cookie made;
    int error = fill_in_defaults_of_cookie(cookie, &made);

    return error != 0 ? error : add_set_cookie_field(fields, &made, "", -1);
}

/* --- the session in a signed cookie ----------------------------------------------------------- */

/* Write the purpose for which a cookie's value is signed, so that the value of one cookie is not
 * valid for another cookie. */
static void write_purpose_of_signing_for_cookie(const domus_http_session_cookie *cookie,
                                                char purpose[PURPOSE_ROOM])
{
    (void)snprintf(purpose, PURPOSE_ROOM, PURPOSE "%s", cookie->name);
}

int domus_http_session_seal(domus_appender *fields, const domus_http_session_cookie *cookie,
                            const domus_http_keys *keys, int64_t now, const void *value,
                            size_t size)
{
    domus_http_session_cookie made;
    domus_appender text = {0};
    char purpose[PURPOSE_ROOM];
    domus_slice sealed;
    int error = fill_in_defaults_of_cookie(cookie, &made);

    if (error != 0)
        return error;
    if (size > DOMUS_HTTP_SESSION_VALUE_MAX)
        return -EMSGSIZE;
    if (now < 0 || now > INT64_MAX - made.lifetime_s)
        return -EINVAL;
    write_purpose_of_signing_for_cookie(&made, purpose);
    error = domus_http_sign(keys, purpose, now + made.lifetime_s, value, size, &text);
    if (error != 0)
        return error;
    (void)domus_append(&text, "", 1);
    error = domus_append_end(&text, &sealed);
    if (error != 0)
        return error;
    error = add_set_cookie_field(fields, &made, domus_slice_data(sealed),
                                 choose_max_age_of_cookie(&made));
    domus_slice_free(sealed);
    return error;
}

int64_t domus_http_session_unseal(domus_slice fields, const domus_http_session_cookie *cookie,
                                  const domus_http_keys *keys, int64_t now, void *to, size_t room)
{
    domus_http_session_cookie made;
    char purpose[PURPOSE_ROOM];
    domus_slice sealed;
    int error = fill_in_defaults_of_cookie(cookie, &made);

    if (error != 0)
        return error;
    if (!domus_http_cookie(fields, made.name, &sealed))
        return -ENOENT;
    write_purpose_of_signing_for_cookie(&made, purpose);
    return domus_http_unsign(keys, purpose, now, domus_slice_data(sealed), sealed.size, to, room);
}

/* --- the id of a session in a cookie ---------------------------------------------------------- */

int domus_http_session_make_id(domus_http_session_id *ret_id)
{
    domus_http_session_id made;
    int error = domi_http_draw_random_bytes(made.bytes, sizeof made.bytes);

    if (error == 0)
        *ret_id = made;
    return error;
}

int domus_http_session_set_id(domus_appender *fields, const domus_http_session_cookie *cookie,
                              const domus_http_session_id *id)
{
    domus_http_session_cookie made;
    char text[ID_64 + 1];
    int error = fill_in_defaults_of_cookie(cookie, &made);

    if (error != 0)
        return error;
    text[domi_http_base64url_encode(text, id->bytes, sizeof id->bytes)] = '\0';
    return add_set_cookie_field(fields, &made, text, choose_max_age_of_cookie(&made));
}

int domus_http_session_get_id(domus_slice fields, const domus_http_session_cookie *cookie,
                              domus_http_session_id *ret_id)
{
    domus_http_session_cookie made;
    domus_http_session_id read;
    domus_slice text;
    int error = fill_in_defaults_of_cookie(cookie, &made);

    if (error != 0)
        return error;
    if (!domus_http_cookie(fields, made.name, &text))
        return -ENOENT;
    if (text.size != ID_64 ||
        domi_http_base64url_decode(read.bytes, domus_slice_data(text), text.size) < 0)
        return -EBADMSG;
    *ret_id = read;
    return 0;
}
