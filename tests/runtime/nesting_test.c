/* The nesting of the records of a trace (runtime/trace/nesting.h): the order of steps at the same
 * time, outer records that are missing or still under way, and matching begins and ends for any
 * records. */
#include "base/random.h"
#include "runtime/trace/nesting.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

static const domi_record none[DOMI_RECORD_DEPTHS];

static domi_record make_record(domi_record_kind kind, uint64_t begin_ns, uint64_t end_ns)
{
    return (domi_record){.begin_ns = begin_ns,
                         .kind_length = domi_record_pack_kind_and_length(kind, begin_ns, end_ns)};
}

/* ---- Steps as text --------------------------------------------------------------------------- */

static char said[4096];

/* Write a step of the walk as text: "(I10" is an iteration that begins at 10, "I20)" its end, and
 * ".A15" an instant. */
static void write_step_as_text(void *context, domi_nesting_step step, uint64_t at_ns,
                               const domi_record *record)
{
    static const char letters[] = "?IPZSBRXLAaUu"; /* one letter for each kind of record */
    char letter = letters[domi_record_kind_of(record)];
    size_t length = strlen(said);

    if (step == DOMI_NESTING_END)
        snprintf(said + length, sizeof said - length, "%c%lu) ", letter, (unsigned long)at_ns);
    else
        snprintf(said + length, sizeof said - length, "%c%c%lu ",
                 step == DOMI_NESTING_BEGIN ? '(' : '.', letter, (unsigned long)at_ns);
}

static void check_steps_of_records(const domi_record *records, uint32_t count,
                                   const domi_record *open, const char *expected)
{
    said[0] = '\0';
    domi_nesting_walk_over_records(records, count, open, write_step_as_text, NULL);
    ck_assert_str_eq(said, expected);
}

DOMT_TEST(outer_record_begins_first_and_ends_last)
{
    const domi_record records[] = {
        make_record(DOMI_RECORD_ASK_OUT, 10, 10),   make_record(DOMI_RECORD_RUN, 10, 20),
        make_record(DOMI_RECORD_RUN, 20, 30),       make_record(DOMI_RECORD_PHASE, 10, 30),
        make_record(DOMI_RECORD_PHASE, 30, 30),     make_record(DOMI_RECORD_ITERATION, 10, 30),
        make_record(DOMI_RECORD_RUN, 30, 40),       make_record(DOMI_RECORD_PHASE, 30, 40),
        make_record(DOMI_RECORD_ITERATION, 30, 40),
    };

    check_steps_of_records(records, 9, none,
                           "(I10 (P10 (R10 .A10 R20) (R20 R30) P30) (P30 P30) I30) "
                           "(I30 (P30 (R30 R40) P40) I40) ");
    check_steps_of_records(records, 0, none, "");
}

DOMT_TEST(outer_records_may_be_missing)
{
    const domi_record records[] = {
        make_record(DOMI_RECORD_RUN, 1, 2),       make_record(DOMI_RECORD_ITERATION, 3, 4),
        make_record(DOMI_RECORD_RUN, 5, 6),       make_record(DOMI_RECORD_STEAL, 5, 7),
        make_record(DOMI_RECORD_ITERATION, 4, 8), make_record(DOMI_RECORD_RUN, 9, 10),
        make_record(DOMI_RECORD_STALL, 11, 12),
    };

    check_steps_of_records(records, 7, none,
                           "(R1 R2) (I3 I4) (I4 (S5 (R5 R6) S7) I8) (R9 R10) (X11 X12) ");
}

DOMT_TEST(open_record_begins_and_does_not_end)
{
    const domi_record records[] = {make_record(DOMI_RECORD_RUN, 10, 20),
                                   make_record(DOMI_RECORD_PHASE, 10, 20),
                                   make_record(DOMI_RECORD_RUN, 30, 40)};
    domi_record open[DOMI_RECORD_DEPTHS] = {0};

    open[0] = make_record(DOMI_RECORD_ITERATION, 5, 5);
    open[1] = make_record(DOMI_RECORD_PHASE, 25, 25);
    open[3] = make_record(DOMI_RECORD_RUN, 40, 40);
    check_steps_of_records(records, 3, open, "(I5 (P10 (R10 R20) P20) (P25 (R30 R40) (R40 ");
    check_steps_of_records(records, 0, open, "(I5 (P25 (R40 ");
}

