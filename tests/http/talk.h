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

#define DOMT_TALK_EACH        16u /* largest number of messages, and of pings, that a side sends */
#define DOMT_TALK_CONTROL_MAX 125u

/* Bytes on their way to one side. The first `at` of them have arrived. */
typedef struct domt_way {
    uint8_t *bytes;
    size_t size, at, room;
} domt_way;

/* A message that was sent. */
typedef struct domt_said {
    char kind; /* kind: 't' text, 'b' binary, or 'p' ping */
    uint8_t *bytes;
    size_t size;
} domt_said;

/* Messages in the order in which they were sent. The first `heard` of them have been received. */
typedef struct domt_row {
    domt_said sent[DOMT_TALK_EACH];
    unsigned count, heard;
} domt_row;

/* A close that was received. */
typedef struct domt_goodbye {
    bool heard;
    unsigned code; /* code; DOMUS_WEBSOCKET_NO_CODE: none */
    char reason[DOMT_TALK_CONTROL_MAX + 1];
} domt_goodbye;

typedef struct domt_talk {
    uint64_t seed;
    domi_random chance;
    domus_websocket_options options; /* options of the stage */
    domt_codec ours;
    struct wslay_event_context *theirs;
    domt_way to_us, to_them;
    size_t quota;      /* bytes that wslay may still move in this step */
    size_t piece_max;  /* largest fragment that wslay sends, in bytes */
    size_t piece_from; /* bytes of the fragmented message that wslay has sent */
    domt_row from_us, from_them;
    domt_row pings_of_us, pings_of_them; /* pings, by the side that sent them and gets the pongs */
    domt_goodbye at_us, at_them;
} domt_talk;

extern domt_talk domt_talk_now;

/* Begin a conversation with the stage, and free it. `wslay_serves` is true if wslay is the
 * server. */
void domt_talk_begin(uint64_t seed, const domus_websocket_options *options, bool wslay_serves);
void domt_talk_end(void);

/* Returns a random number less than `n`, from the seed of the conversation. */
size_t domt_talk_draw_below(size_t n);

/* Add a message of this kind and size to a row, with random characters or bytes. */
domt_said *domt_talk_add_message(domt_row *to, char kind, size_t size);

/* Send a message of a row; wslay can send it in fragments. */
void domt_talk_send_by_us(const domt_said *sent);
void domt_talk_send_by_them(domt_said *sent, bool fragmented);

/* Send a close from this side. */
void domt_talk_close_by_us(const domus_websocket_close *close);

/* Deliver some bytes to one side, or let wslay send some. Returns 0, or the error with which the
 * stage refuses the bytes. */
int domt_talk_carry_some(void);

/* Let the stage decode `size` bytes that have arrived. Returns as domt_talk_carry_some(). */
int domt_talk_decode(const void *bytes, size_t size);

#endif
