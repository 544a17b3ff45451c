/* base/slice.c and base/page.c: slices own counted pages, borrowed or not, and split and join
 * without copies where they can. */
#include <domus/slice.h>

#include "base/memory.h"
#include "base/page.h"

#include "tests/support/suite.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

static domus_slice make_slice_of_text(const char *text)
{
    domus_slice slice = {NULL, 0, 0};

    ck_assert_int_eq(domus_slice_copy(text, strlen(text), &slice), 0);
    return slice;
}

static void assert_slice_has_text(domus_slice slice, const char *text)
{
    ck_assert_msg(domus_slice_equals(slice, text, strlen(text)), "%.*s, not %s", (int)slice.size,
                  domus_slice_data(slice), text);
}

static uint32_t owners_of_slice_page(domus_slice slice)
{
    return atomic_load(&domi_page_of_slice(slice)->count);
}

/* --- slices ----------------------------------------------------------------------------------- */

DOMT_TEST(slice_copies_its_bytes)
{
    char text[] = "many words";
    domus_slice slice = make_slice_of_text(text);

    text[0] = 'M';
    assert_slice_has_text(slice, "many words");
    ck_assert(!domus_slice_equals(slice, "many word", 9));
    ck_assert(!domus_slice_equals(slice, "Many words", 10));
    domus_slice_free(slice);
}

DOMT_TEST(slice_without_bytes_owns_no_page)
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

DOMT_TEST(page_lives_as_long_as_its_last_slice)
{
    domus_slice slice = make_slice_of_text("shared");
    domus_slice kept[3];

    /* domus_slice_keep() gets no memory for its copy of the borrowed bytes */
    domi_memory_fail_allocation_after(0, 1);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(domus_slice_keep(slice, &kept[i]), 0);
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_ptr_eq(domus_slice_data(kept[2]), domus_slice_data(slice));
    ck_assert_uint_eq(owners_of_slice_page(slice), 4);
    domus_slice_free(slice);
    domus_slice_free(kept[0]);
    domus_slice_free(kept[2]);
    assert_slice_has_text(kept[1], "shared");
    domus_slice_free(kept[1]);
}

DOMT_TEST(message_of_slice_type_releases_its_slice)
{
    domus_slice slice = make_slice_of_text("payload");
    domus_slice kept;

    ck_assert_int_eq(domus_slice_keep(slice, &kept), 0);
    ck_assert_uint_eq(domus_slice_type.size, sizeof slice);
    domus_slice_type.release(&slice);
    ck_assert_uint_eq(owners_of_slice_page(kept), 1);
    domus_slice_free(kept);
}

DOMT_TEST(slice_is_split_at_every_place)
{
    for (uint32_t at = 0; at <= 5; at++) {
        domus_slice slice = make_slice_of_text("abcde");
        domus_slice rest;
        ck_assert_int_eq(domus_slice_split(&slice, at, &rest), 0);
        ck_assert_uint_eq(slice.size, at);
        ck_assert_uint_eq(rest.size, 5 - at);
        ck_assert_mem_eq(domus_slice_data(slice), "abcde", at);
        ck_assert_mem_eq(domus_slice_data(rest), &"abcde"[at], 5 - at);
        ck_assert((slice.page == NULL) == (at == 0) && (rest.page == NULL) == (at == 5));
        domus_slice_free(slice);
        assert_slice_has_text(rest, &"abcde"[at]);
        domus_slice_free(rest);
    }
}

DOMT_TEST(split_beyond_the_end_is_refused)
{
    domus_slice slice = make_slice_of_text("abc");
    domus_slice rest = {NULL, 0, 9};

    ck_assert_int_eq(domus_slice_split(&slice, 4, &rest), -EINVAL);
    ck_assert_int_eq(domus_slice_split(&slice, UINT32_MAX, &rest), -EINVAL);
    ck_assert_uint_eq(rest.size, 9);
    assert_slice_has_text(slice, "abc");
    domus_slice_free(slice);
}

/* --- join ------------------------------------------------------------------------------------- */

DOMT_TEST(join_copies_slices_of_several_pages)
{
    domus_slice pieces[] = {make_slice_of_text("one "),
                            {NULL, 0, 0},
                            make_slice_of_text("two "),
                            make_slice_of_text("three")};
    domus_slice whole;

    ck_assert_int_eq(domus_slice_join(pieces, 4, &whole), 0);
    assert_slice_has_text(whole, "one two three");
    domus_slice_free(whole);
}

