/* Run a pipeline's stages without a runtime: for their tests, and for fuzzers.
 *
 *     domus_stage_kit *kit;
 *     domus_stage_kit_new(&pipeline, &kit);
 *     domus_stage_kit_feed(kit, "PING\r\n", 6);
 *     domus_stage_message message;
 *     while (domus_stage_kit_next(kit, &message) == 1)
 *         domus_stage_kit_encode(kit, message.id, &answer_type, &answer);
 *     ... domus_stage_kit_output(kit, &size) ...
 *     domus_stage_kit_free(kit);
 *
 * Thread-safety: one thread at a time for each kit. */
#ifndef DOMUS_STAGE_KIT_H
#define DOMUS_STAGE_KIT_H

#include <domus/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct domus_stage_kit domus_stage_kit;

/* The kinds of messages that come out of the stages of a kit. */
typedef enum domus_stage_kind {
    DOMUS_STAGE_REQUEST,
    DOMUS_STAGE_NOTICE,
    DOMUS_STAGE_ANSWER,
    DOMUS_STAGE_PIECE, /* a piece of a body, or the message at its end */
} domus_stage_kind;

/* A message that a stage has decoded. */
typedef struct domus_stage_message {
    domus_stage_kind kind;
    /* type of the message's payload; NULL: the message is an answer that is an error */
    const domus_type *type;
    void *payload; /* payload of the message, valid until the next call of domus_stage_kit_next() */
    uint64_t id;
    int error;     /* negative errno of an answer that is an error; else 0 */
    bool has_body; /* whether a body follows this request or answer */
    bool last;     /* whether the body ends with this piece, if the message is one */
} domus_stage_message;

/* Make the stages of a pipeline, and open them. Returns 0; -EINVAL for a wrong pipeline; what
 * `check` or `open` of a stage returned; -ENOMEM. */
DOMUS_API int domus_stage_kit_new(const domus_pipeline *pipeline, domus_stage_kit **ret_kit);
/* Make the stages, as domus_stage_kit_new() does, for a pipeline of a client, whose stages hear of
 * this server (domus_wire_server()). The text stays valid as long as the kit. */
DOMUS_API int domus_stage_kit_new_to(const domus_pipeline *pipeline, const char *server,
                                     uint16_t port, domus_stage_kit **ret_kit);
DOMUS_API void domus_stage_kit_free(domus_stage_kit *kit);

/* Feed a kit with bytes, as if they had come from the peer. They are copied to memory of exactly
 * their size, so a sanitizer sees a stage that reads beyond them. Returns 0; -ENOMEM. */
DOMUS_API int domus_stage_kit_feed(domus_stage_kit *kit, const void *bytes, size_t size);

/* Tell a kit that the peer has finished sending. domus_stage_kit_next() then calls `end`. */
DOMUS_API void domus_stage_kit_finish(domus_stage_kit *kit);

/* Decode the bytes of the peer up to the next message. Returns 1 with a message; 0 when more bytes
 * are needed, or everything was seen after domus_stage_kit_finish(); or a negative errno: what a
 * stage returned, -EMSGSIZE when a message does not fit into the window. After an error it returns
 * the same error again. */
DOMUS_API int domus_stage_kit_next(domus_stage_kit *kit, domus_stage_message *ret_message);

/* True if a stage has called domus_wire_last(). The kit goes on decoding all the same. */
DOMUS_API bool domus_stage_kit_is_last(const domus_stage_kit *kit);

/* Begin a drain: answers that are encoded from now on are the last ones
 * (domus_wire_is_closing()). */
DOMUS_API void domus_stage_kit_drain(domus_stage_kit *kit);

/* Set the stream to which messages belong that are encoded from now on: a word that the caller
 * keeps (domus_wire_stream()); NULL: no stream. */
DOMUS_API void domus_stage_kit_stream(domus_stage_kit *kit, uint64_t *stream);

/* Let the stage append what lets the peer send the body that is open (`wanted`), or what tells the
 * peer that an answer is cut (`cut`). Returns what the stage returned; without such a function 0,
 * and `error`. */
DOMUS_API int domus_stage_kit_wanted(domus_stage_kit *kit);
DOMUS_API int domus_stage_kit_cut(domus_stage_kit *kit, uint64_t id, int error);

/* Return the time in ns after the last domus_wire_wake() at which `wake` is to be called, 0: not at
 * all; and call `wake`, which returns what the stage returned, and without such a function 0. */
DOMUS_API uint64_t domus_stage_kit_wake_ns(const domus_stage_kit *kit);
DOMUS_API int domus_stage_kit_wake(domus_stage_kit *kit, bool owed);

/* Let the stages append what ends their output (`finish`). Returns what they returned. */
DOMUS_API int domus_stage_kit_end_output(domus_stage_kit *kit);

/* Let the stages encode a message for the peer, or the failure of a request. Returns what the stage
 * returned. */
DOMUS_API int domus_stage_kit_encode(domus_stage_kit *kit, uint64_t id, const domus_type *type,
                                     const void *payload);
DOMUS_API int domus_stage_kit_fail(domus_stage_kit *kit, uint64_t id, const domus_type *request,
                                   int error);

/* Go on with another pipeline behind the last message, as domus_channel_set_pipeline() does
 * when all requests are answered; the options of `next` have to stay valid. Returns 0; -EINVAL
 * for a wrong pipeline or flag; what `check` of a stage returned; -EPROTO when bytes were fed
 * behind the message and DOMUS_PIPELINE_CLEAN is set, or when a stage that goes has output left
 * over; -EMSGSIZE when the bytes that the stages have not used do not fit into the window of
 * one; -ENOMEM: then nothing is changed. Or what `open` of a stage returned: then the kit can
 * only be freed. */
DOMUS_API int domus_stage_kit_change(domus_stage_kit *kit, const domus_pipeline *next,
                                     uint32_t flags);

/* Get the state of a stage; NULL when no such stage is open. It is valid until the next call with
 * this kit. */
DOMUS_API void *domus_stage_kit_state(domus_stage_kit *kit, const domus_stage *stage);

/* Return the bytes that go to the peer, in one piece, valid until the next call with this kit; and
 * throw these bytes away. */
DOMUS_API const char *domus_stage_kit_output(domus_stage_kit *kit, size_t *ret_size);
DOMUS_API void domus_stage_kit_clear(domus_stage_kit *kit);

#ifdef __cplusplus
}
#endif

#endif
