/* Random operations on slices and appenders beside a plain model: for each slice the model has a
 * copy of the bytes that the slice should show. Threads hand slices to each other through one
 * shelf, so the last owner of a page is any of them. Each seed is a run of its own. */
#include <domus/slice.h>

#include "base/memory.h"
#include "base/page.h"
#include "base/random.h"

#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#define SLICES  24
#define SEEDS   DOMT_SCALE(150u, 25u)
#define STEPS   400
#define THREADS 4
#define SHELF   16
#define LARGE   5000u
#define BYTES   (64u * LARGE)

typedef struct known {
    domus_slice slice;
    char *bytes; /* copy of the bytes that the slice should show; NULL: this place holds no slice */
} known;

typedef struct run {
    domi_random random;
    known slices[SLICES];
    uint32_t fails; /* number of allocations that were made to fail in this run */
    bool may_fail;
} run;

static uint32_t draw_number_below(run *at, uint32_t bound)
{
    return (uint32_t)domi_random_below(&at->random, bound);
}

static char *copy_bytes_to_heap(const char *bytes, size_t size)
{
    char *copy = malloc(size + 1);

    ck_assert_ptr_nonnull(copy);
    if (size != 0)
        memcpy(copy, bytes, size);
    return copy;
}

static void check_slice_shows_model(const known *one)
{
    if (one->bytes != NULL)
        ck_assert(domus_slice_equals(one->slice, one->bytes, one->slice.size));
}

/* Returns a place of the run without a slice; NULL if each place has one. */
static known *find_place_without_slice(run *at)
{
    uint32_t from = draw_number_below(at, SLICES);

    for (uint32_t i = 0; i < SLICES; i++) {
        known *one = &at->slices[(from + i) % SLICES];
        if (one->bytes == NULL)
            return one;
    }
    return NULL;
}

/* Returns a slice of the run drawn by chance; NULL if the place that was drawn holds none. */
static known *draw_random_slice(run *at)
{
    known *one = &at->slices[draw_number_below(at, SLICES)];

    return one->bytes != NULL ? one : NULL;
}

static void put_slice_in_place(known *one, domus_slice slice, const char *bytes)
{
    *one = (known){slice, copy_bytes_to_heap(bytes, slice.size)};
    check_slice_shows_model(one);
}

static void empty_place_of_slice(known *one)
{
    free(one->bytes);
    *one = (known){{NULL, 0, 0}, NULL};
}

/* Begin an operation of the run; now and then its next allocation is made to fail. */
static void begin_operation_that_may_fail(run *at)
{
    if (at->may_fail && draw_number_below(at, 8) == 0)
        domi_memory_fail_allocation_after(0, 0);
}

/* End an operation of the run. Returns whether it succeeded; its only possible error is a failed
 * allocation. */
static bool end_operation_and_count_failure(run *at, int error)
{
    if (at->may_fail)
        domi_memory_fail_allocation_after(-1, 0);
    ck_assert(error == 0 || (at->may_fail && error == -ENOMEM));
    at->fails += error != 0;
    return error == 0;
}

static uint32_t draw_random_size(run *at)
{
    static const uint32_t bounds[] = {4, 40, 300, LARGE};

    return draw_number_below(at, bounds[draw_number_below(at, 4)]);
}

static void fill_with_random_bytes(run *at, char *bytes, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++)
        bytes[i] = (char)('a' + draw_number_below(at, 26));
}

/* --- the operations --------------------------------------------------------------------------- */

static void make_slice_of_random_bytes(run *at)
{
    char bytes[LARGE];
    uint32_t size = draw_random_size(at);
    known *to = find_place_without_slice(at);
    domus_slice slice;

    if (to == NULL)
        return;
    fill_with_random_bytes(at, bytes, size);
    begin_operation_that_may_fail(at);
    if (end_operation_and_count_failure(at, domus_slice_copy(bytes, size, &slice)))
        put_slice_in_place(to, slice, bytes);
}

