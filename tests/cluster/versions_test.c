/* An older and a newer program understand each other: a reader skips unknown fields, and missing
 * fields get their defaults. */
#include "tests/cluster/pickles.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

static const domus_pickle_word steps[] = {{"new", 0}, {"paid", 1}, {"sent", 2}, {NULL, 0}};

typedef struct domt_line_1 {
    uint32_t price;
} domt_line_1;
typedef struct domt_order_1 {
    uint64_t id;
    uint32_t amount;
    int16_t sizes[2];
    domt_line_1 lines[4];
    uint32_t line_count;
} domt_order_1;

static const domus_pickle_field line_1_fields[] = {
    {DOMUS_PICKLE(1, domt_line_1, price, UINT(0)), .required = true}};
static const domus_pickle_table line_1_table = DOMUS_PICKLE_TABLE(domt_line_1, line_1_fields);
static const domus_pickle_field order_1_fields[] = {
    {DOMUS_PICKLE(1, domt_order_1, id, UINT(0)), .required = true},
    {DOMUS_PICKLE(3, domt_order_1, amount, UINT(10))},
    {DOMUS_PICKLE_ARRAY(5, domt_order_1, sizes, INT(7))},
    {DOMUS_PICKLE_LIST(6, domt_order_1, lines, line_count, STRUCT(line_1_table))},
};
static const domus_pickle_table order_1_table = DOMUS_PICKLE_TABLE(domt_order_1, order_1_fields);

/* The second version of the type has wider numbers, more fields and longer arrays. */
typedef struct domt_line_2 {
    uint64_t price;
    char *note;
} domt_line_2;
typedef struct domt_order_2 {
    uint64_t id;
    uint8_t step;
    uint64_t amount;
    char *text;
    int32_t sizes[4];
    domt_line_2 *lines;
    uint32_t line_count;
    domus_slice raw;
    domt_line_2 best;
    char name[8];
    double rate;
    bool has_rate;
} domt_order_2;

static const domus_pickle_field line_2_fields[] = {
    {DOMUS_PICKLE(1, domt_line_2, price, UINT(1)), .required = true},
    {DOMUS_PICKLE(2, domt_line_2, note, OWNED_TEXT(20, "none"))},
};
static const domus_pickle_table line_2_table = DOMUS_PICKLE_TABLE(domt_line_2, line_2_fields);
static const domus_pickle_field order_2_fields[] = {
    {DOMUS_PICKLE(1, domt_order_2, id, UINT(0)), .required = true},
    {DOMUS_PICKLE(2, domt_order_2, step, WORD(steps, 1))},
    {DOMUS_PICKLE(3, domt_order_2, amount, UINT(10))},
    {DOMUS_PICKLE(4, domt_order_2, text, OWNED_TEXT(20, "text"))},
    {DOMUS_PICKLE_ARRAY(5, domt_order_2, sizes, INT(-7))},
    {DOMUS_PICKLE_OWNED(6, domt_order_2, lines, line_count, 100, STRUCT(line_2_table))},
    {DOMUS_PICKLE(7, domt_order_2, raw, SLICE(20))},
    {DOMUS_PICKLE(8, domt_order_2, best, STRUCT(line_2_table))},
    {DOMUS_PICKLE(9, domt_order_2, name, TEXT("nobody"))},
    {DOMUS_PICKLE(10, domt_order_2, rate, REAL(0.5)), DOMUS_PICKLE_HAS(domt_order_2, has_rate)},
};
static const domus_pickle_table order_2_table = DOMUS_PICKLE_TABLE(domt_order_2, order_2_fields);

static void release_order_2(void *order)
{
    domus_pickle_release(&order_2_table, order);
}

static const domus_type order_1_type = {"order", sizeof(domt_order_1), NULL};
static const domus_type order_2_type = {"order in 2", sizeof(domt_order_2), release_order_2};

static const domus_pickler program_1[] = {
    {.type = &order_1_type, .version = 1, .table = &order_1_table}, {.type = NULL}};
static const domus_pickler program_2[] = {
    {.type = &order_2_type, .name = "order", .version = 2, .table = &order_2_table},
    {.type = NULL}};
static const domus_pickler program_3[] =
    {/* this program reads messages from version 2 of the type on */
     {.type = &order_2_type, .name = "order", .version = 3, .oldest = 2, .table = &order_2_table},
     {.type = NULL}};

