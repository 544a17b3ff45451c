/* Functions of the user write and read the payloads of some types: a wrong number of announced
 * values is refused, and an error says where it has happened. */
#include "tests/cluster/pickles.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAVES_MAX 20u

/* A tree, as a type that refers to itself: each node has a number, a text, or children. */
typedef struct domt_node {
    int64_t number;
    char *text;
    struct domt_node *children;
    uint32_t count;
} domt_node;

static void release_tree_node(void *payload)
{
    domt_node *node = payload;

    for (uint32_t i = 0; i < node->count; i++)
        release_tree_node(&node->children[i]);
    free(node->children);
    free(node->text);
}

static int write_tree_node(domus_pickle_writer *writer, const void *payload)
{
    const domt_node *node = payload;

    if (node->text != NULL)
        return domus_pickle_put_text(writer, node->text);
    if (node->count == 0)
        return domus_pickle_put_int(writer, node->number);
    int error = domus_pickle_put_array(writer, node->count);
    for (uint32_t i = 0; i < node->count && error == 0; i++)
        error = write_tree_node(writer, &node->children[i]);
    return error;
}

static int read_tree_node(domus_pickle_reader *reader, void *payload, uint32_t version)
{
    domt_node *node = payload;
    uint32_t count = 0;

    if (domus_pickle_peek(reader) == DOMUS_PICKLE_CHARS)
        return domus_pickle_get_owned_text(reader, 100, &node->text);
    if (domus_pickle_peek(reader) != DOMUS_PICKLE_ARRAY_HEAD)
        return domus_pickle_get_int(reader, -1000, 1000, &node->number);
    int error = domus_pickle_get_array(reader, LEAVES_MAX, &count);
    if (error == 0)
        error = domus_pickle_take_memory(reader, count * sizeof *node);
    if (error != 0)
        return error;
    node->children = calloc(count, sizeof *node);
    if (node->children == NULL)
        return -ENOMEM;
    node->count = count;
    for (uint32_t i = 0; i < count && error == 0; i++)
        error = domus_pickle_blame_element(reader,
                                           read_tree_node(reader, &node->children[i], version), i);
    return domus_pickle_blame(reader, error, "children");
}

static const domus_type tree_type = {"tree", sizeof(domt_node), release_tree_node};
static const domus_pickler trees[] = {
    {.type = &tree_type, .version = 1, .write = write_tree_node, .read = read_tree_node},
    {.type = NULL}};

#define READS(list, body) domt_expect_payload_is_read_back(list, body, sizeof(body) - 1)
#define REFUSED(list, body, error, text)                                                           \
    domt_expect_payload_is_refused(list, body, sizeof(body) - 1, error, text)

DOMT_TEST(functions_of_a_pickler_write_and_read_a_tree)
{
    READS(trees, "\x07");
    READS(trees, "\xa3"
                 "abc");
    READS(trees, "\x93\x01\x92\xa1x\x91\xfe\xa0");
    READS(trees, "\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x01");
}

DOMT_TEST(error_of_a_pickler_function_names_its_path)
{
    REFUSED(trees, "\x93\x01\x92\xa1x\xcd\x03\xe9\xa0", -ERANGE,
            "tree.children[1].children[1]: 1001 is not in -1000..1000");
    REFUSED(trees, "\x92\x01\xc3", -EBADMSG, "tree.children[1]: is a boolean, not an integer");
    REFUSED(trees,
            "\x92\x01\xd9\x65"
            "12345678901234567890123456789012345678901234567890"
            "123456789012345678901234567890123456789012345678901",
            -EMSGSIZE, "tree.children[1]: has 101 bytes, more than 100");
    REFUSED(trees, "\xdc\x00\x15\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1", -EMSGSIZE,
            "tree: has 21 elements, more than 20");
    REFUSED(trees, "\x92\xa1x\xcf\xff\xff\xff\xff\xff\xff\xff\xff", -ERANGE,
            "tree.children[1]: 18446744073709551615 is not in -1000..1000");
}

/* Only 16 arrays may be nested, so that the bytes of a stranger cannot exhaust the stack of a
 * recursive function. */
