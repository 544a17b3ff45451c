/* Every error in a pickled message is refused with its place and reason, and all memory is
 * freed. */
#include "tests/cluster/pickles.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <string.h>

#define REFUSED(body, error, text)                                                                 \
    domt_expect_payload_is_refused(domt_all_picklers, body, sizeof(body) - 1, error, "all" text)
#define READ(body) expect_body_is_read(body, sizeof(body) - 1)

/* Check that the payload is read. When it is written again it has all fields, so its bytes are
 * different. */
static void expect_body_is_read(const char *body, size_t size)
{
    domus_picklers *picklers = domt_make_picklers(domt_all_picklers);
    domus_slice bytes = domt_make_pickled_message("all", 3, body, size);
    char error[DOMUS_PICKLE_ERROR_MAX] = "";
    domt_all all;

    int result = domt_unpickle_message(picklers, &domt_addresses, bytes, &all, error, sizeof error);
    ck_assert_msg(result == 0, "%d: %s", result, error);
    domt_all_free(&all);
    domus_slice_free(bytes);
    domus_picklers_free(picklers);
}

DOMT_TEST(number_that_does_not_fit_is_refused)
{
    READ("\x81\x06\xcc\xff");
    REFUSED("\x81\x06\xcd\x01\x2c", -ERANGE, ".u8: 300 does not fit into 8 bits");
    REFUSED("\x81\x06\xff", -ERANGE, ".u8: -1 is negative");
    REFUSED("\x81\x07\xce\x00\x01\x00\x00", -ERANGE, ".u16: 65536 does not fit into 16 bits");
    REFUSED("\x81\x08\xcf\x00\x00\x00\x01\x00\x00\x00\x00", -ERANGE,
            ".u32: 4294967296 does not fit into 32 bits");
    REFUSED("\x81\x09\xd3\x80\x00\x00\x00\x00\x00\x00\x00", -ERANGE,
            ".u64: -9223372036854775808 is negative");
    READ("\x81\x02\xd0\x80");
    REFUSED("\x81\x02\xcc\x80", -ERANGE, ".i8: 128 does not fit into 8 bits with a sign");
    REFUSED("\x81\x02\xd1\xff\x7f", -ERANGE, ".i8: -129 does not fit into 8 bits with a sign");
    REFUSED("\x81\x03\xd2\xff\xff\x7f\xff", -ERANGE,
            ".i16: -32769 does not fit into 16 bits with a sign");
    REFUSED("\x81\x04\xce\x80\x00\x00\x00", -ERANGE,
            ".i32: 2147483648 does not fit into 32 bits with a sign");
    READ("\x81\x05\xcf\x7f\xff\xff\xff\xff\xff\xff\xff");
    REFUSED("\x81\x05\xcf\x80\x00\x00\x00\x00\x00\x00\x00", -ERANGE,
            ".i64: 9223372036854775808 does not fit into 64 bits with a sign");
}

DOMT_TEST(number_out_of_its_range_is_refused)
{
    READ("\x81\x1b\x0a");
    READ("\x81\x1b\xf6");
    REFUSED("\x81\x1b\x0b", -ERANGE, ".extra: 11 is not in -10..10");
    REFUSED("\x81\x1b\xf5", -ERANGE, ".extra: -11 is not in -10..10");
    READ("\x81\x13\x81\x01\xcd\xea\x60");
    REFUSED("\x81\x13\x81\x01\xcd\xea\x61", -ERANGE, ".part.id: 60001 is not in 1..60000");
    REFUSED("\x81\x13\x81\x01\x00", -ERANGE, ".part.id: 0 is not in 1..60000");
}

