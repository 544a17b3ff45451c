/* Messages that are published to a stream: numbers in their headers, and the server's
 * acknowledgement. */
#include "protocols/nats/js.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int domi_js_add_header_with_number(domus_appender *headers, const char *name, uint64_t number)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    return domus_nats_headers_add(headers, name, text);
}

static int read_ack_from_json(const json_t *json, domus_nats_stream_ack *ret_ack)
{
    domus_nats_stream_ack ack = {0};

    if (domi_js_get_number(json, "seq", &ack.sequence) != 0 || ack.sequence == 0 ||
        domi_js_get_flag(json, "duplicate", &ack.duplicate) != 0)
        return -EPROTO;
    *ret_ack = ack;
    return 0;
}

int domi_js_read_publish_ack(const domus_answer *answer, domus_nats_stream_ack *ret_ack)
{
    json_t *json = NULL;
    int error = domi_js_read_api_answer(answer, DOMUS_NATS_ANSWER_MAX, &json);

    if (error != 0)
        return error;
    error = read_ack_from_json(json, ret_ack);
    json_decref(json);
    return error;
}
