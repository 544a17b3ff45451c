/* A server of HTTP/2 that a test writes frame by frame, at the address DOMT_H2C_SCRIPT. It reads
 * the client's frames, and records what they say. */
#ifndef DOMT_HTTP_H2_SCRIPT_H
#define DOMT_HTTP_H2_SCRIPT_H

#include "tests/http/h2_client.h"

/* Frames of a server: types, flags, and blocks of HPACK for a status and for a length of 2. */
enum { HEADERS = NGHTTP2_HEADERS, DATA = NGHTTP2_DATA };
enum { LAST = NGHTTP2_FLAG_END_STREAM, WHOLE = NGHTTP2_FLAG_END_HEADERS };

#define S200          "\x88"
#define LENGTH_2      "\x0f\x0d\x01\x32"
#define BYTES(string) string, sizeof(string) - 1

typedef struct domt_h2s {
    domus_testkit *kit;
    domus_peer_listener *listener;
    domus_peer *peer;
    bool has_preface;
    uint32_t asked; /* number of streams that the client has begun */
    int32_t last;   /* number of the client's last stream */
    uint32_t ended; /* number of frames with END_STREAM that the client has sent */
    uint32_t resets;
    uint32_t reset_code; /* error code of the client's last RST_STREAM */
    int32_t reset_id;
    bool is_away;
    uint32_t away; /* error code of the client's last GOAWAY */
    uint32_t acks; /* number of acknowledgements of SETTINGS that the client has sent */
    uint32_t pongs;
    uint64_t data; /* number of bytes of bodies that the client has sent */
    /* credit that the client has given for streams by WINDOW_UPDATE since the last
     * domt_h2s_accept_connection() */
    uint64_t credit;
} domt_h2s;

/* Begin a kit whose client has these options, and listen in it. */
void domt_h2s_begin_kit(domt_h2s *script, domt_h2c *h2c, const domus_http_client_options *options);

/* Listen in the kit of a client. */
void domt_h2s_listen_in_kit(domt_h2s *script, const domt_h2c *h2c);

/* Accept the next connection, send SETTINGS, acknowledge the client's SETTINGS, and read its
 * requests. */
void domt_h2s_accept_connection(domt_h2s *script);

/* Let time pass, and read the frames that have come from the client. */
void domt_h2s_advance_and_read(domt_h2s *script, uint64_t ns);

/* Send one frame to the client. */
void domt_h2s_send_frame(domt_h2s *script, uint8_t type, uint8_t flags, int32_t id,
                         const void *bytes, size_t size);

/* Answer a stream with 200 and this body. */
void domt_h2s_answer_stream(domt_h2s *script, int32_t id, const char *body);

/* Answer a stream with 200 and this body, and check that the client receives this answer. */
void domt_h2s_answer_and_expect_at_client(domt_h2s *script, domt_h2c *h2c, int32_t id,
                                          const char *body);

/* Send RST_STREAM for a stream; or send GOAWAY for the connection. */
void domt_h2s_reset_stream(domt_h2s *script, int32_t id, uint32_t code);
void domt_h2s_send_goaway(domt_h2s *script, int32_t last, uint32_t code);

#define DOMT_H2S_URL(path) "http://10.0.0.1" path

#endif
