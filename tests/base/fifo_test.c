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

static void put(row *at, const char *names)
{
    for (; *names != '\0'; names++) {
        guest *one = &guests[*names - 'a'];
        /* a stale link, which put() overwrites */
        *one = (guest){.name = *names, .next = &guests[0]};
        row_put(at, one);
    }
}

/* Take all objects, which have to be `expected`. */
static void expect(row *at, const char *expected)
{
    char names[8] = "";

    for (guest *one = row_take(at); one != NULL; one = row_take(at))
        names[strlen(names)] = one->name;
    ck_assert_str_eq(names, expected);
    ck_assert_ptr_null(at->head);
    ck_assert_ptr_null(row_take(at));
}

static void reset(void)
{
    memset(guests, 0, sizeof guests);
    memset(&first, 0, sizeof first); /* a fifo of zero bytes is empty */
    memset(&second, 0, sizeof second);
}

DOMT_TEST(a_line_gives_back_in_the_order_of_the_puts)
{
    reset();
    expect(&first, "");
    put(&first, "abc");
    ck_assert_int_eq(row_take(&first)->name, 'a');
    put(&first, "a"); /* "a" goes to the end again */
    expect(&first, "bca");
    put(&first, "d"); /* the emptied fifo begins anew: its old tail is not used */
    expect(&first, "d");
}

DOMT_TEST(prepended_ones_come_first_and_in_their_order)
{
    static const char *const cases[][3] = {
        {"", "", "e"}, {"a", "", "ae"}, {"", "bc", "bce"}, {"a", "bc", "bcae"}, {"ab", "c", "cabe"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        reset();
        put(&first, cases[i][0]);
        put(&second, cases[i][1]);
        row_prepend(&first, &second);
        put(&first, "e"); /* the tail is that of the joined fifo */
        expect(&first, cases[i][2]);
    }
}

DOMT_TEST(a_removed_one_leaves_the_others_in_their_order)
{
    static const char *const left[] = {"bcd", "acd", "abd"};

    for (uint32_t i = 0; i < 3; i++) {
        reset();
        put(&first, "abc");
        row_remove(&first, &guests[i]);
        put(&first, "d");
        expect(&first, left[i]);
    }
    put(&first, "a");
    row_remove(&first, &guests[0]); /* the only object is removed */
    put(&first, "b");
    expect(&first, "b");
}

DOMT_SUITE(60)
