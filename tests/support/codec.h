/* Tests of a message stage: the stage runs in a kit, its decoded messages are written as text, and
 * its allocations can be made to fail. A test that compares these texts sees that the same bytes
 * give the same messages, whether they come in one piece or in many. The tests of each protocol
 * provide the function that writes their messages. */
#ifndef DOMT_CODEC_H
#define DOMT_CODEC_H

#include <domus/budget.h>
#include <domus/stage_kit.h>

#define DOMT_TEXT_ROOM 262144

/* A buffer to which text is added: `to` is the place of the next byte, and `room` the number of
 * bytes that are free. */
typedef struct domt_text {
    char *to;
    size_t room;
} domt_text;

/* Add text to the buffer `at`, formatted as by printf(3). The test fails when the buffer is
 * full. */
void domt_text_append_format(domt_text *at, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Add bytes to the buffer of text; a byte that is not printable is written as \x and two digits. A
 * slice of more than 64 bytes is written as its size and a checksum. */
void domt_text_append_bytes(domt_text *at, const char *bytes, size_t size);
void domt_text_append_slice(domt_text *at, domus_slice slice);

/* A message stage under test, in a kit of its own. */
typedef struct domt_codec {
    domus_pipeline_stage stages[2];
    domus_pipeline pipeline;
    domus_stage_kit *kit;
} domt_codec;

/* Make a codec (a stage in a new kit), or free it. The test fails when the codec cannot be made. */
void domt_codec_start(domt_codec *codec, const domus_stage *stage, const void *options);
void domt_codec_stop(domt_codec *codec);

/* Returns the bytes that the stage has written for its peer since the last call, as a string that
 * is valid until the next call. */
const char *domt_codec_take_output(domt_codec *codec);

/* Says how the messages that a stage decodes are written as text (the trace of a run). */
typedef struct domt_codec_trace {
    const domus_stage *stage;
    const void *options;
    /* called before the stage gets its first byte; may be NULL */
    void (*begin)(domt_codec *codec, const void *context);
    const void *context;
    void (*print)(domt_text *at, const domus_stage_message *message);
    /* adds what the peer was sent because of an error; `sent` is NULL if the connection is reset */
    void (*print_sent)(domt_text *at, const char *sent);
} domt_codec_trace;

/* Let a new stage decode `size` bytes and then the end of its input: the first `cut` bytes come in
 * one piece, and the others in pieces of `step` bytes (0: in one piece). Returns the decoded
 * messages as text; after an error also its name and what the peer was sent for it. The text is
 * valid until the fourth call after this one. */
const char *domt_codec_decode_to_text(const domt_codec_trace *trace, const char *bytes, size_t size,
                                      size_t cut, size_t step);

/* Check that the text of domt_codec_decode_to_text() is `expected` if the bytes come in one piece,
 * if they are cut in two at any byte, and if they come byte by byte. */
void domt_codec_check_text(const domt_codec_trace *trace, const char *bytes, size_t size,
                           const char *expected);

/* The argument of domt_codec_decode_as_work_says(): a new stage decodes `size` bytes, in pieces of
 * `step` bytes. */
typedef struct domt_codec_work {
    domus_pipeline_stage stage;
    /* called for each decoded message, to check or to answer it; returns 0 or an error; may be
     * NULL */
    int (*answer)(domus_stage_kit *kit, const domus_stage_message *message);
    const char *bytes;
    size_t size;
    size_t step;
} domt_codec_work;

/* Let a new stage decode as `work` (a domt_codec_work) says, and free the stage. Returns 0, or the
 * first error. */
int domt_codec_decode_as_work_says(void *work);

/* Call `work` again and again: the first time its first allocation fails, then its second, and on
 * until a call succeeds. Check that each call returns -ENOMEM or 0. */
void domt_fail_each_allocation(int (*work)(void *context), void *context);

/* Run `work`, which has to return 0 and to allocate memory. Returns the size in bytes of the
 * largest block that `work` has allocated. */
size_t domt_largest_allocated_block(int (*work)(void *context), void *context);

/* The bytes of a message that a stage gathers in memory, and the budget (domus_budget) which bounds
 * that memory. */
typedef struct domt_gathered {
    /* the stage that gathers the message; its options name the budget */
    domus_pipeline_stage stage;
    domus_budget *budget;
    const char *head; /* first bytes that the peer sends: the head of the message */
    const char *body; /* bytes of the message's body, which the peer sends behind `head` */
    size_t size;      /* number of bytes in `body`; a little more than 400,000 */
    /* bytes of the budget that are at least in use while the whole message is there */
    uint64_t whole_least;
    /* text with which the answer begins that the peer gets when there is no room for its message */
    const char *refused;
} domt_gathered;

/* Check that the unfinished messages of three channels share one budget: the message that does not
 * fit is refused and holds no memory, and after the channels have ended no byte of the budget is in
 * use. */
void domt_check_gathered_share_budget(const domt_gathered *gathered);

#endif