static void keep_random_slice(run *at)
{
    known *from = draw_random_slice(at);
    known *to = find_place_without_slice(at);
    domus_slice slice;

    if (from == NULL || to == NULL)
        return;
    begin_operation_that_may_fail(at);
    if (end_operation_and_count_failure(at, domus_slice_keep(from->slice, &slice)))
        put_slice_in_place(to, slice, from->bytes);
}

static void split_random_slice(run *at)
{
    known *from = draw_random_slice(at);
    known *to = find_place_without_slice(at);
    domus_slice rest;

    if (from == NULL || to == NULL)
        return;
    uint32_t place = draw_number_below(at, from->slice.size + 1);
    begin_operation_that_may_fail(at);
    if (end_operation_and_count_failure(at, domus_slice_split(&from->slice, place, &rest)))
        put_slice_in_place(to, rest, from->bytes + place);
    check_slice_shows_model(from);
}

static void join_random_slices(run *at)
{
    known *froms[5];
    domus_slice pieces[5], whole;
    static _Thread_local char bytes[5 * BYTES];
    uint32_t count = 0, most = draw_number_below(at, 6);
    size_t size = 0;

    for (uint32_t i = 0; i < most; i++) {
        known *from = draw_random_slice(at);
        bool is_new = from != NULL && from->slice.size <= BYTES;
        for (uint32_t j = 0; is_new && j < count; j++)
            is_new = froms[j] != from;
        if (!is_new)
            continue;
        froms[count] = from;
        pieces[count++] = from->slice;
        memcpy(bytes + size, from->bytes, from->slice.size);
        size += from->slice.size;
    }
    begin_operation_that_may_fail(at);
    if (!end_operation_and_count_failure(at, domus_slice_join(pieces, count, &whole)))
        return;
    ck_assert_uint_eq(whole.size, size);
    for (uint32_t i = 0; i < count; i++)
        empty_place_of_slice(froms[i]);
    known *to = find_place_without_slice(at);
    if (to != NULL)
        put_slice_in_place(to, whole, bytes);
    else
        domus_slice_free(whole);
}

/* Append pieces to an appender in each way; some of the pieces are bytes that the appender already
 * holds. */
static void append_random_pieces(run *at)
{
    domus_appender appender = {.size_max = draw_number_below(at, 3) == 0 ? LARGE : 0};
    static _Thread_local char bytes[BYTES];
    known *to = find_place_without_slice(at);
    uint32_t most = draw_number_below(at, 8), size = 0;
    domus_slice slice;

    begin_operation_that_may_fail(at);
    for (uint32_t i = 0; i < most && size + LARGE <= BYTES; i++) {
        uint32_t more = draw_random_size(at);
        uint32_t how = draw_number_below(at, 4);
        char *room = NULL;
        /* This piece is a part of the bytes that the appender already holds. */
        if (how == 3 && size != 0 && appender.error == 0) {
            uint32_t from = draw_number_below(at, size);
            more = more < size - from ? more : size - from;
            memmove(bytes + size, bytes + from, more);
            (void)domus_append(&appender, appender.page->data + from, more);
        } else {
            fill_with_random_bytes(at, bytes + size, more);
            if (how == 0)
                (void)domus_append(&appender, bytes + size, more);
            else if (how == 1)
                (void)domus_append_text(&appender, "%.*s", (int)more, bytes + size);
            else
                room = domus_append_room(&appender, more + 7);
            if (room != NULL)
                memcpy(room, bytes + size, more);
            if (how >= 2)
                domus_append_written(&appender, more);
        }
        size += more;
    }
    if (draw_number_below(at, 10) == 0 || to == NULL) {
        domus_append_drop(&appender);
        (void)end_operation_and_count_failure(at, 0);
        return;
    }
    int error = domus_append_end(&appender, &slice);
    if (error == 0)
        put_slice_in_place(to, slice, bytes);
    else if (error == -EMSGSIZE && appender.size_max != 0)
        error = 0; /* all pieces together were larger than the appender's limit */
    (void)end_operation_and_count_failure(at, error);
}

/* Make a slice of a borrowed page. Before the borrowed bytes change, drop it, or let the page own
 * its bytes and keep the slice, which is dropped, too, if that fails. */
