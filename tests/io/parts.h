/* A stage for the tests of io/wire, which can do what a stage should not: its messages begin with
 * two bytes of length, in network order, and it records how it was called. Also functions that read
 * what kits of any stages have for their peers. */
#ifndef DOMT_PARTS_H
#define DOMT_PARTS_H

#include "io/wire/wire.h"

/* The oddities that a stage of this test may have, as bits. */
enum {
    DOMT_NEEDS = 1,        /* the stage calls domus_wire_need() */
    DOMT_FAILS_AFTER = 2,  /* the stage makes the message, and then fails */
    DOMT_USES_NOTHING = 4, /* the stage makes the message, and says that it has used no byte */
    DOMT_USES_TOO_MUCH = 8,
    /* the stage keeps a slice of each message in its state, before the slice that it gives */
    DOMT_KEEPS = 16,
    DOMT_LEAVES_SLICE =
        /* the stage uses only the two bytes, and gives their slice with the next message */
    32,
    DOMT_PEEKS = 64,    /* the slice reaches one byte beyond the used bytes */
    DOMT_ENDS = 128,    /* the stage's `end` makes a message */
    DOMT_NO_ASKS = 256, /* the stage asks by domus_wire_need() for fewer bytes than it has */
    DOMT_TWICE = 512,   /* the stage tries to make two messages */
};

typedef struct domt_parts {
    int how;
    uint32_t need;
} domt_parts;

extern const domt_parts domt_plain; /* a stage without oddities */
extern const domt_parts domt_needs; /* a stage with DOMT_NEEDS */

extern const domus_stage domt_part_stage;
extern const domus_type domt_part_type;

/* A message of the stage. */
typedef struct domt_part {
    domus_slice bytes;
    domus_slice more;
} domt_part;

void domt_release_part(void *payload);

/* How the stage was called since the last kit or bare wire was made. */
extern struct domt_seen {
    uint32_t decodes;  /* number of calls of the stage's `decode` */
    const char *bytes; /* the bytes that the last call of `decode` was shown */
    size_t size;
    uint32_t ends, closes, releases;
    size_t left; /* number of bytes that were left when `end` was last called */
} domt_seen;

/* Make a kit with this stage alone; or feed bytes to a kit. */
domus_stage_kit *domt_make_parts_kit(const domt_parts *how);
void domt_feed_bytes_to_kit(domus_stage_kit *kit, const char *bytes, size_t size);

/* Returns a copy of all bytes that a kit has for its peer, which the caller frees. */
char *domt_copy_output_of_kit(domus_stage_kit *kit, size_t *ret_size);

/* Check that a kit has exactly this text for its peer. The text stays there. */
void domt_expect_output_of_kit(domus_stage_kit *kit, const char *text);

/* Write a message of `length` bytes, which count up from `first`. Returns its size. */
size_t domt_write_part(char *to, size_t length, int first);

/* Write a message of each length, the bytes of message `i` counting up from `i`. Returns their
 * size, which is less than 1000. */
#define DOMT_PARTS 7
extern const size_t domt_lengths[DOMT_PARTS];
size_t domt_write_parts(char *to);

/* Check that this is a message as domt_write_part() wrote it. */
void domt_expect_part(const domus_stage_message *message, size_t length, int first);

/* A wire without a kit: its bytes lie where the test puts them. */
typedef struct domt_bare {
    domus_wire *wire;
    domi_out out;
    domt_part part; /* the message that was decoded last */
} domt_bare;

domt_bare *domt_bare_wire_new(const domt_parts *how);
void domt_bare_wire_free(domt_bare *bare);

/* Tell the wire that its message was handled. */
void domt_bare_wire_tell_message_done(domt_bare *bare);

#endif