DOMT_TEST(floating_point_number_that_does_not_fit_is_refused)
{
    READ("\x81\x0a\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00"); /* the number 1.5 */
    READ("\x81\x0a\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00"); /* the number NaN */
    READ("\x81\x0a\xcb\xff\xf0\x00\x00\x00\x00\x00\x00"); /* the number minus infinity */
    /* integers where floating-point numbers are expected */
    READ("\x82\x0a\x05\x0b\xf0");
    REFUSED("\x81\x0a\xcb\x3f\xb9\x99\x99\x99\x99\x99\x9a", -ERANGE,
            ".small: 0.10000000000000001 does not fit into a float");
    REFUSED("\x81\x0a\xcb\x7f\xef\xff\xff\xff\xff\xff\xff", -ERANGE,
            ".small: 1.7976931348623157e+308 does not fit into a float");
    READ("\x81\x0b\xca\x3f\x80\x00\x00");
    READ("\x81\x0b\xcf\x00\x20\x00\x00\x00\x00\x00\x00");
    REFUSED("\x81\x0b\xcf\x00\x20\x00\x00\x00\x00\x00\x01", -ERANGE,
            ".large: is an integer that no double is sure to be");
    READ("\x81\x0b\xd3\xff\xe0\x00\x00\x00\x00\x00\x00");
    REFUSED("\x81\x0b\xd3\xff\xdf\xff\xff\xff\xff\xff\xff", -ERANGE,
            ".large: is an integer that no double is sure to be");
}

DOMT_TEST(value_that_is_not_of_its_enum_is_refused)
{
    READ("\x82\x0c\xa3red\x0d\x07");
    READ("\x82\x0c\xfd\x0d\xcc\xff");
    REFUSED("\x81\x0c\x02", -ERANGE, ".color: 2 is none of its values");
    REFUSED("\x81\x0c\xfc", -ERANGE, ".color: -4 is none of its values");
    REFUSED("\x81\x0c\xcf\xff\xff\xff\xff\xff\xff\xff\xfd", -ERANGE,
            ".color: 18446744073709551613 is none of its values");
    REFUSED("\x81\x0d\xff", -ERANGE, ".mode: -1 is none of its values");
    REFUSED("\x81\x0d\xa5\x66\x61st\x1b", -ERANGE, ".mode: \"fast?\" is none of its words");
    REFUSED("\x81\x0d\xa3\x66\x61s", -ERANGE, ".mode: \"fas\" is none of its words");
    REFUSED("\x81\x0d\xbf"
            "1234567890123456789012345678901",
            -ERANGE, ".mode: \"123456789012345678901234...\" is none of its words");
    REFUSED("\x81\x1f\x92\xa3red\xa4reds", -ERANGE, ".colors[1]: \"reds\" is none of its words");
}

DOMT_TEST(value_of_another_kind_is_refused)
{
    REFUSED("\x01", -EBADMSG, ": is an integer, not a map");
    REFUSED("\x81\x01\x01", -EBADMSG, ".flag: is an integer, not a boolean");
    REFUSED("\x81\x02\xc3", -EBADMSG, ".i8: is a boolean, not an integer");
    REFUSED("\x81\x06\xca\x3f\x80\x00\x00", -EBADMSG,
            ".u8: is a floating-point number, not an integer");
    REFUSED("\x81\x06\xc0", -EBADMSG, ".u8: is nil, not an integer");
    REFUSED("\x81\x0a\xa1x", -EBADMSG, ".small: is a text, not a number");
    REFUSED("\x81\x0c\xc4\x01x", -EBADMSG, ".color: is bytes, not an integer or a word");
    REFUSED("\x81\x0e\xc4\x01x", -EBADMSG, ".text: is bytes, not a text");
    REFUSED("\x81\x0e\xc0", -EBADMSG, ".text: is nil, not a text");
    REFUSED("\x81\x0f\x80", -EBADMSG, ".owned: is a map, not a text");
    REFUSED("\x81\x10\x90", -EBADMSG, ".slice: is an array, not bytes");
    REFUSED("\x81\x11\x07", -EBADMSG, ".address: is an integer, not the address of an actor");
    REFUSED("\x81\x11\xd4\x02\x07", -EBADMSG,
            ".address: is extension 2, not the address of an actor");
    REFUSED("\x81\x12\xc7\x00\x02", -EBADMSG, ".endpoint: has no bytes");
    REFUSED("\x81\x12\xd4\xff\x07", -EBADMSG, ".endpoint: is extension -1, not an endpoint");
    REFUSED("\x81\x13\x91\x01", -EBADMSG, ".part: is an array, not a map");
    REFUSED("\x81\x14\x80", -EBADMSG, ".fixed: is a map, not an array");
    REFUSED("\x81\x16\x92\x80\x07", -EBADMSG, ".parts[1]: is an integer, not a map");
}

