/* A conversation of the stage of WebSocket with wslay, in memory: each side sends messages, pings
 * and closes, and the test carries the bytes in random pieces. Each side has to receive the
 * messages of the other one once, in order and unchanged; the functions of this file check that.
 * There is one conversation at a time, and none in a program that was built without wslay
 * (DOMT_WSLAY). */
#ifndef DOMT_HTTP_TALK_H
#define DOMT_HTTP_TALK_H

#include "base/random.h"
#include "tests/support/codec.h"

#include <domus/websocket.h>

/* largest number of messages that a side sends, and of its pings */
#define DOMT_TALK_EACH        16u
#define DOMT_TALK_CONTROL_MAX 125u

/* Bytes on their way to one side. The first `at` of them have arrived there. */
typedef struct domt_way {
    uint8_t *bytes;
    size_t size, at, room;
} domt_way;

/* A message that one side has sent. */
typedef struct domt_said {
    char kind; /* kind of the message: 't' text, 'b' binary, or 'p' ping */
    uint8_t *bytes;
    size_t size;
} domt_said;

/* The messages of one side in the order in which they were sent. The first `heard` of them have
 * been received by the other side. */
typedef struct domt_row {
    domt_said sent[DOMT_TALK_EACH];
    unsigned count, heard;
} domt_row;

/* A close that one side has received. */
typedef struct domt_goodbye {
    bool heard;
    unsigned code; /* code of the close; DOMUS_WEBSOCKET_NO_CODE: it had none */
    char reason[DOMT_TALK_CONTROL_MAX + 1];
} domt_goodbye;

typedef struct domt_talk {
    uint64_t seed;
    domi_random chance;
    domus_websocket_options options; /* options of the stage of WebSocket */
    domt_codec ours;
    struct wslay_event_context *theirs;
    domt_way to_us, to_them;
    size_t quota;      /* number of bytes that wslay may still move in this step */
    size_t piece_max;  /* size of the largest fragment that wslay sends */
    size_t piece_from; /* number of bytes that wslay has sent of its fragmented message */
    domt_row from_us, from_them;
    /* pings by the side that has sent them, which gets the pongs, too */
    domt_row pings_of_us, pings_of_them;
    domt_goodbye at_us, at_them;
} domt_talk;

extern domt_talk domt_talk_now;

/* Begin a conversation of wslay with the stage; or free it. `wslay_serves` is true if wslay is the
 * server. */
void domt_talk_begin_with_wslay(uint64_t seed, const domus_websocket_options *options,
                                bool wslay_serves);
void domt_talk_free_all(void);

/* Returns a random number less than `n`, from the seed of the conversation. */
size_t domt_talk_draw_number_below(size_t n);

/* Add a message of this kind and size to a row of messages to send, with random characters or
 * bytes. */
domt_said *domt_talk_add_message(domt_row *to, char kind, size_t size);

/* Send a message of a row from one side; wslay can send it in fragments. */
void domt_talk_send_by_stage(const domt_said *sent);
void domt_talk_send_by_wslay(domt_said *sent, bool fragmented);

/* Send a close from this side of the conversation. */
void domt_talk_close_by_stage(const domus_websocket_close *close);

/* Deliver some bytes to one side, or let wslay send some. Returns 0, or the error with which the
 * stage refuses the bytes. */
int domt_talk_deliver_some_bytes(void);

/* Let the stage decode `size` bytes that have arrived. Returns 0 or an error, as
 * domt_talk_deliver_some_bytes() does. */
int domt_talk_decode_bytes_by_stage(const void *bytes, size_t size);

#endif
