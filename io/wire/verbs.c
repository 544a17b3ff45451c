/* The functions that stages call (domus/stage.h): make a message, pass bytes on, append bytes. */
#include "base/check.h"
#include "io/wire/state.h"
#include "io/wire/wire.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define TEXT_MAX 4096 /* most bytes of a text that is appended at once */

/* --- messages --------------------------------------------------------------------------------- */

static bool make_message_of_stage(domus_wire *wire, domus_stage_kind kind, const domus_type *type,
                                  uint64_t id, int error)
{
    if (wire->made.any || wire->current + 1 != wire->count ||
        wire->in_body != (kind == DOMUS_STAGE_PIECE))
        return false;
    void *payload = type != NULL ? wire->services->make(wire, kind, type) : NULL;
    if (type != NULL && payload == NULL)
        return false;
    wire->made = (domi_made){
        .kind = kind, .any = true, .error = error, .type = type, .payload = payload, .id = id};
    return true;
}

void *domus_wire_request(domus_wire *wire, const domus_type *type, uint64_t id)
{
    return make_message_of_stage(wire, DOMUS_STAGE_REQUEST, type, id, 0) ? wire->made.payload
                                                                         : NULL;
}

void *domus_wire_notice(domus_wire *wire, const domus_type *type)
{
    return make_message_of_stage(wire, DOMUS_STAGE_NOTICE, type, DOMUS_NO_ID, 0)
               ? wire->made.payload
               : NULL;
}

void *domus_wire_answer(domus_wire *wire, const domus_type *type, uint64_t id)
{
    return make_message_of_stage(wire, DOMUS_STAGE_ANSWER, type, id, 0) ? wire->made.payload : NULL;
}

bool domus_wire_answer_error(domus_wire *wire, uint64_t id, int error)
{
    return make_message_of_stage(wire, DOMUS_STAGE_ANSWER, NULL, id, error < 0 ? error : -EINVAL);
}

/* --- bodies and streams ----------------------------------------------------------------------- */

static void release_piece(void *payload)
{
    domus_slice_free(((domus_piece *)payload)->bytes);
}

const domus_type domus_piece_type = {
    .name = "piece", .size = sizeof(domus_piece), .release = release_piece};

static uint32_t get_number_of_next_body(domus_wire *wire)
{
    if (++wire->bodies == 0) /* the number 0 is skipped, because it stands for no body */
        wire->bodies = 1;
    return wire->bodies;
}

domus_body domus_wire_body(domus_wire *wire)
{
    const domi_made *made = &wire->made;
    bool may = made->any && made->type != NULL && !wire->in_body &&
               (made->kind == DOMUS_STAGE_REQUEST || made->kind == DOMUS_STAGE_ANSWER) &&
               wire->stages[wire->count - 1].stage->has_bodies;

    if (!may)
        return (domus_body){{NULL, 0}, 0};
    wire->made.has_body = wire->in_body = true;
    return (domus_body){wire->self, get_number_of_next_body(wire)};
}

domus_body domus_wire_rest(domus_wire *wire)
{
    domus_body body = domus_wire_body(wire);

    wire->made.is_rest = body.number != 0;
    return body;
}

uint32_t domi_wire_open_body_of_rest(domus_wire *wire)
{
    if (wire->in_body || !wire->stages[wire->count - 1].stage->has_bodies)
        return 0;
    wire->in_body = true;
    return get_number_of_next_body(wire);
}

bool domus_wire_piece(domus_wire *wire, const char *from, size_t size, bool is_last)
{
    if (!make_message_of_stage(wire, DOMUS_STAGE_PIECE, &domus_piece_type, DOMUS_NO_ID, 0))
        return false;
    domus_piece *piece = wire->made.payload;
    *piece = (domus_piece){domus_wire_slice(wire, from, size), is_last};
    wire->made.last = is_last;
    wire->in_body = !is_last;
    return true;
}

void *domus_wire_trailer(domus_wire *wire, const domus_type *type)
{
    if (!make_message_of_stage(wire, DOMUS_STAGE_PIECE, type, DOMUS_NO_ID, 0))
        return NULL;
    wire->made.last = true;
    wire->in_body = false;
    return wire->made.payload;
}

void domus_wire_last(domus_wire *wire)
{
    /* the stages behind this byte stage are told of the end first */
    if (wire->current + 1 < wire->count) {
        wire->closed = wire->current + 1;
        return;
    }
    *wire->last = true;
    wire->last_decoded = wire->shown != NULL;
}

bool domus_wire_is_closing(const domus_wire *wire)
{
    return wire->services->is_closing != NULL && wire->services->is_closing(wire);
}

/* Record that the peer has to send the rest of this part (head or body) of a message, which may be
 * another part than before. */
static void record_that_peer_owes_rest_of_part(domus_wire *wire, domi_progress part)
{
    bool is_of_bytes = wire->current + 1 != wire->count;

    wire->stages[wire->current].expects = is_of_bytes;
    if (wire->progress == part || (is_of_bytes && part != DOMI_MESSAGE_IN_HEAD))
        return;
    wire->progress = (uint8_t)part;
    wire->progress_new = true;
}

void domus_wire_expect_head(domus_wire *wire)
{
    record_that_peer_owes_rest_of_part(wire, DOMI_MESSAGE_IN_HEAD);
}

void domus_wire_expect_body(domus_wire *wire)
{
    record_that_peer_owes_rest_of_part(wire, DOMI_MESSAGE_IN_BODY);
}

uint64_t *domus_wire_stream(domus_wire *wire)
{
    return wire->stream;
}

