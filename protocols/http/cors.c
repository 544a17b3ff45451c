/* The part of a chain that tells browsers which other sites may call this one (CORS). The word of
 * an exchange is the allowed origin that the request has named. Runs on the thread of the
 * connection. */
#include "protocols/http/fields.h"

#include <domus/http_cors.h>

#include <errno.h>

#define METHODS_DEFAULT (DOMUS_HTTP_ON(GET) | DOMUS_HTTP_ON(HEAD) | DOMUS_HTTP_ON(POST))

/* --- options ---------------------------------------------------------------------------------- */

/* Returns whether a text is an origin in the form in which browsers send it. */
static bool is_valid_origin(const char *text)
{
    size_t size = strlen(text);
    const char *host = strstr(text, "://");

    if (host == NULL || host == text || size > DOMUS_HTTP_ORIGIN_MAX ||
        domi_http_count_target_bytes(text, size) != size)
        return false;
    for (size_t i = 0; i < size; i++) {
        if (text[i] != domi_http_small_letter_of(text[i]))
            return false;
    }
    return host[3] != '\0' && strpbrk(host + 3, "/?,*") == NULL;
}

static bool is_text_a_star(const char *text)
{
    return text != NULL && text[0] == '*' && text[1] == '\0';
}

static bool is_valid_list_of_names(const char *text)
{
    size_t at = 0;
    const char *name;
    size_t size;

    if (text == NULL || is_text_a_star(text))
        return true;
    if (strlen(text) > DOMUS_HTTP_CORS_NAMES)
        return false;
    while (domi_http_next_element_of_list(text, strlen(text), &at, &name, &size)) {
        if (size == 0 || domi_http_count_token_bytes(name, size) != size)
            return false;
    }
    return true;
}

static int check_options_of_cors(const void *options)
{
    const domus_http_cors *cors = options;

    if (cors == NULL || cors->origins == NULL || cors->origins[0] == NULL ||
        cors->methods >> DOMUS_HTTP_METHODS != 0 || cors->max_age_s > DOMUS_HTTP_CORS_AGE_MAX ||
        !is_valid_list_of_names(cors->headers) || !is_valid_list_of_names(cors->exposed))
        return -EINVAL;
    /* if credentials are allowed, browsers take '*' for a literal name, so it would allow
     * nothing */
    if (cors->credentials && (is_text_a_star(cors->origins[0]) || is_text_a_star(cors->headers) ||
                              is_text_a_star(cors->exposed)))
        return -EINVAL;
    if (is_text_a_star(cors->origins[0]))
        return cors->origins[1] == NULL ? 0 : -EINVAL;
    for (const char *const *origin = cors->origins; *origin != NULL; origin++) {
        if (!is_valid_origin(*origin))
            return -EINVAL;
    }
    return 0;
}

/* --- entering the chain ----------------------------------------------------------------------- */

/* Find the field Origin of a request. Returns false if there is none, or there are two. */
static bool find_origin_of_request(domus_slice fields, domus_slice *ret_origin)
{
    domus_http_line line;
    unsigned count = 0;
    uint32_t at = 0;

    while (domus_http_next(fields, &at, &line)) {
        if (domi_http_is_slice_word_in_any_case(line.name, "origin")) {
            *ret_origin = line.value;
            count++;
        }
    }
    return count == 1;
}

/* Find an origin in the list of those that are allowed, in which "*" stands for all. Returns NULL
 * if it is not allowed. */
static const char *find_origin_among_allowed(const domus_http_cors *cors, domus_slice origin)
{
    if (is_text_a_star(cors->origins[0]))
        return cors->origins[0];
    for (const char *const *at = cors->origins; *at != NULL; at++) {
        if (domus_slice_equals(origin, *at, strlen(*at)))
            return *at;
    }
    return NULL;
}

static bool is_preflight_request(const domus_http_request *request)
{
    domus_slice method;

    return request->method == DOMUS_HTTP_OPTIONS &&
           domus_http_field(request->fields, "access-control-request-method", &method);
}

static int answer_preflight_request(domus_stack *stack, const domus_http_cors *cors,
                                    bool is_allowed)
{
    uint32_t methods = cors->methods != 0 ? cors->methods : METHODS_DEFAULT;
    const char *divider = "Access-Control-Allow-Methods: ";
    domus_appender fields = {0};

    if (!is_allowed)
        return domus_http_answer(stack, 403, NULL, NULL, NULL);
    for (uint32_t i = 0; i < DOMUS_HTTP_METHODS; i++) {
        if ((methods >> i & 1) == 0)
            continue;
        (void)domus_append_text(&fields, "%s%s", divider,
                                domus_http_method_name((domus_http_method)i));
        divider = ", ";
    }
    (void)domus_append(&fields, "\r\n", 2);
    if (cors->headers != NULL)
        (void)domus_http_add(&fields, "Access-Control-Allow-Headers", cors->headers);
    if (cors->max_age_s != 0)
        (void)domus_http_add_number(&fields, "Access-Control-Max-Age", cors->max_age_s);
    return domus_http_answer(stack, 204, &fields, NULL, NULL);
}

static int find_allowed_origin_or_answer_preflight(domus_stack *stack,
                                                   domus_http_exchange *exchange,
                                                   domus_http_request *request, const void *options)
{
    const domus_http_cors *cors = options;
    const char *allowed = NULL;
    domus_slice origin;
    bool has_origin = find_origin_of_request(request->fields, &origin);

    if (has_origin)
        allowed = find_origin_among_allowed(cors, origin);
    *exchange->word = (uintptr_t)allowed;
    return has_origin && is_preflight_request(request)
               ? answer_preflight_request(stack, cors, allowed != NULL)
               : 0;
}

/* --- leaving the chain ------------------------------------------------------------------------ */

static void add_cors_fields(domus_http_exchange *exchange, domus_http_leaving *leaving,
                            const void *options)
{
    const domus_http_cors *cors = options;
    const char *allowed = (const char *)(uintptr_t)*exchange->word;
    domus_slice own;

    if (!is_text_a_star(cors->origins[0]))
        (void)domus_http_add(leaving->added, "Vary", "Origin");
    if (allowed == NULL || domus_http_field(leaving->fields, "access-control-allow-origin", &own))
        return;
    (void)domus_http_add(leaving->added, "Access-Control-Allow-Origin", allowed);
    if (cors->credentials)
        (void)domus_http_add(leaving->added, "Access-Control-Allow-Credentials", "true");
    if (cors->exposed != NULL)
        (void)domus_http_add(leaving->added, "Access-Control-Expose-Headers", cors->exposed);
}

const domus_http_part domus_http_cross_origin = {.name = "cross origin",
                                                 .check = check_options_of_cors,
                                                 .enter = find_allowed_origin_or_answer_preflight,
                                                 .leave = add_cors_fields};
