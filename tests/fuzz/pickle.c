/* Fuzzes picklers. The first byte of an input chooses the type and the limits; the rest is a
 * payload, or a whole message. A message that was read is written, read and written again, to the
 * same bytes; a payload that is refused is zeroed, and a text says why. A value that the reader
 * skips is also a value for msgpack-c. */
#include "tests/fuzz/support/fuzz.h"

#include <domus/pickle_code.h>

#include <errno.h>
#include <msgpack.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* --- a table of each sort and shape -------------------------------------------------------------
 */

typedef struct part {
    int16_t number;
    char *text;
    domus_slice bytes;
    uint8_t small[3];
} part;

typedef struct all {
    uint8_t u8;
    int64_t i64;
    float real;
    double large;
    bool flag;
    int32_t color;
    uint8_t mode;
    char name[6];
    char *owned;
    domus_slice slice;
    domus_address address;
    domus_endpoint endpoint;
    part one;
    part fixed[2];
    part *parts;
    uint16_t part_count;
    char **texts;
    uint8_t text_count;
    uint32_t list[5];
    uint64_t list_count;
    bool has_extra;
    part extra;
} all;

static const domus_pickle_word colors[] = {{"red", -1}, {"green", 3}, {"blue", 70000}, {NULL, 0}};
static const domus_pickle_word modes[] = {{"off", 0}, {"on", 255}, {NULL, 0}};

static const domus_pickle_field part_fields[] = {
    {DOMUS_PICKLE(1, part, number, INT_RANGE(-300, 300, 5))},
    {DOMUS_PICKLE(2, part, text, OWNED_TEXT(20, "preset"))},
    {DOMUS_PICKLE(3, part, bytes, SLICE(1000))},
    {DOMUS_PICKLE_ARRAY(4, part, small, UINT(9))},
};
static const domus_pickle_table part_table = DOMUS_PICKLE_TABLE(part, part_fields);
static const domus_pickle_field all_fields[] = {
    {DOMUS_PICKLE(1, all, u8, UINT(1)), .required = true},
    {DOMUS_PICKLE(2, all, i64, INT(-1))},
    {DOMUS_PICKLE(3, all, real, REAL(0.5))},
    {DOMUS_PICKLE(4, all, large, REAL(0.5))},
    {DOMUS_PICKLE(5, all, flag, BOOL(true))},
    {DOMUS_PICKLE(6, all, color, ENUM(colors, -1))},
    {DOMUS_PICKLE(7, all, mode, WORD(modes, 255))},
    {DOMUS_PICKLE(8, all, name, TEXT("name"))},
    {DOMUS_PICKLE(9, all, owned, OWNED_TEXT(100, NULL))},
    {DOMUS_PICKLE(10, all, slice, SLICE(1000))},
    {DOMUS_PICKLE(11, all, address, ADDRESS)},
    {DOMUS_PICKLE(12, all, endpoint, ENDPOINT)},
    {DOMUS_PICKLE(13, all, one, STRUCT(part_table))},
    {DOMUS_PICKLE_ARRAY(14, all, fixed, STRUCT(part_table))},
    {DOMUS_PICKLE_OWNED(15, all, parts, part_count, 50, STRUCT(part_table))},
    {DOMUS_PICKLE_OWNED(16, all, texts, text_count, 20, OWNED_TEXT(9, NULL))},
    {DOMUS_PICKLE_LIST(17, all, list, list_count, UINT_RANGE(2, 70000, 2))},
    {DOMUS_PICKLE(127, all, extra, STRUCT(part_table)), DOMUS_PICKLE_HAS(all, has_extra)},
};
static const domus_pickle_table all_table = DOMUS_PICKLE_TABLE(all, all_fields);

static void release_struct_members(void *payload)
{
    domus_pickle_release(&all_table, payload);
}

/* --- functions -----------------------------------------------------------------------------------
 */

typedef struct node {
    int64_t number;
    char *text;
    struct node *children;
    uint32_t count;
} node;

