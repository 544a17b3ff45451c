/* Decoding: the way of the bytes through the windows of the stages, up to a message.
 *
 * A stage is shown the bytes where they lie. Only what it leaves over, because a message is not
 * whole yet, is copied into its window, and the new bytes behind it. The bytes that a stage passes
 * on are the window of the next one. A stage behind another one goes first, so that little waits
 * between them. */
#include "base/check.h"
#include "base/memory.h"
#include "io/wire/wire.h"

#include <errno.h>
#include <string.h>

#define ROOM_LEAST 256u

typedef struct input {
    const char *bytes;
    size_t size;
} input;

static int grow(domi_window *window, uint32_t size)
{
    uint32_t room = window->room == 0 ? ROOM_LEAST : window->room;

    while (room < size)
        room *= 2;
    char *memory = domi_memory_new(room);
    if (memory == NULL)
        return -ENOMEM;
    if (window->size != 0)
        memcpy(memory, window->memory + window->begin, window->size);
    domi_memory_free(window->memory);
    window->memory = memory;
    window->begin = 0;
    window->room = room;
    return 0;
}

/* Copy `size` bytes behind those in the window, at most DOMUS_WINDOW_MAX in all. */
static int put(domi_window *window, const char *bytes, size_t size)
{
    uint32_t all = window->size + (uint32_t)size;

    DOMI_CHECK(all <= DOMUS_WINDOW_MAX);
    if (all > window->room) {
        int error = grow(window, all);
        if (error != 0)
            return error;
    } else if (window->begin + all > window->room) {
        memmove(window->memory, window->memory + window->begin, window->size);
        window->begin = 0;
    }
    memcpy(window->memory + window->begin + window->size, bytes, size);
    window->size = all;
    window->stuck = false;
    return 0;
}

/* Take `size` bytes off the front of the window. An empty one has no memory, because most channels
 * are idle. */
static void take(domi_window *window, uint32_t size)
{
    window->begin += size;
    window->size -= size;
    window->need = 0;
    if (window->size != 0)
        return;
    domi_memory_free(window->memory);
    window->memory = NULL;
    window->begin = window->room = 0;
}

int domus_wire_pass(domus_wire *wire, const void *data, size_t size)
{
    if (wire->current + 1 == wire->count || size > domus_wire_pass_room(wire))
        return -EMSGSIZE;
    return size != 0 ? put(&wire->stages[wire->current + 1].window, data, size) : 0;
}

size_t domus_wire_pass_room(const domus_wire *wire)
{
    if (wire->current + 1 == wire->count)
        return 0;
    return DOMUS_WINDOW_MAX - wire->stages[wire->current + 1].window.size;
}

/* Let slices of the next message show the bytes that the stage is about to see. */
static int lend_page(domus_wire *wire, const char *bytes, size_t size)
{
    if (wire->page == NULL) {
        wire->page = domi_page_borrower();
        if (wire->page == NULL)
            return -ENOMEM;
    }
    domi_page_show(wire->page, bytes, (uint32_t)size);
    return 0;
}

/* Show bytes to the stage `index`. Returns how many it used; 0: it needs more; or its error. */
static int show(domus_wire *wire, uint32_t index, const char *bytes, size_t size)
{
    domi_wire_stage *at = &wire->stages[index];

    if (size > DOMUS_WINDOW_MAX)
        size = DOMUS_WINDOW_MAX;
    wire->current = index;
    if (index + 1 == wire->count) {
        int error = lend_page(wire, bytes, size);
        if (error != 0)
            return error;
    }
    int used = at->stage->decode(wire, at->state, bytes, size);
    if (used > 0 && (size_t)used > size)
        return -EPROTO;
    if (used == 0 && wire->made.any)
        return -EPROTO; /* a message of no bytes would come again and again */
    if (used == 0 && (size == DOMUS_WINDOW_MAX || at->window.need > DOMUS_WINDOW_MAX))
        return -EMSGSIZE;
    if (used > 0 && index + 1 == wire->count)
        wire->page->size = (uint32_t)used; /* only these are copied out if the message lives on */
    return used;
}

