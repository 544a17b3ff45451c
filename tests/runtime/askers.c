/* The askers of lines and the service that answers them; tests/runtime/askers.h has the
 * contract. */
#include "tests/runtime/askers.h"

#include "tests/runtime/clients.h"
#include "tests/support/suite.h"

#include <domus/await.h>

#include <stdio.h>
#include <string.h>

#define MS UINT64_C(1000000)

_Atomic uint64_t domt_asked, domt_answered, domt_failed, domt_wrong;

/* --- the service ------------------------------------------------------------------------------ */

struct line {
    domus_packet packet;
};

DOMUS_SEQUENCE(answer_line, struct line)
{
    DOMUS_BEGIN;
    {
        const domus_packet *packet = message;
        int error = domus_slice_keep(packet->bytes, &frame->packet.bytes);
        if (error != 0)
            return error;
    }
    if (frame->packet.bytes.size % 3 != 0) {
        DOMUS_SLEEP((uint64_t)domus_slice_data(frame->packet.bytes)[0] % 4 * MS);
        if (answer->error != 0) {
            domus_slice_free(frame->packet.bytes);
            return answer->error;
        }
    }
    return domus_reply(stack, &domus_packet_type, &frame->packet);
    DOMUS_END;
}

static const domus_pipeline_stage server_stages[] = {{&domus_line_stage, NULL}, {NULL, NULL}};
static const domus_pipeline server_pipeline = {.stages = server_stages};
static const domus_on_peer server_rows[] = {DOMUS_ON_PEER(&domus_packet_type, answer_line, 0),
                                            {.type = NULL}};
const domus_behaviour domt_line_server = {.name = "line server",
                                          .kind = DOMUS_CHANNELS,
                                          .pipeline = &server_pipeline,
                                          .on_peer = server_rows};

static const domus_pipeline narrow = {
    .stages = domt_line_stages, .encodes = domt_packets, .inflight_max = 4};
const domus_behaviour domt_line_channel = {
    .name = "line client", .kind = DOMUS_CHANNELS, .pipeline = &narrow};

/* --- an asker --------------------------------------------------------------------------------- */

static const domus_type series_type = {.name = "series", .size = sizeof(uint32_t)};
const domus_type domt_asking_type = {.name = "asking", .size = sizeof(domt_asking)};

struct series {
    uint32_t number;
    uint32_t done;
};

static void write_line_of_ask(const domt_asking *of, const struct series *series, char *text,
                              size_t size)
{
    int length = snprintf(text, size, "%u-%u-%u", of->id, series->number, series->done);

    ck_assert(length > 0 && (size_t)length < size);
}

static domus_packet new_packet_of_line(const domt_asking *of, const struct series *series)
{
    domus_packet packet = {{NULL, 0, 0}};
    char text[64];

    write_line_of_ask(of, series, text, sizeof text);
    ck_assert_int_eq(domus_slice_copy(text, strlen(text), &packet.bytes), 0);
    atomic_fetch_add(&domt_asked, 1);
    return packet;
}

static void count_outcome_of_ask(const domt_asking *of, const struct series *series,
                                 const domus_answer *answer)
{
    char text[64];

    if (answer->error != 0) {
        atomic_fetch_add(&domt_failed, 1);
        return;
    }
    write_line_of_ask(of, series, text, sizeof text);
    const domus_packet *packet = answer->payload;
    bool is_right =
        answer->type == &domus_packet_type && domus_slice_equals(packet->bytes, text, strlen(text));
    atomic_fetch_add(is_right ? &domt_answered : &domt_wrong, 1);
}

DOMUS_SEQUENCE(ask_series, struct series)
{
    const domt_asking *of = self;
    domus_packet packet;

    DOMUS_BEGIN;
    memcpy(&frame->number, message, sizeof frame->number);
    for (frame->done = 0; frame->done < of->each; frame->done++) {
        packet = new_packet_of_line(of, frame);
        if (of->timeout_ns != 0)
            DOMUS_ASK_WITHIN(of->to, &domus_packet_type, &packet, of->timeout_ns);
        else
            DOMUS_ASK(of->to, &domus_packet_type, &packet);
        count_outcome_of_ask(of, frame, answer);
    }
    return 0;
    DOMUS_END;
}

static int on_asking_begin_series(domus_stack *stack, void *self, const void *payload)
{
    const domt_asking *of = memcpy(self, payload, sizeof *of);

    for (uint32_t i = 0; i < of->at_a_time; i++)
        ck_assert_int_eq(domus_notice(stack, domus_self(stack), &series_type, &i), 0);
    return 0;
}

static const domus_on asker_rows[] = {
    {&domt_asking_type, on_asking_begin_series, 0}, DOMUS_ON(&series_type, ask_series), {0}};
const domus_behaviour domt_asker = {
    .name = "asker", .state_size = sizeof(domt_asking), .on = asker_rows};
