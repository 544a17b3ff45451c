/* A payload is pickled and unpickled without a change, whatever its members are, and msgpack-c
 * reads the same values from the bytes. */
#include "base/memory.h"
#include "tests/cluster/pickles.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <msgpack.h>
#include <string.h>
#include <sys/resource.h>

/* Check that msgpack-c reads the bytes of a message, and writes the same bytes again. */
static void check_msgpack_packs_same_bytes(domus_slice bytes)
{
    msgpack_unpacked unpacked;
    msgpack_sbuffer again;
    msgpack_packer packer;
    size_t end = 0;

    msgpack_unpacked_init(&unpacked);
    msgpack_sbuffer_init(&again);
    msgpack_packer_init(&packer, &again, msgpack_sbuffer_write);
    ck_assert_int_eq(msgpack_unpack_next(&unpacked, domus_slice_data(bytes), bytes.size, &end),
                     MSGPACK_UNPACK_SUCCESS);
    ck_assert_uint_eq(end, bytes.size);
    ck_assert_int_eq(msgpack_pack_object(&packer, unpacked.data), 0);
    ck_assert(domus_slice_equals(bytes, again.data, again.size));
    msgpack_sbuffer_destroy(&again);
    msgpack_unpacked_destroy(&unpacked);
}

static void check_random_payload_is_read_back(const domus_picklers *picklers, uint64_t seed,
                                              int borders)
{
    domus_pickle_context context = domt_addresses;
    char error[DOMUS_PICKLE_ERROR_MAX] = "";
    domt_all all;
    domt_all read;

    context.share_min = seed % 2 == 0 ? 1 : 0;
    domt_all_fill_at_random(&all, seed, borders);
    domus_slice bytes = domt_pickle_payload(picklers, &context, &domt_all_type, &all);
    int result = domt_unpickle_message(picklers, &context, bytes, &read, error, sizeof error);
    ck_assert_msg(result == 0, "seed %llu, borders %d: %s", (unsigned long long)seed, borders,
                  error);
    ck_assert_msg(domt_all_is_same_as_other(&all, &read), "seed %llu, borders %d",
                  (unsigned long long)seed, borders);
    domus_slice again = domt_pickle_payload(picklers, &context, &domt_all_type, &read);
    ck_assert(domus_slice_equals(again, domus_slice_data(bytes), bytes.size));
    check_msgpack_packs_same_bytes(bytes);
    domus_slice_free(bytes);
    domus_slice_free(again);
    domt_all_free(&all);
    domt_all_free(&read);
}

DOMT_TEST(each_member_is_read_back_the_same_at_its_borders)
{
    domus_picklers *picklers = domt_make_picklers(domt_all_picklers);

    for (int borders = 0; borders < 3; borders++) {
        check_random_payload_is_read_back(picklers, 1, borders);
        check_random_payload_is_read_back(picklers, 2, borders);
    }
    domus_picklers_free(picklers);
}

DOMT_TEST(random_structs_are_read_back_the_same)
{
    domus_picklers *picklers = domt_make_picklers(domt_all_picklers);
    const char *seed = getenv("DOMT_SEED");
    uint64_t first = seed != NULL ? strtoull(seed, NULL, 0) : 1;

    for (uint32_t i = 0; i < domt_tenfold_if_tests_are_long(300); i++)
        check_random_payload_is_read_back(picklers, first + i, 3);
    domus_picklers_free(picklers);
}

/* --- the bytes ------------------------------------------------------------------------------ */

typedef struct domt_plain {
    uint64_t id;
    int32_t delta;
    bool paid;
    char who[8];
    uint8_t sizes[2];
    domus_slice raw;
} domt_plain;

