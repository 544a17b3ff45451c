/* A fifo gives its objects back in the order in which they came, whichever of its functions are
 * mixed. */
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

static void put_names(row *at, const char *names)
{
    for (; *names != '\0'; names++) {
        guest *one = &guests[*names - 'a'];
        /* a stale link, which put_names() overwrites */
        *one = (guest){.name = *names, .next = &guests[0]};
        row_put(at, one);
    }
}

/* Take all objects, which have to be `expected`. */
static void expect_names(row *at, const char *expected)
{
    char names[8] = "";

    for (guest *one = row_take(at); one != NULL; one = row_take(at))
        names[strlen(names)] = one->name;
    ck_assert_str_eq(names, expected);
    ck_assert_ptr_null(at->head);
    ck_assert_ptr_null(row_take(at));
}

static void reset_guests(void)
{
    memset(guests, 0, sizeof guests);
    memset(&first, 0, sizeof first); /* a fifo of zero bytes is empty */
    memset(&second, 0, sizeof second);
}

DOMT_TEST(a_line_gives_back_in_the_order_of_the_puts)
{
    reset_guests();
    expect_names(&first, "");
    put_names(&first, "abc");
    ck_assert_int_eq(row_take(&first)->name, 'a');
    put_names(&first, "a"); /* "a" goes to the end again */
    expect_names(&first, "bca");
    put_names(&first, "d"); /* the emptied fifo begins anew: its old tail is not used */
    expect_names(&first, "d");
}

DOMT_TEST(prepended_ones_come_first_and_in_their_order)
{
    static const char *const cases[][3] = {
        {"", "", "e"}, {"a", "", "ae"}, {"", "bc", "bce"}, {"a", "bc", "bcae"}, {"ab", "c", "cabe"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        reset_guests();
        put_names(&first, cases[i][0]);
        put_names(&second, cases[i][1]);
        row_prepend(&first, &second);
        put_names(&first, "e"); /* the tail is that of the joined fifo */
        expect_names(&first, cases[i][2]);
    }
}

DOMT_TEST(a_removed_one_leaves_the_others_in_their_order)
{
    static const char *const left[] = {"bcd", "acd", "abd"};

    for (uint32_t i = 0; i < 3; i++) {
        reset_guests();
        put_names(&first, "abc");
        row_remove(&first, &guests[i]);
        put_names(&first, "d");
        expect_names(&first, left[i]);
    }
    put_names(&first, "a");
    row_remove(&first, &guests[0]); /* the only object is removed */
    put_names(&first, "b");
    expect_names(&first, "b");
}

DOMT_SUITE(60)