DOMT_TEST(join_of_neighbouring_slices_copies_nothing)
{
    domus_slice pieces[5] = {{NULL, 0, 0}, make_slice_of_text("abcdef")};
    domus_slice whole;

    ck_assert_int_eq(domus_slice_split(&pieces[1], 2, &pieces[2]), 0);
    ck_assert_int_eq(domus_slice_split(&pieces[2], 1, &pieces[4]), 0);
    ck_assert_uint_eq(owners_of_slice_page(pieces[4]), 3);
    domi_memory_fail_allocation_after(0, 1);
    ck_assert_int_eq(domus_slice_join(pieces, 5, &whole), 0);
    domi_memory_fail_allocation_after(-1, 0);
    assert_slice_has_text(whole, "abcdef");
    ck_assert_uint_eq(owners_of_slice_page(whole), 1);
    domus_slice_free(whole);
}

/* Pieces of one page with a gap between them are copied by a join, also if they are in the page's
 * order. */
DOMT_TEST(join_of_slices_with_a_gap_copies_them)
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

DOMT_TEST(join_keeps_the_order_of_slices)
{
    domus_slice pieces[2] = {{NULL, 0, 0}, make_slice_of_text("abcd")};
    domus_slice whole;

    ck_assert_int_eq(domus_slice_split(&pieces[1], 2, &pieces[0]), 0);
    ck_assert_int_eq(domus_slice_join(pieces, 2, &whole), 0);
    assert_slice_has_text(whole, "cdab");
    domus_slice_free(whole);

    pieces[0] = make_slice_of_text("ab");
    ck_assert_int_eq(domus_slice_keep(pieces[0], &pieces[1]), 0);
    ck_assert_int_eq(domus_slice_join(pieces, 2, &whole), 0);
    assert_slice_has_text(whole, "abab");
    domus_slice_free(whole);
}

DOMT_TEST(join_of_no_bytes_is_empty_slice)
{
    domus_slice pieces[2] = {make_slice_of_text("ab"), {NULL, 0, 0}};
    domus_slice whole = {NULL, 3, 3};

    ck_assert_int_eq(domus_slice_join(NULL, 0, &whole), 0);
    ck_assert(whole.page == NULL && whole.size == 0);
    pieces[0].size = 0; /* the piece without bytes owns a page, which the join frees */
    ck_assert_int_eq(domus_slice_join(pieces, 2, &whole), 0);
    ck_assert(whole.page == NULL && whole.size == 0);
}

DOMT_TEST(failed_join_consumes_no_slice)
{
    domus_slice pieces[2] = {make_slice_of_text("one"), make_slice_of_text("two")};
    domus_slice huge[2] = {pieces[0], pieces[1]};
    domus_slice whole = {NULL, 0, 7};

    domi_memory_fail_allocation_after(0, 0);
    ck_assert_int_eq(domus_slice_join(pieces, 2, &whole), -ENOMEM);
    /* the join checks the sum of the sizes before it reads any byte */
    huge[0].size = DOMUS_SLICE_MAX;
    huge[1].size = 1;
    ck_assert_int_eq(domus_slice_join(huge, 2, &whole), -EMSGSIZE);
    ck_assert_uint_eq(whole.size, 7);
    assert_slice_has_text(pieces[0], "one");
    domus_slice_free(pieces[0]);
    domus_slice_free(pieces[1]);
}

/* --- borrowed pages --------------------------------------------------------------------------- */

static domus_slice make_slice_of_borrowed_page(domi_page *page, uint32_t offset, uint32_t size)
{
    domi_page_add_owner(page);
    return (domus_slice){&page->face, offset, size};
}

static void keep_slice_of_borrowed_page(uint32_t size)
{
    char *buffer = malloc(size);
    domi_page *page = domi_page_new_borrower();
    domus_slice kept;

    memset(buffer, 'x', size);
    domi_page_show_borrowed_bytes(page, buffer, size);
    domus_slice slice = make_slice_of_borrowed_page(page, size - 1, 1);
    ck_assert_ptr_eq(domus_slice_data(slice), buffer + size - 1);
    ck_assert_int_eq(domus_slice_keep(slice, &kept), 0);
    free(buffer);
    ck_assert_ptr_eq(domus_slice_data(slice), domus_slice_data(kept));
    ck_assert_int_eq(*domus_slice_data(kept), 'x');
    /* domi_page_own_borrowed_bytes() needs no memory, because the kept slice has made the only copy
     */
    domi_memory_fail_allocation_after(0, 1);
    ck_assert_int_eq(domi_page_own_borrowed_bytes(page), 0);
    domi_memory_fail_allocation_after(-1, 0);
    domi_page_drop_owner(page);
    domus_slice_free(slice);
    ck_assert_uint_eq(owners_of_slice_page(kept), 1);
    domus_slice_free(kept);
}

