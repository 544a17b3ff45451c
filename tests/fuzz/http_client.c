/* Fuzzes the client's side of the stage of HTTP. The first byte of an input chooses the options and
 * the size of pieces, the second byte says which requests were HEAD. The stage reads the same
 * responses in one piece and in many, and llhttp reads the same. */
#include "tests/fuzz/support/fuzz.h"
#include "tests/fuzz/support/judge.h"

#include <stdlib.h>

static domus_budget budget = {.bytes_max = 100000};
static const domus_http_options options[] = {
    {.role = DOMUS_ROLE_CLIENT, .host = "a", .budget = &budget},
    {.role = DOMUS_ROLE_CLIENT, .host = "a", .streams = true},
    {.role = DOMUS_ROLE_CLIENT,
     .host = "a",
     .head_max = 100,
     .fields_max = 3,
     .body_max = 10,
     .extension_max = 5,
     .trailer_max = 20},
    {.role = DOMUS_ROLE_CLIENT, .host = "a", .streams = true, .whole_max = 5, .body_max = 20},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    const domus_http_options *choice = &options[data[0] % 4];
    domt_http_read whole = {.is_client = true, .heads = data[1], .with_trailers = choice->streams};
    domt_http_read pieces = whole;
    domt_http_read judged = whole;
    size_t step = 1 + data[0] / 4 * (size / 512 + 1);

    domt_http_read_by_stage(&whole, choice, data + 2, size - 2, size, NULL, NULL);
    domt_http_read_by_stage(&pieces, choice, data + 2, size - 2, step, NULL, NULL);
    domt_http_check_readings_are_same(&whole, &pieces);
    domt_http_read_by_llhttp(&judged, data + 2, size - 2);
    domt_http_check_llhttp_has_read_same(&whole, &judged);
    domt_http_free_reading(&whole);
    domt_http_free_reading(&pieces);
    domt_http_free_reading(&judged);
    domt_fuzz_abort_unless(budget.used_bytes == 0);
    return 0;
}
