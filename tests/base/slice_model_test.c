/* Random operations on slices and appenders beside a plain model: each slice has a copy of the
 * bytes that it should show. Threads hand slices to each other through one shelf, so the last owner
 * of a page is any of them. Each seed is a run of its own. */
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
    char *bytes; /* the bytes that the slice should show; NULL: the place holds no slice */
} known;

typedef struct run {
    domi_random random;
    known slices[SLICES];
    uint32_t fails; /* allocations that were made to fail */
    bool may_fail;
} run;

static uint32_t below(run *at, uint32_t bound)
{
    return (uint32_t)domi_random_below(&at->random, bound);
}

static char *copy_of(const char *bytes, size_t size)
{
    char *copy = malloc(size + 1);

    ck_assert_ptr_nonnull(copy);
    if (size != 0)
        memcpy(copy, bytes, size);
    return copy;
}

static void check_slice(const known *one)
{
    if (one->bytes != NULL)
        ck_assert(domus_slice_equals(one->slice, one->bytes, one->slice.size));
}

/* Returns a place without a slice; NULL if each place has one. */
static known *find_free(run *at)
{
    uint32_t from = below(at, SLICES);

    for (uint32_t i = 0; i < SLICES; i++) {
        known *one = &at->slices[(from + i) % SLICES];
        if (one->bytes == NULL)
            return one;
    }
    return NULL;
}

/* Returns a slice drawn by chance; NULL if the place that was drawn holds none. */
static known *draw_slice(run *at)
{
    known *one = &at->slices[below(at, SLICES)];

    return one->bytes != NULL ? one : NULL;
}

static void set_slice(known *one, domus_slice slice, const char *bytes)
{
    *one = (known){slice, copy_of(bytes, slice.size)};
    check_slice(one);
}

static void forget_slice(known *one)
{
    free(one->bytes);
    *one = (known){{NULL, 0, 0}, NULL};
}

/* Begin an operation; now and then the next allocation is made to fail. */
static void begin_operation(run *at)
{
    if (at->may_fail && below(at, 8) == 0)
        domi_memory_fail_allocation_after(0, 0);
}

/* End an operation. Returns whether it succeeded; its only possible error is a failed
 * allocation. */
static bool end_operation(run *at, int error)
{
    if (at->may_fail)
        domi_memory_fail_allocation_after(-1, 0);
    ck_assert(error == 0 || (at->may_fail && error == -ENOMEM));
    at->fails += error != 0;
    return error == 0;
}

static uint32_t draw_size(run *at)
{
    static const uint32_t bounds[] = {4, 40, 300, LARGE};

    return below(at, bounds[below(at, 4)]);
}

static void fill_bytes(run *at, char *bytes, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++)
        bytes[i] = (char)('a' + below(at, 26));
}

/* --- the operations --------------------------------------------------------------------------- */

static void make_copy(run *at)
{
    char bytes[LARGE];
    uint32_t size = draw_size(at);
    known *to = find_free(at);
    domus_slice slice;

    if (to == NULL)
        return;
    fill_bytes(at, bytes, size);
    begin_operation(at);
    if (end_operation(at, domus_slice_copy(bytes, size, &slice)))
        set_slice(to, slice, bytes);
}

static void keep_slice(run *at)
{
    known *from = draw_slice(at);
    known *to = find_free(at);
    domus_slice slice;

    if (from == NULL || to == NULL)
        return;
    begin_operation(at);
    if (end_operation(at, domus_slice_keep(from->slice, &slice)))
        set_slice(to, slice, from->bytes);
}

static void split_slice(run *at)
{
    known *from = draw_slice(at);
    known *to = find_free(at);
    domus_slice rest;

    if (from == NULL || to == NULL)
        return;
    uint32_t place = below(at, from->slice.size + 1);
    begin_operation(at);
    if (end_operation(at, domus_slice_split(&from->slice, place, &rest)))
        set_slice(to, rest, from->bytes + place);
    check_slice(from);
}

