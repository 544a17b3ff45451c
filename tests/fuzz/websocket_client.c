/* Fuzzes the client's side of the stage of WebSocket. The first byte of an input chooses the
 * limits, the second one the size of pieces. The stage reads the same messages and refuses the same
 * bytes in one piece and in many, and so does wslay. */
#include "tests/fuzz/support/fuzz.h"
#include "tests/fuzz/support/sockets.h"

static const domus_websocket_options options[] = {
    {.role = DOMUS_ROLE_CLIENT, .fragments_max = UINT32_MAX},
    {.role = DOMUS_ROLE_CLIENT, .fragments_max = UINT32_MAX, .message_max = 130},
    {.role = DOMUS_ROLE_CLIENT, .fragments_max = UINT32_MAX, .message_max = 300, .pongs = true},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    domt_socket_check_all_readings(&options[data[0] % 3], data + 2, size - 2, 1 + data[1] % 64);
    return 0;
}
