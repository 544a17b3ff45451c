/* The stage of tests/io/parts.h, and functions that make kits and wires with it. */
#include "tests/io/parts.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const domt_parts domt_plain = {.how = 0};
const domt_parts domt_needs = {.how = DOMT_NEEDS};

struct domt_seen domt_seen;

typedef struct state {
    const domt_parts *options;
    domus_slice kept;
} state;

void domt_release_part(void *payload)
{
    domt_part *made = payload;

    domt_seen.releases++;
    domus_slice_free(made->bytes);
    domus_slice_free(made->more);
}

const domus_type domt_part_type = {
    .name = "part", .size = sizeof(domt_part), .release = domt_release_part};

static int open_stage_of_parts(domus_wire *wire, void *state_, const void *options_)
{
    state *self = state_;

    self->options = options_;
    return 0;
}

static int decode_part(domus_wire *wire, void *state_, const char *bytes, size_t size)
{
    state *self = state_;
    int how = self->options->how;
    size_t length = size >= 2 ? (size_t)(unsigned char)bytes[0] << 8 | (unsigned char)bytes[1] : 0;

    domt_seen.decodes++;
    domt_seen.bytes = bytes;
    domt_seen.size = size;
    if ((how & DOMT_NO_ASKS) != 0)
        domus_wire_need(wire, 1);
    if ((how & DOMT_NEEDS) != 0)
        domus_wire_need(wire, self->options->need != 0 ? self->options->need : 2 + length);
    if (size < 2 + length + ((how & DOMT_PEEKS) != 0))
        return 0;
    if ((how & DOMT_LEAVES_SLICE) != 0 && self->kept.page == NULL) {
        self->kept = domus_wire_slice(wire, bytes, 2 + length);
        return (int)(2 + length);
    }
    if ((how & DOMT_KEEPS) != 0 && self->kept.page == NULL &&
        domus_slice_keep(domus_wire_slice(wire, bytes, 2), &self->kept) == 0)
        /* frees the slice that the wire held; now its bytes count only once */
        domus_slice_free(self->kept);
    domt_part *made = domus_wire_request(wire, &domt_part_type, length);
    if (made == NULL)
        return -ENOMEM;
    if ((how & DOMT_TWICE) != 0 && domus_wire_notice(wire, &domt_part_type) == NULL)
        return -EALREADY;
    made->bytes = domus_wire_slice(wire, bytes + 2, length + ((how & DOMT_PEEKS) != 0));
    made->more = self->kept;
    self->kept = (domus_slice){NULL, 0, 0};
    if ((how & DOMT_FAILS_AFTER) != 0)
        return -EBADMSG;
    return (how & DOMT_USES_NOTHING) != 0    ? 0
           : (how & DOMT_USES_TOO_MUCH) != 0 ? (int)size + 1
                                             : (int)(2 + length);
}

static int end_stage_of_parts(domus_wire *wire, void *state_, size_t left)
{
    const state *self = state_;

    domt_seen.ends++;
    domt_seen.left = left;
    if ((self->options->how & DOMT_ENDS) == 0)
        return left != 0 ? -EPIPE : 0;
    return domus_wire_notice(wire, &domt_part_type) != NULL ? 0 : -ENOMEM;
}

static int encode_part(domus_wire *wire, void *state_, uint64_t id, const domus_type *type,
                       const void *payload)
{
    const domt_part *given = payload;
    const char length[2] = {(char)(given->bytes.size >> 8), (char)given->bytes.size};

    if (type != &domt_part_type)
        return -EOPNOTSUPP;
    int error = domus_wire_append(wire, length, 2);
    return error != 0 ? error : domus_wire_append_slice(wire, given->bytes);
}

static void close_stage_of_parts(domus_wire *wire, void *state_)
{
    const state *self = state_;

    domt_seen.closes++;
    domus_slice_free(self->kept);
}

