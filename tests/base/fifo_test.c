/* base/fifo.h: a fifo gives its objects back in the order in which they came, whichever of its
 * functions are mixed. */
#include "base/fifo.h"

#include "tests/support/suite.h"

#include <stdint.h>
#include <string.h>

typedef struct guest {
    char name;
    struct guest *next;
} guest;

/* The types are declared before the functions, as in a header that does not know the objects. */
DOMI_FIFO_TYPE(row, guest);
DOMI_FIFO_VERBS(row, guest, next);

static guest guests[5];
static row first;
static row second;

static void put_named_guests_into_fifo(row *at, const char *names)
{
    for (; *names != '\0'; names++) {
        guest *one = &guests[*names - 'a'];
        /* the object has a stale link, which putting it into the fifo overwrites */
        *one = (guest){.name = *names, .next = &guests[0]};
        row_put(at, one);
    }
}

/* Take all objects from the fifo; their names have to be `expected`. */
static void expect_guests_taken_in_order(row *at, const char *expected)
{
    char names[8] = "";

    for (guest *one = row_take(at); one != NULL; one = row_take(at))
        names[strlen(names)] = one->name;
    ck_assert_str_eq(names, expected);
    ck_assert_ptr_null(at->head);
    ck_assert_ptr_null(row_take(at));
}

static void reset_guests_and_fifos(void)
{
    memset(guests, 0, sizeof guests);
    memset(&first, 0, sizeof first); /* a fifo of zero bytes is empty */
    memset(&second, 0, sizeof second);
}

DOMT_TEST(fifo_gives_back_in_order_of_puts)
{
    reset_guests_and_fifos();
    expect_guests_taken_in_order(&first, "");
    put_named_guests_into_fifo(&first, "abc");
    ck_assert_int_eq(row_take(&first)->name, 'a');
    /* this put moves "a", which was taken, to the end of the fifo again */
    put_named_guests_into_fifo(&first, "a");
    expect_guests_taken_in_order(&first, "bca");
    put_named_guests_into_fifo(
        &first, "d"); /* the emptied fifo begins anew, and does not use its old tail */
    expect_guests_taken_in_order(&first, "d");
}

DOMT_TEST(prepended_objects_come_first_in_their_order)
{
    static const char *const cases[][3] = {
        {"", "", "e"}, {"a", "", "ae"}, {"", "bc", "bce"}, {"a", "bc", "bcae"}, {"ab", "c", "cabe"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        reset_guests_and_fifos();
        put_named_guests_into_fifo(&first, cases[i][0]);
        put_named_guests_into_fifo(&second, cases[i][1]);
        row_prepend(&first, &second);
        /* "e" goes to the end of the fifo that was joined of two */
        put_named_guests_into_fifo(&first, "e");
        expect_guests_taken_in_order(&first, cases[i][2]);
    }
}

DOMT_TEST(removal_keeps_order_of_remaining_objects)
{
    static const char *const left[] = {"bcd", "acd", "abd"};

    for (uint32_t i = 0; i < 3; i++) {
        reset_guests_and_fifos();
        put_named_guests_into_fifo(&first, "abc");
        row_remove(&first, &guests[i]);
        put_named_guests_into_fifo(&first, "d");
        expect_guests_taken_in_order(&first, left[i]);
    }
    put_named_guests_into_fifo(&first, "a");
    row_remove(&first, &guests[0]); /* the removed object is the only one in the fifo */
    put_named_guests_into_fifo(&first, "b");
    expect_guests_taken_in_order(&first, "b");
}

DOMT_SUITE(60)
