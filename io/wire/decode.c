/* Decodes: moves the bytes through the windows of the stages, up to a message.
 *
 * A stage gets new bytes where they lie. Only the bytes that it leaves over, because a message is
 * not complete yet, are copied into its window. When more bytes have come, as many are copied
 * behind them as the stage says that it needs, or else as many again as are there; those of them
 * that the stage does not use are given back: so the stage goes on with the bytes where they lie.
 * The bytes that a stage passes on are the window of the next one. A stage behind another one goes
 * first, so that few bytes wait between them. */
#include "base/check.h"
#include "io/wire/wire.h"
#include "io/wire/wrap.h"

#include <errno.h>

/* least number of bytes that are copied at a time behind the bytes of an incomplete message */
#define KEEP_LEAST 256u

/* Most calls of stages, and most bytes that they pass on, without a message, after which control
 * returns to the caller. So a peer that sends many empty records, or a record that grows a
 * thousandfold, does not hold up other channels. */
#define CALLS_MOST  64u
#define PASSED_MOST (2 * DOMUS_WINDOW_MAX)

/* The new bytes of a call of domi_wire_decode_next_message(), which lie in the memory of the
 * caller. */
typedef struct input {
    const char *start; /* the first of the new bytes that this call was given */
    const char *bytes; /* the first of the new bytes that is not decoded yet */
    size_t size;
} input;

/* --- slices of the bytes ---------------------------------------------------------------------- */

/* Make the page by which slices can borrow the new bytes, for the message stage that will get these
 * bytes. */
static int make_page_of_new_bytes(domus_wire *wire, const char *bytes, size_t size)
{
    if (wire->page == NULL) {
        wire->page = domi_page_new_borrower();
        if (wire->page == NULL)
            return -ENOMEM;
    }
    domi_page_show_borrowed_bytes(wire->page, bytes, (uint32_t)size);
    wire->shown = bytes;
    wire->shown_size = (uint32_t)size;
    wire->sliced = 0;
    return 0;
}

/* Narrow the page of borrowed bytes after the stage has seen them: if the message is copied now,
 * only the bytes in slices are needed. */
static void narrow_page_to_slices(domus_wire *wire)
{
    wire->shown = NULL;
    wire->page->size = wire->sliced;
}

/* Give the page of borrowed bytes a copy of them, if slices are left that own it, because the bytes
 * themselves will be freed. */
static int copy_bytes_of_shared_page(domus_wire *wire)
{
    domi_page *page = wire->page;

    if (page == NULL || (page->borrowed && domi_page_is_unshared(page)))
        return 0;
    int error = domi_page_own_borrowed_bytes(page);
    if (error != 0)
        return error;
    domi_page_drop_owner(page);
    wire->page = NULL;
    return 0;
}

/* Return a page of borrowed bytes to the thread, which has few pages at a time, because no slice of
 * it is left. */
static void return_page_to_thread(domus_wire *wire)
{
    domi_page *page = wire->page;

    if (page == NULL || !page->borrowed || !domi_page_is_unshared(page))
        return;
    domi_page_drop_owner(page);
    wire->page = NULL;
}

/* --- one stage -------------------------------------------------------------------------------- */

/* Let the stage at `index` decode. Returns the number of bytes that it used; 0: it needs more,
 * unless it has to be called `again`; or an error. */
static int call_decode_of_stage(domus_wire *wire, uint32_t index, const char *bytes, size_t size)
{
    domi_wire_stage *at = &wire->stages[index];
    domi_mark begun = domi_wire_begin_output_of_stage(wire, index);

    at->again = at->passed = false;
    int used = at->stage->decode(wire, at->state, bytes, size);
    /* a message of no bytes is refused, because it would be made again and again */
    if (used > 0 ? (size_t)used > size : used == 0 && wire->made.any)
        used = -EPROTO;
    /* a call that moved no bytes is refused, because it would be repeated for ever */
    if (DOMI_UNLIKELY(at->again) && (used < 0 || (used == 0 && !at->passed)))
        at->again = false;
    if (used == 0 && !at->again && !wire->leaves && !at->passes &&
        (size == DOMUS_WINDOW_MAX || at->window.need > DOMUS_WINDOW_MAX))
        used = -EMSGSIZE;
    return domi_wire_end_output_of_stage(wire, index, begun, used);
}