static void release_tree_node(void *payload)
{
    node *tree = payload;

    for (uint32_t i = 0; i < tree->count; i++)
        release_tree_node(&tree->children[i]);
    free(tree->children);
    free(tree->text);
}

static int write_tree_node(domus_pickle_writer *writer, const void *payload)
{
    const node *tree = payload;

    if (tree->text != NULL)
        return domus_pickle_put_text(writer, tree->text);
    if (tree->children == NULL)
        return domus_pickle_put_int(writer, tree->number);
    (void)domus_pickle_put_array(writer, tree->count);
    for (uint32_t i = 0; i < tree->count; i++)
        (void)write_tree_node(writer, &tree->children[i]);
    return 0;
}

static int read_tree_node(domus_pickle_reader *reader, void *payload, uint32_t version)
{
    node *tree = payload;
    uint32_t count = 0;

    if (domus_pickle_peek(reader) == DOMUS_PICKLE_CHARS)
        return domus_pickle_get_owned_text(reader, 20, &tree->text);
    if (domus_pickle_peek(reader) != DOMUS_PICKLE_ARRAY_HEAD)
        return domus_pickle_get_int(reader, -70000, 70000, &tree->number);
    int error = domus_pickle_get_array(reader, 100, &count);
    if (error == 0)
        error = domus_pickle_take_memory(reader, count * sizeof *tree);
    if (error != 0)
        return error;
    tree->children = calloc(count + 1u, sizeof *tree);
    if (tree->children == NULL)
        return -ENOMEM;
    tree->count = count;
    for (uint32_t i = 0; i < count && error == 0; i++)
        error = domus_pickle_blame_element(reader,
                                           read_tree_node(reader, &tree->children[i], version), i);
    return error;
}

/* A read function of a pickler that reads a value of any kind and does not keep it. */
static int write_nil_for_any_value(domus_pickle_writer *writer, const void *payload)
{
    return domus_pickle_put_nil(writer);
}

static int skip_value_of_any_kind(domus_pickle_reader *reader, void *payload, uint32_t version)
{
    return domus_pickle_skip(reader);
}

/* --- the types -----------------------------------------------------------------------------------
 */

static const domus_type all_type = {"all", sizeof(all), release_struct_members};
static const domus_type tree_type = {"tree", sizeof(node), release_tree_node};
static const domus_type any_type = {"any", 0, NULL};
static const domus_pickler picklers[] = {
    {.type = &all_type, .version = 5, .oldest = 2, .table = &all_table},
    {.type = &tree_type, .version = 1, .write = write_tree_node, .read = read_tree_node},
    {.type = &any_type,
     .version = 1,
     .write = write_nil_for_any_value,
     .read = skip_value_of_any_kind},
    {.type = NULL},
};

static int write_address_as_bytes(void *context, domus_address address, unsigned char *bytes)
{
    bytes[0] = (unsigned char)address.lease;
    return 1 + (int)(address.lease >> 8);
}

static int read_address_from_bytes(void *context, const unsigned char *bytes, size_t size,
                                   domus_address *ret_address)
{
    domt_fuzz_abort_unless(size >= 1 && size <= DOMUS_PICKLE_ADDRESS_MAX);
    ret_address->house = NULL;
    ret_address->lease = bytes[0] | (uint32_t)(size - 1) << 8;
    /* the address of nobody is never written as bytes, so a first byte of 0 is an error */
    return bytes[0] == 0 ? -EBADMSG : 0;
}

static domus_slice write_message_again(const domus_picklers *made,
                                       const domus_pickle_context *context, const domus_type *type,
                                       const void *payload)
{
    domus_appender appender = {0};
    domus_slice bytes;
    char error[DOMUS_PICKLE_ERROR_MAX];

    domt_fuzz_abort_unless(
        domus_pickle(made, context, type, payload, &appender, error, sizeof error) == 0);
    domt_fuzz_abort_unless(domus_append_end(&appender, &bytes) == 0);
    return bytes;
}

