/* Byte stages for tests, and a function that runs a pipeline over bytes which come in pieces. The
 * bytes of each decoded message are written as text, so two runs gave the same messages if their
 * texts are the same. */
#ifndef DOMT_STAGES_H
#define DOMT_STAGES_H

#include <domus/stage_kit.h>

/* A stage of byte stuffing, which changes sizes: '}' is an escape, and the byte behind it is xored
 * with 0x20. The stage escapes '~' and '}'; a '~' on the wire, or an escape at the end, is an
 * error. */
extern const domus_stage domt_stuff_stage;

/* A stage that xors each byte with a key which changes with each byte, so a test sees bytes that
 * are lost or come twice. */
extern const domus_stage domt_xor_stage;

/* A stage that takes 1, 2 or 3 bytes in a call, in turn, and passes them on unchanged. */
extern const domus_stage domt_sip_stage;

/* A stage that makes many bytes of few: it reads pairs of a count and a byte, and passes on the
 * byte as many times as the count says. It passes on only a few bytes in a call, so it mostly has
 * output left. Options: domt_swell_options, or NULL. */
typedef struct domt_swell_options {
    /* a count of n makes n * factor + 1 bytes; with a factor of 0, n % 16 + 1 bytes */
    uint32_t factor;
    uint32_t per_call; /* bytes that the stage passes on in one call; 0: 48 */
} domt_swell_options;

extern const domus_stage domt_swell_stage;

/* The result of domt_decode_in_pieces(): the messages that a pipeline has decoded, as text. */
typedef struct domt_decoded {
    uint32_t count; /* number of decoded messages */
    int error;      /* error with which the pipeline ended; 0: none */
    char *text;     /* kind, size and bytes of each decoded message */
    size_t size;
    size_t room;
} domt_decoded;

/* A function that divides bytes into pieces: it returns the size of the next piece, from 1 up to
 * `left`, the number of bytes that are left. */
typedef size_t domt_cut(void *context, size_t left);

/* Let a new pipeline decode `size` bytes and then the end of its input; `cut` says the sizes of the
 * pieces (NULL: one piece). If `encoded` is not NULL, each decoded packet is encoded again, and the
 * bytes for the peer are written to `encoded`. `ret_decoded` is freed by domt_decoded_clear(). */
void domt_decode_in_pieces(const domus_pipeline *pipeline, const void *bytes, size_t size,
                           domt_cut *cut, void *context, domt_decoded *ret_decoded,
                           domt_decoded *encoded);

/* Returns whether two runs have the same text, the same number of messages and the same error. */
bool domt_decoded_equals(const domt_decoded *a, const domt_decoded *b);
void domt_decoded_clear(domt_decoded *decoded);

/* Two functions that divide bytes into pieces: domt_size_of_next_equal_piece() into pieces of the
 * size that `context` points to (a size_t), domt_size_of_next_random_piece() into pieces of random
 * sizes, from the seed that `context` points to (a uint64_t that is not 0). */
size_t domt_size_of_next_equal_piece(void *context, size_t left);
size_t domt_size_of_next_random_piece(void *context, size_t left);

#endif
