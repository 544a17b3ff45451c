/* Makes and frees the wire of a channel, and encodes what goes out. */
#include "io/wire/wire.h"

#include "base/check.h"
#include "base/memory.h"

#include <errno.h>

#define STATE_MAX 65536u /* bytes of the state of a stage */

static int check_stage(const domus_pipeline_stage *entry, bool is_last)
{
    const domus_stage *stage = entry->stage;
    bool is_right = is_last ? stage->encode != NULL && stage->wrap == NULL
                            : stage->wrap != NULL && stage->encode == NULL;

    if (stage->name == NULL || stage->decode == NULL || !is_right || stage->state_size > STATE_MAX)
        return -EINVAL;
    return stage->check != NULL ? stage->check(entry->options) : 0;
}

static uint32_t count_stages(const domus_pipeline *pipeline)
{
    uint32_t count = 0;

    while (count <= DOMUS_STAGES_MAX && pipeline->stages[count].stage != NULL)
        count++;
    return count;
}

int domi_pipeline_check(const domus_pipeline *pipeline)
{
    if (pipeline->stages == NULL)
        return -EINVAL;
    uint32_t count = count_stages(pipeline);
    if (count == 0 || count > DOMUS_STAGES_MAX)
        return -EINVAL;
    for (uint32_t i = 0; i < count; i++) {
        int error = check_stage(&pipeline->stages[i], i + 1 == count);
        if (error != 0)
            return error;
    }
    return 0;
}

domus_wire *domi_wire_new(const domus_pipeline *pipeline)
{
    uint32_t count = count_stages(pipeline);
    size_t states = 0;

    for (uint32_t i = 0; i < count; i++)
        states += (pipeline->stages[i].stage->state_size + 15u) & ~(size_t)15;
    size_t head = (sizeof(domus_wire) + count * sizeof(domi_wire_stage) + 15) & ~(size_t)15;
    domus_wire *wire = domi_memory_new(head + states);
    if (wire == NULL)
        return NULL;
    char *state = (char *)wire + head;
    wire->pipeline = pipeline;
    wire->count = count;
    for (uint32_t i = 0; i < count; i++) {
        wire->stages[i].stage = pipeline->stages[i].stage;
        wire->stages[i].state = wire->stages[i].stage->state_size != 0 ? state : NULL;
        state += (wire->stages[i].stage->state_size + 15u) & ~(size_t)15;
    }
    return wire;
}

void domi_wire_free(domus_wire *wire)
{
    if (wire == NULL)
        return;
    for (uint32_t i = 0; i < wire->count; i++) {
        domi_wire_stage *at = &wire->stages[i];
        if (at->opened && at->stage->close != NULL)
            at->stage->close(wire, at->state);
        domi_memory_free(at->window.memory);
    }
    if (wire->page != NULL)
        domi_page_drop(wire->page);
    domi_memory_free(wire);
}

/* --- out ----------------------------------------------------------------------------------------
 */

/* A place in `out`, to which a failed stage takes it back. */
typedef struct mark {
    domi_out *out;
    uint32_t size, pieces;
} mark;

/* Let the bytes of a stage be wrapped by those before it: they are written to `aside`, and `out`
 * has what the peer gets. */
static mark begin_out(domus_wire *wire, uint32_t index)
{
    mark at = {wire->out, wire->out->size, wire->out->pieces_count};

    if (index != 0)
        wire->out = wire->aside;
    return at;
}

/* Wrap the pieces of `from` by the stage `index`, one after the other, into wire->out. */
static int wrap_all(domus_wire *wire, uint32_t index, const domi_out *from)
{
    domi_wire_stage *at = &wire->stages[index];
    uint32_t done = 0;

    for (uint32_t i = 0; i <= from->pieces_count; i++) {
        uint32_t to = i < from->pieces_count ? from->pieces[i].at : from->size;
        int error = to > done ? at->stage->wrap(wire, at->state, from->bytes + done, to - done) : 0;
        if (error == 0 && i < from->pieces_count)
            error = at->stage->wrap(wire, at->state, domus_slice_data(from->pieces[i].slice),
                                    from->pieces[i].slice.size);
        if (error < 0)
            return error;
        done = to;
    }
    return 0;
}

static int wrap_by(domus_wire *wire, domi_out *from, domi_out *to, uint32_t index)
{
    wire->out = to;
    wire->current = index;
    int error = wrap_all(wire, index, from);
    domi_out_clear(from, false);
    return error;
}

