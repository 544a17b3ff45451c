/* domus/figures.h: the tables that libraries show of themselves are added, removed, read in parts,
 * and printed behind the profile, and their owners are told of the end of the system. */
#include "base/memory.h"
#include "tests/support/suite.h"

#include <domus/domus.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static domus_system *system_;

/* --- a table of shelves ----------------------------------------------------------------------- */

static const char *const words[] = {"open", "shut", NULL};

static const domus_figure_column columns[] = {
    {.name = "shelf", .title = "shelf", .kind = DOMUS_FIGURE_LABEL},
    {.name = "door",
     .title = "door",
     .kind = DOMUS_FIGURE_STATE,
     .metric = "shop_door",
     .help = "Doors.",
     .words = words},
    {.name = "age_ns", .title = "age", .kind = DOMUS_FIGURE_TIME},
    {.name = "books", .title = "books", .kind = DOMUS_FIGURE_AMOUNT},
    {.name = "note", .title = "note", .kind = DOMUS_FIGURE_TEXT},
};
#define COLUMNS (sizeof columns / sizeof columns[0])

static struct {
    uint64_t rows;
    int error;
    unsigned reads, ends;
} shop;

static int read_rows_of_shelves(void *context, uint32_t from, domus_figures_shot *to,
                                uint64_t *ret_total)
{
    char name[80];
    bool goes_on = true;

    ck_assert_ptr_eq(context, &shop);
    shop.reads++;
    for (uint64_t i = from; i < shop.rows && goes_on; i++) {
        /* The name in row 99 is longer than a text may be, and the number of its door has no word
         * in the table's column. */
        snprintf(name, sizeof name, i == 99 ? "%070u" : "a%u", (unsigned)i);
        const domus_figure cells[COLUMNS] = {{.text = name},
                                             {.number = i == 99 ? 2 : i % 2},
                                             {.number = 1500000 * i},
                                             {.number = 10 * i},
                                             {.text = i == 1 ? "\033x" : NULL}};
        goes_on = domus_figures_put(to, cells, i == 2);
    }
    *ret_total = shop.rows;
    return shop.error;
}

static void count_end_of_shelves(void *context)
{
    ck_assert_ptr_eq(context, &shop);
    shop.ends++;
}

static const domus_figures_table shelves = {.set = "shop",
                                            .name = "shelves",
                                            .title = "Shelves",
                                            .columns = columns,
                                            .columns_count = COLUMNS,
                                            .read = read_rows_of_shelves,
                                            .end = count_end_of_shelves};

static void start_system_with_shop_figures(uint64_t rows)
{
    char error[200];
    domus_config config;

    domus_config_init(&config);
    config.system.threads = 1;
    memset(&shop, 0, sizeof shop);
    shop.rows = rows;
    ck_assert_int_eq(domus_system_new(&config, error, sizeof error, &system_), 0);
}

/* --- tests ------------------------------------------------------------------------------------ */

DOMT_TEST(wrong_tables_of_figures_are_refused)
{
    static const domus_figure_column late[] = {
        {.name = "a", .title = "a", .kind = DOMUS_FIGURE_AMOUNT},
        {.name = "b", .title = "b", .kind = DOMUS_FIGURE_LABEL}};
    static const domus_figure_column wordless[] = {
        {.name = "a", .title = "a", .kind = DOMUS_FIGURE_STATE}};
    static const domus_figure_column named[] = {
        {.name = "A", .title = "a", .kind = DOMUS_FIGURE_AMOUNT}};
    static const domus_figure_column helpless[] = {
        {.name = "a", .title = "a", .kind = DOMUS_FIGURE_AMOUNT, .metric = "a"}};
    static domus_figure_column labels[DOMUS_FIGURES_LABELS_MAX + 1];
    domus_figures_table wrong[9];

    for (size_t i = 0; i < 9; i++)
        wrong[i] = shelves;
    for (size_t i = 0; i < DOMUS_FIGURES_LABELS_MAX + 1; i++)
        labels[i] = columns[0];
    wrong[0].set = "Shop";
    wrong[1].name = "";
    wrong[2].columns_count = 0;
    wrong[3].columns_count = DOMUS_FIGURES_COLUMNS_MAX + 1;
    wrong[4].columns = late, wrong[4].columns_count = 2;
    wrong[5].columns = wordless, wrong[5].columns_count = 1;
    wrong[6].columns = named, wrong[6].columns_count = 1;
    wrong[7].columns = helpless, wrong[7].columns_count = 1;
    wrong[8].columns = labels, wrong[8].columns_count = DOMUS_FIGURES_LABELS_MAX + 1;
    start_system_with_shop_figures(1);
    for (size_t i = 0; i < 9; i++)
        ck_assert_msg(domus_figures_add(system_, &wrong[i], &shop) == -EINVAL, "%zu", i);
    wrong[0] = shelves;
    wrong[0].is_list = true; /* a table that is a list may have no metrics */
    ck_assert_int_eq(domus_figures_add(system_, &wrong[0], &shop), -EINVAL);
    domus_system_free(system_);
}

