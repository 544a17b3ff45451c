/* Implements domus/inner.h and domus/lend.h: each function calls the owner of the wire, or the
 * inner channel. A wire whose owner has no inner channels opens none, and is never full. */
#include "io/wire/inner.h"

#include "base/check.h"
#include "io/wire/wire.h"

#include <errno.h>

int domus_wire_inner_open(domus_wire *wire, void *data, domus_inner **ret_inner)
{
    uint32_t index = wire->current;

    if (wire->inners == NULL || index < wire->fronts || index + 1 == wire->count)
        return -EOPNOTSUPP;
    return wire->inners->open(wire, index - wire->fronts + 1 + wire->skipped, data, ret_inner);
}

domus_inner *domus_wire_inner_next(domus_wire *wire)
{
    return wire->inners != NULL ? wire->inners->next(wire) : NULL;
}

void domus_wire_set_carried(domus_wire *wire, uint32_t count)
{
    if (wire->inners != NULL)
        wire->inners->set_carried(wire, count);
}

bool domus_wire_is_full(const domus_wire *wire)
{
    return wire->inners != NULL && wire->inners->is_full(wire);
}

bool domus_wire_is_draining(const domus_wire *wire)
{
    return wire->inners != NULL && wire->inners->is_draining(wire);
}

bool domus_wire_is_inner(const domus_wire *wire)
{
    return wire->inners != NULL && wire->inners->is_inner(wire);
}

void domus_wire_leave(domus_wire *wire)
{
    if (wire->current < wire->fronts || wire->current + 1 == wire->count)
        return;
    if (wire->current == wire->fronts)
        wire->leaves = true;
    else
        wire->stages[wire->current].passes = true;
}

void domus_wire_lend(domus_wire *wire, uint32_t most)
{
    if (wire->inners != NULL)
        wire->inners->lend(wire, most);
}

bool domus_inner_is_broken(const domus_inner *inner)
{
    return inner->ways->is_broken(inner);
}

void domus_inner_refuse(domus_inner *inner)
{
    inner->ways->refuse(inner);
}

void domus_inner_fail(domus_inner *inner, int error)
{
    inner->ways->fail(inner, error);
}

bool domus_inner_has_ask(const domus_inner *inner)
{
    return inner->ways->has_ask(inner);
}

void domus_inner_drop(domus_inner *inner, int error)
{
    inner->ways->drop(inner, error);
}

void *domus_inner_data(const domus_inner *inner)
{
    return inner->data;
}

domus_inner_state domus_inner_look(const domus_inner *inner, int *ret_error)
{
    int error = 0;
    domus_inner_state state = inner->ways->look(inner, &error);

    if (ret_error != NULL)
        *ret_error = error;
    return state;
}

int domus_inner_pass(domus_inner *inner, const void *bytes, size_t size)
{
    return size != 0 ? inner->ways->pass(inner, bytes, size) : 0;
}

void domus_inner_end(domus_inner *inner)
{
    inner->ways->end(inner);
}

void domus_inner_rest(domus_inner *inner)
{
    inner->ways->rest(inner);
}

uint64_t domus_inner_unused(const domus_inner *inner)
{
    return inner->ways->unused(inner);
}

const char *domus_inner_bytes(const domus_inner *inner, size_t *ret_size)
{
    return inner->ways->bytes(inner, ret_size);
}

void domus_inner_took(domus_inner *inner, size_t size)
{
    inner->ways->took(inner, size);
}