static const domus_pickle_field plain_fields[] = {
    {DOMUS_PICKLE(1, domt_plain, id, UINT(0))},
    {DOMUS_PICKLE(2, domt_plain, delta, INT(0))},
    {DOMUS_PICKLE(3, domt_plain, paid, BOOL(false))},
    {DOMUS_PICKLE(4, domt_plain, who, TEXT(NULL))},
    {DOMUS_PICKLE_ARRAY(5, domt_plain, sizes, UINT(0))},
    {DOMUS_PICKLE(9, domt_plain, raw, SLICE(10))},
};
static const domus_pickle_table plain_table = DOMUS_PICKLE_TABLE(domt_plain, plain_fields);

static void release_plain(void *value)
{
    domus_pickle_release(&plain_table, value);
}

static const domus_type plain_type = {"plain", sizeof(domt_plain), release_plain};
static const domus_pickler plains[] = {
    {.type = &plain_type, .name = "shop.plain", .version = 7, .table = &plain_table},
    {.type = NULL}};

/* The form of the bytes is fixed: programs in other languages rely on it (docs/pickling.md). */
DOMT_TEST(pickled_bytes_are_as_documented)
{
    static const char text[] = "[1208621387453242023, 7, {1=>300, 2=>-2, 3=>true, 4=>\"al\", "
                               "5=>[0, 255], 9=>\"\\x00\\xff\"}]";
    static const char expected[] = "\x93\xcf\x10\xc5\xe2\xbf\x93\x17\x1a\xa7\x07"
                                   "\x86\x01\xcd\x01\x2c\x02\xfe\x03\xc3\x04\xa2"
                                   "al\x05\x92\x00\xcc\xff\x09\xc4\x02\x00\xff";
    domus_picklers *picklers = domt_make_picklers(plains);
    domt_plain value = {.id = 300, .delta = -2, .paid = true, .who = "al", .sizes = {0, 255}};
    msgpack_unpacked unpacked;
    char printed[300];
    size_t end = 0;

    ck_assert_int_eq(domus_slice_copy("\0\xff", 2, &value.raw), 0);
    domus_slice bytes = domt_pickle_payload(picklers, NULL, &plain_type, &value);
    msgpack_unpacked_init(&unpacked);
    ck_assert_int_eq(msgpack_unpack_next(&unpacked, domus_slice_data(bytes), bytes.size, &end),
                     MSGPACK_UNPACK_SUCCESS);
    msgpack_object_print_buffer(printed, sizeof printed, unpacked.data);
    ck_assert_str_eq(printed, text);
    ck_assert_uint_eq(bytes.size, sizeof expected - 1);
    ck_assert(domus_slice_equals(bytes, expected, sizeof expected - 1));
    ck_assert_uint_eq(domus_pickle_hash("shop.plain"), UINT64_C(1208621387453242023));
    /* a hash that the authors of FNV-1a have published */
    ck_assert_uint_eq(domus_pickle_hash("a"), UINT64_C(0xaf63dc4c8601ec8c));
    msgpack_unpacked_destroy(&unpacked);
    domus_slice_free(bytes);
    release_plain(&value);
    domus_picklers_free(picklers);
}

/* Other programs may choose other sizes of numbers, another order of fields and other keys: the
 * values read are the same. */
DOMT_TEST(other_msgpack_forms_of_a_value_are_read)
{
    domus_picklers *picklers = domt_make_picklers(plains);
    static const char body[] = "\xde\x00\x06\xcc\x09\xa2hi\xcd\x00\x01\xcf\x00\x00\x00\x00\x00\x00"
                               "\x00\x05\xd0\x02\xd3\xff\xff\xff\xff\x80\x00\x00\x00\x03\xc2"
                               "\xce\x00\x00\x00\x04\xdb\x00\x00\x00\x01z\x05\xdd\x00\x00\x00\x02"
                               "\xd1\x00\x07\xd2\x00\x00\x00\xff";
    domus_slice bytes = domt_make_pickled_message("shop.plain", 7, body, sizeof body - 1);
    char error[DOMUS_PICKLE_ERROR_MAX] = "";
    domt_plain value;

    int result = domt_unpickle_message(picklers, NULL, bytes, &value, error, sizeof error);
    ck_assert_msg(result == 0, "%s", error);
    ck_assert_uint_eq(value.id, 5);
    ck_assert_int_eq(value.delta, INT32_MIN);
    ck_assert(!value.paid);
    ck_assert_str_eq(value.who, "z");
    ck_assert_uint_eq(value.sizes[0], 7);
    ck_assert_uint_eq(value.sizes[1], 255);
    ck_assert(domus_slice_equals(value.raw, "hi", 2));
    release_plain(&value);
    domus_slice_free(bytes);
    domus_picklers_free(picklers);
}

