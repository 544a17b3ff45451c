/* Inner channels in a kit of stages (domus/stage_kit.h), for tests of stages that carry several
 * conversations in one connection (domus/inner.h). The test plays the inner channels: it sees what
 * the stage passes on to each, and what each sends is what the test says.
 *
 *     domus_stage_kit_new(&pipeline, &kit);
 *     domus_stage_kit_allow_inner(kit, 10);
 *     domus_stage_kit_feed(kit, bytes, size);
 *     domus_stage_kit_next(kit, &message);
 *     inner = domus_stage_kit_inner(kit, 0);
 *     ... domus_kit_inner_got(inner, &size) ...
 *     domus_kit_inner_use(inner, size);
 *     domus_kit_inner_send(inner, "hello", 5);
 *     domus_stage_kit_carry(kit);
 *     ... domus_stage_kit_output(kit, &size) ...
 *
 * As in a system, a stage hears of news in `carry` alone: of bytes that were sent when none were
 * queued, of bytes that were used, and of an end. In a kit the test says when that is called.
 *
 * Thread-safety: one thread at a time for each kit. */
#ifndef DOMUS_INNER_KIT_H
#define DOMUS_INNER_KIT_H

#include <domus/inner.h>
#include <domus/stage_kit.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An inner channel of a kit. It is valid until the kit is freed. */
typedef struct domus_kit_inner domus_kit_inner;

/* Let the stages of a kit open inner channels: `most` of them may be there at a time, and one more
 * fails with -ENOBUFS. A kit without this call refuses inner channels (-EOPNOTSUPP). Returns 0;
 * -ENOMEM. */
DOMUS_API int domus_stage_kit_allow_inner(domus_stage_kit *kit, uint32_t most);

/* Returns the inner channel that was opened as the `index`-th of the kit, from 0; NULL: there were
 * fewer. */
DOMUS_API domus_kit_inner *domus_stage_kit_inner(const domus_stage_kit *kit, uint32_t index);

/* Call `carry` of the stages, if there are news for them, or if the kit drains or is not full any
 * more since the last call. Returns 0; the error that a stage returned. */
DOMUS_API int domus_stage_kit_carry(domus_stage_kit *kit);

/* Set whether the peer takes no bytes for now (domus_wire_is_full()). */
DOMUS_API void domus_stage_kit_fill(domus_stage_kit *kit, bool is_full);

/* Returns how many things are under way, as the stage said last (domus_wire_set_carried()). */
DOMUS_API uint32_t domus_stage_kit_carried(const domus_stage_kit *kit);

/* Return the bytes that the stage has passed on to an inner channel and that were not used, in one
 * piece, valid until the next call with this kit; and use the first `size` of them. */
DOMUS_API const char *domus_kit_inner_got(const domus_kit_inner *inner, size_t *ret_size);
DOMUS_API void domus_kit_inner_use(domus_kit_inner *inner, size_t size);

/* True if the stage has said that it will pass no more bytes on to the inner channel
 * (domus_inner_end()). */
DOMUS_API bool domus_kit_inner_has_end(const domus_kit_inner *inner);

/* True if the stage has said that the inner channel has nothing to do (domus_inner_rest()). In a
 * kit the channel stays. */
DOMUS_API bool domus_kit_inner_rests(const domus_kit_inner *inner);

/* Queue bytes of an inner channel for the peer. Returns 0; -EPIPE when the channel has finished, or
 * has ended; -ENOMEM. */
DOMUS_API int domus_kit_inner_send(domus_kit_inner *inner, const void *bytes, size_t size);

/* Returns the number of bytes that an inner channel has queued, and that the stage has not
 * taken. */
DOMUS_API size_t domus_kit_inner_queued(const domus_kit_inner *inner);

/* Let an inner channel send nothing more, while it still takes bytes; or let it end, with 0 or a
 * negative errno, so that what is queued is thrown away. */
DOMUS_API void domus_kit_inner_finish(domus_kit_inner *inner);
DOMUS_API void domus_kit_inner_close(domus_kit_inner *inner, int error);

/* True if the stage has dropped the inner channel; `ret_error` (may be NULL) gets the error. */
DOMUS_API bool domus_kit_inner_is_dropped(const domus_kit_inner *inner, int *ret_error);

#ifdef __cplusplus
}
#endif

#endif
