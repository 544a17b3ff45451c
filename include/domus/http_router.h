/* A router: which route of a table a request is for.
 *
 *     static const domus_http_route routes[] = {
 *         {DOMUS_HTTP_ON(GET), "/", HOME},
 *         {DOMUS_HTTP_ON(GET) | DOMUS_HTTP_ON(PUT), "/kv/{key}", KEY},
 *         {DOMUS_HTTP_ON(GET), "/files/{path*}", FILE_OF},
 *         {0, NULL, 0},
 *     };
 *     domus_http_match match = domus_http_find_route(routes, request);
 *     if (match.route == NULL)
 *         ... domus_http_unrouted(&match, &response): 404, 405 with Allow, or the answer to OPTIONS
 *
 * A segment in braces stands for one segment that is not empty, and one with a '*' behind its name,
 * which is the last, for the rest of the path, which may be empty. All else is itself, byte by
 * byte, and values are not decoded (domus/http_query.h does that). The paths of received requests
 * are in their normal form (domus_http_request), so "/%6Bv/a" is "/kv/a" for the router as for all
 * others who look at it, while "/kv%2Fa" is another path. Write routes in that form: "~" and not
 * "%7E", "%2F" and not "%2f". Segments "." and ".." are segments as all others. The first row that
 * fits wins.
 *
 * HEAD goes to the row of GET if no row has it. OPTIONS is answered by itself if no row has it.
 *
 * Thread-safety: any thread. */
#ifndef DOMUS_HTTP_ROUTER_H
#define DOMUS_HTTP_ROUTER_H

#include <domus/http.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOMUS_HTTP_ON(method) (1u << DOMUS_HTTP_##method)

/* Most segments in braces of one route. A route with more never fits. */
#define DOMUS_HTTP_VALUES_MAX 8u

/* A route: a row of the table. The last row has a NULL path. */
typedef struct domus_http_route {
    uint32_t methods; /* methods of the route: DOMUS_HTTP_ON() of each */
    const char *path;
    uint32_t id; /* a number by which the program knows the route */
} domus_http_route;

/* The route that was found for a request. Its slices own nothing, and are valid as long as the
 * request. */
typedef struct domus_http_match {
    /* the first route whose path and methods fit the request; NULL: none fits */
    const domus_http_route *route;
    /* methods of all routes whose path fits, as DOMUS_HTTP_ON() of each; 0: no path fits */
    uint32_t allowed;
    uint8_t method; /* the method of the request, a domus_http_method */
    uint8_t count;  /* number of `values` in use */
    /* values of the segments in braces, in the order of the path */
    domus_slice values[DOMUS_HTTP_VALUES_MAX];
} domus_http_match;

DOMUS_API domus_http_match domus_http_find_route(const domus_http_route *routes,
                                                 const domus_http_request *request);

/* Returns the value of the segment in braces "{name}"; the empty slice if the route has no such
 * segment. */
DOMUS_API domus_slice domus_http_route_value(const domus_http_match *match, const char *name);

/* Read the value of a segment in braces as a whole number, in digits with perhaps a '-' before
 * them, and without zeros before it. Returns 0; -ENOENT if the route has no such segment; -EINVAL
 * when it is no number; -ERANGE when it is below `least` or above `most`. */
DOMUS_API int domus_http_route_number(const domus_http_match *match, const char *name,
                                      int64_t least, int64_t most, int64_t *ret_number);

/* Make the answer to a request that no route takes: 404; 405 with the field Allow; or 204 with
 * Allow, to OPTIONS of a path that is there, and to "OPTIONS *".
 *
 * Ownership: the response owns its fields, until the message that it is sent in does.
 * Returns 0; -ENOMEM. */
DOMUS_API int domus_http_unrouted(const domus_http_match *match, domus_http_response *ret_response);

#ifdef __cplusplus
}
#endif

#endif
