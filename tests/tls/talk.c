/* Two sides of TLS that talk in memory; talk.h describes them. */
#include "tests/tls/talk.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const domus_line_options server_lines = {.role = DOMUS_ROLE_SERVER, .size_max = 65000};
static const domus_line_options client_lines = {.role = DOMUS_ROLE_CLIENT, .size_max = 65000};

static void prepare_pipeline_of_side(domt_side *side, domus_tls *tls, const char *host,
                                     bool is_server)
{
    *side = (domt_side){.options = {tls, host}, .is_server = is_server};
    side->stages[0] = (domus_pipeline_stage){&domus_tls_stage, &side->options};
    side->stages[1] =
        (domus_pipeline_stage){&domus_line_stage, is_server ? &server_lines : &client_lines};
    side->pipeline.stages = side->stages;
}

int domt_side_open_by_role(domt_side *side, domus_tls *tls, const char *host)
{
    prepare_pipeline_of_side(side, tls, host, host == NULL);
    return domus_stage_kit_new(&side->pipeline, &side->kit);
}

int domt_side_open_client_to(domt_side *side, domus_tls *tls, const char *host, const char *server,
                             uint16_t port)
{
    prepare_pipeline_of_side(side, tls, host, false);
    return domus_stage_kit_new_to(&side->pipeline, server, port, &side->kit);
}

void domt_side_close_connection(domt_side *side)
{
    domus_stage_kit_free(side->kit);
    side->kit = NULL;
}

/* Read all messages that have come to a side; the server answers each line with the same line. */
static void read_and_answer_messages(domt_side *side)
{
    domus_stage_message message;
    int result = domus_stage_kit_next(side->kit, &message);

    for (; result == 1; result = domus_stage_kit_next(side->kit, &message)) {
        const domus_packet *packet = message.payload;
        snprintf(side->last, sizeof side->last, "%.*s", (int)packet->bytes.size,
                 domus_slice_data(packet->bytes));
        side->messages++;
        int error = 0;
        if (message.kind == DOMUS_STAGE_REQUEST)
            error = domus_stage_kit_encode(side->kit, message.id, message.type, packet);
        if (error != 0 && side->error == 0)
            side->error = error;
    }
    if (result < 0 && side->error == 0) {
        side->error = result;
        (void)domus_stage_kit_fail(side->kit, DOMUS_NO_ID, NULL, result);
    }
    if ((result < 0 || domus_stage_kit_is_last(side->kit)) && !side->over) {
        side->over = true;
        (void)domus_stage_kit_end_output(side->kit);
    }
}

void domt_side_feed_in_pieces(domt_side *side, const char *bytes, size_t size, size_t step)
{
    while (size != 0 && side->error == 0) {
        size_t part = step != 0 && step < size ? step : size;
        DOMI_CHECK(domus_stage_kit_feed(side->kit, bytes, part) == 0);
        read_and_answer_messages(side);
        bytes += part;
        size -= part;
    }
}

int domt_side_try_to_send_line(domt_side *side, const char *line)
{
    domus_packet packet;

    DOMI_CHECK(domus_slice_copy(line, strlen(line), &packet.bytes) == 0);
    int error = domus_stage_kit_encode(side->kit, DOMUS_NO_ID, &domus_packet_type, &packet);
    domus_slice_free(packet.bytes);
    return error;
}

void domt_side_send_line(domt_side *side, const char *line)
{
    DOMI_CHECK(domt_side_try_to_send_line(side, line) == 0);
}

char *domt_side_take_output(domt_side *side, size_t *ret_size)
{
    const char *output = domus_stage_kit_output(side->kit, ret_size);
    char *copy = malloc(*ret_size + 1);

    DOMI_CHECK(copy != NULL);
    memcpy(copy, output, *ret_size);
    domus_stage_kit_clear(side->kit);
    return copy;
}

/* Carry the bytes that one side has made to the other side. Returns whether there were any. */
static bool carry_output_to_other_side(domt_side *from, domt_side *to, size_t step)
{
    size_t size;
    char *bytes = domt_side_take_output(from, &size);

    domt_side_feed_in_pieces(to, bytes, size, step);
    free(bytes);
    return size != 0;
}

void domt_side_exchange_bytes_with_other(domt_side *one, domt_side *other, size_t step)
{
    bool goes_on = true;

    while (goes_on) {
        goes_on = carry_output_to_other_side(one, other, step);
        goes_on = carry_output_to_other_side(other, one, step) || goes_on;
    }
}

domus_tls_info domt_side_tls_info(domt_side *side)
{
    domus_tls_info info;

    DOMI_CHECK(domus_tls_kit_info(side->kit, &info) == 0);
    return info;
}

domus_tls *domt_make_tls_context(const domus_tls_settings *settings)
{
    char error[256] = "";
    domus_tls *tls = NULL;

    if (domus_tls_new(settings, error, sizeof error, &tls) != 0)
        fprintf(stderr, "%s\n", error);
    DOMI_CHECK(tls != NULL);
    return tls;
}

domus_tls_settings domt_make_server_settings(const domt_pki *pki, const char *file)
{
    static domus_tls_certificate certificate;
    static char path[128];

    snprintf(path, sizeof path, "%s", domt_pki_path_of_file(pki, file));
    certificate.cert_file = path;
    return (domus_tls_settings){
        .role = DOMUS_ROLE_SERVER, .certificates = &certificate, .certificates_count = 1};
}

domus_tls_settings domt_make_client_settings(const domt_pki *pki)
{
    static char path[128];

    snprintf(path, sizeof path, "%s", domt_pki_path_of_file(pki, "ca"));
    return (domus_tls_settings){.role = DOMUS_ROLE_CLIENT, .ca_file = path};
}
