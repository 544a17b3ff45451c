/* base/slice.c and base/page.c: slices own counted pages, borrowed or not, and split and join
 * without copies where they can. */
#include <domus/slice.h>

#include "base/memory.h"
#include "base/page.h"

#include "tests/support/suite.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

static domus_slice slice_of(const char *text)
{
    domus_slice slice = {NULL, 0, 0};

    ck_assert_int_eq(domus_slice_copy(text, strlen(text), &slice), 0);
    return slice;
}

static void assert_text(domus_slice slice, const char *text)
{
    ck_assert_msg(domus_slice_equals(slice, text, strlen(text)), "%.*s, not %s", (int)slice.size,
                  domus_slice_data(slice), text);
}

static uint32_t count_of(domus_slice slice)
{
    return atomic_load(&domi_page_of_slice(slice)->count);
}

/* --- slices ----------------------------------------------------------------------------------- */

DOMT_TEST(slice_is_a_copy_of_bytes)
{
    char text[] = "many words";
    domus_slice slice = slice_of(text);

    text[0] = 'M';
    assert_text(slice, "many words");
    ck_assert(!domus_slice_equals(slice, "many word", 9));
    ck_assert(!domus_slice_equals(slice, "Many words", 10));
    domus_slice_free(slice);
}

DOMT_TEST(slice_without_bytes_owns_nothing)
{
    domus_slice slice = {(const domus_page *)(uintptr_t)8, 1, 1};
    domus_slice kept;

    domi_memory_fail_allocation_after(0, 1);
    ck_assert_int_eq(domus_slice_copy(NULL, 0, &slice), 0);
    ck_assert(slice.page == NULL && slice.size == 0 && slice.offset == 0);
    ck_assert_int_eq(domus_slice_keep(slice, &kept), 0);
    ck_assert(kept.page == NULL);
    ck_assert_str_eq(domus_slice_data(slice), "");
    ck_assert(domus_slice_equals(slice, NULL, 0));
    domus_slice_free(slice);
    domus_slice_free(kept);
    domi_memory_fail_allocation_after(-1, 0);
}

DOMT_TEST(slice_larger_than_the_limit_is_refused)
{
    domus_slice slice = {NULL, 7, 7};

    ck_assert_int_eq(domus_slice_copy("", (size_t)DOMUS_SLICE_MAX + 1, &slice), -EMSGSIZE);
    ck_assert_int_eq(domus_slice_copy("", SIZE_MAX, &slice), -EMSGSIZE);
    ck_assert_uint_eq(slice.size, 7);
    domi_memory_fail_allocation_after(0, 0);
    ck_assert_int_eq(domus_slice_copy("x", 1, &slice), -ENOMEM);
    ck_assert_uint_eq(slice.size, 7);
}

DOMT_TEST(slice_lives_as_long_as_its_last_owner)
{
    domus_slice slice = slice_of("shared");
    domus_slice kept[3];

    domi_memory_fail_allocation_after(0, 1); /* domus_slice_keep() gets no memory for its copy */
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(domus_slice_keep(slice, &kept[i]), 0);
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_ptr_eq(domus_slice_data(kept[2]), domus_slice_data(slice));
    ck_assert_uint_eq(count_of(slice), 4);
    domus_slice_free(slice);
    domus_slice_free(kept[0]);
    domus_slice_free(kept[2]);
    assert_text(kept[1], "shared");
    domus_slice_free(kept[1]);
}

DOMT_TEST(slice_of_the_slice_type_is_released)
{
    domus_slice slice = slice_of("payload");
    domus_slice kept;

    ck_assert_int_eq(domus_slice_keep(slice, &kept), 0);
    ck_assert_uint_eq(domus_slice_type.size, sizeof slice);
    domus_slice_type.release(&slice);
    ck_assert_uint_eq(count_of(kept), 1);
    domus_slice_free(kept);
}

DOMT_TEST(split_parts_at_every_place)
{
    for (uint32_t at = 0; at <= 5; at++) {
        domus_slice slice = slice_of("abcde");
        domus_slice rest;
        ck_assert_int_eq(domus_slice_split(&slice, at, &rest), 0);
        ck_assert_uint_eq(slice.size, at);
        ck_assert_uint_eq(rest.size, 5 - at);
        ck_assert_mem_eq(domus_slice_data(slice), "abcde", at);
        ck_assert_mem_eq(domus_slice_data(rest), &"abcde"[at], 5 - at);
        ck_assert((slice.page == NULL) == (at == 0) && (rest.page == NULL) == (at == 5));
        domus_slice_free(slice);
        assert_text(rest, &"abcde"[at]);
        domus_slice_free(rest);
    }
}

