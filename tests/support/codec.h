/* A message stage under test: it runs in a kit, its messages are written as text, and its
 * allocations can fail. So the messages of the same bytes in one piece and in many can be compared.
 * Each protocol says how its messages are printed. */
#ifndef DOMT_CODEC_H
#define DOMT_CODEC_H

#include <domus/budget.h>
#include <domus/stage_kit.h>

#define DOMT_TEXT_ROOM 262144

/* Where text is written: the next byte, and the number of bytes that are left. */
typedef struct domt_text {
    char *to;
    size_t room;
} domt_text;

/* Write as printf(3) does. The test fails when there is no room. */
void domt_text_add(domt_text *at, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Write bytes; a byte that is not printable is written as \x0a. A slice of more than 64 bytes is
 * written as its size and a checksum. */
void domt_text_add_bytes(domt_text *at, const char *bytes, size_t size);
void domt_text_add_slice(domt_text *at, domus_slice slice);

/* A stage in a kit of its own. */
typedef struct domt_codec {
    domus_pipeline_stage stages[2];
    domus_pipeline pipeline;
    domus_stage_kit *kit;
} domt_codec;

/* Make and free a codec. The test fails when it cannot be made. */
void domt_codec_start(domt_codec *codec, const domus_stage *stage, const void *options);
void domt_codec_stop(domt_codec *codec);

/* Returns the bytes that went to the peer since the last call, as a string, valid until the next
 * call. */
const char *domt_codec_sent(domt_codec *codec);

/* How the messages of a stage are written as text. */
typedef struct domt_codec_trace {
    const domus_stage *stage;
    const void *options;
    /* called before the first byte; NULL: nothing is called */
    void (*begin)(domt_codec *codec, const void *context);
    const void *context;
    void (*print)(domt_text *at, const domus_stage_message *message);
    /* writes what the peer was sent after an error; NULL: the connection is reset */
    void (*print_sent)(domt_text *at, const char *sent);
} domt_codec_trace;

/* Let the stage decode: the first `cut` bytes, then the others `step` at a time (0: all at once),
 * and then the end. Returns its messages as text, and at last the name of the error and what the
 * peer was sent for it, valid until the next call but three. */
const char *domt_codec_run(const domt_codec_trace *trace, const char *bytes, size_t size,
                           size_t cut, size_t step);

/* Check that the trace is `expected` in one piece, cut in two at each byte, and byte by byte. */
void domt_codec_holds(const domt_codec_trace *trace, const char *bytes, size_t size,
                      const char *expected);

/* Work for domt_codec_decode(): a new stage decodes `size` bytes, `step` at a time. */
typedef struct domt_codec_work {
    domus_pipeline_stage stage;
    /* writes or checks a message; may be NULL */
    int (*answer)(domus_stage_kit *kit, const domus_stage_message *message);
    const char *bytes;
    size_t size;
    size_t step;
} domt_codec_work;

/* Decode as the domt_codec_work `work` says, and free the stage. Returns 0, or the first error. */
int domt_codec_decode(void *work);

/* Let each allocation of `work` fail in turn, until all succeed. Check that it returns
 * -ENOMEM or 0. */
void domt_fail_allocations(int (*work)(void *context), void *context);

/* Run `work`, which has to return 0 and to allocate. Returns the bytes of the greatest block that
 * it took. */
size_t domt_greatest_block(int (*work)(void *context), void *context);

/* A message whose bytes are gathered under a budget. */
typedef struct domt_gathered {
    domus_pipeline_stage stage; /* a stage whose options have the budget */
    domus_budget *budget;
    const char *head; /* first bytes that the peer sends */
    const char *body; /* bytes that the peer sends behind `head` */
    size_t size;      /* bytes of the body: 400,000 and a few */
    /* the least number of bytes that count on the budget while the message is whole */
    uint64_t whole_least;
    /* the least text that the peer gets when there is no room for the message */
    const char *refused;
} domt_gathered;

/* Check that unfinished messages of three channels share the bound of the budget, that the message
 * beyond it is refused and takes no memory, and that no byte counts in the end. */
void domt_gathered_share_a_bound(const domt_gathered *gathered);

#endif
