/* Pickle functions of a user may write or read another number of values than they announce, refuse
 * a message, or ask for the kind of the next value. */
#include "tests/cluster/pickles.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

#define REFUSED(list, body, error, text)                                                           \
    domt_expect_payload_is_refused(list, body, sizeof(body) - 1, error, text)

/* A list of one type, whose pickler uses the two functions that the test has set. */
typedef int domt_writes(domus_pickle_writer *writer);
typedef int domt_read_it(domus_pickle_reader *reader);

static domt_writes *writes;
static domt_read_it *reads;

static int write_by_function_of_test(domus_pickle_writer *writer, const void *payload)
{
    return writes(writer);
}

static int read_by_function_of_test(domus_pickle_reader *reader, void *payload, uint32_t version)
{
    return reads(reader);
}

static const domus_type it_type = {"it", 1, NULL};
static const domus_pickler its[] = {{.type = &it_type,
                                     .version = 1,
                                     .write = write_by_function_of_test,
                                     .read = read_by_function_of_test},
                                    {.type = NULL}};

static int write_no_value(domus_pickle_writer *writer)
{
    return 0;
}

static int write_map_with_too_few_values(domus_pickle_writer *writer)
{
    (void)domus_pickle_put_map(writer, 2);
    for (int i = 0; i < 3; i++)
        (void)domus_pickle_put_nil(writer);
    return 0;
}

static int write_two_values(domus_pickle_writer *writer)
{
    (void)domus_pickle_put_nil(writer);
    (void)domus_pickle_put_nil(writer);
    return 0; /* the writer keeps the error of the second value */
}

static int write_value_behind_array(domus_pickle_writer *writer)
{
    (void)domus_pickle_put_array(writer, 1);
    (void)domus_pickle_put_array(writer, 0);
    return domus_pickle_put_bool(writer, true);
}

static int refuse_write_twice(domus_pickle_writer *writer)
{
    (void)domus_pickle_refuse(writer, -ENODATA, "has no %s", "soul");
    return domus_pickle_refuse(writer, -EIO, "is not told");
}

static int refuse_write_with_positive_error(domus_pickle_writer *writer)
{
    return domus_pickle_refuse(writer, 7, "is odd");
}

static int return_error_of_write(domus_pickle_writer *writer)
{
    return -EAGAIN;
}

static int write_null_text(domus_pickle_writer *writer)
{
    return domus_pickle_put_text(writer, NULL);
}

static void expect_write_fails(domt_writes *what, int error, const char *text)
{
    domus_picklers *picklers = domt_make_picklers(its);
    domus_appender appender = {0};
    char told[DOMUS_PICKLE_ERROR_MAX];

    writes = what;
    int result = domus_pickle(picklers, NULL, &it_type, "", &appender, told, sizeof told);
    ck_assert_msg(result == error && strcmp(told, text) == 0, "%d: %s\nnot %d: %s", result, told,
                  error, text);
    domus_append_drop(&appender);
    domus_picklers_free(picklers);
}

DOMT_TEST(function_that_writes_another_number_of_values_is_refused)
{
    expect_write_fails(write_no_value, -EINVAL,
                       "it: its function writes fewer values than it has announced");
    expect_write_fails(write_map_with_too_few_values, -EINVAL,
                       "it: its function writes fewer values than it has announced");
    expect_write_fails(write_two_values, -EINVAL,
                       "it: its function writes more values than it has announced");
    expect_write_fails(write_value_behind_array, -EINVAL,
                       "it: its function writes more values than it has announced");
    expect_write_fails(write_null_text, -EINVAL, "it: its function writes a NULL");
    expect_write_fails(refuse_write_twice, -ENODATA, "it: has no soul");
    expect_write_fails(refuse_write_with_positive_error, -EINVAL, "it: is odd");
    expect_write_fails(return_error_of_write, -EAGAIN, "it: its function cannot write it");
}

static int read_no_value(domus_pickle_reader *reader)
{
    return 0;
}

static int read_array_with_one_value(domus_pickle_reader *reader)
{
    uint32_t count = 0;
    uint64_t value;

    (void)domus_pickle_get_array(reader, 9, &count);
    return domus_pickle_get_uint(reader, 0, 9, &value);
}

static int read_three_values(domus_pickle_reader *reader)
{
    uint64_t value = 0;

    (void)read_array_with_one_value(reader);
    (void)domus_pickle_get_uint(reader, 0, 9, &value);
    (void)domus_pickle_get_uint(reader, 0, 9, &value);
    ck_assert_uint_eq(value, 2); /* the failed third read leaves the value of the second */
    return 0;
}

static int reject_read_array(domus_pickle_reader *reader)
{
    uint32_t count = 0;

    ck_assert_int_eq(domus_pickle_get_array(reader, 9, &count), 0);
    (void)domus_pickle_reject(reader, -EDOM, "is %d", 42);
    ck_assert_int_eq(domus_pickle_peek(reader), DOMUS_PICKLE_NOTHING);
    ck_assert_int_eq(domus_pickle_skip(reader), -EDOM);
    return domus_pickle_blame(reader, -EDOM, "answer");
}

static int return_error_of_read(domus_pickle_reader *reader)
{
    return -ENOMEM;
}

static int take_memory_beyond_limit(domus_pickle_reader *reader)
{
    ck_assert_int_eq(domus_pickle_take_memory(reader, DOMUS_PICKLE_MEMORY_PRESET), 0);
    return domus_pickle_take_memory(reader, 1);
}

