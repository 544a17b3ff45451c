/* The tables of the profile, and those that libraries add to it (domus/figures.h). */
#include "base/memory.h"
#include "tests/runtime/running.h"
#include "tests/support/suite.h"

#include <domus/domus.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* domus/figures.h: the tables that libraries show of themselves are added, removed, read in parts,
 * and printed behind the profile, and their owners are told of the end of the system. */

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

/* --- profile table ---------------------------------------------------------------------------- */

/* runtime/control/profile_table.c: the table of a system's profile has its rows in groups, leaves
 * out zeros unless all rows are wanted, and is cut at its size. */

static const domus_type work_type = {.name = "work", .size = sizeof(uint64_t)};

static int ignore_message(domus_stack *stack, void *self, const void *payload)
{
    return 0;
}

static const domus_on work_rows[] = {{&work_type, ignore_message, 0}, {0}};
static const domus_behaviour worker = {.name = "worker", .on = work_rows};

static uint32_t count_lines_of_text(const char *text)
{
    uint32_t lines = 0;
    for (; *text != '\0'; text++)
        lines += *text == '\n';
    return lines;
}

static size_t expected_rows_of_stalls(const domus_system *system)
{
    domus_profile sums = domt_profile_of_all_threads(system);
    size_t rows = 0;
    for (int i = 0; i < DOMUS_STALL_LENGTHS; i++)
        rows += sums.stall_lengths[i] != 0;
    return rows;
}

#define MEMORY_ROWS 6
#define GROUPS      6

/* Returns the value in a row that has only one number, which is that of the whole system. */
static uint64_t only_value_in_row_of_table(const char *text, const char *name)
{
    char start[64];

    snprintf(start, sizeof start, "\n%s ", name);
    const char *row = strstr(text, start);
    ck_assert_msg(row != NULL, "no row '%s'", name);
    char *end = NULL;
    uint64_t value = strtoull(row + strlen(start), &end, 10);
    ck_assert_int_eq(*end, '\n');
    return value;
}

DOMT_TEST(profile_table_tells_memory_once_for_the_system)
{
    static char text[32768];
    domus_config config = domt_config_of_threads(3);
    domus_memory memory;

    /* set, so that the system has a limit on each machine */
    config.memory.limit_bytes = UINT64_C(16) << 30;
    domus_system *system = domt_start_system(&config);
    DOMT_WAIT_FOR(10, (domus_system_memory(system, &memory), memory.looks != 0));
    /* after the stop no thread looks at memory, so the figures do not change */
    ck_assert_int_eq(domus_system_stop(system), 0);
    domus_system_memory(system, &memory);
    ck_assert_uint_lt(domus_system_profile_table(system, text, sizeof text), sizeof text);
    ck_assert_uint_ne(memory.limit_bytes, 0);
    ck_assert_uint_eq(only_value_in_row_of_table(text, "memory limit"), memory.limit_bytes);
    ck_assert_uint_eq(only_value_in_row_of_table(text, "memory used"), memory.used_bytes);
    ck_assert_uint_eq(only_value_in_row_of_table(text, "memory foreign"), memory.foreign_bytes);
    ck_assert_uint_eq(only_value_in_row_of_table(text, "memory own"), memory.own_bytes);
    ck_assert_uint_eq(only_value_in_row_of_table(text, "memory budget"), memory.budget_bytes);
    ck_assert_uint_eq(only_value_in_row_of_table(text, "memory last budget"),
                      memory.last_budget_bytes);
    domt_end_system(system);

    config.memory.enabled = false;
    system = domt_start_system(&config);
    (void)domus_system_profile_table(system, text, sizeof text);
    ck_assert_ptr_null(strstr(text, "\nmemory"));
    domt_end_system(system);
}

DOMT_TEST(profile_table_has_every_row_and_is_cut_at_its_size)
{
    domus_config config = domt_config_of_threads(2);
    static char text[32768], cut[32768];

    config.profile.zeros = true;
    domus_system *system = domt_start_system(&config);

    domus_address address = domt_spawn(system, 0, &worker, NULL);
    for (int i = 0; i < 123; i++)
        domt_send_notice(system, address, &work_type, &(uint64_t){0});
    DOMT_WAIT_FOR(10, domt_profile_of_thread(system, 0).notices == 123);
    ck_assert_int_eq(domus_system_stop(system), 0); /* after the stop no counter changes */

    size_t length = domus_system_profile_table(system, text, sizeof text);
    ck_assert_uint_lt(length, sizeof text);
    ck_assert_uint_eq(strlen(text), length);
    ck_assert_uint_eq(domus_system_profile_table(system, NULL, 0), length);
    /* The table has a head, a row for each group, and a row for each field of the profile, so this
     * test finds a field that was forgotten. Lengths of stalls have a row only if there were such
     * stalls. */
    ck_assert_uint_eq(count_lines_of_text(text),
                      1 + sizeof(domus_profile) / sizeof(uint64_t) - DOMUS_STALL_LENGTHS +
                          expected_rows_of_stalls(system) + MEMORY_ROWS + GROUPS);
    for (int i = 0; i < DOMUS_PHASES; i++)
        ck_assert_ptr_nonnull(strstr(text, domus_phase_name((domus_phase)i)));
    const char *row = strstr(text, "\nnotices ");
    ck_assert_ptr_nonnull(row);
    char *at = strstr(row, "notices") + strlen("notices");
    /* the numbers of the first thread, of the second thread, and of all threads */
    ck_assert_uint_eq(strtoul(at, &at, 10), 123);
    ck_assert_uint_eq(strtoul(at, &at, 10), 0);
    ck_assert_uint_eq(strtoul(at, &at, 10), 123);
    /* behind these numbers comes the rate, the sum for each second */
    ck_assert_double_gt(strtod(at, &at), 0);
    ck_assert_int_eq(strncmp(at, "/s\n", 3), 0);

    for (size_t size = 1; size <= length + 1; size += size < 300 ? 1 : 97) {
        memset(cut, 'x', sizeof cut);
        ck_assert_uint_eq(domus_system_profile_table(system, cut, size), length);
        ck_assert_uint_eq(strlen(cut), size - 1);
        ck_assert(memcmp(cut, text, size - 1) == 0 && cut[size] == 'x');
    }
    domt_end_system(system);
}

/* A running service has some twenty of its eighty counters above zero. */
DOMT_TEST(profile_table_leaves_out_zeros_and_empty_groups)
{
    static char text[32768];
    domus_config config = domt_config_of_threads(2);

    config.memory.enabled = false;
    domus_system *system = domt_start_system(&config);
    domus_address address = domt_spawn(system, 0, &worker, NULL);
    for (int i = 0; i < 5; i++)
        domt_send_notice(system, address, &work_type, &(uint64_t){0});
    DOMT_WAIT_FOR(10, domt_profile_of_thread(system, 0).notices == 5);
    ck_assert_int_eq(domus_system_stop(system), 0);
    ck_assert_uint_lt(domus_system_profile_table(system, text, sizeof text), sizeof text);
    ck_assert_msg(strstr(text, "\n-- scheduling\niterations ") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "\n-- messages\nnotices ") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "\nasks ") == NULL, "%s", text);
    ck_assert_msg(strstr(text, "\n-- connections\n") == NULL, "%s", text);
    ck_assert_msg(strstr(text, "\n-- trouble\n") == NULL, "%s", text);
    ck_assert_uint_lt(count_lines_of_text(text), 30);
    domt_end_system(system);
}

DOMT_SUITE(60)
