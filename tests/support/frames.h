/* Frames of WebSocket for tests, written as text, and the messages that the stage makes of them as
 * text. */
#ifndef DOMT_FRAMES_H
#define DOMT_FRAMES_H

#include <domus/websocket.h>

#include "tests/support/codec.h"

#define DOMT_FRAMES_ROOM 131072

/* Write frames as their side sends them: a client masks, a server does not. Returns how many bytes
 * there are. Frames are divided by spaces:
 *
 *     81:hello    the first byte, and the payload up to the next space
 *     82:*300     300 bytes "*"
 *     81#c3a4     the payload in digits of base 16
 *     =8200       bytes as they are */
size_t domt_websocket_write_frames(bool of_client, const char *text, char *to);

/* Write the head of one frame, masked if it is a client's. Returns its size. */
size_t domt_websocket_write_frame_head(bool of_client, unsigned first, uint64_t size, char *to);

/* Let the stage decode frames that its peer sends: the first `cut` bytes, then the others `step` at
 * a time (0: all at once), and then the end. Returns its messages as text, a line for each, valid
 * until the next call but three:
 *
 *     text [hello]
 *     binary 300 bytes, 0a1b2c3d
 *     pong [x]
 *     close 1000 [bye]
 *
 * At last comes the error, with what the peer gets: "EPROTO close 1002", "EPIPE reset". */
const char *domt_decode_frames_to_text(const domus_websocket_options *options, const char *frames,
                                       size_t cut, size_t step);

/* Check that the messages are `expected` when the frames come in one piece, cut in two at each
 * byte, and byte by byte. */
void domt_check_decoded_frames(const domus_websocket_options *options, const char *frames,
                               const char *expected);

/* Write bytes of the stage's output as text: "81:hello 8a: ", masked or not. The test fails when
 * they are no frames. */
const char *domt_take_sent_frames_as_text(domt_codec *codec, bool of_client);

#endif