/* Reading a struct after an error changes nothing in the struct, and frees nothing of it. */
static int read_struct_after_rejection(domus_pickle_reader *reader)
{
    domt_part part = {.id = 77};

    (void)domus_pickle_reject(reader, -EDOM, "is wrong");
    ck_assert_int_eq(domus_pickle_get_struct(reader, &domt_part_table, &part), -EDOM);
    ck_assert_uint_eq(part.id, 77);
    return -EDOM;
}

/* A struct that is refused in its last member frees the members that were read before. */
static int read_struct_with_wrong_field(domus_pickle_reader *reader)
{
    domt_part part = {.id = 77};

    ck_assert_int_eq(domus_pickle_get_struct(reader, &domt_part_table, &part), -ERANGE);
    ck_assert(part.id == 0 && part.text == NULL);
    return -EDOM; /* the message is refused with the error of the struct, not with this one */
}

static int read_text_into_no_room(domus_pickle_reader *reader)
{
    char text;

    return domus_pickle_get_text(reader, &text, 0);
}

static int read_integer_as_unsigned(domus_pickle_reader *reader)
{
    uint64_t value;

    return domus_pickle_get_uint(reader, 0, 9, &value);
}

static void expect_read_fails(domt_read_it *what, const char *body, int error, const char *text)
{
    reads = what;
    domt_expect_payload_is_refused(its, body, strlen(body), error, text);
}

DOMT_TEST(function_that_reads_another_number_of_values_is_refused)
{
    expect_read_fails(read_no_value, "\x92\x01\x02", -EBADMSG,
                      "it: has values that its function has not read");
    expect_read_fails(read_array_with_one_value, "\x92\x01\x02", -EBADMSG,
                      "it: has values that its function has not read");
    expect_read_fails(read_three_values, "\x92\x01\x02", -EBADMSG,
                      "it: its function reads more values than are there");
    expect_read_fails(read_array_with_one_value, "\x91\x01\x02", -EBADMSG,
                      "it: has 1 bytes behind its end");
    expect_read_fails(reject_read_array, "\x92\x01\x02", -EDOM, "it.answer: is 42");
    expect_read_fails(return_error_of_read, "\x01", -ENOMEM, "it: its function refuses it");
    expect_read_fails(take_memory_beyond_limit, "\x01", -EMSGSIZE,
                      "it: needs 1 bytes of memory, and the message may take 0 more");
    expect_read_fails(read_struct_after_rejection, "\x01", -EDOM, "it: is wrong");
    expect_read_fails(read_struct_with_wrong_field, "\x82\x02\xa1x\x01\xcd\xff\xff", -ERANGE,
                      "it.id: 65535 is not in 1..60000");
    expect_read_fails(read_text_into_no_room, "\xa0", -EMSGSIZE, "it: there is no room for a text");
    expect_read_fails(read_integer_as_unsigned, "\xfe", -ERANGE, "it: -2 is negative");
    expect_read_fails(read_integer_as_unsigned, "\x0a", -ERANGE, "it: 10 is not in 0..9");
}

/* --- peek ----------------------------------------------------------------------------------------
 */

static domus_pickle_value seen;

static int peek_at_kind_and_skip_value(domus_pickle_reader *reader)
{
    seen = domus_pickle_peek(reader);
    ck_assert_int_eq(domus_pickle_peek(reader), seen);
    return domus_pickle_skip(reader);
}

DOMT_TEST(peek_tells_the_kind_of_each_value)
{
    static const struct {
        const char *body;
        size_t size;
        domus_pickle_value value;
    } rows[] = {
        {"\xc0", 1, DOMUS_PICKLE_NIL},
        {"\xc2", 1, DOMUS_PICKLE_TRUE_OR_FALSE},
        {"\x7f", 1, DOMUS_PICKLE_UNSIGNED},
        {"\xd0\x05", 2, DOMUS_PICKLE_UNSIGNED},
        {"\xd0\x85", 2, DOMUS_PICKLE_NEGATIVE},
        {"\xe0", 1, DOMUS_PICKLE_NEGATIVE},
        {"\xca\0\0\0\0", 5, DOMUS_PICKLE_FLOAT},
        {"\xcb\0\0\0\0\0\0\0\0", 9, DOMUS_PICKLE_DOUBLE},
        {"\xa0", 1, DOMUS_PICKLE_CHARS},
        {"\xc5\0\1x", 4, DOMUS_PICKLE_BYTES},
        {"\x91\x01", 2, DOMUS_PICKLE_ARRAY_HEAD},
        {"\x81\x01\x90", 3, DOMUS_PICKLE_MAP_HEAD},
        {"\xd8\x05"
         "1234567890123456",
         18, DOMUS_PICKLE_EXTENSION},
    };

    reads = peek_at_kind_and_skip_value;
    writes = write_no_value;
    domus_picklers *picklers = domt_make_picklers(its);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        domus_slice bytes = domt_make_pickled_message("it", 1, rows[i].body, rows[i].size);
        char error[DOMUS_PICKLE_ERROR_MAX] = "";
        char payload[1];
        int result = domt_unpickle_message(picklers, NULL, bytes, payload, error, sizeof error);
        ck_assert_msg(result == 0 && seen == rows[i].value, "%zu: %s", i, error);
        domus_slice_free(bytes);
    }
    domus_picklers_free(picklers);
    REFUSED(its, "\xc1", -EBADMSG, "it: the byte 0xc1 begins no value");
    ck_assert_int_eq(seen, DOMUS_PICKLE_NOTHING);
    REFUSED(its, "", -EBADMSG, "it: the message ends here");
    ck_assert_int_eq(seen, DOMUS_PICKLE_NOTHING);
}

DOMT_SUITE(20)