static void make_slices_of_borrowed_page(run *at)
{
    char bytes[LARGE];
    uint32_t size = 1 + draw_random_size(at);
    known *to = find_place_without_slice(at);
    domi_page *page = size <= LARGE ? domi_page_new_borrower() : NULL;

    if (page == NULL)
        return;
    fill_with_random_bytes(at, bytes, size);
    domi_page_show_borrowed_bytes(page, bytes, size);
    domi_page_add_owner(page);
    domus_slice slice = {&page->face, draw_number_below(at, size), 0};
    slice.size = draw_number_below(at, size - slice.offset + 1);
    if (to == NULL || draw_number_below(at, 4) == 0) {
        domus_slice_free(slice);
    } else {
        begin_operation_that_may_fail(at);
        if (end_operation_and_count_failure(at, domi_page_own_borrowed_bytes(page)))
            put_slice_in_place(to, slice, bytes + slice.offset);
        else
            domus_slice_free(slice);
    }
    memset(bytes, '#', sizeof bytes);
    domi_page_drop_owner(page);
}

static void drop_random_slice(run *at)
{
    known *one = draw_random_slice(at);

    if (one == NULL)
        return;
    check_slice_shows_model(one);
    domus_slice_free(one->slice);
    empty_place_of_slice(one);
}

/* --- threads ---------------------------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static known shelf[SHELF];

/* Take the slice from a random place of the shelf, and leave one of this run's slices there. */
static void exchange_slice_with_shelf(run *at)
{
    known *one = &at->slices[draw_number_below(at, SLICES)];
    known *place = &shelf[draw_number_below(at, SHELF)];

    pthread_mutex_lock(&mutex);
    known other = *place;
    *place = *one;
    *one = other;
    pthread_mutex_unlock(&mutex);
    check_slice_shows_model(one);
}

static void *do_random_operations(void *argument)
{
    static void (*const operations[])(run *) = {
        make_slice_of_random_bytes,   keep_random_slice,    split_random_slice,
        join_random_slices,           append_random_pieces, make_slices_of_borrowed_page,
        make_slices_of_borrowed_page, drop_random_slice,    drop_random_slice,
        exchange_slice_with_shelf};
    run *at = argument;

    for (int i = 0; i < STEPS; i++) {
        operations[draw_number_below(at, sizeof operations / sizeof operations[0])](at);
        check_slice_shows_model(&at->slices[draw_number_below(at, SLICES)]);
    }
    for (uint32_t i = 0; i < SLICES; i++) {
        check_slice_shows_model(&at->slices[i]);
        domus_slice_free(at->slices[i].slice);
        empty_place_of_slice(&at->slices[i]);
    }
    return NULL;
}

static void clear_and_check_shelf(void)
{
    for (uint32_t i = 0; i < SHELF; i++) {
        check_slice_shows_model(&shelf[i]);
        domus_slice_free(shelf[i].slice);
        empty_place_of_slice(&shelf[i]);
    }
}

DOMT_TEST(slices_show_bytes_of_model)
{
    uint32_t fails = 0;

    domi_pages_begin_to_keep_freed_pages();
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        run at = {.may_fail = seed % 2 == 0};
        domi_random_init(&at.random, seed);
        do_random_operations(&at);
        clear_and_check_shelf();
        fails += at.fails;
    }
    domi_pages_free_kept();
    ck_assert_uint_gt(fails, 0);
}

DOMT_TEST(slices_shared_by_threads_show_bytes_of_model)
{
    for (uint64_t seed = 1; seed <= SEEDS / 5; seed++) {
        static run runs[THREADS];
        pthread_t threads[THREADS];
        for (uint32_t i = 0; i < THREADS; i++) {
            runs[i] = (run){.may_fail = false};
            domi_random_init(&runs[i].random, seed * THREADS + i);
            ck_assert_int_eq(pthread_create(&threads[i], NULL, do_random_operations, &runs[i]), 0);
        }
        for (uint32_t i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        clear_and_check_shelf();
    }
}

DOMT_SUITE(60)