DOMT_TEST(tables_of_figures_are_found_until_removed)
{
    static char names[DOMUS_FIGURES_TABLES_MAX][16];
    static domus_figures_table many[DOMUS_FIGURES_TABLES_MAX];
    domus_figures_shot shot;

    start_system_with_shop_figures(1);
    ck_assert_int_eq(domus_figures_add(system_, &shelves, &shop), 0);
    ck_assert_int_eq(domus_figures_add(system_, &shelves, &shop), -EEXIST);
    ck_assert_ptr_eq(domus_figures_at(system_, 0), &shelves);
    /* a table is only removed with the context with which it was added */
    domus_figures_remove(system_, &shelves, NULL);
    ck_assert_ptr_eq(domus_figures_at(system_, 0), &shelves);
    domus_figures_remove(system_, &shelves, &shop);
    ck_assert_ptr_null(domus_figures_at(system_, 0));
    ck_assert_int_eq(domus_figures_read(system_, 0, 0, 1, &shot), -ENOENT);
    for (uint32_t i = 0; i < DOMUS_FIGURES_TABLES_MAX; i++) {
        snprintf(names[i], sizeof names[i], "t%u", i);
        many[i] = shelves;
        many[i].name = names[i];
        ck_assert_int_eq(domus_figures_add(system_, &many[i], &shop), 0);
    }
    ck_assert_int_eq(domus_figures_add(system_, &shelves, &shop), -ENOSPC);
    domus_figures_remove(system_, &many[0], &shop);
    ck_assert_ptr_eq(domus_figures_at(system_, 0), &many[1]);
    ck_assert_uint_eq(shop.reads, 0); /* nobody has looked, so the table was never read */
    domus_system_free(system_);
    ck_assert_uint_eq(shop.ends, DOMUS_FIGURES_TABLES_MAX - 1);
}

DOMT_TEST(rows_of_figures_are_read_in_parts)
{
    domus_figures_shot shot;

    start_system_with_shop_figures(100);
    ck_assert_int_eq(domus_figures_add(system_, &shelves, &shop), 0);
    ck_assert_int_eq(domus_figures_read(system_, 0, 0, 3, &shot), 0);
    ck_assert_uint_eq(shot.count, 3);
    ck_assert_uint_eq(shot.total, 100);
    ck_assert_str_eq(domus_figures_cell(&shot, 1, 0)->text, "a1");
    ck_assert_str_eq(domus_figures_cell(&shot, 1, 4)->text, "\033x");
    ck_assert_str_eq(domus_figures_cell(&shot, 2, 4)->text, "");
    ck_assert_uint_eq(domus_figures_cell(&shot, 2, 3)->number, 20);
    ck_assert(!shot.is_past[1] && shot.is_past[2]);
    domus_figures_free(&shot);
    ck_assert_int_eq(domus_figures_read(system_, 0, 98, 3, &shot), 0);
    ck_assert_uint_eq(shot.count, 2);
    ck_assert_uint_eq(strlen(domus_figures_cell(&shot, 1, 0)->text), DOMUS_FIGURES_TEXT_SIZE - 1);
    ck_assert_uint_eq(domus_figures_cell(&shot, 1, 1)->number, 0);
    domus_figures_free(&shot);
    ck_assert_int_eq(domus_figures_read(system_, 0, 0, 1000, &shot), 0);
    ck_assert_uint_eq(shot.count, 100);
    for (uint32_t i = 0; i < 99; i++)
        ck_assert_uint_eq(domus_figures_cell(&shot, i, 3)->number, 10 * i);
    domus_figures_free(&shot);
    ck_assert_int_eq(domus_figures_read(system_, 0, 100, 3, &shot), 0);
    ck_assert_uint_eq(shot.count, 0);
    domus_figures_free(&shot);
    shop.error = -ENOMEM;
    ck_assert_int_eq(domus_figures_read(system_, 0, 0, 3, &shot), -ENOMEM);
    domus_system_free(system_);
}

/* Each allocation fails once; a read of a table that fails leaves nothing behind. */
DOMT_TEST(reading_figures_without_memory_is_an_error)
{
    domus_figures_shot shot;
    int64_t after = 0;

    start_system_with_shop_figures(100);
    ck_assert_int_eq(domus_figures_add(system_, &shelves, &shop), 0);
    for (;; after++) {
        domi_memory_fail_allocation_after(after, 0);
        int error = domus_figures_read(system_, 0, 0, 1000, &shot);
        domi_memory_fail_allocation_after(-1, 0);
        if (error == 0)
            break;
        ck_assert_int_eq(error, -ENOMEM);
    }
    ck_assert_int_ge(after, 8);
    ck_assert_uint_eq(shot.count, 100);
    domus_figures_free(&shot);
    domus_system_free(system_);
}

DOMT_TEST(tables_of_figures_follow_the_profile)
{
    static domus_figures_table list;
    char text[32768];

    start_system_with_shop_figures(100);
    list = shelves;
    list.name = "list";
    list.is_list = true;
    list.columns_count = 1;
    ck_assert_int_eq(domus_figures_add(system_, &shelves, &shop), 0);
    ck_assert_int_eq(domus_figures_add(system_, &list, &shop), 0);
    size_t size = domus_system_profile_table(system_, text, sizeof text);
    ck_assert_uint_lt(size, sizeof text);
    ck_assert_uint_eq(shop.reads, 1);
    const char *at = strstr(text, "-- shop: Shelves\n"
                                  "shelf                             door             age");
    ck_assert_msg(at != NULL, "%s", text);
    ck_assert_ptr_nonnull(strstr(at, "\na1                                shut        1.500 ms"
                                     "              10           \\x1bx\n"));
    ck_assert_ptr_nonnull(strstr(at, "\nand 36 more\n"));
    ck_assert_ptr_null(strstr(at + 5, "--"));
    /* the text for a smaller room is the begin of the whole text */
    for (size_t room = 0; room < size; room += 97) {
        char part[32768];
        ck_assert_uint_eq(domus_system_profile_table(system_, part, room), size);
        if (room > 0)
            ck_assert_uint_eq(strlen(part), room - 1);
    }
    shop.rows = 0;
    (void)domus_system_profile_table(system_, text, sizeof text);
    ck_assert_ptr_null(strstr(text, "shop"));
    domus_system_free(system_);
}

DOMT_SUITE(30)
