/* Follows redirects: makes the request to which the answer of a server leads (client_parts.h). */
#include "protocols/http/client_parts.h"

#include "protocols/http/fields.h"

#include <domus/http_url.h>

#include <errno.h>

void domi_http_free_request_of_next_hop(domi_http_hop *hop)
{
    domus_slice_free(hop->target);
    domus_slice_free(hop->fields);
    *hop = (domi_http_hop){.method = hop->method};
}

bool domi_http_is_answer_redirect(const domus_http_response *response)
{
    domus_slice location;
    unsigned status = response->status;
    bool redirects =
        status == 301 || status == 302 || status == 303 || status == 307 || status == 308;

    return redirects && domus_http_field(response->fields, "location", &location);
}

/* Copy the fields of the request, except those of a body that is not sent again, and secrets that
 * must not go to another origin. Returns 0; -ENOMEM. */
static int copy_fields_for_redirect(domus_slice from, bool has_body, bool same_origin,
                                    domus_slice *ret_fields)
{
    static const char *const of_origin[] = {"authorization", "cookie", "proxy-authorization",
                                            "host", NULL};
    static const char *const of_body[] = {
        "content-type",     "content-encoding", "content-language",
        "content-location", "content-range",    "digest",
        "last-modified",    "expect",           NULL};
    domus_appender fields = {0};
    domus_http_line line;
    uint32_t at = 0;

    while (domus_http_next(from, &at, &line)) {
        bool is_left =
            (!same_origin && domi_http_is_slice_any_word_of_list(line.name, of_origin)) ||
            (!has_body && domi_http_is_slice_any_word_of_list(line.name, of_body));
        if (!is_left)
            (void)domi_http_add_field_unchanged(&fields, &line);
    }
    return domus_append_end(&fields, ret_fields);
}

/* Returns whether a redirect may lead from the scheme of one URL to that of the other. */
static bool may_redirect_change_scheme(const domus_http_url *from, const domus_http_url *to,
                                       uint32_t may)
{
    if (to->secure)
        return (may & DOMI_HTTP_TO_HTTPS) != 0;
    return !from->secure || (may & DOMI_HTTP_FROM_HTTPS) != 0;
}

/* Resolve the Location of a redirect against the URL of the request. Returns 0; -ENOMEM; -EINVAL
 * for a redirect that is not followed, because it is no URL of HTTP, or leads to a forbidden
 * scheme. */
static int resolve_location_of_redirect(const domi_http_hop *hop,
                                        const domus_http_response *response, uint32_t may,
                                        domus_slice *ret_target, bool *ret_same_origin)
{
    const char *base = domus_slice_data(hop->target);
    domus_appender target = {.size_max = DOMUS_HTTP_URL_MAX};
    domus_slice location, made;
    domus_http_url from, to;

    if (!domus_http_field(response->fields, "location", &location))
        return -EINVAL;
    int error = domus_http_url_resolve(base, hop->target.size, domus_slice_data(location),
                                       location.size, &target);
    if (error != 0) {
        domus_append_drop(&target);
        return error == -ENOMEM ? -ENOMEM : -EINVAL;
    }
    error = domus_append_end(&target, &made);
    if (error != 0)
        return error;
    const char *text = domus_slice_data(made);
    if (domus_http_url_parse(base, hop->target.size, &from) != 0 ||
        domus_http_url_parse(text, made.size, &to) != 0 ||
        !may_redirect_change_scheme(&from, &to, may)) {
        domus_slice_free(made);
        return -EINVAL;
    }
    /* the fragment of the URL is cut off */
    made.size = (uint32_t)(to.target + to.target_size - text);
    *ret_target = made;
    *ret_same_origin = domus_http_url_same_origin(&from, &to);
    return 0;
}

int domi_http_follow_redirect(domi_http_hop *hop, const domus_http_response *response, uint32_t may)
{
    domi_http_hop next = {.method = hop->method, .has_body = hop->has_body};
    unsigned status = response->status;
    bool same_origin;
    bool becomes_get = (status == 303 && hop->method != DOMUS_HTTP_HEAD) ||
                       ((status == 301 || status == 302) && hop->method == DOMUS_HTTP_POST);

    if (becomes_get) {
        next.method = DOMUS_HTTP_GET;
        next.has_body = false;
    }
    int error = resolve_location_of_redirect(hop, response, may, &next.target, &same_origin);
    if (error != 0)
        return error;
    error = copy_fields_for_redirect(hop->fields, next.has_body, same_origin, &next.fields);
    if (error != 0) {
        domus_slice_free(next.target);
        return error;
    }
    domi_http_free_request_of_next_hop(hop);
    *hop = next;
    return 0;
}