/* End what begin_out() began for the stage `index`, which returned `result`. */
static int end_out(domus_wire *wire, uint32_t index, mark at, int result)
{
    domi_out between = {0};

    if (index != 0) {
        if (result >= 0 && index == 1)
            result = wrap_by(wire, wire->aside, at.out, 0);
        for (uint32_t i = index; result >= 0 && index > 1 && i > 0; i -= 1) {
            /* the bytes go to and fro between two blocks, and the last stage writes to `out` */
            domi_out *from = (index - i) % 2 == 0 ? wire->aside : &between;
            domi_out *to = i == 1 ? at.out : from == wire->aside ? &between : wire->aside;
            result = wrap_by(wire, from, to, i - 1);
        }
        domi_out_clear(wire->aside, false);
        domi_out_clear(&between, true);
        wire->out = at.out;
    }
    if (result < 0)
        domi_out_cut(at.out, at.size, at.pieces);
    return result < 0 ? result : 0;
}

int domi_wire_open(domus_wire *wire)
{
    for (uint32_t i = 0; i < wire->count; i++) {
        domi_wire_stage *at = &wire->stages[i];
        wire->current = i;
        if (at->stage->open != NULL) {
            mark begun = begin_out(wire, i);
            int error =
                end_out(wire, i, begun,
                        at->stage->open(wire, at->state, wire->pipeline->stages[i].options));
            if (error < 0)
                return error;
        }
        at->opened = true;
    }
    return 0;
}

int domi_wire_encode(domus_wire *wire, uint64_t id, const domus_type *type, const void *payload)
{
    uint32_t last = wire->count - 1;
    domi_wire_stage *at = &wire->stages[last];
    mark begun = begin_out(wire, last);

    wire->current = last;
    return end_out(wire, last, begun, at->stage->encode(wire, at->state, id, type, payload));
}

int domi_wire_fail(domus_wire *wire, uint64_t id, const domus_type *request, int error)
{
    uint32_t last = wire->count - 1;
    domi_wire_stage *at = &wire->stages[last];

    if (at->stage->fail == NULL)
        return error;
    mark begun = begin_out(wire, last);
    wire->current = last;
    return end_out(wire, last, begun, at->stage->fail(wire, at->state, id, request, error));
}

/* --- in -----------------------------------------------------------------------------------------
 */

static bool make_message(domus_wire *wire, domus_stage_kind kind, const domus_type *type,
                         uint64_t id, int error)
{
    if (wire->made.any || wire->current + 1 != wire->count)
        return false;
    void *payload = type != NULL ? wire->make(wire, kind, type) : NULL;
    if (type != NULL && payload == NULL)
        return false;
    wire->made = (domi_made){
        .kind = kind, .any = true, .error = error, .type = type, .payload = payload, .id = id};
    return true;
}

void *domus_wire_request(domus_wire *wire, const domus_type *type, uint64_t id)
{
    return make_message(wire, DOMUS_STAGE_REQUEST, type, id, 0) ? wire->made.payload : NULL;
}

void *domus_wire_notice(domus_wire *wire, const domus_type *type)
{
    return make_message(wire, DOMUS_STAGE_NOTICE, type, DOMUS_NO_ID, 0) ? wire->made.payload : NULL;
}

void *domus_wire_answer(domus_wire *wire, const domus_type *type, uint64_t id)
{
    return make_message(wire, DOMUS_STAGE_ANSWER, type, id, 0) ? wire->made.payload : NULL;
}

bool domus_wire_answer_error(domus_wire *wire, uint64_t id, int error)
{
    return make_message(wire, DOMUS_STAGE_ANSWER, NULL, id, error < 0 ? error : -EINVAL);
}

domus_slice domus_wire_slice(domus_wire *wire, const char *from, size_t size)
{
    domi_page *page = wire->page;

    if (size == 0)
        return (domus_slice){NULL, 0, 0};
    DOMI_CHECK(page != NULL && page->borrowed && from >= page->face.data &&
               from + size <= page->face.data + page->size);
    domi_page_count(page);
    return (domus_slice){&page->face, (uint32_t)(from - page->face.data), (uint32_t)size};
}

void domus_wire_need(domus_wire *wire, size_t size)
{
    wire->stages[wire->current].window.need =
        size > DOMUS_WINDOW_MAX ? DOMUS_WINDOW_MAX + 1 : (uint32_t)size;
}