/* --- memory --------------------------------------------------------------------------------- */

DOMT_TEST(long_slice_shares_the_page_and_a_short_one_does_not)
{
    domus_picklers *picklers = domt_make_picklers(domt_all_picklers);
    char error[DOMUS_PICKLE_ERROR_MAX];
    static char zeros[1024];
    domt_all all;
    domt_all read;

    memset(&all, 0, sizeof all);
    all.part.id = all.inner.id = 1;
    all.inner.ratio = 0.5F;
    all.extra = 4; /* this is the default of the field when it is absent */
    all.color = DOMT_RED;
    all.colors[0] = all.colors[1] = DOMT_RED;
    ck_assert_int_eq(domus_slice_copy(zeros, 1024, &all.slice), 0);
    ck_assert_int_eq(domus_slice_copy(zeros, 1023, &all.part.bytes), 0);
    domus_slice bytes = domt_pickle_payload(picklers, NULL, &domt_all_type, &all);
    ck_assert_int_eq(domt_unpickle_message(picklers, NULL, bytes, &read, error, sizeof error), 0);
    ck_assert_ptr_eq(read.slice.page, bytes.page);
    ck_assert_ptr_ne(read.part.bytes.page, bytes.page);
    ck_assert(domt_all_is_same_as_other(&all, &read));
    domus_slice_free(bytes); /* the read slice keeps the page that it shares with the message */
    ck_assert(domus_slice_equals(read.slice, zeros, 1024));
    domt_all_free(&all);
    domt_all_free(&read);
    domus_picklers_free(picklers);
}

/* A message that is a part of a page is read in its place. */
DOMT_TEST(message_in_the_midst_of_a_page_is_read)
{
    domus_pickle_context context = {.share_min = 1};
    domus_picklers *picklers = domt_make_picklers(plains);
    char error[DOMUS_PICKLE_ERROR_MAX];
    domus_appender appender = {0};
    domt_plain value = {.who = "bo"};
    domus_slice page;
    domt_plain read;

    ck_assert_int_eq(domus_slice_copy("raw", 3, &value.raw), 0);
    (void)domus_append(&appender, "before", 6);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(
            domus_pickle(picklers, &context, &plain_type, &value, &appender, error, sizeof error),
            0);
    ck_assert_int_eq(domus_append_end(&appender, &page), 0);
    domus_slice one = page;
    one.size = (page.size - 6) / 2;
    one.offset += 6 + one.size;
    ck_assert_int_eq(domt_unpickle_message(picklers, &context, one, &read, error, sizeof error), 0);
    ck_assert_str_eq(read.who, "bo");
    ck_assert_ptr_eq(read.raw.page, page.page);
    ck_assert(domus_slice_equals(read.raw, "raw", 3));
    domus_slice_free(page);
    release_plain(&read);
    release_plain(&value);
    domus_picklers_free(picklers);
}

