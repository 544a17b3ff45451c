/* Inner channels of a kit of stages: the test takes the part that pipelines and actors have in a
 * system. Each inner channel keeps its bytes in two windows that grow. All that a stage may do with
 * one is here, with the rules of io/inner/. */
#include "base/check.h"
#include "base/memory.h"
#include "io/wire/inner.h"
#include "io/wire/kit.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* Waiting bytes of an inner channel, from the offset `at` to the offset `size`. */
typedef struct bytes {
    char *data;
    size_t at;
    size_t size;
} bytes;

struct domus_kit_inner {
    domus_inner base;
    domus_stage_kit *kit;
    bytes in;
    bytes out;
    int error; /* the error with which the inner channel has ended, or was dropped */
    bool has_end;
    bool rests;
    bool is_finished;
    bool is_closed;
    bool is_dropped;
    bool has_news;
    domus_kit_inner *next; /* the inner channel of the kit that was opened after this one */
    domus_kit_inner *next_news;
};

struct domi_kit_inners {
    uint32_t most;
    uint32_t there; /* number of inner channels of the kit that have not ended */
    uint32_t carried;
    bool is_full;
    bool is_due; /* the stages of the kit have to be called, also without news of inner channels */
    domus_kit_inner *first;
    domus_kit_inner *last;
    domus_kit_inner *news;
    domus_kit_inner *last_news;
};

static domus_kit_inner *get_inner_of_base(const domus_inner *base)
{
    return (domus_kit_inner *)(void *)((char *)(uintptr_t)base - offsetof(domus_kit_inner, base));
}

static domus_stage_kit *get_kit_of_wire(const domus_wire *wire)
{
    return wire->owner;
}

/* --- bytes ------------------------------------------------------------------------------------ */

/* Append bytes to those that wait in an inner channel, in a block of exactly their size, so that a
 * sanitizer sees a read beyond them. Returns 0; -ENOMEM. */
static int append_to_waiting_bytes_of_inner(bytes *to, const void *data, size_t size)
{
    size_t before = to->size - to->at;
    char *grown = domi_memory_new_bytes(before + size);

    if (grown == NULL)
        return -ENOMEM;
    if (before != 0)
        memcpy(grown, to->data + to->at, before);
    memcpy(grown + before, data, size);
    domi_memory_free(to->data);
    *to = (bytes){grown, 0, before + size};
    return 0;
}

static void free_waiting_bytes(bytes *of)
{
    domi_memory_free(of->data);
    *of = (bytes){NULL, 0, 0};
}

static void drop_first_waiting_bytes(bytes *from, size_t size)
{
    DOMI_CHECK(size <= from->size - from->at);
    from->at += size;
    if (from->at == from->size)
        free_waiting_bytes(from);
}

/* --- news ------------------------------------------------------------------------------------- */

static void add_inner_to_list_of_news(domus_kit_inner *inner)
{
    struct domi_kit_inners *inners = inner->kit->inners;

    if (inner->has_news || inner->is_dropped)
        return;
    inner->has_news = true;
    inner->next_news = NULL;
    if (inners->news != NULL)
        inners->last_news->next_news = inner;
    else
        inners->news = inner;
    inners->last_news = inner;
}

static void remove_inner_from_list_of_news(const domus_kit_inner *inner)
{
    struct domi_kit_inners *inners = inner->kit->inners;
    domus_kit_inner **link = &inners->news;
    domus_kit_inner *before = NULL;

    if (!inner->has_news)
        return;
    for (; *link != inner; link = &before->next_news)
        before = *link;
    *link = inner->next_news;
    if (inners->last_news == inner)
        inners->last_news = before;
}

/* End the inner channel with `error`. */
static void end_inner_channel(domus_kit_inner *inner, int error)
{
    if (inner->is_closed)
        return;
    inner->is_closed = true;
    inner->error = error;
    inner->kit->inners->there--;
    free_waiting_bytes(&inner->in);
    free_waiting_bytes(&inner->out);
}

/* --- what a stage does with one --------------------------------------------------------------- */

static void drop_inner_channel(domus_inner *base, int error)
{
    domus_kit_inner *inner = get_inner_of_base(base);

    DOMI_CHECK(!inner->is_dropped);
    remove_inner_from_list_of_news(inner);
    inner->has_news = false;
    end_inner_channel(inner, error);
    inner->is_dropped = true;
}

static domus_inner_state get_state_of_inner_channel(const domus_inner *base, int *ret_error)
{
    const domus_kit_inner *inner = get_inner_of_base(base);

    if (!inner->is_closed)
        return inner->is_finished ? DOMUS_INNER_FINISHED : DOMUS_INNER_OPEN;
    *ret_error = inner->error;
    return DOMUS_INNER_CLOSED;
}

