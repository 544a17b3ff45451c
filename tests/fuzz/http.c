/* Fuzzes the server's side of the stage of HTTP. The first byte of an input chooses the options and
 * the size of pieces. The stage reads the same requests in one piece and in many, and llhttp reads
 * the same; each request is answered with its own parts, and a client reads the answers. */
#include "tests/fuzz/support/fuzz.h"
#include "tests/fuzz/support/judge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static domus_budget budget = {.bytes_max = 100000};
static const domus_http_options options[] = {
    {.role = DOMUS_ROLE_SERVER, .budget = &budget},
    {.role = DOMUS_ROLE_SERVER, .streams = true},
    {.role = DOMUS_ROLE_SERVER,
     .target_max = 20,
     .head_max = 100,
     .fields_max = 3,
     .body_max = 10,
     .extension_max = 5,
     .trailer_max = 20},
    {.role = DOMUS_ROLE_SERVER, .streams = true, .whole_max = 5, .body_max = 20},
};
static const domus_http_options reader = {
    .role = DOMUS_ROLE_CLIENT, .body_max = 1 << 24, .fields_max = 1000, .host = "a"};

/* The bytes of all answers to the requests, one behind the other. */
typedef struct answers {
    char *bytes;
    size_t size;
    uint32_t count;
    uint64_t heads;
} answers;

static void answer_request(void *context, domus_stage_kit *kit, const domus_stage_message *message)
{
    answers *all = context;
    const domus_http_request *request = message->payload;
    domus_http_response response = {.status = 200, .media = "text/plain"};
    domus_appender fields = {0};
    size_t size;

    domt_fuzz_abort_unless(domus_http_add_end_to_end(&fields, request->fields) == 0);
    domt_fuzz_abort_unless(domus_append_end(&fields, &response.fields) == 0);
    if (request->target.size != 0)
        domt_fuzz_abort_unless(domus_slice_keep(request->target, &response.body) == 0);
    int error = domus_stage_kit_encode(kit, message->id, &domus_http_response_type, &response);
    /* The fields of a request with two Host fields cannot be those of a response, so it gets an
     * error. */
    if (error != 0)
        domt_fuzz_abort_unless(domus_stage_kit_fail(kit, message->id, message->type, -ENOENT) == 0);
    domus_http_response_type.release(&response);
    const char *output = domus_stage_kit_output(kit, &size);
    all->bytes = realloc(all->bytes, all->size + size + 1);
    domt_fuzz_abort_unless(all->bytes != NULL);
    memcpy(all->bytes + all->size, output, size);
    all->size += size;
    all->heads |= (uint64_t)(request->method == DOMUS_HTTP_HEAD) << all->count++;
    domus_stage_kit_clear(kit);
}

/* Check that a client reads the answers as responses, one for each request that was answered. */
static void check_answers_by_client(const answers *all)
{
    domt_http_read read = {.is_client = true, .heads = all->heads};
    domt_http_read judged = {.is_client = true, .heads = all->heads};

    domt_http_read_by_stage(&read, &reader, (const uint8_t *)all->bytes, all->size, all->size + 1,
                            NULL, NULL);
    domt_fuzz_abort_unless(read.error == 0 && read.count == all->count);
    domt_http_read_by_llhttp(&judged, (const uint8_t *)all->bytes, all->size);
    domt_http_check_llhttp_has_read_same(&read, &judged);
    domt_http_free_reading(&read);
    domt_http_free_reading(&judged);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    domt_http_read whole = {.is_client = false};
    domt_http_read pieces = {.is_client = false};
    domt_http_read answered = {.is_client = false};
    domt_http_read judged = {.is_client = false};
    answers all = {.bytes = NULL};

    if (size < 2)
        return 0;
    const domus_http_options *choice = &options[data[0] % 4];
    size_t step = 1 + data[0] / 4 * (size / 512 + 1);
    whole.with_trailers = judged.with_trailers = choice->streams;
    domt_http_read_by_stage(&whole, choice, data + 1, size - 1, size, NULL, NULL);
    /* An answer may end the connection, so there are perhaps fewer answers than requests. */
    domt_http_read_by_stage(&answered, choice, data + 1, size - 1, size, answer_request, &all);
    domt_http_read_by_stage(&pieces, choice, data + 1, size - 1, step, NULL, NULL);
    domt_http_check_readings_are_same(&whole, &pieces);
    domt_http_read_by_llhttp(&judged, data + 1, size - 1);
    domt_http_check_llhttp_has_read_same(&whole, &judged);
    if (all.count != 0)
        check_answers_by_client(&all);
    free(all.bytes);
    domt_http_free_reading(&whole);
    domt_http_free_reading(&pieces);
    domt_http_free_reading(&answered);
    domt_http_free_reading(&judged);
    domt_fuzz_abort_unless(budget.used_bytes == 0);
    return 0;
}
