/* A user's functions may write or read another number of values than they announce, refuse a
 * message, or ask for the kind of the next value. */
#include "tests/cluster/pickles.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

#define REFUSED(list, body, error, text)                                                           \
    domt_expect_refused(list, body, sizeof(body) - 1, error, text)

/* One type, whose pickler uses the functions that the test has set. */
typedef int domt_writes(domus_pickle_writer *writer);
typedef int domt_read_it(domus_pickle_reader *reader);

static domt_writes *writes;
static domt_read_it *reads;

static int write_it(domus_pickle_writer *writer, const void *payload)
{
    return writes(writer);
}

static int read_it(domus_pickle_reader *reader, void *payload, uint32_t version)
{
    return reads(reader);
}

static const domus_type it_type = {"it", 1, NULL};
static const domus_pickler its[] = {
    {.type = &it_type, .version = 1, .write = write_it, .read = read_it}, {.type = NULL}};

static int writes_nothing(domus_pickle_writer *writer)
{
    return 0;
}

static int writes_too_few(domus_pickle_writer *writer)
{
    (void)domus_pickle_put_map(writer, 2);
    for (int i = 0; i < 3; i++)
        (void)domus_pickle_put_nil(writer);
    return 0;
}

static int writes_two(domus_pickle_writer *writer)
{
    (void)domus_pickle_put_nil(writer);
    (void)domus_pickle_put_nil(writer);
    return 0; /* the writer keeps the error of the second value */
}

static int writes_behind_an_array(domus_pickle_writer *writer)
{
    (void)domus_pickle_put_array(writer, 1);
    (void)domus_pickle_put_array(writer, 0);
    return domus_pickle_put_bool(writer, true);
}

static int refuses_to_write(domus_pickle_writer *writer)
{
    (void)domus_pickle_refuse(writer, -ENODATA, "has no %s", "soul");
    return domus_pickle_refuse(writer, -EIO, "is not told");
}

static int refuses_with_no_errno(domus_pickle_writer *writer)
{
    return domus_pickle_refuse(writer, 7, "is odd");
}

static int fails_to_write(domus_pickle_writer *writer)
{
    return -EAGAIN;
}

static int writes_null(domus_pickle_writer *writer)
{
    return domus_pickle_put_text(writer, NULL);
}

static void unwritten(domt_writes *what, int error, const char *text)
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
    unwritten(writes_nothing, -EINVAL,
              "it: its function writes fewer values than it has announced");
    unwritten(writes_too_few, -EINVAL,
              "it: its function writes fewer values than it has announced");
    unwritten(writes_two, -EINVAL, "it: its function writes more values than it has announced");
    unwritten(writes_behind_an_array, -EINVAL,
              "it: its function writes more values than it has announced");
    unwritten(writes_null, -EINVAL, "it: its function writes a NULL");
    unwritten(refuses_to_write, -ENODATA, "it: has no soul");
    unwritten(refuses_with_no_errno, -EINVAL, "it: is odd");
    unwritten(fails_to_write, -EAGAIN, "it: its function cannot write it");
}

static int reads_nothing(domus_pickle_reader *reader)
{
    return 0;
}

static int reads_one(domus_pickle_reader *reader)
{
    uint32_t count = 0;
    uint64_t value;

    (void)domus_pickle_get_array(reader, 9, &count);
    return domus_pickle_get_uint(reader, 0, 9, &value);
}

static int reads_three(domus_pickle_reader *reader)
{
    uint64_t value = 0;

    (void)reads_one(reader);
    (void)domus_pickle_get_uint(reader, 0, 9, &value);
    (void)domus_pickle_get_uint(reader, 0, 9, &value);
    ck_assert_uint_eq(value, 2); /* a failed read leaves the value unchanged */
    return 0;
}