DOMT_TEST(split_beyond_the_end_changes_nothing)
{
    domus_slice slice = slice_of("abc");
    domus_slice rest = {NULL, 0, 9};

    ck_assert_int_eq(domus_slice_split(&slice, 4, &rest), -EINVAL);
    ck_assert_int_eq(domus_slice_split(&slice, UINT32_MAX, &rest), -EINVAL);
    ck_assert_uint_eq(rest.size, 9);
    assert_text(slice, "abc");
    domus_slice_free(slice);
}

/* --- join ------------------------------------------------------------------------------------- */

DOMT_TEST(join_copies_pieces_of_several_pages)
{
    domus_slice pieces[] = {slice_of("one "), {NULL, 0, 0}, slice_of("two "), slice_of("three")};
    domus_slice whole;

    ck_assert_int_eq(domus_slice_join(pieces, 4, &whole), 0);
    assert_text(whole, "one two three");
    domus_slice_free(whole);
}

DOMT_TEST(join_of_neighbours_copies_nothing)
{
    domus_slice pieces[5] = {{NULL, 0, 0}, slice_of("abcdef")};
    domus_slice whole;

    ck_assert_int_eq(domus_slice_split(&pieces[1], 2, &pieces[2]), 0);
    ck_assert_int_eq(domus_slice_split(&pieces[2], 1, &pieces[4]), 0);
    ck_assert_uint_eq(count_of(pieces[4]), 3);
    domi_memory_fail_allocation_after(0, 1);
    ck_assert_int_eq(domus_slice_join(pieces, 5, &whole), 0);
    domi_memory_fail_allocation_after(-1, 0);
    assert_text(whole, "abcdef");
    ck_assert_uint_eq(count_of(whole), 1);
    domus_slice_free(whole);
}

/* Pieces of one page that do not follow each other are not neighbours. */
/* Pieces of one page that are no neighbours are copied, also when they are in its order. */
DOMT_TEST(join_of_pieces_with_a_gap_copies_them)
{
    domus_slice pieces[2], gap, joined;

    ck_assert_int_eq(domus_slice_copy("abcdef", 6, &pieces[0]), 0);
    ck_assert_int_eq(domus_slice_split(&pieces[0], 2, &gap), 0);
    ck_assert_int_eq(domus_slice_split(&gap, 2, &pieces[1]), 0);
    ck_assert_int_eq(domus_slice_join(pieces, 2, &joined), 0);
    ck_assert(domus_slice_equals(joined, "abef", 4));
    ck_assert(joined.page != gap.page);
    domus_slice_free(joined);
    domus_slice_free(gap);
}

DOMT_TEST(join_keeps_the_order_of_the_pieces)
{
    domus_slice pieces[2] = {{NULL, 0, 0}, slice_of("abcd")};
    domus_slice whole;

    ck_assert_int_eq(domus_slice_split(&pieces[1], 2, &pieces[0]), 0);
    ck_assert_int_eq(domus_slice_join(pieces, 2, &whole), 0);
    assert_text(whole, "cdab");
    domus_slice_free(whole);

    pieces[0] = slice_of("ab");
    ck_assert_int_eq(domus_slice_keep(pieces[0], &pieces[1]), 0);
    ck_assert_int_eq(domus_slice_join(pieces, 2, &whole), 0);
    assert_text(whole, "abab");
    domus_slice_free(whole);
}

DOMT_TEST(join_of_nothing_is_empty)
{
    domus_slice pieces[2] = {slice_of("ab"), {NULL, 0, 0}};
    domus_slice whole = {NULL, 3, 3};

    ck_assert_int_eq(domus_slice_join(NULL, 0, &whole), 0);
    ck_assert(whole.page == NULL && whole.size == 0);
    pieces[0].size = 0; /* the piece without bytes owns a page, which the join gives back */
    ck_assert_int_eq(domus_slice_join(pieces, 2, &whole), 0);
    ck_assert(whole.page == NULL && whole.size == 0);
}

DOMT_TEST(join_that_fails_consumes_nothing)
{
    domus_slice pieces[2] = {slice_of("one"), slice_of("two")};
    domus_slice huge[2] = {pieces[0], pieces[1]};
    domus_slice whole = {NULL, 0, 7};

    domi_memory_fail_allocation_after(0, 0);
    ck_assert_int_eq(domus_slice_join(pieces, 2, &whole), -ENOMEM);
    huge[0].size = DOMUS_SLICE_MAX; /* sizes are checked before any byte is read */
    huge[1].size = 1;
    ck_assert_int_eq(domus_slice_join(huge, 2, &whole), -EMSGSIZE);
    ck_assert_uint_eq(whole.size, 7);
    assert_text(pieces[0], "one");
    domus_slice_free(pieces[0]);
    domus_slice_free(pieces[1]);
}

