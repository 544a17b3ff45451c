/* Sessions: what a server knows of a browser from one request to the next. There are two kinds.
 *
 * **In the cookie**: the value of the session, up to 2,900 bytes, is the cookie, signed
 * (domus/http_sign.h). Nothing is kept on the server, so it lives through restarts and on many
 * servers that share keys. But the browser can read it, a copy of it is good until it expires,
 * and the server cannot end it before. It is for what may be read and repeated: who is logged in,
 * which language.
 *
 *     error = domus_http_session_seal(&fields, NULL, &keys, now, "user=7", 6);
 *     size = domus_http_session_unseal(request->fields, NULL, &keys, now, value, sizeof value);
 *
 * **Behind an id**: the cookie is a random number of 128 bits, and the value is in a table of the
 * server (domus/http_sessions.h), which can end it at any time.
 *
 * **The cookie** has Path=/, HttpOnly, Secure, SameSite=Lax and no Domain. Its name begins with
 * "__Host-", so a browser takes it only with these attributes and over https, and no other host,
 * not even one below the same name, can set it.
 *
 * **CSRF**: SameSite=Lax keeps other sites from sending the cookie with a POST, in browsers that
 * know it. A token in each form keeps them from it everywhere: domus_http_csrf_make() makes one for
 * a session, a different one for each page, and domus_http_csrf_is_right() looks at what came back.
 *
 * Thread-safety: any thread. */
#ifndef DOMUS_HTTP_SESSION_H
#define DOMUS_HTTP_SESSION_H

#include <domus/http_cookie.h>
#include <domus/http_sign.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- the cookie ------------------------------------------------------------------------------- */

#define DOMUS_HTTP_COOKIE_NAME_MAX 64u /* most bytes of the name of a session's cookie */

/* Settings of the cookie of a session. NULL: all defaults. */
typedef struct domus_http_session_cookie {
    const char *name; /* name of the cookie; NULL: "__Host-session", or "session" if `insecure` */
    /* seconds after which the session expires, here and in the browser, up to 400 days; 0 means 12
     * h */
    int64_t lifetime_s;
    uint8_t site; /* attribute SameSite, a domus_http_same_site; DEFAULT: Lax */
    /* whether the cookie has no Secure, for plain http on the machine of a developer. Then the
     * name may not begin with "__Host-" or "__Secure-" */
    bool insecure;
    /* whether the cookie has no Max-Age: it ends with the browser, or after `lifetime_s` */
    bool with_browser;
    uint8_t reserved[5]; /* 0 */
} domus_http_session_cookie;

/* Add a Set-Cookie that lets the browser forget the session. Returns as
 * domus_http_session_seal(). */
DOMUS_API int domus_http_session_clear(domus_appender *fields,
                                       const domus_http_session_cookie *cookie);

/* --- in the cookie ---------------------------------------------------------------------------- */

/* Most bytes of a value, so that browsers keep the whole cookie (4,096 bytes). */
#define DOMUS_HTTP_SESSION_VALUE_MAX 2900u

/* Add a Set-Cookie with a signed value, which the browser can read.
 *
 * Returns as domus_append(); -EMSGSIZE above DOMUS_HTTP_SESSION_VALUE_MAX; -ENOKEY for a ring
 * without keys; -EINVAL for a wrong cookie. */
DOMUS_API int domus_http_session_seal(domus_appender *fields,
                                      const domus_http_session_cookie *cookie,
                                      const domus_http_keys *keys, int64_t now, const void *value,
                                      size_t size);

/* Read the value of a session from the cookie in the fields of a request.
 *
 * Returns its bytes; -ENOENT without such a cookie; -EINVAL for a wrong `cookie`; and as
 * domus_http_unsign(). */
DOMUS_API int64_t domus_http_session_unseal(domus_slice fields,
                                            const domus_http_session_cookie *cookie,
                                            const domus_http_keys *keys, int64_t now, void *to,
                                            size_t room);

/* --- by its id -------------------------------------------------------------------------------- */

/* Bytes of the id of a session. */
#define DOMUS_HTTP_SESSION_ID_BYTES 16u

/* The id of a session: whoever knows it has the session, so it stands in no log and no address. */
typedef struct domus_http_session_id {
    unsigned char bytes[DOMUS_HTTP_SESSION_ID_BYTES];
} domus_http_session_id;

/* Make an id that nobody can foresee: its bytes come from the kernel (getrandom(2)), never from the
 * seed of a test kit. Returns 0; the error of getrandom(2). */
DOMUS_API int domus_http_session_make_id(domus_http_session_id *ret_id);

/* Add a Set-Cookie with the id of a session. Returns as domus_http_session_seal(). */
DOMUS_API int domus_http_session_set_id(domus_appender *fields,
                                        const domus_http_session_cookie *cookie,
                                        const domus_http_session_id *id);

/* Read the id of a session from the cookie in the fields of a request. Returns 0; -ENOENT without
 * such a cookie; -EBADMSG when its value is no id; -EINVAL for a wrong `cookie`. */
DOMUS_API int domus_http_session_get_id(domus_slice fields, const domus_http_session_cookie *cookie,
                                        domus_http_session_id *ret_id);

/* --- tokens of forms -------------------------------------------------------------------------- */

/* characters of a token for a form: letters, digits, '-' and '_' */
#define DOMUS_HTTP_CSRF_SIZE 64u
/* most bytes by which a session is named to domus_http_csrf_make() */
#define DOMUS_HTTP_CSRF_SESSION_MAX 256u

/* Make a token for a session, which is some bytes that are its own and no other's, such as its id.
 * It has a random part, so that a page which is compressed does not tell it bit by bit (BREACH).
 * It is valid as long as the session is and a key of the ring has made it. `to` has room for
 * DOMUS_HTTP_CSRF_SIZE + 1 bytes, and ends with a zero.
 *
 * Returns 0; -ENOKEY for a ring without keys; -EINVAL for a session without bytes, or with too
 * many; the error of getrandom(2). */
DOMUS_API int domus_http_csrf_make(const domus_http_keys *keys, const void *session, size_t size,
                                   char *to);

/* Returns whether a text that a form has brought is a right token for this session. */
DOMUS_API bool domus_http_csrf_is_right(const domus_http_keys *keys, const void *session,
                                        size_t size, const char *text, size_t text_size);

#ifdef __cplusplus
}
#endif

#endif
