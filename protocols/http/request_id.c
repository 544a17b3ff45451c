/* The part of a chain that gives ids to requests (domus/http_trace.h). It writes them into the
 * fields of the request, so that they go wherever the request goes. Runs on the thread of the
 * connection. */
#include "protocols/http/chain.h"
#include "protocols/http/fields.h"
#include "protocols/http/trace.h"

#include <errno.h>

static int check_options_of_request_ids(const void *options_)
{
    const domus_http_request_id_options *options = options_;

    return options != NULL && options->flags > 1 ? -EINVAL : 0;
}

/* Returns whether a field of the request is replaced by one with the new ids. tracestate belongs to
 * the traceparent that came with it. */
static bool must_replace_field_by_new_id(domus_slice name, bool drops_state)
{
    return domi_http_is_slice_word_in_any_case(name, "traceparent") ||
           domi_http_is_slice_word_in_any_case(name, "x-request-id") ||
           (drops_state && domi_http_is_slice_word_in_any_case(name, "tracestate"));
}

/* Copy the request's fields that are not replaced, line by line. */
static void copy_fields_that_are_kept(domus_appender *to, domus_slice fields, bool drops_state)
{
    domus_http_line line;
    uint32_t at = 0;

    for (uint32_t from = 0; domus_http_next(fields, &at, &line); from = at) {
        if (!must_replace_field_by_new_id(line.name, drops_state))
            (void)domus_append(to, domus_slice_data(fields) + from, at - from);
    }
}

/* Write the ids of a request into its fields. Returns 0; -ENOMEM; -EMSGSIZE. */
static int write_ids_into_request(domus_http_request *request, const domi_http_names_found *found,
                                  const domus_http_trace *trace)
{
    domus_appender fields = {0};
    domus_slice changed;
    bool drops_state = !trace->continued && found->states != 0;

    (void)domus_append_room(&fields, request->fields.size + DOMUS_HTTP_TRACEPARENT_SIZE +
                                         DOMUS_HTTP_REQUEST_ID_MAX + 32);
    (void)domus_http_trace_add(&fields, trace);
    if (found->parents == 0 && found->ids == 0 && !drops_state)
        (void)domus_append(&fields, domus_slice_data(request->fields), request->fields.size);
    else
        copy_fields_that_are_kept(&fields, request->fields, drops_state);
    int error = domus_append_end(&fields, &changed);
    if (error != 0)
        return error;
    domus_slice_free(request->fields);
    request->fields = changed;
    return 0;
}

static int take_or_make_id_and_trace_of_request(domus_stack *stack, domus_http_exchange *exchange,
                                                domus_http_request *request, const void *options_)
{
    const domus_http_request_id_options *options = options_;
    bool trusts = options == NULL || !options->distrusts;
    domus_http_trace parent = {.flags = 0};
    domi_http_names_found found;

    (void)stack;
    domi_http_find_fields_with_ids(request->fields, &found);
    bool continues = trusts && domi_http_take_trace_from_fields(&found, &parent) == 0;
    int error = domus_http_trace_begin(continues ? &parent : NULL, &exchange->trace);
    if (error != 0)
        return error;
    exchange->trace.continued = continues;
    if (!continues)
        exchange->trace.flags = options != NULL ? options->flags : 0;
    if (trusts)
        domi_http_copy_request_id_if_valid(&found, &exchange->trace);
    if (exchange->trace.id[0] == '\0')
        domi_http_write_trace_as_request_id(&exchange->trace);
    return write_ids_into_request(request, &found, &exchange->trace);
}

static void add_request_id_field(domus_http_exchange *exchange, domus_http_leaving *leaving,
                                 const void *options_)
{
    const domus_http_request_id_options *options = options_;
    domus_slice own;

    if (exchange->trace.id[0] == '\0' || (options != NULL && options->silent) ||
        domus_http_field(leaving->fields, "x-request-id", &own))
        return;
    (void)domus_http_add(leaving->added, "X-Request-Id", exchange->trace.id);
}

const domus_http_part domus_http_request_id = {.name = "request id",
                                               .check = check_options_of_request_ids,
                                               .enter = take_or_make_id_and_trace_of_request,
                                               .leave = add_request_id_field};
