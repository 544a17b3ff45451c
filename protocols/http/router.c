/* Finds the route of a request in a table of routes, row by row. */
#include "protocols/http/router.h"
#include "protocols/http/chars.h"
#include "protocols/http/fields.h"
#include "protocols/http/texts.h"

#include <errno.h>

/* Returns how many bytes the segment of a path at `text` has. */
static size_t count_bytes_of_segment(const char *text, size_t size)
{
    const char *slash = size != 0 ? memchr(text, '/', size) : NULL;

    return slash != NULL ? (size_t)(slash - text) : size;
}

/* Return whether a segment of a route matches any segment of a path; whether it matches the whole
 * rest of the path. */
static bool is_segment_of_route_a_parameter(const char *segment, size_t size)
{
    return size >= 2 && segment[0] == '{' && segment[size - 1] == '}';
}

static bool is_segment_of_route_the_rest(const char *segment, size_t size)
{
    return is_segment_of_route_a_parameter(segment, size) && segment[size - 2] == '*';
}

/* Compare a path with that of a route segment by segment, and store the values of the segments in
 * braces. */
static bool match_route_by_segments(const char *route, domus_slice path, domus_http_match *match)
{
    const char *text = domus_slice_data(path);
    size_t route_size = strlen(route);
    size_t in_route = 0;
    size_t at = 0;

    for (;;) {
        size_t wanted = count_bytes_of_segment(route + in_route, route_size - in_route);
        size_t size = count_bytes_of_segment(text + at, path.size - at);
        const char *segment = route + in_route;
        if (is_segment_of_route_the_rest(segment, wanted))
            size = path.size - at;
        if (is_segment_of_route_a_parameter(segment, wanted)) {
            if ((size == 0 && !is_segment_of_route_the_rest(segment, wanted)) ||
                match->count == DOMUS_HTTP_VALUES_MAX)
                return false;
            match->values[match->count++] = domi_http_borrow_part_of_slice(path, at, size);
        } else if (size != wanted || memcmp(segment, text + at, size) != 0) {
            return false;
        }
        in_route += wanted;
        at += size;
        if (in_route == route_size || at == path.size)
            return in_route == route_size && at == path.size;
        in_route++; /* skip the '/' of the route and of the path */
        at++;
    }
}

/* Compare a path with that of a route, and store the values of the segments in braces. Up to the
 * first brace both must have the same bytes, which excludes most routes quickly. */
static bool match_path_with_route(const char *route, domus_slice path, domus_http_match *match)
{
    const char *text = domus_slice_data(path);
    size_t same = 0;

    match->count = 0;
    /* the target is a URL without a path, such as "http://host", so the path is "/" */
    if (path.size == 0)
        return strcmp(route, "/") == 0;
    while (same < path.size && route[same] == text[same] && route[same] != '{')
        same++;
    if (route[same] == '{')
        return match_route_by_segments(route, path, match);
    return same == path.size && route[same] == '\0';
}

domus_http_match domus_http_find_route(const domus_http_route *routes,
                                       const domus_http_request *request)
{
    return domi_http_find_route(routes, sizeof *routes, request);
}

/* Returns the route of the next row of the table. */
static const domus_http_route *route_of_next_row(const domus_http_route *route, size_t row_size)
{
    return (const domus_http_route *)(const void *)((const char *)route + row_size);
}

domus_http_match domi_http_find_route(const domus_http_route *routes, size_t row_size,
                                      const domus_http_request *request)
{
    domus_slice path = domus_http_path(request);
    domus_http_match match = {.method = request->method};
    domus_http_match of_get = {.route = NULL};

    for (; routes->path != NULL; routes = route_of_next_row(routes, row_size)) {
        if (!match_path_with_route(routes->path, path, &match))
            continue;
        match.allowed |= routes->methods;
        if ((routes->methods >> request->method & 1) != 0) {
            match.route = routes;
            return match;
        }
        if (of_get.route == NULL && (routes->methods & DOMUS_HTTP_ON(GET)) != 0) {
            of_get = match;
            of_get.route = routes;
        }
    }
    if (request->method == DOMUS_HTTP_HEAD && of_get.route != NULL)
        return of_get;
    match.count = 0;
    if (request->method == DOMUS_HTTP_OPTIONS && domus_slice_equals(request->target, "*", 1))
        match.allowed = DOMUS_HTTP_ON(OPTIONS);
    return match;
}

domus_slice domus_http_route_value(const domus_http_match *match, const char *name)
{
    const char *path = match->route != NULL ? match->route->path : "";
    size_t left = strlen(path);
    uint32_t i = 0;

    while (left != 0) {
        size_t size = count_bytes_of_segment(path, left);
        size_t name_size = is_segment_of_route_the_rest(path, size) ? size - 3 : size - 2;
        if (is_segment_of_route_a_parameter(path, size)) {
            if (strlen(name) == name_size && memcmp(path + 1, name, name_size) == 0)
                return match->values[i];
            i++;
        }
        size += size < left;
        path += size;
        left -= size;
    }
    return (domus_slice){NULL, 0, 0};
}

int domus_http_route_number(const domus_http_match *match, const char *name, int64_t least,
                            int64_t most, int64_t *ret_number)
{
    domus_slice value = domus_http_route_value(match, name);
    char text[DOMI_HTTP_NUMBER_ROOM];

    if (value.page == NULL)
        return -ENOENT;
    if (value.size >= sizeof text)
        return -EINVAL;
    memcpy(text, domus_slice_data(value), value.size);
    text[value.size] = '\0';
    return domi_http_read_whole_number(text, least, most, ret_number);
}

int domus_http_unrouted(const domus_http_match *match, domus_http_response *ret_response)
{
    bool is_options = match->method == DOMUS_HTTP_OPTIONS;
    uint32_t methods = match->allowed;
    domus_appender fields = {0};
    const char *divider = "Allow: ";

    *ret_response = (domus_http_response){.status = 404};
    if (methods == 0)
        return 0;
    methods |= DOMUS_HTTP_ON(OPTIONS);
    if ((methods & DOMUS_HTTP_ON(GET)) != 0)
        methods |= DOMUS_HTTP_ON(HEAD);
    for (uint32_t i = 0; i < DOMUS_HTTP_METHODS; i++) {
        if ((methods >> i & 1) != 0) {
            (void)domus_append_text(&fields, "%s%s", divider,
                                    domus_http_method_name((domus_http_method)i));
            divider = ", ";
        }
    }
    (void)domus_append(&fields, "\r\n", 2);
    ret_response->status = is_options ? 204 : 405;
    return domus_append_end(&fields, &ret_response->fields);
}