DOMT_TEST(record_that_ended_meanwhile_comes_once)
{
    const domi_record records[] = {make_record(DOMI_RECORD_RUN, 10, 20),
                                   make_record(DOMI_RECORD_RUN, 20, 30)};
    domi_record open[DOMI_RECORD_DEPTHS] = {0};

    open[3] = make_record(DOMI_RECORD_RUN, 10, 10);
    check_steps_of_records(records, 2, open, "(R10 R20) (R20 R30) ");
    /* the record of the outer run is missing */
    check_steps_of_records(records + 1, 1, open, "(R20 R30) ");
    open[3] = make_record(DOMI_RECORD_RUN, 30, 30);
    check_steps_of_records(records, 2, open, "(R10 R20) (R20 R30) (R30 ");
    const domi_record short_ones[] = {make_record(DOMI_RECORD_PHASE, 30, 30),
                                      make_record(DOMI_RECORD_RUN, 30, 30)};
    open[1] = make_record(DOMI_RECORD_PHASE, 30, 30);
    open[3] = make_record(DOMI_RECORD_NONE, 0, 0);
    check_steps_of_records(short_ones, 2, open, "(P30 P30) (R30 R30) ");
}

/* ---- Any records ----------------------------------------------------------------------------- */

#define RECORDS_MAX 64

struct stack {
    const domi_record *begun[4 * RECORDS_MAX];
    uint32_t depth;
    uint64_t last_ns;
    uint32_t steps;
    uint32_t ended;
};

static void check_step_is_nested(void *stack_, domi_nesting_step step, uint64_t at_ns,
                                 const domi_record *record)
{
    struct stack *stack = stack_;

    ck_assert_uint_ge(at_ns, stack->last_ns);
    stack->last_ns = at_ns;
    stack->steps++;
    if (step == DOMI_NESTING_INSTANT) {
        stack->ended++;
        return;
    }
    if (step == DOMI_NESTING_BEGIN) {
        stack->begun[stack->depth++] = record;
        return;
    }
    ck_assert_uint_gt(stack->depth, 0);
    ck_assert_ptr_eq(stack->begun[--stack->depth], record);
    stack->ended++;
}

DOMT_TEST(begins_and_ends_match_for_any_records)
{
    domi_random random;
    domi_record records[RECORDS_MAX];
    domi_record open[DOMI_RECORD_DEPTHS];

    domi_random_init(&random, 1);
    for (uint32_t round = 0; round < 100000; round++) {
        struct stack stack = {.depth = 0};
        uint32_t count = (uint32_t)domi_random_below(&random, RECORDS_MAX + 1);
        for (uint32_t i = 0; i < count; i++) {
            uint64_t begin_ns = domi_random_below(&random, 50);
            records[i] =
                make_record(1 + (domi_record_kind)domi_random_below(&random, DOMI_RECORD_KINDS - 1),
                            begin_ns, begin_ns + domi_random_below(&random, 50));
        }
        uint32_t opened = 0;
        for (uint32_t depth = 0; depth < DOMI_RECORD_DEPTHS; depth++) {
            static const domi_record_kind kinds[] = {DOMI_RECORD_ITERATION, DOMI_RECORD_PHASE,
                                                     DOMI_RECORD_STEAL,     DOMI_RECORD_RUN,
                                                     DOMI_RECORD_STALL,     DOMI_RECORD_NONE};
            bool is_there = domi_random_below(&random, 2) == 0;
            uint64_t begin_ns = domi_random_below(&random, 120);
            open[depth] = is_there ? make_record(kinds[depth], begin_ns, begin_ns) : none[0];
            opened += is_there;
        }
        domi_nesting_walk_over_records(records, count, open, check_step_is_nested, &stack);
        ck_assert_uint_eq(stack.ended, count); /* the walk has ended each record exactly once */
        ck_assert_uint_le(stack.depth, opened);
    }
}

static void count_step_of_walk(void *count, domi_nesting_step step, uint64_t at_ns,
                               const domi_record *record)
{
    ++*(uint32_t *)count;
}

DOMT_TEST(walk_takes_time_in_proportion_to_records)
{
    static domi_record records[1 << 20];
    uint32_t count = sizeof records / sizeof records[0];
    uint32_t steps = 0;

    for (uint32_t i = 0; i < count; i++)
        records[i] = make_record(DOMI_RECORD_RUN, i + 1, i + 2);
    records[count - 1] = make_record(DOMI_RECORD_ITERATION, 0, count);
    domi_nesting_walk_over_records(records, count, none, count_step_of_walk, &steps);
    ck_assert_uint_eq(steps, 2 * count);
    steps = 0;
    /* there is no outer record around these records */
    domi_nesting_walk_over_records(records, count - 1, none, count_step_of_walk, &steps);
    ck_assert_uint_eq(steps, 2 * (count - 1));
}

DOMT_SUITE(60)