/* Read a pickled message. Returns whether it was valid; then `ret_again` gets the bytes of the same
 * message written again. */
static bool read_and_rewrite_message(const domus_picklers *made,
                                     const domus_pickle_context *context, domus_slice bytes,
                                     domus_slice *ret_again)
{
    static char zeros[sizeof(all)];
    char error[DOMUS_PICKLE_ERROR_MAX] = "";
    domus_pickled pickled;
    char *payload = NULL;

    if (domus_pickled_open(made, context, bytes, &pickled, error, sizeof error) != 0) {
        domt_fuzz_abort_unless(error[0] != '\0');
        return false;
    }
    uint32_t size = pickled.pickler->type->size;
    payload = malloc(size + 1u);
    domt_fuzz_abort_unless(payload != NULL);
    if (domus_unpickle(&pickled, context, payload, error, sizeof error) != 0) {
        domt_fuzz_abort_unless(error[0] != '\0' && memcmp(payload, zeros, size) == 0);
        free(payload);
        return false;
    }
    *ret_again = write_message_again(made, context, pickled.pickler->type, payload);
    if (pickled.pickler->type->release != NULL)
        pickled.pickler->type->release(payload);
    free(payload);
    return true;
}

static void check_msgpack_reads_one_value(const char *bytes, size_t size)
{
    msgpack_unpacked unpacked;
    size_t end = 0;

    msgpack_unpacked_init(&unpacked);
    msgpack_unpack_return result = msgpack_unpack_next(&unpacked, bytes, size, &end);
    /* NOMEM: the value nests deeper than msgpack-c reads */
    domt_fuzz_abort_unless(result == MSGPACK_UNPACK_NOMEM_ERROR ||
                           (result == MSGPACK_UNPACK_SUCCESS && end == size));
    msgpack_unpacked_destroy(&unpacked);
}

static domus_slice make_message_of_input(uint8_t choice, const uint8_t *data, size_t size)
{
    static const char *const names[] = {NULL, "all", "tree", "any"};
    domus_appender appender = {0};
    unsigned char head[11] = {0x93, 0xcf};
    domus_slice bytes;

    if (names[choice] != NULL) {
        uint64_t hash = domus_pickle_hash(names[choice]);
        for (int i = 0; i < 8; i++)
            head[2 + i] = (unsigned char)(hash >> (56 - 8 * i));
        head[10] = 5;
        (void)domus_append(&appender, head, sizeof head);
    }
    (void)domus_append(&appender, data, size);
    domt_fuzz_abort_unless(domus_append_end(&appender, &bytes) == 0);
    return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    domus_pickle_context context = {.write_address = write_address_as_bytes,
                                    .read_address = read_address_from_bytes};
    char error[DOMUS_PICKLE_ERROR_MAX];
    domus_picklers *made = NULL;
    domus_slice again;
    domus_slice third;

    if (size == 0)
        return 0;
    domt_fuzz_abort_unless(domus_picklers_new(picklers, error, sizeof error, &made) == 0);
    context.share_min = (data[0] & 4) != 0 ? 1 : 0;
    context.memory_max = (data[0] & 8) != 0 ? 300 : 0;
    domus_slice bytes = make_message_of_input(data[0] & 3, data + 1, size - 1);
    if (read_and_rewrite_message(made, &context, bytes, &again)) {
        if ((data[0] & 3) == 3)
            check_msgpack_reads_one_value((const char *)data + 1, size - 1);
        check_msgpack_reads_one_value(domus_slice_data(again), again.size);
        /* Members that were absent have defaults now, which need memory, so the small limit no
         * longer holds. */
        context.memory_max = 0;
        domt_fuzz_abort_unless(read_and_rewrite_message(made, &context, again, &third));
        domt_fuzz_abort_unless(domus_slice_equals(third, domus_slice_data(again), again.size));
        domus_slice_free(third);
        domus_slice_free(again);
    }
    domus_slice_free(bytes);
    domus_picklers_free(made);
    return 0;
}