/* --- borrowed pages --------------------------------------------------------------------------- */

static domus_slice borrow_slice(domi_page *page, uint32_t offset, uint32_t size)
{
    domi_page_add_owner(page);
    return (domus_slice){&page->face, offset, size};
}

static void keep_of_borrowed(uint32_t size)
{
    char *buffer = malloc(size);
    domi_page *page = domi_page_new_borrower();
    domus_slice kept;

    memset(buffer, 'x', size);
    domi_page_show_bytes(page, buffer, size);
    domus_slice slice = borrow_slice(page, size - 1, 1);
    ck_assert_ptr_eq(domus_slice_data(slice), buffer + size - 1);
    ck_assert_int_eq(domus_slice_keep(slice, &kept), 0);
    free(buffer);
    ck_assert_ptr_eq(domus_slice_data(slice), domus_slice_data(kept));
    ck_assert_int_eq(*domus_slice_data(kept), 'x');
    domi_memory_fail_allocation_after(0,
                                      1); /* the one allocation is for the only copy of the bytes */
    ck_assert_int_eq(domi_page_own_borrowed_bytes(page), 0);
    domi_memory_fail_allocation_after(-1, 0);
    domi_page_drop_owner(page);
    domus_slice_free(slice);
    ck_assert_uint_eq(count_of(kept), 1);
    domus_slice_free(kept);
}

DOMT_TEST(borrowed_bytes_are_copied_at_the_first_keep)
{
    keep_of_borrowed(1);
    keep_of_borrowed(DOMI_PAGE_ROOM);
    keep_of_borrowed(DOMI_PAGE_ROOM + 1);
    keep_of_borrowed(65536);
}

DOMT_TEST(borrowed_bytes_stay_when_they_cannot_be_copied)
{
    static char buffer[DOMI_PAGE_ROOM + 1] = "borrowed";
    domi_page *page = domi_page_new_borrower();
    domus_slice kept = {NULL, 0, 9};
    domus_slice slice;

    domi_page_show_bytes(page, buffer, sizeof buffer);
    slice = borrow_slice(page, 0, 8);
    domi_memory_fail_allocation_after(0, 1);
    ck_assert_int_eq(domus_slice_keep(slice, &kept), -ENOMEM);
    ck_assert_int_eq(domus_slice_split(&slice, 3, &kept), -ENOMEM);
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_uint_eq(kept.size, 9);
    ck_assert_uint_eq(count_of(slice), 2);
    ck_assert(page->borrowed);
    assert_text(slice, "borrowed");
    ck_assert_int_eq(domus_slice_split(&slice, 3, &kept), 0);
    memset(buffer, 0, sizeof buffer);
    assert_text(slice, "bor");
    assert_text(kept, "rowed");
    domus_slice_free(slice);
    domus_slice_free(kept);
    domi_page_drop_owner(page);
}

/* Pages of 128 KiB, which pieces of files need, are kept by their thread. */
DOMT_TEST(page_of_a_piece_of_a_file_is_kept_by_its_thread)
{
#ifdef __SANITIZE_ADDRESS__
    return; /* pages are not kept under a sanitizer */
#endif
    domi_pages_begin_to_keep();
    domi_page_drop_owner(domi_page_new(150000)); /* a page of this size is too large to be kept */
    domi_memory_fail_allocation_after(0, 1);
    ck_assert_ptr_null(domi_page_new(150000));
    domi_memory_fail_allocation_after(-1, 0);
    domi_page_drop_owner(domi_page_new(131072));
    domi_memory_fail_allocation_after(0, 1);
    domi_page *page = domi_page_new(131072);
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_ptr_nonnull(page);
    domi_page_drop_owner(page);
    domi_pages_free_kept();
}

/* Pages of up to 136 KiB are also kept, up to 512 KiB in sum, for new pages of nearly their
 * size. */
DOMT_TEST(some_larger_pages_are_kept_by_their_thread)
{
    enum { KEPT = 34, MORE = 4, SIZE = 15000 };
    domi_page *pages[KEPT + MORE];

#ifdef __SANITIZE_ADDRESS__
    return; /* pages are not kept under a sanitizer */
#endif
    domi_pages_begin_to_keep();
    for (int i = 0; i < KEPT + MORE; i++)
        pages[i] = domi_page_new(SIZE);
    for (int i = 0; i < KEPT + MORE; i++)
        domi_page_drop_owner(pages[i]);
    domi_memory_fail_allocation_after(0, 1);
    ck_assert_ptr_null(domi_page_new(SIZE / 2));
    ck_assert_ptr_null(domi_page_new(SIZE + SIZE / 2));
    for (int i = 0; i < KEPT; i++) {
        pages[i] = domi_page_new(i % 2 == 0 ? SIZE : SIZE - SIZE / 10);
        ck_assert_ptr_nonnull(pages[i]);
        ck_assert(!pages[i]->borrowed && pages[i]->face.data == pages[i]->room);
    }
    ck_assert_ptr_null(domi_page_new(SIZE));
    domi_memory_fail_allocation_after(-1, 0);
    for (int i = 0; i < KEPT; i++)
        domi_page_drop_owner(pages[i]);
    domi_pages_free_kept();
    domi_memory_fail_allocation_after(0, 0);
    ck_assert_ptr_null(domi_page_new(SIZE));
}