domus_slice domus_wire_slice(domus_wire *wire, const char *from, size_t size)
{
    if (size == 0)
        return (domus_slice){NULL, 0, 0};
    DOMI_CHECK(wire->shown != NULL && from >= wire->shown && size <= wire->shown_size &&
               (size_t)(from - wire->shown) <= wire->shown_size - size);
    uint32_t offset = (uint32_t)(from - wire->shown);
    if (wire->sliced < offset + (uint32_t)size)
        wire->sliced = offset + (uint32_t)size;
    domi_page_add_owner(wire->page);
    return (domus_slice){&wire->page->face, offset, (uint32_t)size};
}

char *domus_wire_edit(domus_wire *wire, const char *from, size_t size)
{
    DOMI_CHECK(wire->shown != NULL && from >= wire->shown && size <= wire->shown_size &&
               (size_t)(from - wire->shown) <= wire->shown_size - size);
    /* this cast is right, because received buffers and windows are memory of this side, which only
     * stages see as const */
    return (char *)(uintptr_t)from;
}

const char *domus_wire_server(const domus_wire *wire, uint16_t *ret_port)
{
    *ret_port = wire->server_port;
    return wire->server;
}

int domus_wire_peer(const domus_wire *wire, domus_endpoint *ret_peer)
{
    return wire->services->peer != NULL ? wire->services->peer(wire, ret_peer) : -ENOTCONN;
}

void domus_wire_agree(domus_wire *wire, const void *name, size_t size)
{
    domi_wire_stage *next = &wire->stages[wire->current + 1];

    DOMI_CHECK(size <= UINT8_MAX && wire->current + 1 < wire->count);
    wire->agreed = size != 0 ? name : "";
    wire->agreed_size = (uint8_t)size;
    wire->agreer = (uint8_t)wire->current;
    if (next->stage->lend != NULL)
        next->again = next->expects = true;
}

const char *domus_wire_agreed(const domus_wire *wire, size_t *ret_size)
{
    *ret_size = wire->agreed != NULL ? wire->agreed_size : 0;
    return wire->agreed;
}

/* --- faults ----------------------------------------------------------------------------------- */

void domus_wire_tell_failure(domus_wire *wire, const char *what, int error)
{
    if (wire->services->tell_failure != NULL)
        wire->services->tell_failure(wire, what, error);
}

/* --- time ------------------------------------------------------------------------------------- */

uint64_t domus_wire_now_ns(const domus_wire *wire)
{
    return wire->services->now_ns != NULL ? wire->services->now_ns(wire) : 0;
}

void domus_wire_wake(domus_wire *wire, uint64_t delay_ns)
{
    wire->services->wake(wire, delay_ns);
}

void domus_wire_hold(domus_wire *wire, bool holds)
{
    wire->holds = holds;
}

/* --- bytes in -------------------------------------------------------------------------------- */

int domus_wire_pass(domus_wire *wire, const void *data, size_t size)
{
    if (size > domus_wire_pass_room(wire))
        return -EMSGSIZE;
    if (size == 0)
        return 0;
    wire->passed += (uint32_t)size;
    wire->stages[wire->current].passed = true;
    return domi_window_append_bytes(&wire->stages[wire->current + 1].window, data, size);
}

char *domus_wire_pass_space(domus_wire *wire, size_t size)
{
    if (size == 0 || size > domus_wire_pass_room(wire))
        return NULL;
    return domi_window_make_space(&wire->stages[wire->current + 1].window, size);
}

void domus_wire_passed(domus_wire *wire, size_t size)
{
    if (size == 0)
        return;
    DOMI_CHECK(size <= domus_wire_pass_room(wire));
    wire->passed += (uint32_t)size;
    wire->stages[wire->current].passed = true;
    domi_window_add_written_bytes(&wire->stages[wire->current + 1].window, size);
}

void domus_wire_again(domus_wire *wire)
{
    wire->stages[wire->current].again = wire->current + 1 != wire->count;
}

void domus_wire_yield(domus_wire *wire)
{
    wire->yields = true;
}

size_t domus_wire_pass_room(const domus_wire *wire)
{
    if (wire->current + 1 == wire->count)
        return 0;
    return DOMI_WINDOW_ROOM - wire->stages[wire->current + 1].window.size;
}

void domus_wire_need(domus_wire *wire, size_t size)
{
    wire->stages[wire->current].window.need =
        size > DOMUS_WINDOW_MAX ? DOMUS_WINDOW_MAX + 1 : (uint32_t)size;
}

/* --- bytes out ------------------------------------------------------------------------------- */

int domus_wire_append(domus_wire *wire, const void *data, size_t size)
{
    return domi_out_append_bytes(wire->out, data, size);
}

int domus_wire_append_slice(domus_wire *wire, domus_slice slice)
{
    return domi_out_append_slice(wire->out, slice);
}

char *domus_wire_room(domus_wire *wire, size_t size)
{
    return domi_out_make_room(wire->out, size);
}

void domus_wire_written(domus_wire *wire, size_t size)
{
    DOMI_CHECK(size <= wire->out->room - wire->out->size);
    wire->out->size += (uint32_t)size;
}

int domus_wire_append_text(domus_wire *wire, const char *format, ...)
{
    va_list list;
    char *end = domi_out_make_room(wire->out, TEXT_MAX + 1);

    if (end == NULL)
        return -ENOMEM;
    va_start(list, format);
    int size = vsnprintf(end, TEXT_MAX + 1, format, list);
    va_end(list);
    if (size < 0)
        return -EINVAL;
    if (size > TEXT_MAX)
        return -EMSGSIZE;
    wire->out->size += (uint32_t)size;
    return 0;
}