static void join(run *at)
{
    known *froms[5];
    domus_slice pieces[5], whole;
    static _Thread_local char bytes[5 * BYTES];
    uint32_t count = 0, most = below(at, 6);
    size_t size = 0;

    for (uint32_t i = 0; i < most; i++) {
        known *from = draw_slice(at);
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
    begin_operation(at);
    if (!end_operation(at, domus_slice_join(pieces, count, &whole)))
        return;
    ck_assert_uint_eq(whole.size, size);
    for (uint32_t i = 0; i < count; i++)
        forget_slice(froms[i]);
    known *to = find_free(at);
    if (to != NULL)
        set_slice(to, whole, bytes);
    else
        domus_slice_free(whole);
}

/* Append pieces in each way; some of the pieces are bytes that the appender already holds. */
static void append_pieces(run *at)
{
    domus_appender appender = {.size_max = below(at, 3) == 0 ? LARGE : 0};
    static _Thread_local char bytes[BYTES];
    known *to = find_free(at);
    uint32_t most = below(at, 8), size = 0;
    domus_slice slice;

    begin_operation(at);
    for (uint32_t i = 0; i < most && size + LARGE <= BYTES; i++) {
        uint32_t more = draw_size(at);
        uint32_t how = below(at, 4);
        char *room = NULL;
        /* the piece is a part of the appender's own bytes */
        if (how == 3 && size != 0 && appender.error == 0) {
            uint32_t from = below(at, size);
            more = more < size - from ? more : size - from;
            memmove(bytes + size, bytes + from, more);
            (void)domus_append(&appender, appender.page->data + from, more);
        } else {
            fill_bytes(at, bytes + size, more);
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
    if (below(at, 10) == 0 || to == NULL) {
        domus_append_drop(&appender);
        (void)end_operation(at, 0);
        return;
    }
    int error = domus_append_end(&appender, &slice);
    if (error == 0)
        set_slice(to, slice, bytes);
    else if (error == -EMSGSIZE && appender.size_max != 0)
        error = 0; /* the pieces together were more than the appender may hold */
    (void)end_operation(at, error);
}

/* Make slices of a borrowed page; own, keep or drop them before the borrowed bytes change. */
static void borrow_page(run *at)
{
    char bytes[LARGE];
    uint32_t size = 1 + draw_size(at);
    known *to = find_free(at);
    domi_page *page = size <= LARGE ? domi_page_new_borrower() : NULL;

    if (page == NULL)
        return;
    fill_bytes(at, bytes, size);
    domi_page_show_bytes(page, bytes, size);
    domi_page_add_owner(page);
    domus_slice slice = {&page->face, below(at, size), 0};
    slice.size = below(at, size - slice.offset + 1);
    if (to == NULL || below(at, 4) == 0) {
        domus_slice_free(slice);
    } else {
        begin_operation(at);
        if (end_operation(at, domi_page_own_borrowed_bytes(page)))
            set_slice(to, slice, bytes + slice.offset);
        else
            domus_slice_free(slice);
    }
    memset(bytes, '#', sizeof bytes);
    domi_page_drop_owner(page);
}

static void drop_slice(run *at)
{
    known *one = draw_slice(at);

    if (one == NULL)
        return;
    check_slice(one);
    domus_slice_free(one->slice);
    forget_slice(one);
}

/* --- threads ---------------------------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static known shelf[SHELF];

/* Take the slice from a place of the shelf, and leave another slice there. */
static void exchange_slice(run *at)
{
    known *one = &at->slices[below(at, SLICES)];
    known *place = &shelf[below(at, SHELF)];

    pthread_mutex_lock(&mutex);
    known other = *place;
    *place = *one;
    *one = other;
    pthread_mutex_unlock(&mutex);
    check_slice(one);
}

static void *take_steps(void *argument)
{
    static void (*const operations[])(run *) = {
        make_copy,   keep_slice,  split_slice, join,       append_pieces,
        borrow_page, borrow_page, drop_slice,  drop_slice, exchange_slice};
    run *at = argument;

    for (int i = 0; i < STEPS; i++) {
        operations[below(at, sizeof operations / sizeof operations[0])](at);
        check_slice(&at->slices[below(at, SLICES)]);
    }
    for (uint32_t i = 0; i < SLICES; i++) {
        check_slice(&at->slices[i]);
        domus_slice_free(at->slices[i].slice);
        forget_slice(&at->slices[i]);
    }
    return NULL;
}

static void clear_shelf(void)
{
    for (uint32_t i = 0; i < SHELF; i++) {
        check_slice(&shelf[i]);
        domus_slice_free(shelf[i].slice);
        forget_slice(&shelf[i]);
    }
}

DOMT_TEST(slices_show_what_the_model_has)
{
    uint32_t fails = 0;

    domi_pages_begin_to_keep();
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        run at = {.may_fail = seed % 2 == 0};
        domi_random_init(&at.random, seed);
        take_steps(&at);
        clear_shelf();
        fails += at.fails;
    }
    domi_pages_free_kept();
    ck_assert_uint_gt(fails, 0);
}

DOMT_TEST(slices_of_threads_show_what_the_model_has)
{
    for (uint64_t seed = 1; seed <= SEEDS / 5; seed++) {
        static run runs[THREADS];
        pthread_t threads[THREADS];
        for (uint32_t i = 0; i < THREADS; i++) {
            runs[i] = (run){.may_fail = false};
            domi_random_init(&runs[i].random, seed * THREADS + i);
            ck_assert_int_eq(pthread_create(&threads[i], NULL, take_steps, &runs[i]), 0);
        }
        for (uint32_t i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        clear_shelf();
    }
}

DOMT_SUITE(60)