DOMT_TEST(value_beyond_its_bound_is_refused)
{
    READ("\x81\x0e\xa7"
         "1234567");
    REFUSED("\x81\x0e\xa8"
            "12345678",
            -EMSGSIZE, ".text: has 8 bytes, more than 7");
    REFUSED("\x81\x0e\xa3x\0y", -EBADMSG, ".text: has a zero in it");
    REFUSED("\x81\x0f\xa1\0", -EBADMSG, ".owned: has a zero in it");
    REFUSED("\x81\x13\x81\x02\xd9\x29"
            "12345678901234567890123456789012345678901",
            -EMSGSIZE, ".part.text: has 41 bytes, more than 40");
    REFUSED("\x81\x14\x95\x01\x02\x03\x04\x05", -EMSGSIZE, ".fixed: has 5 elements, more than 4");
    REFUSED("\x81\x15\x96\x01\x02\x03\x04\x05\x06", -EMSGSIZE,
            ".listed: has 6 elements, more than 5");
    REFUSED("\x81\x16\x9a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80", -EMSGSIZE,
            ".parts: has 10 elements, more than 9");
    READ("\x81\x18\x93\xa5"
         "12345\xa0\xa1z");
    REFUSED("\x81\x18\x93\xa0\xa0\xa6"
            "123456",
            -EMSGSIZE, ".names[2]: has 6 bytes, more than 5");
    REFUSED("\x81\x11\xc7\x21\x01"
            "123456789012345678901234567890123",
            -EMSGSIZE, ".address: has 33 bytes, more than 32");
    REFUSED("\x81\x11\xc7\x03\x01"
            "123",
            -EBADMSG, ".address: the address cannot be read");
}

/* Make a message as a stranger could send it: it announces more bytes than it has. */
DOMT_TEST(size_that_lies_is_refused_before_memory_is_taken)
{
    REFUSED("\x81\x16\xdd\xff\xff\xff\xff", -EBADMSG,
            ".parts: announces 4294967295 elements, and 0 bytes are left");
    REFUSED("\x81\x16\xdc\x00\x02\x80", -EBADMSG,
            ".parts: announces 2 elements, and 1 bytes are left");
    REFUSED("\xdf\xff\xff\xff\xff\x01", -EBADMSG,
            ": announces 4294967295 fields, and 1 bytes are left");
    REFUSED("\x81\x0f\xdb\xff\xff\xff\xff"
            "abc",
            -EBADMSG, ".owned: has 4294967295 bytes, of which 3 are there");
    REFUSED("\x81\x10\xc6\x00\x00\x10\x00"
            "abc",
            -EBADMSG, ".slice: has 4096 bytes, of which 3 are there");
    REFUSED("\x81\x11\xc9\xff\xff\xff\xff\x01", -EBADMSG,
            ".address: has 4294967295 bytes, of which 0 are there");
    REFUSED("\x81\x63\xdd\xff\xff\xff\xff", -EBADMSG,
            ": announces 4294967295 elements, and 0 bytes are left");
}