DOMT_TEST(depth_of_arrays_is_bounded)
{
    static const char path[] = "tree.children[0].children[0].children[0].children[0].children[0]"
                               ".children[0].children[0].children[0].children[0].children[0]"
                               ".children[0].children[0].children[0].children[0].children[0]"
                               ".children[0]: has arrays in arrays deeper than 16";
    domt_node nodes[18];
    domus_picklers *picklers = domt_make_picklers(trees);
    domus_appender appender = {0};
    char error[DOMUS_PICKLE_ERROR_MAX];

    REFUSED(trees, "\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x01",
            -EMSGSIZE, path);
    memset(nodes, 0, sizeof nodes);
    for (int i = 0; i < 17; i++) {
        nodes[i].children = &nodes[i + 1];
        nodes[i].count = 1;
    }
    ck_assert_int_eq(
        domus_pickle(picklers, NULL, &tree_type, &nodes[0], &appender, error, sizeof error),
        -EINVAL);
    ck_assert_str_eq(error, "tree: has arrays in arrays deeper than 16");
    ck_assert_int_eq(
        domus_pickle(picklers, NULL, &tree_type, &nodes[1], &appender, error, sizeof error), 0);
    domus_append_drop(&appender);
    domus_picklers_free(picklers);
}

static int reject_in_deep_places(domus_pickle_reader *reader, void *payload, uint32_t version)
{
    char name[101];
    int error = domus_pickle_reject(reader, -EDOM, "is deep");

    memset(name, 'n', sizeof name);
    name[100] = '\0';
    for (uint32_t i = 0; i < 5; i++)
        error = domus_pickle_blame(reader, domus_pickle_blame_element(reader, error, i), name);
    return error;
}

static int write_nil(domus_pickle_writer *writer, const void *payload)
{
    return domus_pickle_put_nil(writer);
}

/* In the text of an error, dots replace the outer part of a path that is too long. */
DOMT_TEST(path_in_an_error_that_is_too_long_is_cut)
{
    static const domus_type deep_type = {"deep", 0, NULL};
    const domus_pickler list[] = {
        {.type = &deep_type, .version = 1, .write = write_nil, .read = reject_in_deep_places},
        {.type = NULL}};
    domus_picklers *picklers = domt_make_picklers(list);
    domus_slice bytes = domt_make_pickled_message("deep", 1, "\xc0", 1);
    char error[400] = "";
    char few[8];

    ck_assert_int_eq(domt_unpickle_message(picklers, NULL, bytes, NULL, error, sizeof error),
                     -EDOM);
    ck_assert(strncmp(error, "deep...[2].nnn", 14) == 0);
    ck_assert_ptr_nonnull(strstr(error, "n[1].nn"));
    ck_assert_ptr_nonnull(strstr(error, "n[0]: is deep"));
    ck_assert_int_eq(domt_unpickle_message(picklers, NULL, bytes, NULL, few, sizeof few), -EDOM);
    ck_assert_str_eq(few, "deep...");
    domus_slice_free(bytes);
    domus_picklers_free(picklers);
}

/* --- each function -----------------------------------------------------------------------------
 */

typedef struct domt_every {
    bool flag;
    int64_t number;
    uint64_t positive;
    double reals[2];
    char text[6];
    char *owned;
    domus_slice slice;
    domus_address address;
    domus_endpoint endpoint;
    domt_part part;
} domt_every;

static void release_struct_of_every_kind(void *payload)
{
    domt_every *every = payload;

    free(every->owned);
    domus_slice_free(every->slice);
    domus_pickle_release(&domt_part_table, &every->part);
}

static int write_struct_of_every_kind(domus_pickle_writer *writer, const void *payload)
{
    const domt_every *every = payload;

    (void)domus_pickle_put_map(writer, 3);
    (void)domus_pickle_put_uint(writer, 1);
    (void)domus_pickle_put_array(writer, 5);
    (void)domus_pickle_put_nil(writer);
    (void)domus_pickle_put_bool(writer, every->flag);
    (void)domus_pickle_put_int(writer, every->number);
    (void)domus_pickle_put_uint(writer, every->positive);
    (void)domus_pickle_put_array(writer, 0);
    (void)domus_pickle_put_text(writer, "two");
    (void)domus_pickle_put_array(writer, 2);
    (void)domus_pickle_put_float(writer, (float)every->reals[0]);
    (void)domus_pickle_put_double(writer, every->reals[1]);
    (void)domus_pickle_put_uint(writer, 3);
    (void)domus_pickle_put_array(writer, 7);
    (void)domus_pickle_put_chars(writer, every->text, strlen(every->text));
    (void)domus_pickle_put_text(writer, every->owned);
    (void)domus_pickle_put_bytes(writer, domus_slice_data(every->slice), every->slice.size);
    (void)domus_pickle_put_address(writer, every->address);
    (void)domus_pickle_put_endpoint(writer, &every->endpoint);
    (void)domus_pickle_put_struct(writer, &domt_part_table, &every->part);
    return domus_pickle_put_map(writer, 0);
}