static int rejects(domus_pickle_reader *reader)
{
    uint32_t count = 0;

    ck_assert_int_eq(domus_pickle_get_array(reader, 9, &count), 0);
    (void)domus_pickle_reject(reader, -EDOM, "is %d", 42);
    ck_assert_int_eq(domus_pickle_peek(reader), DOMUS_PICKLE_NOTHING);
    ck_assert_int_eq(domus_pickle_skip(reader), -EDOM);
    return domus_pickle_blame(reader, -EDOM, "answer");
}

static int fails_to_read(domus_pickle_reader *reader)
{
    return -ENOMEM;
}

static int takes_memory(domus_pickle_reader *reader)
{
    ck_assert_int_eq(domus_pickle_take_memory(reader, DOMUS_PICKLE_MEMORY_PRESET), 0);
    return domus_pickle_take_memory(reader, 1);
}

/* Reading a struct after an error neither changes the struct nor frees it. */
static int reads_a_struct_after_an_error(domus_pickle_reader *reader)
{
    domt_part part = {.id = 77};

    (void)domus_pickle_reject(reader, -EDOM, "is wrong");
    ck_assert_int_eq(domus_pickle_get_struct(reader, &domt_part_table, &part), -EDOM);
    ck_assert_uint_eq(part.id, 77);
    return -EDOM;
}

/* A struct that is refused frees the members that were read before. */
static int reads_a_wrong_struct(domus_pickle_reader *reader)
{
    domt_part part = {.id = 77};

    ck_assert_int_eq(domus_pickle_get_struct(reader, &domt_part_table, &part), -ERANGE);
    ck_assert(part.id == 0 && part.text == NULL);
    return -EDOM; /* the error of the struct counts, not this one */
}

static int has_no_room(domus_pickle_reader *reader)
{
    char text;

    return domus_pickle_get_text(reader, &text, 0);
}

static int reads_a_negative(domus_pickle_reader *reader)
{
    uint64_t value;

    return domus_pickle_get_uint(reader, 0, 9, &value);
}

static void unread(domt_read_it *what, const char *body, int error, const char *text)
{
    reads = what;
    domt_expect_refused(its, body, strlen(body), error, text);
}

DOMT_TEST(function_that_reads_another_number_of_values_is_refused)
{
    unread(reads_nothing, "\x92\x01\x02", -EBADMSG,
           "it: has values that its function has not read");
    unread(reads_one, "\x92\x01\x02", -EBADMSG, "it: has values that its function has not read");
    unread(reads_three, "\x92\x01\x02", -EBADMSG,
           "it: its function reads more values than are there");
    unread(reads_one, "\x91\x01\x02", -EBADMSG, "it: has 1 bytes behind its end");
    unread(rejects, "\x92\x01\x02", -EDOM, "it.answer: is 42");
    unread(fails_to_read, "\x01", -ENOMEM, "it: its function refuses it");
    unread(takes_memory, "\x01", -EMSGSIZE,
           "it: needs 1 bytes of memory, and the message may take 0 more");
    unread(reads_a_struct_after_an_error, "\x01", -EDOM, "it: is wrong");
    unread(reads_a_wrong_struct, "\x82\x02\xa1x\x01\xcd\xff\xff", -ERANGE,
           "it.id: 65535 is not in 1..60000");
    unread(has_no_room, "\xa0", -EMSGSIZE, "it: there is no room for a text");
    unread(reads_a_negative, "\xfe", -ERANGE, "it: -2 is negative");
    unread(reads_a_negative, "\x0a", -ERANGE, "it: 10 is not in 0..9");
}

/* --- peek ----------------------------------------------------------------------------------------
 */

static domus_pickle_value seen;

static int peeks(domus_pickle_reader *reader)
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

    reads = peeks;
    writes = writes_nothing;
    domus_picklers *picklers = domt_make_picklers(its);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        domus_slice bytes = domt_pickled("it", 1, rows[i].body, rows[i].size);
        char error[DOMUS_PICKLE_ERROR_MAX] = "";
        char payload[1];
        int result = domt_unpickle(picklers, NULL, bytes, payload, error, sizeof error);
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
