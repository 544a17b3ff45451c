/* Frames that the stage of WebSocket and wslay have read, in one common form. The two have to read
 * the same messages, and to refuse the same bytes with the same code. */
#ifndef DOMT_SOCKETS_H
#define DOMT_SOCKETS_H

#include <domus/stage_kit.h>
#include <domus/websocket.h>

/* Messages, one behind the other: a letter for the kind (t text, b binary, c close), the size and
 * the bytes; a close has its code. */
typedef struct domt_socket_read {
    char *text;
    size_t size;
    size_t room;
    unsigned refused; /* code with which bytes were refused; 0: none were */
    bool closed;      /* the peer has closed */
} domt_socket_read;

void domt_socket_free_reading(domt_socket_read *read);

/* Read bytes by a stage, in pieces of `step` bytes, and send each message back. */
void domt_socket_read_by_stage(domt_socket_read *read, const domus_websocket_options *options,
                               const uint8_t *bytes, size_t size, size_t step);

/* Read bytes by wslay; its bound of a message also applies to control frames. Returns false, and
 * does nothing, if the program was built without wslay. */
bool domt_socket_read_by_wslay(domt_socket_read *read, const domus_websocket_options *options,
                               const uint8_t *bytes, size_t size);

/* Check that a stage reads these bytes in the same way in pieces of any size, and as wslay does. */
void domt_socket_check_all_readings(const domus_websocket_options *options, const uint8_t *bytes,
                                    size_t size, size_t step);

#endif
