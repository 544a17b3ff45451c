/* Conditions of requests (RFC 9110, section 13): whether the sender has the body already, or wants
 * to change what it has seen and nothing else.
 *
 * Thread-safety: any thread. */
#ifndef DOMUS_HTTP_CONDITION_H
#define DOMUS_HTTP_CONDITION_H

#include <domus/http.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the resource that a request is for, as far as it is known. */
typedef struct domus_http_version {
    /* entity tag of the version, with its quotes: "\"abc\"" or "W/\"abc\""; NULL: none */
    const char *etag;
    int64_t modified; /* time of the resource's last change, in seconds since 1970; 0: not known */
    bool is_there;    /* whether the resource exists */
} domus_http_version;

/* Compare the conditions of a request (If-Match, If-Unmodified-Since, If-None-Match,
 * If-Modified-Since, in this order of RFC 9110) with a version. Returns 0: go on; 304: the sender
 * has this version; 412: it is not the version that the sender means. */
DOMUS_API unsigned domus_http_check_conditions(const domus_http_request *request,
                                               const domus_http_version *version);

/* Returns whether the field Range counts: there is no field If-Range, or it names this version. */
DOMUS_API bool domus_http_may_range(const domus_http_request *request,
                                    const domus_http_version *version);

/* Returns whether an entity tag stands in a list of them, or the list is "*". Weakly compared,
 * "W/\"a\"" is the same as "\"a\""; strongly, a weak tag is never the same. */
DOMUS_API bool domus_http_has_etag(domus_slice list, const char *etag, bool weakly);

#ifdef __cplusplus
}
#endif

#endif
