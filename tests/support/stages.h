/* Byte stages for tests, and a way to run a pipeline over bytes in pieces and to compare
 * what came of it. The bytes of each message are written down, so two runs are the same if
 * their texts are. */
#ifndef DOMT_STAGES_H
#define DOMT_STAGES_H

#include <domus/stage_kit.h>

/* Byte stuffing: '}' is an escape, and what follows it is the byte xor 0x20. '~' and '}' are
 * escaped. A '~' on the wire is wrong, and so is an escape at the end. It changes the sizes. */
extern const domus_stage domt_stuff_stage;

/* Each byte is xored with a key that moves on, so bytes that are lost, or come twice, are seen. */
extern const domus_stage domt_xor_stage;

/* It takes 1, 2 or 3 bytes a call, in turn, and passes them on as they are. */
extern const domus_stage domt_sip_stage;

/* Each two bytes are a count and a byte, which comes so many times. It passes on a few bytes in a
 * call, so most of its output is left over. Options: domt_swell_options, or NULL. */
typedef struct domt_swell_options {
    uint32_t factor;   /* a count of n is n * factor + 1 bytes; 0: n % 16 + 1 */
    uint32_t per_call; /* bytes passed on in a call, 0: 48 */
} domt_swell_options;

extern const domus_stage domt_swell_stage;

/* The outcome of a run. */
typedef struct domt_decoded {
    uint32_t count; /* messages */
    int error;      /* with which it ended, 0: none */
    char *text;     /* for each message its kind, its size and its bytes */
    size_t size;
    size_t room;
} domt_decoded;

/* How bytes are cut: returns the size of the next piece, of `left` bytes that are
 * left, 1 and more. */
typedef size_t domt_cut(void *context, size_t left);

/* Feed the bytes of a peer that then finishes, in the pieces of `cut` (NULL: all at once), and read
 * all packets that come. If `encoded` is not NULL, each packet is encoded again, and what the peer
 * would get is written there. `ret_decoded` is cleared by domt_decoded_clear(). */
void domt_decode(const domus_pipeline *pipeline, const void *bytes, size_t size, domt_cut *cut,
                 void *context, domt_decoded *ret_decoded, domt_decoded *encoded);

/* The same text, the same count, the same error. */
bool domt_decoded_equals(const domt_decoded *a, const domt_decoded *b);
void domt_decoded_clear(domt_decoded *decoded);

/* Cuts: pieces of the size that `context` points to (a size_t); or of chance, by a seed (a uint64_t
 * that is not 0). */
size_t domt_cut_same(void *context, size_t left);
size_t domt_cut_random(void *context, size_t left);

#endif