DOMT_TEST(bytes_that_are_no_value_are_refused)
{
    REFUSED("", -EBADMSG, ": the message ends here");
    REFUSED("\xc1", -EBADMSG, ": the byte 0xc1 begins no value");
    REFUSED("\x81\x06", -EBADMSG, ": announces 1 fields, and 1 bytes are left");
    REFUSED("\x81\x06\xcd\x01", -EBADMSG, ".u8: the message ends here");
    REFUSED("\x80\x80", -EBADMSG, ": has 1 bytes behind its end");
    REFUSED("\x82\x06\x01\x06\x02", -EBADMSG, ".u8: is there twice");
    REFUSED("\x84\x0f\xa1x\x06\x01\x0f\xa1y\x06\x02", -EBADMSG, ".owned: is there twice");
    REFUSED("\x81\x12\xd4\x02\x04", -EBADMSG, ".endpoint: is no endpoint");
    REFUSED("\x81\x12\xc7\x07\x02\x06"
            "123456",
            -EBADMSG, ".endpoint: is no endpoint");
    REFUSED("\x81\x12\xd4\x02\x05", -EBADMSG, ".endpoint: is no endpoint");
    READ("\x81\x12\xd4\x02\x01");
    READ("\x81\x12\xc7\x07\x02\x04"
         "123456");
}

/* The last element of a list is wrong, so the elements before it are freed, as the sanitizer
 * checks. */
DOMT_TEST(message_that_is_refused_late_leaves_nothing)
{
    REFUSED("\x83\x0f\xa3one\x16\x92\x82\x02\xa3two\x05\xc4\x03"
            "abc\x82\x02\xa5three\x05\xc4\x02"
            "ab\x17\x92\xa4"
            "four\x01",
            -EBADMSG, ".texts[1]: is an integer, not a text");
    REFUSED("\x82\x16\x92\x81\x02\xa1x\x81\x03\x93\x01\x02\xcd\x01\x00\x01\xc3", -ERANGE,
            ".parts[1].small[2]: 256 does not fit into 8 bits");
}

/* --- bounds of the whole message ---------------------------------------------------------------
 */

DOMT_TEST(memory_of_a_message_is_bounded)
{
    static const char body[] = "\x81\x17\x93\xa1"
                               "a\xa1"
                               "b\xa1"
                               "c";
    domus_picklers *picklers = domt_make_picklers(domt_all_picklers);
    domus_slice bytes = domt_make_pickled_message("all", 3, body, sizeof body - 1);
    /* just enough memory for three pointers, the texts "a", "b" and "c", and the default text
     * "mine" */
    domus_pickle_context context = {.memory_max = 3 * sizeof(char *) + 6 + 5};
    char error[DOMUS_PICKLE_ERROR_MAX];
    domt_all all;

    ck_assert_int_eq(domt_unpickle_message(picklers, &context, bytes, &all, error, sizeof error),
                     0);
    domt_all_free(&all);
    context.memory_max--;
    ck_assert_int_eq(domt_unpickle_message(picklers, &context, bytes, &all, error, sizeof error),
                     -EMSGSIZE);
    ck_assert_str_eq(error, "all.owned: needs 5 bytes of memory, and the message may take 4 more");
    context.memory_max = 3 * sizeof(char *) + 3;
    ck_assert_int_eq(domt_unpickle_message(picklers, &context, bytes, &all, error, sizeof error),
                     -EMSGSIZE);
    ck_assert_str_eq(error,
                     "all.texts[1]: needs 2 bytes of memory, and the message may take 1 more");
    domus_slice_free(bytes);
    domus_picklers_free(picklers);
}

DOMT_TEST(bytes_of_a_message_are_bounded)
{
    domus_picklers *picklers = domt_make_picklers(domt_all_picklers);
    domus_pickle_context context = domt_addresses;
    char error[DOMUS_PICKLE_ERROR_MAX];
    domus_appender appender = {0};
    domt_all all;
    domt_all read;

    domt_all_fill_at_random(&all, 1, 3);
    domus_slice bytes = domt_pickle_payload(picklers, &context, &domt_all_type, &all);
    context.bytes_max = bytes.size;
    ck_assert_int_eq(domt_unpickle_message(picklers, &context, bytes, &read, error, sizeof error),
                     0);
    domt_all_free(&read);
    ck_assert_int_eq(
        domus_pickle(picklers, &context, &domt_all_type, &all, &appender, error, sizeof error), 0);
    ck_assert_uint_eq(appender.size, bytes.size);
    context.bytes_max--;
    ck_assert_int_eq(domt_unpickle_message(picklers, &context, bytes, &read, error, sizeof error),
                     -EMSGSIZE);
    ck_assert(strncmp(error, "message: has ", 13) == 0);
    ck_assert_int_eq(
        domus_pickle(picklers, &context, &domt_all_type, &all, &appender, error, sizeof error),
        -EMSGSIZE);
    ck_assert_ptr_nonnull(strstr(error, "the message has more bytes than it may"));
    /* the failed call has added nothing to the appender */
    ck_assert_uint_eq(appender.size, bytes.size);
    ck_assert_int_eq(appender.error, 0);
    domus_append_drop(&appender);
    domus_slice_free(bytes);
    domt_all_free(&all);
    domus_picklers_free(picklers);
}