/* Record whether a message of the peer has begun and is not complete. Called when the message stage
 * has got bytes. */
static void record_progress_of_message(domus_wire *wire)
{
    if (wire->made.any)
        wire->progress = DOMI_MESSAGE_NONE;
    else if (wire->progress == DOMI_MESSAGE_NONE)
        wire->progress = DOMI_MESSAGE_BEGUN;
}

/* Let bytes pass by a stage that has left the pipeline (domus_wire_leave()). Returns their number;
 * -ENOMEM. */
static int pass_bytes_by_left_stage(domus_wire *wire, uint32_t index, const char *bytes,
                                    size_t size)
{
    wire->current = index;
    /* this append cannot fail, because the next window has room whenever a stage is called */
    int error = domus_wire_pass(wire, bytes, size);
    return error != 0 ? error : (int)size;
}

/* Let a byte stage decode. If the stage does not say any more that it waits for its handshake,
 * messages of the peer begin. */
static int call_decode_of_byte_stage(domus_wire *wire, uint32_t index, const char *bytes,
                                     size_t size)
{
    domi_wire_stage *at = &wire->stages[index];
    bool expected = at->expects;

    at->expects = false;
    int used = at->passes ? 0 : call_decode_of_stage(wire, index, bytes, size);
    if (expected && !at->expects)
        wire->progress = DOMI_MESSAGE_NONE;
    if (used == 0 && at->passes)
        used = pass_bytes_by_left_stage(wire, index, bytes, size);
    return used;
}

/* Give bytes to the stage at `index`, as many as it may see. Returns as call_decode_of_stage(). */
static int show_bytes_to_stage(domus_wire *wire, uint32_t index, const char *bytes, size_t size)
{
    bool is_last = index + 1 == wire->count;

    if (size > DOMUS_WINDOW_MAX)
        size = DOMUS_WINDOW_MAX;
    if (!is_last)
        return call_decode_of_byte_stage(wire, index, bytes, size);
    int error = make_page_of_new_bytes(wire, bytes, size);
    if (error != 0)
        return error;
    int used = call_decode_of_stage(wire, index, bytes, size);
    narrow_page_to_slices(wire);
    record_progress_of_message(wire);
    error = wire->made.any ? 0 : copy_bytes_of_shared_page(wire);
    return error != 0 ? error : used;
}

/* Copy up to `size` of the new bytes into the window of a stage. Returns 0; -ENOMEM. */
static int copy_new_bytes_to_window(domi_window *window, input *fresh, size_t size)
{
    if (size > DOMUS_WINDOW_MAX - window->size)
        size = DOMUS_WINDOW_MAX - window->size;
    if (size > fresh->size)
        size = fresh->size;
    int error = domi_window_append_bytes(window, fresh->bytes, size);
    if (error == 0) {
        fresh->bytes += size;
        fresh->size -= size;
    }
    return error;
}

/* Returns the number of further bytes to copy into the window of a stage that needs more. */
static uint32_t get_size_to_copy_to_window(const domi_window *window)
{
    if (window->need > window->size)
        return window->need - window->size;
    return window->size > KEEP_LEAST ? window->size : KEEP_LEAST;
}

/* Let a stage with an empty window use new bytes where they lie. Bytes of an incomplete message go
 * into the window. Returns as let_stage_use_bytes(). */
static int let_stage_use_new_bytes(domus_wire *wire, uint32_t index, input *fresh)
{
    domi_window *window = &wire->stages[index].window;

    if (fresh->size >= window->need) {
        int used = show_bytes_to_stage(wire, index, fresh->bytes, fresh->size);
        if (used > 0) {
            fresh->bytes += used;
            fresh->size -= (size_t)used;
            window->need = 0;
        }
        if (used != 0)
            return used;
        if (DOMI_UNLIKELY(wire->stages[index].again))
            return 1;
    }
    int error = copy_new_bytes_to_window(window, fresh, fresh->size);
    window->stuck = error == 0;
    return error;
}

/* Remove the `used` bytes that a stage has used from its window, and give back the bytes behind
 * them that came with this call. The end of a window is a copy of the bytes before the next new
 * one. The slices of a message show the window, so its bytes are removed when the message is
 * done. */