DOMT_TEST(borrowed_bytes_are_copied_at_first_keep)
{
    keep_slice_of_borrowed_page(1);
    keep_slice_of_borrowed_page(DOMI_PAGE_ROOM);
    keep_slice_of_borrowed_page(DOMI_PAGE_ROOM + 1);
    keep_slice_of_borrowed_page(65536);
}

DOMT_TEST(failed_copy_leaves_borrowed_bytes)
{
    static char buffer[DOMI_PAGE_ROOM + 1] = "borrowed";
    domi_page *page = domi_page_new_borrower();
    domus_slice kept = {NULL, 0, 9};
    domus_slice slice;

    domi_page_show_borrowed_bytes(page, buffer, sizeof buffer);
    slice = make_slice_of_borrowed_page(page, 0, 8);
    domi_memory_fail_allocation_after(0, 1);
    ck_assert_int_eq(domus_slice_keep(slice, &kept), -ENOMEM);
    ck_assert_int_eq(domus_slice_split(&slice, 3, &kept), -ENOMEM);
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_uint_eq(kept.size, 9);
    ck_assert_uint_eq(owners_of_slice_page(slice), 2);
    ck_assert(page->borrowed);
    assert_slice_has_text(slice, "borrowed");
    ck_assert_int_eq(domus_slice_split(&slice, 3, &kept), 0);
    memset(buffer, 0, sizeof buffer);
    assert_slice_has_text(slice, "bor");
    assert_slice_has_text(kept, "rowed");
    domus_slice_free(slice);
    domus_slice_free(kept);
    domi_page_drop_owner(page);
}

/* Pages of 128 KiB, which pieces of files need, are kept by their thread for its next ones. */
DOMT_TEST(page_for_file_pieces_is_kept_by_thread)
{
#ifdef __SANITIZE_ADDRESS__
    return; /* under AddressSanitizer no page is kept */
#endif
    domi_pages_begin_to_keep_freed_pages();
    /* a page of this size is too large to be kept by its thread */
    domi_page_drop_owner(domi_page_new(150000));
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

/* Pages of up to 136 KiB are kept by their thread, up to 512 KiB in sum, for new pages of nearly
 * their size. */
DOMT_TEST(larger_pages_are_kept_by_thread_within_limit)
{
    enum { KEPT = 34, MORE = 4, SIZE = 15000 };
    domi_page *pages[KEPT + MORE];

#ifdef __SANITIZE_ADDRESS__
    return; /* under AddressSanitizer no page is kept */
#endif
    domi_pages_begin_to_keep_freed_pages();
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

DOMT_TEST(page_of_borrowed_bytes_ends_with_borrower)
{
    domi_page *page = domi_page_new_borrower();

    domi_page_show_borrowed_bytes(page, "bytes", 5);
    domus_slice slice = make_slice_of_borrowed_page(page, 1, 2);
    ck_assert(!domi_page_is_unshared(page));
    domus_slice_free(slice);
    ck_assert(domi_page_is_unshared(page));
    domi_page_drop_owner(page);
    domi_memory_fail_allocation_after(0, 0);
    ck_assert_ptr_null(domi_page_new_borrower());
}

/* A thread keeps up to 256 small pages and gives them again without an allocation; further pages
 * are freed. */
DOMT_TEST(small_pages_are_kept_by_thread)
{
    enum { KEPT = 256, MORE = 10 };
    static domi_page *pages[KEPT + MORE];

#ifdef __SANITIZE_ADDRESS__
    return; /* under AddressSanitizer no page is kept, so that it finds uses of freed pages */
#endif
    domi_pages_begin_to_keep_freed_pages();
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
        ck_assert_ptr_null(domi_page_new(1)); /* the large page was not kept for this small one */
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

/* Use a page that several threads share: each thread owns a slice of it, and keeps, reads, splits
 * and frees that slice. */
static void *use_shared_page_in_thread(void *argument)
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

/* A wrong count or an early free of the page is seen only under ThreadSanitizer or
 * AddressSanitizer. */
DOMT_TEST(threads_share_slices_of_one_page)
{
    static char bytes[1000];
    domi_page *page = domi_page_new_borrower();
    domus_slice slices[THREADS];
    pthread_t threads[THREADS];

    memset(bytes, 'y', sizeof bytes);
    domi_page_show_borrowed_bytes(page, bytes, sizeof bytes);
    slices[0] = make_slice_of_borrowed_page(page, 0, sizeof bytes);
    for (int i = 1; i < THREADS; i++)
        ck_assert_int_eq(domus_slice_keep(slices[0], &slices[i]), 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, use_shared_page_in_thread, &slices[i]),
                         0);
    domi_page_drop_owner(page);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        ck_assert_ptr_null(failed);
    }
}

DOMT_SUITE(30)
