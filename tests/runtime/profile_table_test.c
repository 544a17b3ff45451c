/* runtime/control/profile_table.c: the table of a system's profile has its rows in groups, leaves
 * out zeros unless all rows are wanted, and is cut at its size. */
#include "tests/runtime/running.h"

#include <stdio.h>
#include <string.h>

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

DOMT_TEST(table_tells_memory_once_for_the_system)
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

DOMT_TEST(table_has_every_row_and_is_cut_at_its_size)
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
    /* behind them comes the rate, the sum for each second */
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
DOMT_TEST(table_leaves_out_zeros_and_empty_groups)
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
