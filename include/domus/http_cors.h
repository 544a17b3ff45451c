/* CORS: which other sites may call this one from their pages (the Fetch standard), as a part of a
 * chain.
 *
 *     static const char *const origins[] = {"https://app.example", NULL};
 *     static const domus_http_cors cors = {.origins = origins, .credentials = true,
 *                                          .methods = DOMUS_HTTP_ON(GET) | DOMUS_HTTP_ON(PUT)};
 *     ... {&domus_http_cross_origin, &cors} in the chain, before parts that ask who comes: browsers
 *         send no credentials with a preflight
 *
 * A request with an Origin that is one of the list goes on, and its answer, whichever it is, gets
 * Access-Control-Allow-Origin, and Access-Control-Allow-Credentials and -Expose-Headers if the
 * options say so. A request with another Origin goes on without these fields: its browser hides
 * the answer, but the handler has run. So CORS guards nothing by itself; what changes something
 * has to ask who comes.
 *
 * A preflight (OPTIONS with Origin and Access-Control-Request-Method) is answered by this part:
 * 204 with what is allowed, or 403 for another origin. All other OPTIONS go on.
 *
 * Every answer gets "Vary: Origin", unless the list is "*", so that no cache gives the answer for
 * one site to another. An answer whose handler has set Access-Control-Allow-Origin itself gets
 * nothing.
 *
 * Thread-safety: any thread; options are constants. */
#ifndef DOMUS_HTTP_CORS_H
#define DOMUS_HTTP_CORS_H

#include <domus/http_chain.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOMUS_HTTP_ORIGIN_MAX   255u   /* most bytes of an origin in the list of allowed origins */
#define DOMUS_HTTP_CORS_NAMES   512u   /* most bytes of the options `headers` and `exposed`, each */
#define DOMUS_HTTP_CORS_AGE_MAX 86400u /* greatest value of max_age_s, in seconds */

/* Options of the part domus_http_cross_origin. */
typedef struct domus_http_cors {
    /* Origins as browsers write them: "https://host" or with ":port", in small letters, without a
     * path; up to a NULL. "*" as the only one: all. "null" is refused, because any page can have
     * that origin. They are compared byte by byte. */
    const char *const *origins;
    /* whether cookies and Authorization may come along with requests; not with the origin "*" */
    bool credentials;
    /* methods that other sites may use, as DOMUS_HTTP_ON() of each; 0: GET, HEAD and POST */
    uint32_t methods;
    const char *headers; /* names of fields that requests may have beside the safe ones, as in
                            "Content-Type, X-Request-Id"; NULL: none. "*": all but Authorization,
                            not with `credentials` */
    /* names of fields of answers that pages of other sites may read; NULL: none. "*": all, not with
     * `credentials` */
    const char *exposed;
    /* seconds for which a browser may remember the answer to a preflight; 0: the answer does not
     * say it */
    uint32_t max_age_s;
} domus_http_cors;

DOMUS_API extern const domus_http_part domus_http_cross_origin;

#ifdef __cplusplus
}
#endif

#endif
