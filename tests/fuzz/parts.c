/* Fuzzes the readers of the parts of a chain, for what strangers send. The input is the fields of a
 * request. Names are written as they were read, credentials have their limits, and a line of the
 * access log has printable ASCII only, with one line feed, at its end. */
#include "tests/fuzz/support/fuzz.h"

#include "protocols/http/access.h"
#include "protocols/http/client_address.h"
#include "protocols/http/texts.h"

#include <domus/http_auth.h>

#include <stdlib.h>
#include <string.h>

static void check_written_names_are_same(domus_slice fields)
{
    char text[DOMUS_HTTP_TRACEPARENT_SIZE + 1];
    domus_http_trace trace, again;
    domus_appender added = {0};
    domus_slice written;

    if (domus_http_trace_of(fields, &trace) == 0) {
        domus_http_traceparent_write(&trace, text);
        domt_fuzz_abort_unless(strlen(text) == DOMUS_HTTP_TRACEPARENT_SIZE);
        domt_fuzz_abort_unless(domus_http_traceparent_read(text, strlen(text), &again) == 0);
        domt_fuzz_abort_unless(memcmp(again.trace, trace.trace, sizeof trace.trace) == 0 &&
                               memcmp(again.span, trace.span, sizeof trace.span) == 0 &&
                               again.flags == trace.flags);
    }
    domt_fuzz_abort_unless(strlen(trace.id) <= DOMUS_HTTP_REQUEST_ID_MAX);
    domt_fuzz_abort_unless(domus_http_trace_add(&added, &trace) == 0);
    domt_fuzz_abort_unless(domus_append_end(&added, &written) == 0);
    domt_fuzz_abort_unless(domus_http_trace_of(written, &again) == 0 || written.size == 0 ||
                           trace.trace[0] == 0);
    domt_fuzz_abort_unless(strcmp(again.id, trace.id) == 0);
    domus_slice_free(written);
}

static void check_limits_of_credentials(domus_slice fields)
{
    domus_http_basic basic;
    domus_slice token;

    if (domus_http_read_basic(fields, &basic) == 0) {
        domt_fuzz_abort_unless(strlen(basic.user) <= DOMUS_HTTP_USER_MAX &&
                               strchr(basic.user, ':') == NULL);
        domt_fuzz_abort_unless(strlen(basic.password) <= DOMUS_HTTP_PASSWORD_MAX);
        domt_fuzz_abort_unless(domus_http_read_bearer(fields, &token) < 0);
    } else if (domus_http_read_bearer(fields, &token) == 0) {
        domt_fuzz_abort_unless(token.size != 0 && token.size <= DOMUS_HTTP_TOKEN_MAX);
        for (uint32_t i = 0; i < token.size; i++)
            domt_fuzz_abort_unless(domus_slice_data(token)[i] > ' ' &&
                                   domus_slice_data(token)[i] < 0x7f);
    }
}

static void check_text_is_printable(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        domt_fuzz_abort_unless(text[i] >= ' ' && text[i] < 0x7f);
}

/* Check the line of the access log for a request whose texts are parts of the input. */
static void check_access_log_line(const char *bytes, size_t size, domus_slice fields)
{
    char line[DOMI_HTTP_ACCESS_LINE_MAX];
    domus_endpoint peer = {.family = 0};
    domus_http_exchange exchange = {.peer = &peer, .via = "HTTP/1.1", .status = 200};
    domus_http_access access = {.target_max = 64};
    size_t each = size / 3 < 512 ? size / 3 : 512;
    domi_http_access_note *note = calloc(1, sizeof *note + 3 * each);

    domt_fuzz_abort_unless(note != NULL);
    domi_http_find_client_address(&exchange, fields, 1, &note->client);
    note->target_size = note->referer_size = note->agent_size = (uint32_t)each;
    memcpy(note->texts, bytes, 3 * each);
    size_t user = each < DOMUS_HTTP_USER_MAX ? each : DOMUS_HTTP_USER_MAX;
    memcpy(exchange.user, bytes, user);
    for (unsigned format = 0; format <= DOMUS_HTTP_ACCESS_JSON; format++) {
        access.format = (domus_http_access_format)format;
        size_t length = domi_http_access_write_line(&access, &exchange, note, 1, line);
        domt_fuzz_abort_unless(length > 1 && line[length - 1] == '\n');
        check_text_is_printable(line, length - 1);
    }
    free(note);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[4096];
    domus_slice fields;

    domt_fuzz_abort_unless(domus_slice_copy(data, size, &fields) == 0);
    check_written_names_are_same(fields);
    check_limits_of_credentials(fields);
    check_access_log_line((const char *)data, size, fields);
    size_t room = size % sizeof text;
    size_t written = domi_http_escape_text_for_json((const char *)data, size, text, room);
    domt_fuzz_abort_unless(written <= room);
    check_text_is_printable(text, written);
    domus_slice_free(fields);
    return 0;
}
