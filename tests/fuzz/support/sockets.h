/* Frames that the stage of WebSocket and wslay have read, in one common form. Both have to read the
 * same messages, and to refuse the same bytes with the same code. */
#ifndef DOMT_SOCKETS_H
#define DOMT_SOCKETS_H

#include <domus/stage_kit.h>
#include <domus/websocket.h>

/* The messages that were read, one behind the other: a letter for the kind (t text, b binary, c
 * close), the size and the bytes; a close has its code. */
typedef struct domt_socket_read {
    char *text;
    size_t size;
    size_t room;
    /* code of the close frame by which wrong bytes were refused; 0: none were refused */
    unsigned refused;
    bool closed; /* whether a close frame of the peer has come */
} domt_socket_read;

void domt_socket_free_reading(domt_socket_read *read);

/* Read bytes by a stage of WebSocket, in pieces of `step` bytes, and send each message back. */
void domt_socket_read_by_stage(domt_socket_read *read, const domus_websocket_options *options,
                               const uint8_t *bytes, size_t size, size_t step);

/* Read bytes by wslay, whose limit of a message also applies to control frames. Returns false, and
 * does nothing, if the program was built without wslay. */
bool domt_socket_read_by_wslay(domt_socket_read *read, const domus_websocket_options *options,
                               const uint8_t *bytes, size_t size);

/* Check that a stage of WebSocket reads these bytes in the same way in pieces of any size, and as
 * wslay does. */
void domt_socket_check_all_readings(const domus_websocket_options *options, const uint8_t *bytes,
                                    size_t size, size_t step);

#endif