static int pass_bytes_to_inner_channel(domus_inner *base, const void *data, size_t size)
{
    domus_kit_inner *inner = get_inner_of_base(base);

    if (inner->is_closed || inner->has_end)
        return -EPIPE;
    inner->rests = false;
    return append_to_waiting_bytes_of_inner(&inner->in, data, size);
}

static void end_input_of_inner_channel(domus_inner *base)
{
    get_inner_of_base(base)->has_end = true;
}

static void mark_inner_channel_as_resting(domus_inner *base)
{
    get_inner_of_base(base)->rests = true;
}

static uint64_t count_unused_bytes_of_inner(const domus_inner *base)
{
    const bytes *in = &get_inner_of_base(base)->in;

    return in->size - in->at;
}

static const char *get_next_bytes_to_send(const domus_inner *base, size_t *ret_size)
{
    const bytes *out = &get_inner_of_base(base)->out;

    *ret_size = out->size - out->at;
    return *ret_size != 0 ? out->data + out->at : NULL;
}

static void note_bytes_taken_from_inner(domus_inner *base, size_t size)
{
    if (size != 0)
        drop_first_waiting_bytes(&get_inner_of_base(base)->out, size);
}

static void end_inner_with_refused_ask(domus_inner *inner)
{
    drop_inner_channel(inner, -ECONNREFUSED);
}

static bool has_kit_inner_ask(const domus_inner *inner)
{
    (void)inner; /* an inner channel of a kit has no ask */
    return false;
}

/* Returns false, because no message stage of a kit cuts a request. */
static bool is_kit_request_broken(const domus_inner *inner)
{
    (void)inner;
    return false;
}

/* Returns nobody's address, because a kit has no actors. */
static domus_address get_address_of_nobody(const domus_inner *inner)
{
    (void)inner;
    return (domus_address){NULL, 0};
}

static const domi_inner_ways ways = {
    .drop = drop_inner_channel,
    .refuse = end_inner_with_refused_ask,
    .fail = drop_inner_channel,
    .has_ask = has_kit_inner_ask,
    .is_broken = is_kit_request_broken,
    .address = get_address_of_nobody,
    .look = get_state_of_inner_channel,
    .pass = pass_bytes_to_inner_channel,
    .end = end_input_of_inner_channel,
    .rest = mark_inner_channel_as_resting,
    .unused = count_unused_bytes_of_inner,
    .bytes = get_next_bytes_to_send,
    .took = note_bytes_taken_from_inner,
};

/* --- what a stage asks of the kit ------------------------------------------------------------- */

static int open_inner_channel(domus_wire *wire, uint32_t skipped, void *data,
                              domus_inner **ret_inner)
{
    domus_stage_kit *kit = get_kit_of_wire(wire);
    struct domi_kit_inners *inners = kit->inners;

    (void)skipped;
    if (wire->output_ended)
        return -EPIPE;
    if (inners->there == inners->most)
        return -ENOBUFS;
    domus_kit_inner *inner = domi_memory_new(sizeof *inner);
    if (inner == NULL)
        return -ENOMEM;
    *inner = (domus_kit_inner){.base = {&ways, data}, .kit = kit};
    if (inners->last != NULL)
        inners->last->next = inner;
    else
        inners->first = inner;
    inners->last = inner;
    inners->there++;
    *ret_inner = &inner->base;
    return 0;
}

static domus_inner *take_next_inner_with_news(domus_wire *wire)
{
    struct domi_kit_inners *inners = get_kit_of_wire(wire)->inners;
    domus_kit_inner *inner = inners->news;

    if (inner == NULL)
        return NULL;
    inners->news = inner->next_news;
    inner->has_news = false;
    return &inner->base;
}

static void set_count_carried_in_kit(domus_wire *wire, uint32_t count)
{
    get_kit_of_wire(wire)->inners->carried = count;
}

static bool is_kit_output_full(const domus_wire *wire)
{
    return wire->output_ended || get_kit_of_wire(wire)->inners->is_full;
}

static bool is_kit_draining(const domus_wire *wire)
{
    return get_kit_of_wire(wire)->drains;
}

static void ignore_that_carrying_stage_left(domus_wire *wire)
{
    (void)wire;
}

/* Do nothing, because a kit has no asks to which an inner channel could be lent. */
static void ignore_most_lent_inner_channels(domus_wire *wire, uint32_t most)
{
    (void)wire, (void)most;
}