DOMT_TEST(newer_program_reads_an_older_message)
{
    domus_picklers *writers = domt_make_picklers(program_1);
    domus_picklers *readers = domt_make_picklers(program_2);
    char error[DOMUS_PICKLE_ERROR_MAX] = "";
    domt_order_1 order = {.id = 5, .amount = 6, .sizes = {1, -2}, .line_count = 2};
    domt_order_2 read;

    order.lines[1].price = 99;
    domus_slice bytes = domt_pickle_payload(writers, NULL, &order_1_type, &order);
    int result = domt_unpickle_message(readers, NULL, bytes, &read, error, sizeof error);
    ck_assert_msg(result == 0, "%s", error);
    ck_assert(read.id == 5 && read.amount == 6 && read.step == 1);
    ck_assert_str_eq(read.text, "text");
    ck_assert(read.sizes[0] == 1 && read.sizes[1] == -2);
    ck_assert(read.sizes[2] == -7 && read.sizes[3] == -7);
    ck_assert(read.line_count == 2 && read.lines[0].price == 0 && read.lines[1].price == 99);
    ck_assert_str_eq(read.lines[1].note, "none");
    ck_assert(read.raw.size == 0 && read.raw.page == NULL);
    /* a member that is absent needs no required fields */
    ck_assert_uint_eq(read.best.price, 1);
    ck_assert_str_eq(read.best.note, "none");
    ck_assert_str_eq(read.name, "nobody");
    ck_assert(!read.has_rate && read.rate == 0.5);
    release_order_2(&read);
    domus_slice_free(bytes);
    domus_picklers_free(writers);
    domus_picklers_free(readers);
}

static domt_order_2 example_of_order_2(domt_line_2 *lines)
{
    domt_order_2 order = {.id = 5,
                          .step = 2,
                          .amount = 6,
                          .text = (char *)(uintptr_t) "text of 2",
                          .sizes = {1, -2, 0, 0},
                          .lines = lines,
                          .line_count = 2,
                          .best = {77, NULL},
                          .has_rate = true,
                          .rate = 3};

    lines[0] = (domt_line_2){8, (char *)(uintptr_t) "a note"};
    lines[1] = (domt_line_2){9, NULL};
    ck_assert_int_eq(domus_slice_copy("raw", 3, &order.raw), 0);
    return order;
}

/* Returns the result of an older program that reads the message of a newer one, and the payload. */
static int error_of_read_by_program_1(const domt_order_2 *order, domt_order_1 *ret_order,
                                      char error[256])
{
    domus_picklers *writers = domt_make_picklers(program_2);
    domus_picklers *readers = domt_make_picklers(program_1);
    domus_slice bytes = domt_pickle_payload(writers, NULL, &order_2_type, order);
    domus_pickled pickled;
    int result = domus_pickled_open(readers, NULL, bytes, &pickled, error, 256);

    if (result == 0) {
        ck_assert_uint_eq(pickled.version, 2);
        ck_assert_ptr_eq(pickled.pickler, &program_1[0]);
        result = domus_unpickle(&pickled, NULL, ret_order, error, 256);
    }
    domus_slice_free(bytes);
    domus_picklers_free(writers);
    domus_picklers_free(readers);
    return result;
}

DOMT_TEST(older_program_reads_a_newer_message)
{
    domt_line_2 lines[2];
    domt_order_2 order = example_of_order_2(lines);
    char error[256] = "";
    domt_order_1 read;

    int result = error_of_read_by_program_1(&order, &read, error);
    /* the newer message has 4 sizes, and the older type has room for 2 */
    ck_assert_int_eq(result, -EMSGSIZE);
    ck_assert_str_eq(error, "order.sizes: has 4 elements, more than 2");
    domus_slice_free(order.raw);
}

/* The older program reads a newer message that lacks only the array which would not fit. */
DOMT_TEST(fields_that_are_not_known_are_passed_over)
{
    static const char body[] =
        "\x8a\x01\x05\x02\xa4sent\x03\x06\x04\xa4text\x06\x92\x82\x01\x08\x02\xa6"
        "a note\x82\x01"
        "\x09\x02\xc0\x07\xc4\x03raw\x08\x82\x01\x4d\x02\xc0\x09\xa0\x0a\xcb\x40\x08\0\0\0\0\0\0"
        "\x7f\x92\x81\xa1k\xd4\x01\x02\x93\xc3\xca\0\0\0\0\xdc\0\0";
    domus_picklers *readers = domt_make_picklers(program_1);
    domus_slice bytes = domt_make_pickled_message("order", 9, body, sizeof body - 1);
    char error[256] = "";
    domt_order_1 read;

    int result = domt_unpickle_message(readers, NULL, bytes, &read, error, sizeof error);
    ck_assert_msg(result == 0, "%s", error);
    ck_assert(read.id == 5 && read.amount == 6 && read.sizes[0] == 7 && read.sizes[1] == 7);
    ck_assert(read.line_count == 2 && read.lines[0].price == 8 && read.lines[1].price == 9);
    domus_slice_free(bytes);
    domus_picklers_free(readers);
}