DOMT_TEST(borrowing_page_ends_with_its_borrower)
{
    domi_page *page = domi_page_new_borrower();

    domi_page_show_bytes(page, "bytes", 5);
    domus_slice slice = borrow_slice(page, 1, 2);
    ck_assert(!domi_page_is_unshared(page));
    domus_slice_free(slice);
    ck_assert(domi_page_is_unshared(page));
    domi_page_drop_owner(page);
    domi_memory_fail_allocation_after(0, 0);
    ck_assert_ptr_null(domi_page_new_borrower());
}

/* A thread keeps up to 256 small pages, which it gives again without an allocation; more of them
 * are freed. */
DOMT_TEST(small_pages_are_kept_by_their_thread)
{
    enum { KEPT = 256, MORE = 10 };
    static domi_page *pages[KEPT + MORE];

#ifdef __SANITIZE_ADDRESS__
    return; /* no page is kept, because the sanitizer then finds more */
#endif
    domi_pages_begin_to_keep();
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < KEPT + MORE; i++) {
            pages[i] = i % 2 == 0 ? domi_page_new(DOMI_PAGE_ROOM) : domi_page_new_borrower();
            ck_assert_ptr_nonnull(pages[i]);
            ck_assert_ptr_null(pages[i]->memory);
            ck_assert(pages[i]->borrowed == (i % 2 != 0));
        }
        domi_page *large = domi_page_new(DOMI_PAGE_ROOM + 1);
        ck_assert_ptr_nonnull(large);
        domi_page_drop_owner(large);
        domi_memory_fail_allocation_after(0, 0);
        ck_assert_ptr_null(domi_page_new(1)); /* the large one was not kept */
        domi_memory_fail_allocation_after(-1, 0);
        for (int i = 0; i < KEPT + MORE; i++)
            domi_page_drop_owner(pages[i]);
        domi_memory_fail_allocation_after(0, 0);
        for (int i = 0; i < KEPT; i++) {
            pages[i] = domi_page_new_borrower();
            ck_assert_ptr_nonnull(pages[i]);
        }
        ck_assert_ptr_null(domi_page_new_borrower());
        domi_memory_fail_allocation_after(-1, 0);
        for (int i = 0; i < KEPT; i++)
            domi_page_drop_owner(pages[i]);
    }
    domi_pages_free_kept();
    domi_memory_fail_allocation_after(0, 0);
    ck_assert_ptr_null(domi_page_new(1));
}

/* --- threads ---------------------------------------------------------------------------------- */

#define THREADS 4
#define ROUNDS  2000

/* Use a page that all threads share: each thread owns a slice of it, and keeps, reads, splits and
 * frees that slice. */
static void *use_shared(void *argument)
{
    domus_slice mine = *(domus_slice *)argument;

    for (int i = 0; i < ROUNDS; i++) {
        domus_slice kept;
        domus_slice rest;
        if (domus_slice_keep(mine, &kept) != 0 || domus_slice_split(&kept, 100, &rest) != 0 ||
            domus_slice_data(rest)[0] != 'y')
            return argument;
        domus_slice_free(mine);
        domus_slice_free(kept);
        rest.offset -= 100;
        rest.size += 100;
        mine = rest;
    }
    domus_slice_free(mine);
    return NULL;
}

/* A wrong count or free is seen only under ThreadSanitizer or AddressSanitizer. */
DOMT_TEST(slices_are_shared_by_threads)
{
    static char bytes[1000];
    domi_page *page = domi_page_new_borrower();
    domus_slice slices[THREADS];
    pthread_t threads[THREADS];

    memset(bytes, 'y', sizeof bytes);
    domi_page_show_bytes(page, bytes, sizeof bytes);
    slices[0] = borrow_slice(page, 0, sizeof bytes);
    for (int i = 1; i < THREADS; i++)
        ck_assert_int_eq(domus_slice_keep(slices[0], &slices[i]), 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, use_shared, &slices[i]), 0);
    domi_page_drop_owner(page);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        ck_assert_ptr_null(failed);
    }
}

DOMT_SUITE(30)