/* Keep new bytes in the window: as many as its stage needs, or as fit. Returns 0; -ENOMEM. */
static int keep(domi_window *window, input *fresh)
{
    size_t size = DOMUS_WINDOW_MAX - window->size;

    if (window->need > window->size && window->need - window->size < size)
        size = window->need - window->size;
    if (size > fresh->size)
        size = fresh->size;
    int error = put(window, fresh->bytes, size);
    if (error == 0) {
        fresh->bytes += size;
        fresh->size -= size;
    }
    return error;
}

/* Let the stage `index` use some of its bytes. Returns how many it used; 0: it needs more; or an
 * error. */
static int advance(domus_wire *wire, uint32_t index, input *fresh)
{
    domi_window *window = &wire->stages[index].window;
    int used;

    if (window->size == 0 && fresh->size != 0 && fresh->size >= window->need) {
        used = show(wire, index, fresh->bytes, fresh->size);
        if (used > 0) {
            fresh->bytes += used;
            fresh->size -= (size_t)used;
            window->need = 0;
        }
        if (used != 0)
            return used;
    }
    for (;;) {
        if (window->size == 0 || window->stuck || window->size < window->need) {
            if (fresh->size == 0)
                return 0;
            int error = keep(window, fresh);
            if (error != 0)
                return error;
            if (window->size < window->need)
                continue;
        }
        used = show(wire, index, window->memory + window->begin, window->size);
        if (used != 0)
            break;
        window->stuck = true;
    }
    if (used > 0) {
        /* the slices of a message show the window, so it is taken off when the message is done */
        if (wire->made.any)
            wire->taken = (uint32_t)used;
        else
            take(window, (uint32_t)used);
    }
    return used;
}

/* Call `end` of a stage whose peer has finished, once. Returns 0, or its error. */
static int end_stage(domus_wire *wire, uint32_t index)
{
    domi_wire_stage *at = &wire->stages[index];

    at->ended = true;
    wire->current = index;
    if (at->stage->end != NULL)
        return at->stage->end(wire, at->state, at->window.size);
    return at->window.size != 0 ? -EPIPE : 0;
}

/* Go on with the last stage that has bytes to use. Returns 1 if one has used some or has ended; 0;
 * or an error. */
static int step(domus_wire *wire, input *fresh)
{
    input none = {NULL, 0};

    for (uint32_t i = wire->count; i-- > 0;) {
        int used = advance(wire, i, i == 0 ? fresh : &none);
        if (used != 0)
            return used < 0 ? used : 1;
    }
    for (uint32_t i = 0; wire->finished && i < wire->count; i++) {
        if (!wire->stages[i].ended) {
            int error = end_stage(wire, i);
            return error < 0 ? error : 1;
        }
    }
    return 0;
}

int domi_wire_decode(domus_wire *wire, const char **bytes, size_t *size)
{
    input fresh = {*bytes, *size};
    int result = wire->failed;

    DOMI_CHECK(!wire->made.any);
    while (result == 0) {
        result = step(wire, &fresh);
        if (result < 0 || (result > 0 && wire->made.any))
            break;
        if (result == 0)
            break;
        result = 0;
    }
    *bytes = fresh.bytes;
    *size = fresh.size;
    if (result < 0)
        wire->failed = result;
    return result;
}

void domi_wire_finish(domus_wire *wire)
{
    wire->finished = true;
}

int domi_wire_own(domus_wire *wire)
{
    return wire->page != NULL ? domi_page_own(wire->page) : 0;
}

int domi_wire_done(domus_wire *wire)
{
    domi_page *page = wire->page;
    int error = 0;

    wire->made = (domi_made){.any = false};
    if (page != NULL &&
        (!page->borrowed || atomic_load_explicit(&page->count, memory_order_relaxed) != 1)) {
        error = domi_page_own(page);
        if (error != 0)
            return error;
        domi_page_drop(page);
        wire->page = NULL;
    }
    if (wire->taken != 0) {
        take(&wire->stages[wire->count - 1].window, wire->taken);
        wire->taken = 0;
    }
    return 0;
}

bool domi_wire_is_empty(const domus_wire *wire)
{
    for (uint32_t i = 0; i < wire->count; i++) {
        if (wire->stages[i].window.size != 0)
            return false;
    }
    return true;
}
