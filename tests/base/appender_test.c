/* base/appender.c: an appender builds one slice piece by piece, up to its limit. */
#include <domus/slice.h>

#include "base/memory.h"

#include "tests/support/suite.h"

#include <errno.h>
#include <string.h>

static void assert_slice_has_text(domus_slice slice, const char *text)
{
    ck_assert_msg(domus_slice_equals(slice, text, strlen(text)), "%.*s, not %s", (int)slice.size,
                  domus_slice_data(slice), text);
}

DOMT_TEST(appender_builds_one_slice)
{
    domus_appender appender = {0};
    domus_slice slice;

    ck_assert_int_eq(domus_append(&appender, "GET ", 4), 0);
    ck_assert_int_eq(domus_append(&appender, NULL, 0), 0);
    ck_assert_int_eq(domus_append_text(&appender, "/%s/%d", "path", 17), 0);
    char *room = domus_append_room(&appender, 3);
    ck_assert_ptr_nonnull(room);
    memcpy(room, "\r\n", 2);
    domus_append_written(&appender, 2);
    ck_assert_int_eq(domus_append_end(&appender, &slice), 0);
    assert_slice_has_text(slice, "GET /path/17\r\n");
    domus_slice_free(slice);
    ck_assert(appender.page == NULL && appender.size == 0);
}

DOMT_TEST(appender_without_bytes_makes_empty_slice)
{
    domus_appender appender = {.size_max = 10};
    domus_slice slice = {NULL, 1, 1};

    ck_assert_int_eq(domus_append_end(&appender, &slice), 0);
    ck_assert(slice.page == NULL && slice.size == 0);
    ck_assert_ptr_nonnull(domus_append_room(&appender, 0));
    ck_assert_int_eq(domus_append_end(&appender, &slice), 0);
    ck_assert(slice.page == NULL);
    ck_assert_uint_eq(appender.size_max, 10);
    ck_assert_int_eq(domus_append(&appender, "x", 1), 0);
    domus_append_drop(&appender);
    domus_append_drop(&appender);
}

/* The appended bytes come out the same in whatever pieces they are appended, also when the
 * appender's page grows. */
DOMT_TEST(appender_grows_with_its_bytes)
{
    static char bytes[5000];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 7);
    for (size_t step = 1; step <= sizeof bytes; step = step * 3 + 1) {
        domus_appender appender = {0};
        domus_slice slice;
        for (size_t i = 0; i < sizeof bytes; i += step) {
            size_t size = sizeof bytes - i < step ? sizeof bytes - i : step;
            ck_assert_int_eq(domus_append(&appender, bytes + i, size), 0);
        }
        ck_assert_int_eq(domus_append_end(&appender, &slice), 0);
        ck_assert(domus_slice_equals(slice, bytes, sizeof bytes));
        domus_slice_free(slice);
    }
}

DOMT_TEST(appender_appends_text_of_any_length)
{
    static char text[1000];

    memset(text, 't', sizeof text - 1);
    for (int size = 250; size < 520; size++) {
        domus_appender appender = {.size_max = (uint32_t)size};
        domus_slice slice;
        ck_assert_int_eq(domus_append_text(&appender, "%.*s", size, text), 0);
        ck_assert_int_eq(domus_append_end(&appender, &slice), 0);
        ck_assert(domus_slice_equals(slice, text, (size_t)size));
        domus_slice_free(slice);
    }
}

/* Bytes that the appender already holds may be appended again, whether or not its page has to grow
 * for them. */
DOMT_TEST(appender_appends_bytes_it_already_holds)
{
    for (uint32_t size = 1; size < 600; size += size < 20 ? 1 : 37) {
        domus_appender appender = {0};
        char expected[2400] = "";
        domus_slice slice;

        for (uint32_t i = 0; i < size; i++)
            expected[i] = (char)('a' + i % 26);
        ck_assert_int_eq(domus_append(&appender, expected, size), 0);
        ck_assert_int_eq(domus_append(&appender, appender.page->data, size), 0);
        memcpy(expected + size, expected, size);
        ck_assert_int_eq(
            domus_append_text(&appender, "%.*s", (int)(size + 1), appender.page->data + size - 1),
            0);
        memcpy(expected + 2 * (size_t)size, expected + size - 1, size + 1);
        ck_assert_int_eq(domus_append(&appender, appender.page->data + 1, size - 1), 0);
        memcpy(expected + 3 * (size_t)size + 1, expected + 1, size - 1);
        ck_assert_int_eq(domus_append_end(&appender, &slice), 0);
        ck_assert(domus_slice_equals(slice, expected, 4 * (size_t)size));
        domus_slice_free(slice);
    }
}

/* Bytes that were written into the appender's room, and not counted as written, may be appended
 * from there. */