static void remove_used_bytes_of_window(domus_wire *wire, domi_window *window, uint32_t used,
                                        input *fresh)
{
    uint32_t rest = window->size - used;

    if (rest != 0 && rest <= (size_t)(fresh->bytes - fresh->start)) {
        fresh->bytes -= rest;
        fresh->size += rest;
        domi_window_remove_last_bytes(window, rest);
    }
    if (wire->made.any) {
        wire->taken = used;
        window->need = 0;
    } else {
        domi_window_remove_first_bytes(window, used);
    }
}

/* Call a stage that has more bytes to pass on, with its unused bytes, if any. Returns as
 * let_stage_use_bytes(). */
static int call_stage_to_pass_on_more(domus_wire *wire, uint32_t index, input *fresh)
{
    domi_wire_stage *at = &wire->stages[index];
    domi_window *window = &at->window;
    int used = show_bytes_to_stage(
        wire, index, window->size != 0 ? domi_window_first_byte(window) : "", window->size);

    if (used > 0)
        remove_used_bytes_of_window(wire, window, (uint32_t)used, fresh);
    if (used == 0)
        window->stuck = window->size != 0;
    return used == 0 && at->passed ? 1 : used;
}

/* Let the stage at `index` use some of its bytes. Returns 1 or more if it did something; 0: it
 * needs more bytes; or an error. */
static int let_stage_use_bytes(domus_wire *wire, uint32_t index, input *fresh)
{
    domi_window *window = &wire->stages[index].window;

    if (DOMI_UNLIKELY(wire->stages[index].again)) {
        int used = call_stage_to_pass_on_more(wire, index, fresh);
        if (used != 0)
            return used;
    }
    if (window->need > DOMUS_WINDOW_MAX)
        return -EMSGSIZE;
    if (window->size == 0)
        return fresh->size != 0 ? let_stage_use_new_bytes(wire, index, fresh) : 0;
    for (;;) {
        if (!window->stuck && window->size >= window->need) {
            int used =
                show_bytes_to_stage(wire, index, domi_window_first_byte(window), window->size);
            if (used > 0)
                remove_used_bytes_of_window(wire, window, (uint32_t)used, fresh);
            if (used != 0)
                return used;
            window->stuck = true;
            if (DOMI_UNLIKELY(wire->stages[index].again))
                return 1;
        }
        if (fresh->size == 0)
            return 0;
        int error = copy_new_bytes_to_window(window, fresh, get_size_to_copy_to_window(window));
        if (error != 0)
            return error;
    }
}

/* --- all stages ------------------------------------------------------------------------------- */

/* Call `end` of a stage whose peer has finished sending: once, or until it has passed on all the
 * bytes that it had. Returns 0, or its error. */
static int call_end_of_stage(domus_wire *wire, uint32_t index)
{
    domi_wire_stage *at = &wire->stages[index];
    uint32_t left = at->window.size;
    int error = left != 0 ? -EPIPE : 0;

    at->again = at->passed = false;
    if (at->stage->end != NULL && !at->passes) {
        domi_mark begun = domi_wire_begin_output_of_stage(wire, index);
        error = domi_wire_end_output_of_stage(wire, index, begun,
                                              at->stage->end(wire, at->state, left));
    }
    at->ended = !at->again || !at->passed;
    at->again = false;
    if (error >= 0 && at->ended && wire->in_body && index + 1 == wire->count)
        error = -EPIPE;
    domi_window_remove_first_bytes(&at->window, left);
    return error;
}

/* Call `end` of the next stage that was not told of the peer's end. Returns 1 if there was one; 0;
 * or an error. */
static int call_end_of_next_stage(domus_wire *wire)
{
    for (uint32_t i = wire->closed; i < wire->count; i++) {
        if (wire->stages[i].ended)
            continue;
        int error = call_end_of_stage(wire, i);
        if (error < 0)
            wire->byte_failed = i + 1 < wire->count;
        return error < 0 ? error : 1;
    }
    return 0;
}

/* End a wire on which the peer has ended by the rules of a byte stage, when all stages behind it
 * were told so: the last message was the last one of the peer. Bytes behind it mean nothing. */