/* Returns false, because the wire of a kit is that of a connection, and not of an inner channel. */
static bool is_kit_wire_inner(const domus_wire *wire)
{
    (void)wire;
    return false;
}

static const domi_inners inners_of_kits = {
    .lend = ignore_most_lent_inner_channels,
    .is_inner = is_kit_wire_inner,
    .open = open_inner_channel,
    .next = take_next_inner_with_news,
    .set_carried = set_count_carried_in_kit,
    .is_full = is_kit_output_full,
    .is_draining = is_kit_draining,
    .note_left = ignore_that_carrying_stage_left,
};

/* --- what a test does ------------------------------------------------------------------------- */

int domus_stage_kit_allow_inner(domus_stage_kit *kit, uint32_t most)
{
    if (kit->inners == NULL)
        kit->inners = domi_memory_new(sizeof *kit->inners);
    if (kit->inners == NULL)
        return -ENOMEM;
    kit->inners->most = most;
    kit->wire->inners = &inners_of_kits;
    return 0;
}

domus_kit_inner *domus_stage_kit_inner(const domus_stage_kit *kit, uint32_t index)
{
    domus_kit_inner *inner = kit->inners != NULL ? kit->inners->first : NULL;

    while (inner != NULL && index-- != 0)
        inner = inner->next;
    return inner;
}

int domus_stage_kit_carry(domus_stage_kit *kit)
{
    if (kit->inners == NULL || (kit->inners->news == NULL && !kit->inners->is_due))
        return 0;
    kit->inners->is_due = false;
    return domi_wire_call_carry_of_stage(kit->wire);
}

void domus_stage_kit_fill(domus_stage_kit *kit, bool is_full)
{
    if (kit->inners == NULL)
        return;
    kit->inners->is_due = kit->inners->is_due || (kit->inners->is_full && !is_full);
    kit->inners->is_full = is_full;
}

uint32_t domus_stage_kit_carried(const domus_stage_kit *kit)
{
    return kit->inners != NULL ? kit->inners->carried : 0;
}

const char *domus_kit_inner_got(const domus_kit_inner *inner, size_t *ret_size)
{
    *ret_size = inner->in.size - inner->in.at;
    return *ret_size != 0 ? inner->in.data + inner->in.at : "";
}

void domus_kit_inner_use(domus_kit_inner *inner, size_t size)
{
    if (size == 0)
        return;
    drop_first_waiting_bytes(&inner->in, size);
    add_inner_to_list_of_news(inner);
}

bool domus_kit_inner_has_end(const domus_kit_inner *inner)
{
    return inner->has_end;
}

bool domus_kit_inner_rests(const domus_kit_inner *inner)
{
    return inner->rests;
}

int domus_kit_inner_send(domus_kit_inner *inner, const void *data, size_t size)
{
    bool was_empty = inner->out.size == inner->out.at;

    if (inner->is_closed || inner->is_finished)
        return -EPIPE;
    int error = size != 0 ? append_to_waiting_bytes_of_inner(&inner->out, data, size) : 0;
    if (error == 0 && size != 0 && was_empty)
        add_inner_to_list_of_news(inner);
    return error;
}

size_t domus_kit_inner_queued(const domus_kit_inner *inner)
{
    return inner->out.size - inner->out.at;
}

void domus_kit_inner_finish(domus_kit_inner *inner)
{
    if (inner->is_closed || inner->is_finished)
        return;
    inner->is_finished = true;
    add_inner_to_list_of_news(inner);
}

void domus_kit_inner_close(domus_kit_inner *inner, int error)
{
    if (inner->is_closed)
        return;
    end_inner_channel(inner, error);
    add_inner_to_list_of_news(inner);
}

bool domus_kit_inner_is_dropped(const domus_kit_inner *inner, int *ret_error)
{
    if (inner->is_dropped && ret_error != NULL)
        *ret_error = inner->error;
    return inner->is_dropped;
}

/* --- for the kit ------------------------------------------------------------------------------ */

void domi_kit_schedule_carrying_stages(const domus_stage_kit *kit)
{
    if (kit->inners != NULL)
        kit->inners->is_due = true;
}

void domi_kit_free_inner_channels(domus_stage_kit *kit)
{
    if (kit->inners == NULL)
        return;
    while (kit->inners->first != NULL) {
        domus_kit_inner *inner = kit->inners->first;
        kit->inners->first = inner->next;
        free_waiting_bytes(&inner->in);
        free_waiting_bytes(&inner->out);
        domi_memory_free(inner);
    }
    domi_memory_free(kit->inners);
}
