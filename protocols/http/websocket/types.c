/* The types of WebSocket's messages, and how their payloads are released. */
#include <domus/websocket.h>

static void release_bytes_of_message(void *payload)
{
    domus_slice_free(((domus_websocket_message *)payload)->bytes);
}

static void release_reason_of_close(void *payload)
{
    domus_slice_free(((domus_websocket_close *)payload)->reason);
}

static void release_bytes_of_control_frame(void *payload)
{
    domus_slice_free(*(domus_slice *)payload);
}

const domus_type domus_websocket_message_type = {.name = "websocket_message",
                                                 .size = sizeof(domus_websocket_message),
                                                 .release = release_bytes_of_message};
const domus_type domus_websocket_close_type = {.name = "websocket_close",
                                               .size = sizeof(domus_websocket_close),
                                               .release = release_reason_of_close};
const domus_type domus_websocket_frame_type = {.name = "websocket_frame",
                                               .size = sizeof(domus_slice),
                                               .release = release_bytes_of_control_frame};
const domus_type domus_websocket_ping_type = {.name = "websocket_ping",
                                              .size = sizeof(domus_slice),
                                              .release = release_bytes_of_control_frame};
const domus_type domus_websocket_pong_type = {.name = "websocket_pong",
                                              .size = sizeof(domus_slice),
                                              .release = release_bytes_of_control_frame};
