/* Cookies (RFC 6265), of which a server reads those of a request and sets others in its answer.
 *
 * Thread-safety: any thread. */
#ifndef DOMUS_HTTP_COOKIE_H
#define DOMUS_HTTP_COOKIE_H

#include <domus/slice.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Find a cookie in the fields of a request. Its value is as it was sent, but without quotes
 * around it. The slice owns nothing, and is valid as long as the fields. Returns false if
 * there is none. */
DOMUS_API bool domus_http_cookie(domus_slice fields, const char *name, domus_slice *ret_value);

/* The attribute SameSite: with which requests of other sites a cookie is sent. */
typedef enum domus_http_same_site {
    DOMUS_HTTP_SITE_DEFAULT, /* no attribute SameSite is sent; browsers take the cookie for lax */
    DOMUS_HTTP_SITE_LAX,
    DOMUS_HTTP_SITE_STRICT,
    /* the cookie is sent with all requests of other sites; this needs `secure` */
    DOMUS_HTTP_SITE_NONE,
} domus_http_same_site;

/* A cookie that an answer sets in the browser. */
typedef struct domus_http_set_cookie {
    const char *name;
    const char *value; /* value of the cookie; "" with a max_age of -1 removes the cookie */
    /* path below which the cookie is sent; NULL: the folder of the request's path */
    const char *path;
    /* domain to whose hosts the cookie is sent; NULL: the host of the request alone */
    const char *domain;
    /* seconds for which the cookie lives; 0: as long as the browser runs; less than 0: the cookie
     * is removed */
    int64_t max_age;
    bool secure;
    bool http_only; /* whether the cookie is hidden from scripts (HttpOnly) */
    uint8_t site;   /* attribute SameSite of the cookie, a domus_http_same_site */
} domus_http_set_cookie;

/* Add a field Set-Cookie (domus_http_add()). Returns 0; -EINVAL for a name that is no token, for
 * bytes that a value, a path or a domain must not have (a space, a comma, a semicolon, quotes, a
 * control character), and for `site` NONE without `secure`; or as domus_append(). */
DOMUS_API int domus_http_add_cookie(domus_appender *fields, const domus_http_set_cookie *cookie);

#ifdef __cplusplus
}
#endif

#endif
