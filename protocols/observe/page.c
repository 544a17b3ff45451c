/* The path / of the observation port: the live page for browsers, and a list of paths for clients
 * that do not accept HTML. */
#include "protocols/observe/pages.h"

#include "protocols/observe/answer.h"

#include <string.h>

#define LIST                                                                                       \
    "/         this list; for browsers, the live page\n"                                           \
    "/live     counters four times a second, as server-sent events\n"                              \
    "/metrics  counters for Prometheus\n"                                                          \
    "/profile  counters as JSON: ?histograms=1; POST ?level=off|counters|histograms|spans\n"       \
    "/doctor   what is wrong, and what to change: ?seconds=10&format=text|json\n"                  \
    "/profile?cpu=10s  a CPU profile: &format=folded|svg&hz=99\n"                                  \
    "/trace    spans for ui.perfetto.dev: ?seconds=2\n"                                            \
    "/cluster  nodes, their figures and names, if it is a node of a cluster: ?from=0&count=2000\n" \
    "/actors   what actors do: ?from=0&count=100&behaviour=NAME\n"                                 \
    "/config   the configuration, and where each value stands, as JSON\n"                          \
    "/log      the last lines of the log: ?level=error|warning|info&follow=1; POST ?level=\n"      \
    "/stalls   the last stalls, and where they were, as JSON\n"                                    \
    "/health   200 as long as the process answers\n"                                               \
    "/ready    200 while it takes new work, else 503\n"

/* Returns whether the list in a header field such as Accept has a name with a weight other than
 * 0. */
static bool does_header_list_accept_name(const domus_http_request *request, const char *field,
                                         const char *name)
{
    domus_slice list;

    if (!domus_http_field(request->fields, field, &list))
        return false;
    const char *data = domus_slice_data(list), *end = data + list.size;
    const char *at = memmem(data, list.size, name, strlen(name));
    if (at == NULL)
        return false;
    const char *comma = memchr(at, ',', (size_t)(end - at));
    if (comma != NULL)
        end = comma;
    const char *weight = memmem(at, (size_t)(end - at), "q=", 2);
    if (weight == NULL)
        return true;
    for (at = weight + 2; at < end; at++) {
        if (*at >= '1' && *at <= '9')
            return true;
    }
    return false;
}

static int answer_with_live_page(domus_stack *stack, bool is_packed)
{
    const domi_page *page = &domi_observe_page;
    domus_http_response response = {.status = 200, .media = "text/html; charset=utf-8"};
    domus_appender fields = {0};

    (void)domus_http_add(&fields, "Content-Security-Policy", page->policy);
    (void)domus_http_add(&fields, "X-Content-Type-Options", "nosniff");
    (void)domus_http_add(&fields, "Referrer-Policy", "no-referrer");
    (void)domus_http_add(&fields, "Cache-Control", "no-store");
    (void)domus_http_add(&fields, "Content-Encoding", is_packed ? "gzip" : "identity");
    int error = domus_append_end(&fields, &response.fields);
    if (error == 0)
        error = domus_slice_copy(is_packed ? page->packed : page->plain,
                                 is_packed ? page->packed_size : page->plain_size, &response.body);
    if (error != 0) {
        domus_slice_free(response.fields);
        return error;
    }
    return domi_observe_reply_or_release_response(stack, &response);
}

int domi_observe_serve_live_page(domus_stack *stack, void *self, const void *payload)
{
    (void)self;
    if (!does_header_list_accept_name(payload, "accept", "text/html"))
        return domi_observe_answer_with_line(stack, 200, LIST);
    return answer_with_live_page(stack,
                                 does_header_list_accept_name(payload, "accept-encoding", "gzip"));
}