/* Each allocation of the library fails in turn. */
DOMT_TEST(each_failure_of_memory_is_returned_and_nothing_is_left)
{
    domus_picklers *picklers = domt_make_picklers(domt_all_picklers);
    domus_pickle_context context = domt_addresses;
    char error[DOMUS_PICKLE_ERROR_MAX];
    int failures = 0;
    domt_all all;
    domt_all read;

    context.share_min = UINT32_MAX;
    domt_all_fill_at_random(&all, 5, 1);
    domus_slice bytes = domt_pickle_payload(picklers, &domt_addresses, &domt_all_type, &all);
    for (int64_t i = 0, result = -1; result != 0; i++) {
        domi_memory_fail_allocation_after(i, 0);
        result = domt_unpickle_message(picklers, &context, bytes, &read, error, sizeof error);
        domi_memory_fail_allocation_after(-1, 0);
        ck_assert(result == 0 || result == -ENOMEM);
        ck_assert(result == 0 || strstr(error, ": no memory") != NULL);
        failures += result != 0;
    }
    /* as many allocations failed as there are slices, and 5 further ones */
    ck_assert_int_eq(failures, 5 + DOMT_ALL_PARTS_MAX);
    domt_all_free(&read);
    for (int64_t i = 0, result = -1; result != 0; i++) {
        domus_appender appender = {0};
        domi_memory_fail_allocation_after(i, 0);
        result = domus_pickle(picklers, &domt_addresses, &domt_all_type, &all, &appender, error,
                              sizeof error);
        domi_memory_fail_allocation_after(-1, 0);
        ck_assert(result == 0 || (result == -ENOMEM && appender.error == -ENOMEM));
        domus_append_drop(&appender);
    }
    domus_slice_free(bytes);
    domt_all_free(&all);
    domus_picklers_free(picklers);
}

typedef struct domt_heap {
    char *text;
    uint64_t *list;
    uint32_t count;
} domt_heap;

static const domus_pickle_field heap_fields[] = {
    {DOMUS_PICKLE(1, domt_heap, text, OWNED_TEXT(1u << 29, NULL))},
    {DOMUS_PICKLE_OWNED(2, domt_heap, list, count, 1u << 24, UINT(0))},
};
static const domus_pickle_table heap_table = DOMUS_PICKLE_TABLE(domt_heap, heap_fields);

static void release_heap(void *value)
{
    domus_pickle_release(&heap_table, value);
}

static const domus_type heap_type = {"heap", sizeof(domt_heap), release_heap};
static const domus_pickler heaps[] = {{.type = &heap_type, .version = 1, .table = &heap_table},
                                      {.type = NULL}};

/* Read a body of `mark`, a size of 4 bytes and as many bytes, while the address space of the
 * process is limited, and check that memory is missing. */
static void expect_read_exceeds_memory(const char *mark, uint32_t size, const char *expected)
{
    static const domus_pickle_context context = {.bytes_max = 1u << 29, .memory_max = UINT32_MAX};
    domus_picklers *picklers = domt_make_picklers(heaps);
    char error[DOMUS_PICKLE_ERROR_MAX] = "";
    char *body = malloc(size + 8u);
    struct rlimit before;
    domt_heap value;

    memcpy(body, mark, 3);
    for (int i = 0; i < 4; i++)
        body[3 + i] = (char)(size >> (24 - 8 * i));
    memset(body + 7, 1, size);
    domus_slice bytes = domt_make_pickled_message("heap", 1, body, size + 7u);
    free(body);
    ck_assert_int_eq(getrlimit(RLIMIT_AS, &before), 0);
    struct rlimit little = {1 << 20, before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &little), 0);
    int result = domt_unpickle_message(picklers, &context, bytes, &value, error, sizeof error);
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &before), 0);
    ck_assert_int_eq(result, -ENOMEM);
    ck_assert_str_eq(error, expected);
    domus_slice_free(bytes);
    domus_picklers_free(picklers);
}

DOMT_TEST(memory_of_malloc_that_fails_is_an_error)
{
    if (DOMT_SANITIZED)
        return; /* the malloc of a sanitizer ignores the limit of the address space */
    expect_read_exceeds_memory("\x81\x01\xdb", 40u << 20, "heap.text: no memory");
    expect_read_exceeds_memory("\x81\x02\xdd", 12u << 20, "heap.list: no memory");
}

DOMT_SUITE(60)