const domus_stage domt_part_stage = {
    .name = "part",
    .state_size = sizeof(state),
    .open = open_stage_of_parts,
    .decode = decode_part,
    .end = end_stage_of_parts,
    .encode = encode_part,
    .close = close_stage_of_parts,
};

domus_stage_kit *domt_make_parts_kit(const domt_parts *how)
{
    /* static: a kit uses its pipeline as long as it lives */
    static domus_pipeline_stage stages[2];
    static domus_pipeline pipeline = {.stages = stages};
    domus_stage_kit *kit = NULL;

    stages[0] = (domus_pipeline_stage){&domt_part_stage, how};
    ck_assert_int_eq(domus_stage_kit_new(&pipeline, &kit), 0);
    memset(&domt_seen, 0, sizeof domt_seen);
    return kit;
}

char *domt_copy_output_of_kit(domus_stage_kit *kit, size_t *ret_size)
{
    const char *output = domus_stage_kit_output(kit, ret_size);
    char *copy = malloc(*ret_size);

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, output, *ret_size);
    return copy;
}

void domt_expect_output_of_kit(domus_stage_kit *kit, const char *text)
{
    size_t size;
    const char *output = domus_stage_kit_output(kit, &size);

    ck_assert_msg(size == strlen(text) && memcmp(output, text, size) == 0, "%.*s, not %s",
                  (int)size, output, text);
}

size_t domt_write_part(char *to, size_t length, int first)
{
    to[0] = (char)(length >> 8);
    to[1] = (char)length;
    for (size_t i = 0; i < length; i++)
        to[2 + i] = (char)((size_t)first + i);
    return 2 + length;
}

void domt_expect_part(const domus_stage_message *message, size_t length, int first)
{
    const domt_part *made = message->payload;

    ck_assert_int_eq(message->kind, DOMUS_STAGE_REQUEST);
    ck_assert_ptr_eq(message->type, &domt_part_type);
    ck_assert_uint_eq(message->id, length);
    ck_assert_uint_eq(made->bytes.size, length);
    for (size_t i = 0; i < length; i++)
        ck_assert_int_eq(domus_slice_data(made->bytes)[i], (char)((size_t)first + i));
}

void domt_feed_bytes_to_kit(domus_stage_kit *kit, const char *bytes, size_t size)
{
    ck_assert_int_eq(domus_stage_kit_feed(kit, bytes, size), 0);
}

const size_t domt_lengths[DOMT_PARTS] = {3, 0, 300, 1, 0, 260, 5};

size_t domt_write_parts(char *to)
{
    size_t size = 0;

    for (size_t i = 0; i < DOMT_PARTS; i++)
        size += domt_write_part(to + size, domt_lengths[i], (int)i);
    return size;
}

static void *make_message_in_bare_wire(domus_wire *wire, domus_stage_kind kind,
                                       const domus_type *type)
{
    memset(wire->owner, 0, type->size);
    return wire->owner;
}

static const domi_wire_services services = {.make = make_message_in_bare_wire};

domt_bare *domt_bare_wire_new(const domt_parts *how)
{
    static domus_pipeline_stage stages[2];
    static const domus_pipeline pipeline = {.stages = stages};
    domt_bare *made = calloc(1, sizeof *made);

    stages[0] = (domus_pipeline_stage){&domt_part_stage, how};
    made->wire = domi_wire_new(&pipeline, NULL, 0);
    made->wire->out = &made->out;
    made->wire->services = &services;
    made->wire->owner = &made->part;
    ck_assert_int_eq(domi_wire_open_stages(made->wire), 0);
    memset(&domt_seen, 0, sizeof domt_seen);
    return made;
}

void domt_bare_wire_tell_message_done(domt_bare *bare)
{
    domt_release_part(&bare->part);
    bare->part = (domt_part){0};
    ck_assert_int_eq(domi_wire_prepare_next_message(bare->wire), 0);
}

void domt_bare_wire_free(domt_bare *bare)
{
    domi_wire_free(bare->wire);
    domi_out_remove_all(&bare->out, true);
    free(bare);
}
