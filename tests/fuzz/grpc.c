/* Fuzzes the messages of gRPC. The first byte of an input chooses the bound of a message and
 * whether messages may be compressed, the other bytes are a body. Pieces of any size have to give
 * the same messages, none beyond the bound, and the same end. */
#include "protocols/grpc/reader.h"

#include <domus/grpc.h>

#include "tests/fuzz/support/fuzz.h"

#include <stdlib.h>
#include <string.h>

/* The outcome of reading a body: all its messages with their sizes, one behind the other, and
 * how the body has ended. */
typedef struct outcome {
    domus_slice messages;
    int error;       /* result with which the reader has ended; 0: the body has ended */
    bool is_between; /* whether the body has ended behind a whole message */
} outcome;

/* Append each message that the reader has complete to the outcome. Returns as
 * domi_grpc_reader_read_message(), but never above 0. */
static int store_complete_messages(domi_grpc_reader *reader, domus_appender *to)
{
    domus_slice message;
    int result;

    while ((result = domi_grpc_reader_read_message(reader, &message)) > 0) {
        if (result == DOMI_GRPC_PAUSE)
            continue;
        domt_fuzz_abort_unless(message.size <= reader->max);
        domt_fuzz_abort_unless(domus_append(to, &message.size, sizeof message.size) == 0);
        domt_fuzz_abort_unless(domus_append(to, domus_slice_data(message), message.size) == 0);
        domus_slice_free(message);
    }
    return result;
}

/* Read a body of gRPC in pieces of `step` bytes. */
static outcome read_body_in_pieces(uint8_t choice, const uint8_t *bytes, size_t size, size_t step)
{
    domi_grpc_reader reader = {.max = (choice & 1) != 0 ? 10 : 5000, .unpacks = (choice & 2) != 0};
    domus_appender messages = {0};
    outcome made = {.error = 0};

    for (size_t at = 0; at < size && made.error == 0; at += step) {
        domus_slice piece;
        domt_fuzz_abort_unless(
            domus_slice_copy(bytes + at, size - at < step ? size - at : step, &piece) == 0);
        domi_grpc_reader_put_piece(&reader, piece);
        made.error = store_complete_messages(&reader, &messages);
    }
    made.is_between = domi_grpc_reader_is_between_messages(&reader);
    domi_grpc_reader_free_bytes(&reader);
    domt_fuzz_abort_unless(domus_append_end(&messages, &made.messages) == 0);
    return made;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t steps[] = {1, 2, 5, 7, 64};

    if (size < 1 || size > 4096)
        return 0;
    outcome whole = read_body_in_pieces(data[0], data + 1, size - 1, 4096);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        outcome parts = read_body_in_pieces(data[0], data + 1, size - 1, steps[i]);
        domt_fuzz_abort_unless(parts.error == whole.error);
        domt_fuzz_abort_unless(parts.error != 0 || parts.is_between == whole.is_between);
        domt_fuzz_abort_unless(domus_slice_equals(parts.messages, domus_slice_data(whole.messages),
                                                  whole.messages.size));
        domus_slice_free(parts.messages);
    }
    domus_slice_free(whole.messages);
    return 0;
}