DOMT_TEST(fields_in_any_order_and_keys_of_any_kind_are_read)
{
    static const char body[] = "\x88\x06\x90\xa1x\x01\x92\x01\x02\x80\x05\x91\x08\xff\xc0"
                               "\xcd\x01\x01\xa1y\x03\x07\x01\x02";
    domus_picklers *readers = domt_make_picklers(program_1);
    domus_slice bytes = domt_make_pickled_message("order", 1, body, sizeof body - 1);
    char error[256] = "";
    domt_order_1 read;

    int result = domt_unpickle_message(readers, NULL, bytes, &read, error, sizeof error);
    ck_assert_msg(result == 0, "%s", error);
    ck_assert(read.id == 2 && read.amount == 7 && read.sizes[0] == 8 && read.sizes[1] == 7);
    domus_slice_free(bytes);
    domus_picklers_free(readers);
}

#define REFUSED(list, body, error, text)                                                           \
    domt_expect_payload_is_refused(list, body, sizeof(body) - 1, error, text)

DOMT_TEST(field_that_is_required_and_missing_is_refused)
{
    REFUSED(program_1, "\x80", -EBADMSG, "order.id: is missing");
    REFUSED(program_1, "\x82\x01\x05\x06\x92\x81\x01\x05\x80", -EBADMSG,
            "order.lines[1].price: is missing");
}

DOMT_TEST(nil_is_an_absent_field_only_where_it_may_be_absent)
{
    static const char body[] = "\x82\x01\x05\x0a\xc0";
    domus_picklers *readers = domt_make_picklers(program_2);
    domus_slice bytes = domt_make_pickled_message("order", 2, body, sizeof body - 1);
    char error[256];
    domt_order_2 read;

    ck_assert_int_eq(domt_unpickle_message(readers, NULL, bytes, &read, error, sizeof error), 0);
    ck_assert(!read.has_rate && read.rate == 0.5);
    release_order_2(&read);
    REFUSED(program_2, "\x82\x01\x05\x03\xc0", -EBADMSG, "order.amount: is nil, not an integer");
    domus_slice_free(bytes);
    domus_picklers_free(readers);
}

DOMT_TEST(message_of_a_too_old_version_is_refused)
{
    domus_picklers *readers = domt_make_picklers(program_3);
    static const char body[] = "\x81\x01\x05";
    char error[256] = "";
    domus_pickled pickled;

    domus_slice bytes = domt_make_pickled_message("order", 2, body, sizeof body - 1);
    ck_assert_int_eq(domus_pickled_open(readers, NULL, bytes, &pickled, error, sizeof error), 0);
    domus_slice_free(bytes);
    bytes = domt_make_pickled_message("order", 1, body, sizeof body - 1);
    ck_assert_int_eq(domus_pickled_open(readers, NULL, bytes, &pickled, error, sizeof error),
                     -EPROTONOSUPPORT);
    ck_assert_str_eq(error, "order: version 1 is older than 2, the oldest that is read");
    domus_slice_free(bytes);
    domus_picklers_free(readers);
}

/* --- heads --------------------------------------------------------------------------------------
 */

static void check_head_is_refused(const char *bytes, size_t size, int error, const char *text)
{
    domus_picklers *readers = domt_make_picklers(program_1);
    char told[256] = "";
    domus_slice slice;
    domus_pickled pickled;

    ck_assert_int_eq(domus_slice_copy(bytes, size, &slice), 0);
    int result = domus_pickled_open(readers, NULL, slice, &pickled, told, sizeof told);
    ck_assert_msg(result == error && strcmp(told, text) == 0, "%d: %s\nnot %d: %s", result, told,
                  error, text);
    ck_assert_int_eq(domus_pickled_open(readers, NULL, slice, &pickled, NULL, 0), error);
    domus_slice_free(slice);
    domus_picklers_free(readers);
}

DOMT_TEST(wrong_head_of_a_message_is_refused)
{
#define HEAD(bytes, error, text) check_head_is_refused(bytes, sizeof(bytes) - 1, error, text)
    HEAD("", -EBADMSG, "message: the message ends here");
    HEAD("\x80", -EBADMSG, "message: is no pickled message");
    HEAD("\x92\x01\x01", -EBADMSG, "message: is no pickled message");
    HEAD("\x94\x01\x01\x80\x80", -EBADMSG, "message: is no pickled message");
    HEAD("\x93\xff\x01\x80", -EBADMSG, "message: is an integer, not the hash of a name");
    HEAD("\x93\xa1x\x01\x80", -EBADMSG, "message: is a text, not the hash of a name");
    HEAD("\x93\x07\x00\x80", -EBADMSG, "message: has no version");
    HEAD("\x93\x07\xa1x\x80", -EBADMSG, "message: has no version");
    HEAD("\x93\x07\xcf\x00\x00\x00\x01\x00\x00\x00\x00\x80", -EBADMSG, "message: has no version");
    HEAD("\x93\x07\x01\x80", -ENOENT, "message: no pickler has the hash 0000000000000007");
}

DOMT_SUITE(20)
