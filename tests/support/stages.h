/* Byte stages for tests, and a way to run a pipeline over bytes in pieces and to compare the
 * messages. The bytes of each message are written as text, so two runs are the same if their texts
 * are. */
#ifndef DOMT_STAGES_H
#define DOMT_STAGES_H

#include <domus/stage_kit.h>

/* Byte stuffing, which changes sizes: '}' is an escape, and the byte behind it is xored with 0x20.
 * '~' and '}' are escaped. A '~' on the wire is an error, and so is an escape at the end. */
extern const domus_stage domt_stuff_stage;

/* A stage that xors each byte with a key which moves on, so bytes that are lost or come twice are
 * seen. */
extern const domus_stage domt_xor_stage;

/* A stage that uses 1, 2 or 3 bytes in a call, in turn, and passes them on unchanged. */
extern const domus_stage domt_sip_stage;

/* A stage that reads each two bytes as a count and a byte, and passes on the byte so many times. It
 * passes on a few bytes in a call, so most of its output is left over. Options: domt_swell_options,
 * or NULL. */
typedef struct domt_swell_options {
    uint32_t factor;   /* a count of n gives n * factor + 1 bytes; 0: n % 16 + 1 bytes */
    uint32_t per_call; /* bytes passed on in one call; 0: 48 */
} domt_swell_options;

extern const domus_stage domt_swell_stage;

/* The outcome of a run of a pipeline. */
typedef struct domt_decoded {
    uint32_t count; /* number of messages */
    int error;      /* error with which the run ended; 0: none */
    char *text;     /* kind, size and bytes of each message */
    size_t size;
    size_t room;
} domt_decoded;

/* A function that cuts bytes: returns the size of the next piece, from 1 up to `left`, the number
 * of bytes that are left. */
typedef size_t domt_cut(void *context, size_t left);

/* Feed the bytes of a peer that then finishes, in the pieces of `cut` (NULL: all at once), and read
 * all packets that come. If `encoded` is not NULL, each packet is encoded again, and what the peer
 * would get is written there. `ret_decoded` is cleared by domt_decoded_clear(). */
void domt_decode(const domus_pipeline *pipeline, const void *bytes, size_t size, domt_cut *cut,
                 void *context, domt_decoded *ret_decoded, domt_decoded *encoded);

/* Whether two runs have the same text, the same count and the same error. */
bool domt_decoded_equals(const domt_decoded *a, const domt_decoded *b);
void domt_decoded_clear(domt_decoded *decoded);

/* Cuts: domt_cut_same() makes pieces of the size that `context` points to (a size_t);
 * domt_cut_random() makes pieces of random sizes from a seed (a uint64_t that is not 0). */
size_t domt_cut_same(void *context, size_t left);
size_t domt_cut_random(void *context, size_t left);

#endif