/* Every size of a buffer, and every bound of an appender, that is smaller than the message is
 * refused. */
DOMT_TEST(buffer_that_is_too_small_is_refused_at_each_size)
{
    domus_picklers *picklers = domt_make_picklers(domt_all_picklers);
    char error[DOMUS_PICKLE_ERROR_MAX];
    char buffer[600];
    size_t size = 0;
    domt_all all;

    domt_all_fill_at_random(&all, 2, 2);
    domus_slice bytes = domt_pickle_payload(picklers, NULL, &domt_all_type, &all);
    ck_assert_uint_lt(bytes.size, sizeof buffer);
    for (size_t room = 0; room < bytes.size; room++) {
        char *exact = malloc(room + 1);
        ck_assert_int_eq(domus_pickle_into(picklers, NULL, &domt_all_type, &all, exact, room, &size,
                                           error, sizeof error),
                         -EMSGSIZE);
        ck_assert_ptr_nonnull(strstr(error, "the buffer is too small"));
        free(exact);
        domus_appender appender = {.size_max = (uint32_t)room + 7};
        ck_assert_int_eq(domus_append(&appender, "before", 7), 0);
        int result = domus_pickle(picklers, NULL, &domt_all_type, &all, &appender, error, 0);
        ck_assert_int_eq(result, -EMSGSIZE);
        ck_assert(appender.size == 7 && appender.error == 0);
        domus_append_drop(&appender);
    }
    ck_assert_uint_eq(size, 0);
    ck_assert_int_eq(domus_pickle_into(picklers, NULL, &domt_all_type, &all, buffer, bytes.size,
                                       &size, error, sizeof error),
                     0);
    ck_assert(domus_slice_equals(bytes, buffer, size));
    domus_slice_free(bytes);
    domt_all_free(&all);
    domus_picklers_free(picklers);
}

/* --- writing ------------------------------------------------------------------------------------
 *
 * The writer of a payload refuses what its reader would refuse. */

static void expect_all_is_not_written(const domt_all *all, int error, const char *text)
{
    domus_picklers *picklers = domt_make_picklers(domt_all_picklers);
    char told[DOMUS_PICKLE_ERROR_MAX] = "";
    domus_appender appender = {0};

    int result = domus_pickle(picklers, NULL, &domt_all_type, all, &appender, told, sizeof told);
    ck_assert_msg(result == error && strcmp(told, text) == 0, "%d: %s\nnot %d: %s", result, told,
                  error, text);
    ck_assert_uint_eq(appender.size, 0);
    domus_append_drop(&appender);
    domus_picklers_free(picklers);
}

#define UNWRITTEN(change, error, text)                                                             \
    do {                                                                                           \
        domt_all all;                                                                              \
        domt_all_fill_at_random(&all, 3, 2);                                                       \
        domt_part parts[2] = {{.id = 1}, {.id = 2}};                                               \
        all.parts = parts;                                                                         \
        all.part_count = 2;                                                                        \
        change;                                                                                    \
        expect_all_is_not_written(&all, error, "all" text);                                        \
    } while (0)