static void end_wire_closed_by_protocol(domus_wire *wire, input *fresh)
{
    if (fresh->size != 0) /* the pointer to the new bytes may be NULL if there are none */
        fresh->bytes += fresh->size;
    fresh->size = 0;
    *wire->last = true;
    wire->last_decoded = false;
}

/* Let the last stage that has bytes use some of them. Returns 1 if one has used some or has ended;
 * 0; or an error. */
static int let_last_stage_use_bytes(domus_wire *wire, input *fresh)
{
    for (uint32_t i = wire->count; i-- > wire->closed;) {
        input none = {NULL, NULL, 0};
        int used = let_stage_use_bytes(wire, i, i == 0 ? fresh : &none);
        if (used < 0)
            wire->byte_failed = i + 1 < wire->count;
        if (used != 0)
            return used < 0 ? used : 1;
    }
    if (DOMI_UNLIKELY(wire->leaves)) {
        int error = domi_wire_remove_leaving_stage(wire);
        return error != 0 ? error : 1;
    }
    int result = wire->finished || wire->closed != 0 ? call_end_of_next_stage(wire) : 0;
    if (result == 0 && wire->closed != 0)
        end_wire_closed_by_protocol(wire, fresh);
    return result;
}

int domi_wire_decode_next_message(domus_wire *wire, const char **bytes, size_t *size)
{
    input fresh = {*bytes, *bytes, *size};
    uint32_t calls = CALLS_MOST;
    int result = wire->failed;

    DOMI_CHECK(!wire->made.any);
    if (result != 0)
        return result;
    wire->passed = 0;
    wire->yields = false;
    do
        result = let_last_stage_use_bytes(wire, &fresh);
    while (result > 0 && !wire->made.any && --calls != 0 && wire->passed < PASSED_MOST &&
           !wire->yields);
    if (DOMI_UNLIKELY(result > 0 && !wire->made.any))
        result = DOMI_WIRE_BUSY;
    *bytes = fresh.bytes;
    *size = fresh.size;
    for (uint32_t i = 0; result == 0 && i < wire->count; i++)
        domi_window_shrink_memory(&wire->stages[i].window);
    if (result == 0)
        return_page_to_thread(wire);
    if (result < 0)
        wire->failed = result;
    return result;
}

void domi_wire_record_end_of_peer(domus_wire *wire)
{
    wire->finished = true;
}

int domi_wire_copy_slices_of_message(domus_wire *wire)
{
    return wire->page != NULL && !domi_page_is_unshared(wire->page)
               ? domi_page_own_borrowed_bytes(wire->page)
               : 0;
}

bool domi_wire_hold_memory_of_slices(domus_wire *wire, domi_lender lender)
{
    domi_window *window = &wire->stages[wire->count - 1].window;
    const char *bytes = wire->page->face.data;

    DOMI_CHECK(wire->page->borrowed);
    if (window->memory == NULL || bytes < window->memory ||
        bytes >= window->memory + window->room) {
        domi_page_keep_bytes_of_lender(wire->page, lender);
        return true;
    }
    domi_page_adopt_block_of_bytes(wire->page, domi_window_give_memory_away(window));
    return false;
}

int domi_wire_prepare_next_message(domus_wire *wire)
{
    uint32_t taken = wire->taken;
    int error = copy_bytes_of_shared_page(wire);

    wire->made = (domi_made){.any = false};
    if (error != 0)
        return error;
    wire->taken = 0;
    if (taken != 0)
        domi_window_remove_first_bytes(&wire->stages[wire->count - 1].window, taken);
    return 0;
}

bool domi_wire_return_page_if_all_bytes_used(domus_wire *wire)
{
    for (uint32_t i = 0; i < wire->count; i++) {
        if (wire->stages[i].window.memory != NULL || wire->stages[i].again)
            return false;
    }
    return_page_to_thread(wire);
    return wire->failed == 0;
}

bool domi_wire_has_no_undecoded_bytes(const domus_wire *wire)
{
    for (uint32_t i = 0; i < wire->count; i++) {
        uint32_t taken = i + 1 == wire->count ? wire->taken : 0;
        if (wire->stages[i].window.size != taken || wire->stages[i].again)
            return false;
    }
    return true;
}
