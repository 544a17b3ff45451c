/* protocols/http/chars.h: the functions that look at many bytes together find what a look at each
 * byte finds, wherever a byte of another kind stands, and never look behind the end. */
#include "protocols/http/chars.h"

#include "tests/support/suite.h"

#include <stdlib.h>

#define SIZE_MAX_BYTES 40u

static bool is_text(unsigned char byte)
{
    return byte >= 32 && byte != 127;
}

static size_t run_text_slowly(const char *bytes, size_t size)
{
    size_t i = 0;

    while (i < size && is_text((unsigned char)bytes[i]))
        i++;
    return i;
}

/* Hold all functions against bytes that have `byte` at the place `at`, in a block of
 * exactly their size. */
static void hold(char *bytes, size_t size, size_t at, unsigned byte)
{
    memset(bytes, 'a', size);
    bytes[at] = (char)byte;
    ck_assert_uint_eq(domi_http_run_text(bytes, size), run_text_slowly(bytes, size));
    ck_assert_uint_eq(domi_http_run_target(bytes, size),
                      domi_http_run(bytes, size, DOMI_HTTP_TARGET));
    ck_assert_uint_eq(domi_http_run_token(bytes, size),
                      domi_http_run(bytes, size, DOMI_HTTP_TOKEN));
}

DOMT_TEST(many_bytes_are_read_as_each_byte_is)
{
    for (size_t size = 1; size <= SIZE_MAX_BYTES; size++) {
        char *bytes = malloc(size); /* of this size, so that a sanitizer sees a look behind it */
        ck_assert_ptr_nonnull(bytes);
        for (size_t at = 0; at < size; at++) {
            for (unsigned byte = 0; byte < 256; byte++)
                hold(bytes, size, at, byte);
        }
        free(bytes);
    }
    ck_assert_uint_eq(domi_http_run_text("", 0), 0);
    ck_assert_uint_eq(domi_http_run_target("", 0), 0);
}

/* The first of several is found, also where blocks of 16 and of 8 bytes overlap. */
DOMT_TEST(the_first_of_two_is_found)
{
    char bytes[SIZE_MAX_BYTES];

    for (size_t size = 2; size <= sizeof bytes; size++) {
        for (size_t at = 0; at + 1 < size; at++) {
            memset(bytes, 'a', sizeof bytes);
            bytes[at] = bytes[size - 1] = '\n';
            ck_assert_uint_eq(domi_http_run_text(bytes, size), at);
            ck_assert_uint_eq(domi_http_run_target(bytes, size), at);
        }
    }
}

DOMT_SUITE(20)