DOMT_TEST(payload_that_is_wrong_is_not_written)
{
    UNWRITTEN(parts[1].id = 60001, -ERANGE, ".parts[1].id: 60001 is not in 1..60000");
    UNWRITTEN((all.has_extra = true, all.extra = -11), -ERANGE, ".extra: -11 is not in -10..10");
    UNWRITTEN(all.color = (domt_color)2, -ERANGE, ".color: 2 is none of its values");
    UNWRITTEN(all.color = (domt_color)-4, -ERANGE, ".color: -4 is none of its values");
    UNWRITTEN(all.mode = 1, -ERANGE, ".mode: 1 is none of its values");
    UNWRITTEN(memset(all.text, 'x', 8), -EINVAL, ".text: has no zero at its end");
    UNWRITTEN(memset(all.names, (all.name_count = 2, 'x'), 18), -EINVAL,
              ".names[0]: has no zero at its end");
    UNWRITTEN(all.name_count = 4, -EINVAL, ".names: has 4 elements, more than 3");
    UNWRITTEN(all.part_count = 10, -EINVAL, ".parts: has 10 elements, more than 9");
    UNWRITTEN(all.parts = NULL, -EINVAL, ".parts: has 2 elements and is NULL");
    UNWRITTEN(parts[0].text = (char *)(uintptr_t) "12345678901234567890123456789012345678901",
              -EMSGSIZE, ".parts[0].text: has more than 40 bytes");
    UNWRITTEN(all.slice.size = 5001, -EMSGSIZE, ".slice: has 5001 bytes, more than 5000");
    UNWRITTEN(all.address.lease = 7, -EOPNOTSUPP, ".address: addresses cannot travel here");
    UNWRITTEN(all.endpoint.family = 999, -EINVAL, ".endpoint: is no endpoint");
    UNWRITTEN((all.endpoint.family = 2, all.endpoint.size = 5), -EINVAL,
              ".endpoint: is no endpoint");
    UNWRITTEN((all.endpoint.family = 1, all.endpoint.size = 111), -EINVAL,
              ".endpoint: is no endpoint");
}

static int refuse_to_write_address(void *context, domus_address address, unsigned char *bytes)
{
    return *(int *)context;
}

static int refuse_to_read_address(void *context, const unsigned char *bytes, size_t size,
                                  domus_address *ret_address)
{
    return *(int *)context;
}

DOMT_TEST(errors_of_the_callbacks_are_those_of_the_message)
{
    static const int results[][2] = {{-EHOSTDOWN, -EHOSTDOWN}, {0, -EINVAL}, {33, -EINVAL}};
    domus_picklers *picklers = domt_make_picklers(domt_all_picklers);
    domus_pickle_context context = {.write_address = refuse_to_write_address,
                                    .read_address = refuse_to_read_address};
    domus_slice bytes = domt_make_pickled_message("all", 3, "\x81\x11\xd4\x01\x07", 5);
    char error[DOMUS_PICKLE_ERROR_MAX];
    domus_appender appender = {0};
    domt_all all;
    int result = 0;

    context.context = &result;
    domt_all_fill_at_random(&all, 3, 2);
    all.address.lease = 7;
    for (int i = 0; i < 3; i++) {
        result = results[i][0];
        ck_assert_int_eq(
            domus_pickle(picklers, &context, &domt_all_type, &all, &appender, error, sizeof error),
            results[i][1]);
        ck_assert_str_eq(error, "all.address: the address cannot be written");
    }
    result = -ESTALE;
    ck_assert_int_eq(domt_unpickle_message(picklers, &context, bytes, &all, error, sizeof error),
                     -ESTALE);
    ck_assert_str_eq(error, "all.address: the address cannot be read");
    ck_assert_int_eq(domt_unpickle_message(picklers, NULL, bytes, &all, error, sizeof error),
                     -EOPNOTSUPP);
    ck_assert_str_eq(error, "all.address: addresses cannot travel here");
    domus_append_drop(&appender);
    domus_slice_free(bytes);
    domus_picklers_free(picklers);
}

DOMT_SUITE(60)