static int read_struct_of_every_kind(domus_pickle_reader *reader, void *payload, uint32_t version)
{
    domt_every *every = payload;
    uint64_t key = 0;
    uint32_t count = 0;
    char name[4];

    ck_assert_uint_eq(version, 1);
    (void)domus_pickle_get_map(reader, 3, &count);
    (void)domus_pickle_get_uint(reader, 1, 1, &key);
    (void)domus_pickle_get_array(reader, 5, &count);
    (void)domus_pickle_skip(reader);
    (void)domus_pickle_get_bool(reader, &every->flag);
    (void)domus_pickle_get_int(reader, INT64_MIN, INT64_MAX, &every->number);
    (void)domus_pickle_get_uint(reader, 0, UINT64_MAX, &every->positive);
    (void)domus_pickle_get_array(reader, 0, &count);
    (void)domus_pickle_get_text(reader, name, sizeof name);
    (void)domus_pickle_get_array(reader, 2, &count);
    (void)domus_pickle_get_double(reader, &every->reals[0]);
    (void)domus_pickle_get_double(reader, &every->reals[1]);
    (void)domus_pickle_get_uint(reader, 3, 3, &key);
    (void)domus_pickle_get_array(reader, 7, &count);
    (void)domus_pickle_get_text(reader, every->text, sizeof every->text);
    (void)domus_pickle_get_owned_text(reader, 10, &every->owned);
    (void)domus_pickle_get_slice(reader, 10, &every->slice);
    (void)domus_pickle_get_address(reader, &every->address);
    (void)domus_pickle_get_endpoint(reader, &every->endpoint);
    (void)domus_pickle_get_struct(reader, &domt_part_table, &every->part);
    return domus_pickle_skip(reader);
}

static const domus_type every_type = {"every", sizeof(domt_every), release_struct_of_every_kind};
static const domus_pickler everys[] = {{.type = &every_type,
                                        .version = 1,
                                        .write = write_struct_of_every_kind,
                                        .read = read_struct_of_every_kind},
                                       {.type = NULL}};

static domt_every example_of_struct_of_every_kind(void)
{
    domt_every every = {.flag = true,
                        .number = INT64_MIN,
                        .positive = UINT64_MAX,
                        .reals = {0.25, -1e300},
                        .text = "12345",
                        .owned = strdup("1234567890"),
                        .address = {NULL, 7},
                        .part = {.id = 4, .text = strdup("part")}};

    ck_assert_int_eq(domus_endpoint_parse("[::1]:80", &every.endpoint), 0);
    ck_assert_int_eq(domus_slice_copy("abc", 3, &every.slice), 0);
    return every;
}

DOMT_TEST(each_get_function_reads_what_its_put_function_wrote)
{
    domus_picklers *picklers = domt_make_picklers(everys);
    char error[DOMUS_PICKLE_ERROR_MAX] = "";
    domt_every every = example_of_struct_of_every_kind();
    domt_every read;

    domus_slice bytes = domt_pickle_payload(picklers, &domt_addresses, &every_type, &every);
    int result =
        domt_unpickle_message(picklers, &domt_addresses, bytes, &read, error, sizeof error);
    ck_assert_msg(result == 0, "%s", error);
    ck_assert(read.flag && read.number == INT64_MIN && read.positive == UINT64_MAX);
    ck_assert(read.reals[0] == 0.25 && read.reals[1] == -1e300);
    ck_assert_str_eq(read.text, "12345");
    ck_assert_str_eq(read.owned, "1234567890");
    ck_assert(domus_slice_equals(read.slice, "abc", 3));
    ck_assert(domus_address_equals(read.address, every.address));
    ck_assert(domus_endpoint_is_same(&read.endpoint, &every.endpoint));
    ck_assert_uint_eq(read.part.id, 4);
    ck_assert_str_eq(read.part.text, "part");
    release_struct_of_every_kind(&read);
    /* the message is cut at each byte, and so within each value */
    for (uint32_t cut = 11; cut < bytes.size; cut++) {
        domus_slice part = bytes;
        part.size = cut;
        ck_assert_int_eq(
            domt_unpickle_message(picklers, &domt_addresses, part, &read, error, sizeof error),
            -EBADMSG);
        char zeros[sizeof read] = {0};
        ck_assert_int_eq(memcmp(&read, zeros, sizeof read), 0);
    }
    domus_slice_free(bytes);
    release_struct_of_every_kind(&every);
    domus_picklers_free(picklers);
}

DOMT_SUITE(20)