DOMT_TEST(appender_appends_uncounted_bytes_of_its_room)
{
    domus_appender appender = {0};
    domus_slice slice;

    char *room = domus_append_room(&appender, 200);
    ck_assert_ptr_nonnull(room);
    memset(room, 'x', 200);
    ck_assert_int_eq(domus_append(&appender, room, 200), 0);
    ck_assert_int_eq(domus_append(&appender, room, 100), 0);
    ck_assert_int_eq(domus_append_end(&appender, &slice), 0);
    ck_assert_uint_eq(slice.size, 300);
    for (uint32_t i = 0; i < slice.size; i++)
        ck_assert_int_eq(domus_slice_data(slice)[i], 'x');
    domus_slice_free(slice);
}

DOMT_TEST(appender_holds_its_limit_exactly)
{
    domus_appender appender = {.size_max = 300};
    static const char bytes[301];
    domus_slice slice = {NULL, 5, 5};

    ck_assert_int_eq(domus_append(&appender, bytes, 300), 0);
    ck_assert_int_eq(domus_append_end(&appender, &slice), 0);
    ck_assert_uint_eq(slice.size, 300);
    domus_slice_free(slice);

    slice.size = 5;
    ck_assert_int_eq(domus_append(&appender, bytes, 300), 0);
    ck_assert_int_eq(domus_append(&appender, bytes, 1), -EMSGSIZE);
    /* Behind this error each later append fails, too. */
    ck_assert_int_eq(domus_append(&appender, NULL, 0), -EMSGSIZE);
    ck_assert_int_eq(domus_append_text(&appender, "x"), -EMSGSIZE);
    ck_assert_ptr_null(domus_append_room(&appender, 1));
    domus_append_written(&appender, 1);
    ck_assert_int_eq(domus_append_end(&appender, &slice), -EMSGSIZE);
    ck_assert_uint_eq(slice.size, 5);
    /* After domus_append_end() the appender is as a new one. */
    ck_assert_int_eq(domus_append_end(&appender, &slice), 0);
    ck_assert_int_eq(domus_append_text(&appender, "%301d", 1), -EMSGSIZE);
    domus_append_drop(&appender);
    ck_assert_ptr_null(domus_append_room(&appender, SIZE_MAX));
    domus_append_drop(&appender);
    ck_assert_int_eq(appender.error, 0);

    appender.size_max = UINT32_MAX; /* without a limit of the appender, that of a page holds */
    ck_assert_ptr_null(domus_append_room(&appender, (size_t)DOMUS_SLICE_MAX + 1));
    ck_assert_int_eq(domus_append_end(&appender, &slice), -EMSGSIZE);
}

DOMT_TEST(appender_refuses_count_beyond_its_room)
{
    domus_appender appender = {0};
    domus_slice slice;

    domus_append_written(&appender, 0);
    /* one byte is counted as written before the appender has any room */
    domus_append_written(&appender, 1);
    ck_assert_int_eq(domus_append_end(&appender, &slice), -EINVAL);
    ck_assert_ptr_nonnull(domus_append_room(&appender, 10));
    domus_append_written(&appender, SIZE_MAX);
    ck_assert_int_eq(domus_append(&appender, "x", 1), -EINVAL);
    ck_assert_int_eq(domus_append_end(&appender, &slice), -EINVAL);
}

static int append_bytes_in_pieces(domus_slice *ret_slice)
{
    domus_appender appender = {0};
    static const char bytes[1000];

    (void)domus_append(&appender, bytes, sizeof bytes / 4);
    (void)domus_append_text(&appender, "%500d", 1);
    char *room = domus_append_room(&appender, 1000);
    if (room != NULL)
        memset(room, 'x', 1000);
    domus_append_written(&appender, 1000);
    return domus_append_end(&appender, ret_slice);
}

DOMT_TEST(appender_frees_its_bytes_when_memory_fails)
{
    int n = 0;
    int error = -ENOMEM;

    for (; error != 0; n++) {
        domus_slice slice = {NULL, 2, 2};
        ck_assert_int_lt(n, 10);
        domi_memory_fail_allocation_after(n, 0);
        error = append_bytes_in_pieces(&slice);
        domi_memory_fail_allocation_after(-1, 0);
        ck_assert(error == 0 || error == -ENOMEM);
        ck_assert_uint_eq(slice.size, error == 0 ? 1750 : 2);
        if (error == 0)
            domus_slice_free(slice);
    }
    /* The appender allocates for 256 bytes, for the long text, and for 750 and 1750 bytes; the
     * fifth run needs no further allocation. */
    ck_assert_int_eq(n, 5);
}

DOMT_TEST(appender_frees_its_bytes_on_error_of_its_user)
{
    domus_appender appender = {0};
    domus_slice slice = {NULL, 2, 2};

    ck_assert_int_eq(domus_append(&appender, "abc", 3), 0);
    appender.error = -EILSEQ;
    ck_assert_int_eq(domus_append(&appender, "def", 3), -EILSEQ);
    ck_assert_int_eq(domus_append_end(&appender, &slice), -EILSEQ);
    ck_assert_uint_eq(slice.size, 2);
    ck_assert_ptr_null(appender.page);
    ck_assert_int_eq(appender.error, 0);
}

DOMT_SUITE(30)
