/* The recorder of a thread: its ring and its bounds, readers that copy beside the owner, and how
 * records nest. */
#include "base/memory.h"
#include "base/random.h"
#include "runtime/trace/nesting.h"
#include "runtime/trace/recorder.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* A recorder by itself (runtime/trace/recorder.h): the ring and its bounds, records that have only
 * begun, the table of recorders, and readers that copy while the owner writes and must never see
 * half a record. */

#define PLACES DOMI_RECORDER_PLACES_MIN

static int owner;
static int stranger;
static domi_record copy[PLACES];
static domi_record open_copy[DOMI_RECORD_DEPTHS];

static domi_recorder *make_recorder_named_thread_7(void)
{
    domi_recorder *recorder = NULL;
    ck_assert_int_eq(domi_recorder_new(&owner, "thread 7", PLACES, &recorder), 0);
    return recorder;
}

/* Write a record in which each word shows `number`. */
static void write_record_of_number(domi_recorder *recorder, uint64_t number)
{
    domi_record_kind kind = DOMI_RECORD_ITERATION + (number % (DOMI_RECORD_KINDS - 1));
    domi_recorder_write_ended_thing(recorder, kind, number, 2 * number,
                                    (const void *)(uintptr_t)number, ~number);
}

static void check_record_of_number(const domi_record *record, uint64_t number)
{
    ck_assert_uint_eq(record->begin_ns, number);
    ck_assert_uint_eq(domi_record_end_ns(record), 2 * number);
    ck_assert_uint_eq(domi_record_kind_of(record),
                      DOMI_RECORD_ITERATION + (number % (DOMI_RECORD_KINDS - 1)));
    ck_assert_uint_eq((uintptr_t)record->name, number);
    ck_assert_uint_eq(record->value, ~number);
}

/* ---- The ring -------------------------------------------------------------------------------- */

DOMT_TEST(a_ring_keeps_the_newest_records)
{
    domi_recorder *recorder = make_recorder_named_thread_7();

    for (uint64_t written = 0; written <= 4 * PLACES; written++) {
        uint64_t kept = written < PLACES ? written : PLACES - 1;
        ck_assert_uint_eq(domi_recorder_copy_records(recorder, 0, copy), kept);
        for (uint64_t i = 0; i < kept; i++)
            check_record_of_number(&copy[i], written - kept + i);
        write_record_of_number(recorder, written);
    }
    domi_recorder_free(recorder);
}

DOMT_TEST(copy_of_records_has_those_that_end_at_a_time_or_later)
{
    domi_recorder *recorder = make_recorder_named_thread_7();

    for (uint64_t i = 0; i < 10; i++)
        write_record_of_number(recorder, i); /* the record ends at 2 * i ns */
    ck_assert_uint_eq(domi_recorder_copy_records(recorder, 9, copy), 5);
    check_record_of_number(&copy[0], 5);
    ck_assert_uint_eq(domi_recorder_copy_records(recorder, 10, copy), 5);
    ck_assert_uint_eq(domi_recorder_copy_records(recorder, 19, copy), 0);
    domi_recorder_free(recorder);
}

DOMT_TEST(length_of_a_record_is_bounded_on_both_sides)
{
    domi_recorder *recorder = make_recorder_named_thread_7();

    domi_recorder_write_ended_thing(recorder, DOMI_RECORD_RUN, 10, 9, NULL, 0);
    domi_recorder_write_ended_thing(recorder, DOMI_RECORD_RUN, 10, UINT64_MAX, NULL, 0);
    ck_assert_uint_eq(domi_recorder_copy_records(recorder, 0, copy), 2);
    ck_assert_uint_eq(domi_record_end_ns(&copy[0]), 10);
    ck_assert_uint_eq(domi_record_end_ns(&copy[1]), 10 + DOMI_RECORD_LENGTH_MAX);
    ck_assert_uint_eq(domi_record_kind_of(&copy[1]), DOMI_RECORD_RUN);
    domi_recorder_free(recorder);
}

DOMT_TEST(record_with_an_invalid_kind_is_left_out_of_a_copy)
{
    domi_recorder *recorder = make_recorder_named_thread_7();

    write_record_of_number(recorder, 1);
    write_record_of_number(recorder, 2);
    write_record_of_number(recorder, 3);
    atomic_store(&recorder->places[1].kind_length, UINT64_MAX);
    ck_assert_uint_eq(domi_recorder_copy_records(recorder, 0, copy), 2);
    check_record_of_number(&copy[0], 1);
    check_record_of_number(&copy[1], 3);
    domi_recorder_free(recorder);
}

DOMT_TEST(a_thing_that_has_begun_is_seen_until_it_ends)
{
    domi_recorder *recorder = make_recorder_named_thread_7();

    domi_recorder_note_begin_of_thing(recorder, DOMI_RECORD_PHASE, 10, "state", 0);
    domi_recorder_note_begin_of_thing(recorder, DOMI_RECORD_RUN, 20, &owner, 5);
    domi_recorder_set_value_of_thing(recorder, DOMI_RECORD_RUN, 6);
    domi_recorder_copy_open_things(recorder, open_copy);
    ck_assert_uint_eq(domi_record_kind_of(&open_copy[0]), DOMI_RECORD_NONE);
    ck_assert_uint_eq(domi_record_kind_of(&open_copy[1]), DOMI_RECORD_PHASE);
    ck_assert_uint_eq(open_copy[1].begin_ns, 10);
    ck_assert_uint_eq(domi_record_kind_of(&open_copy[3]), DOMI_RECORD_RUN);
    ck_assert_uint_eq(domi_record_end_ns(&open_copy[3]), 20);
    ck_assert_ptr_eq(open_copy[3].name, &owner);
    ck_assert_uint_eq(open_copy[3].value, 6);
    ck_assert_uint_eq(domi_recorder_copy_records(recorder, 0, copy), 0);

    domi_recorder_end_begun_thing(recorder, DOMI_RECORD_RUN, 0, 30);
    domi_recorder_copy_open_things(recorder, open_copy);
    ck_assert_uint_eq(domi_record_kind_of(&open_copy[3]), DOMI_RECORD_NONE);
    ck_assert_uint_eq(domi_recorder_copy_records(recorder, 0, copy), 1);
    ck_assert_uint_eq(domi_record_kind_of(&copy[0]), DOMI_RECORD_RUN);
    ck_assert_uint_eq(copy[0].begin_ns, 20);
    ck_assert_uint_eq(domi_record_end_ns(&copy[0]), 30);
    ck_assert_ptr_eq(copy[0].name, &owner);
    ck_assert_uint_eq(copy[0].value, 6);
    domi_recorder_free(recorder);
}

static bool find_run_that_began_at_500(const void *runner, domi_record *ret_record)
{
    *ret_record = (domi_record){.begin_ns = 500, .name = runner};
    return true;
}

DOMT_TEST(run_under_way_begins_behind_all_that_is_recorded)
{
    domi_recorder *recorder = make_recorder_named_thread_7();
    const domi_record *run = &open_copy[domi_record_depth_of(DOMI_RECORD_RUN)];

    recorder->runner = &owner;
    atomic_store(&recorder->find_run, find_run_that_began_at_500);
    for (uint64_t end_ns = 400; end_ns <= 1000; end_ns += 600) {
        domi_recorder_write_ended_thing(recorder, DOMI_RECORD_RUN, 100, end_ns, NULL, 0);
        domi_recorder_copy_open_things(recorder, open_copy);
        ck_assert_int_eq(domi_record_kind_of(run), DOMI_RECORD_RUN);
        ck_assert_ptr_eq(run->name, &owner);
        ck_assert_uint_eq(run->begin_ns, end_ns == 400 ? 500 : 1000);
    }
    domi_recorder_free(recorder);
}

DOMT_TEST(a_thing_that_has_not_begun_does_not_end)
{
    domi_recorder *recorder = make_recorder_named_thread_7();

    domi_recorder_end_begun_thing(recorder, DOMI_RECORD_RUN, 0, 30);
    domi_recorder_note_begin_of_thing(recorder, DOMI_RECORD_STEAL, 20, NULL, 0);
    /* a later record at the same depth of nesting */
    domi_recorder_end_begun_thing(recorder, DOMI_RECORD_STAND_IN, 0, 30);
    ck_assert_uint_eq(domi_recorder_copy_records(recorder, 0, copy), 0);
    domi_recorder_end_begun_thing(recorder, DOMI_RECORD_STEAL, 0, 30);
    domi_recorder_end_begun_thing(recorder, DOMI_RECORD_STEAL, 0, 40);
    ck_assert_uint_eq(domi_recorder_copy_records(recorder, 0, copy), 1);
    domi_recorder_free(recorder);
}

/* ---- The table ------------------------------------------------------------------------------- */

DOMT_TEST(recorders_are_found_by_their_owner)
{
    domi_recorder *first = make_recorder_named_thread_7();
    domi_recorder *other = NULL;
    uint32_t index = 0;

    ck_assert_int_eq(domi_recorder_new(&stranger, "x", PLACES, &other), 0);
    domi_recorder *second = make_recorder_named_thread_7();
    ck_assert_ptr_eq(domi_recorder_next_of_owner(&owner, &index), first);
    ck_assert_ptr_eq(domi_recorder_next_of_owner(&owner, &index), second);
    ck_assert_ptr_null(domi_recorder_next_of_owner(&owner, &index));
    domi_recorder_free(first);
    index = 0;
    ck_assert_ptr_eq(domi_recorder_next_of_owner(&owner, &index), second);
    index = 0;
    ck_assert_ptr_eq(domi_recorder_next_of_owner(NULL, &index), other);
    ck_assert_ptr_eq(domi_recorder_next_of_owner(NULL, &index), second);
    ck_assert_ptr_null(domi_recorder_next_of_owner(NULL, &index));
    ck_assert_str_eq(second->name, "thread 7");
    domi_recorder_free(second);
    domi_recorder_free(other);
    domi_recorder_free(NULL);
    index = 0;
    ck_assert_ptr_null(domi_recorder_next_of_owner(NULL, &index));
}

DOMT_TEST(a_recorder_is_refused_at_each_limit)
{
    static domi_recorder *all[DOMI_RECORDERS_MAX];
    static const uint32_t wrong[] = {0, 1, PLACES / 2, PLACES + 1, 2 * DOMI_RECORDER_PLACES_MAX};
    domi_recorder *recorder = NULL;
    char name[3 * DOMI_RECORDER_NAME];

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_eq(domi_recorder_new(&owner, "x", wrong[i], &recorder), -EINVAL);
    domi_memory_fail_allocation_after(0, 0);
    ck_assert_int_eq(domi_recorder_new(&owner, "x", PLACES, &recorder), -ENOMEM);
    domi_memory_fail_allocation_after(-1, 0);
    ck_assert_ptr_null(recorder);

    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    for (uint32_t i = 0; i < DOMI_RECORDERS_MAX; i++)
        ck_assert_int_eq(domi_recorder_new(&owner, name, PLACES, &all[i]), 0);
    ck_assert_uint_eq(strlen(all[0]->name), DOMI_RECORDER_NAME - 1);
    ck_assert_int_eq(domi_recorder_new(&owner, "x", PLACES, &recorder), -ENOSPC);
    domi_recorder_free(all[17]);
    ck_assert_int_eq(domi_recorder_new(&owner, "x", PLACES, &all[17]), 0);
    ck_assert_uint_eq(all[17]->number, 17);
    for (uint32_t i = 0; i < DOMI_RECORDERS_MAX; i++)
        domi_recorder_free(all[i]);
}

DOMT_TEST(recorder_knows_the_id_of_the_thread_that_writes)
{
    domi_recorder *recorder = make_recorder_named_thread_7();
    ck_assert_int_eq(atomic_load(&recorder->tid), 0);
    domi_recorder_set_writing_thread(recorder);
    ck_assert_int_gt(atomic_load(&recorder->tid), 0);
    domi_recorder_free(recorder);
}

DOMT_TEST(a_crash_keeps_the_memory_of_recorders)
{
    domi_recorder *recorder = make_recorder_named_thread_7();

    write_record_of_number(recorder, 1);
    ck_assert(domi_recorders_begin_crash());
    ck_assert(!domi_recorders_begin_crash());
    domi_recorder_free(recorder);
    ck_assert_uint_eq(domi_recorder_copy_records(recorder, 0, recorder->scratch), 1);
    check_record_of_number(&recorder->scratch[0], 1);
}

/* ---- Readers beside the owner ---------------------------------------------------------------- */

struct race {
    domi_recorder *recorder;
    atomic_bool ended; /* true: the owner of the recorder writes no more */
};

/* Write records again and again, while a run is under way all the time whose words also show the
 * number. */
static void *write_records_of_race(void *race_)
{
    struct race *race = race_;
    uint64_t count = domt_tenfold_if_tests_are_long(DOMT_SCALE(3000000, 200000));

    domi_recorder_set_writing_thread(race->recorder);
    for (uint64_t i = 1; i <= count; i++) {
        domi_recorder_note_begin_of_thing(race->recorder, DOMI_RECORD_RUN, i,
                                          (const void *)(uintptr_t)i, ~i);
        write_record_of_number(race->recorder, i);
    }
    atomic_store(&race->ended, true);
    return NULL;
}

/* Copy the records once, and check that each word of a record shows the same number. Returns how
 * many were copied. */
static uint64_t copy_and_check_records_once(const domi_recorder *recorder)
{
    uint32_t count = domi_recorder_copy_records(recorder, 0, copy);

    for (uint32_t i = 0; i < count; i++)
        check_record_of_number(&copy[i], copy[0].begin_ns + i);
    domi_recorder_copy_open_things(recorder, open_copy);
    if (domi_record_kind_of(&open_copy[3]) != DOMI_RECORD_NONE) {
        ck_assert_uint_eq((uintptr_t)open_copy[3].name, open_copy[3].begin_ns);
        ck_assert_uint_eq(open_copy[3].value, ~open_copy[3].begin_ns);
    }
    return count;
}

DOMT_TEST(a_reader_never_sees_half_a_record)
{
    struct race race = {.recorder = make_recorder_named_thread_7()};
    pthread_t writer;
    uint64_t copied = 0;
    uint64_t rounds = 0;

    ck_assert_int_eq(pthread_create(&writer, NULL, write_records_of_race, &race), 0);
    for (; !atomic_load(&race.ended); rounds++)
        copied += copy_and_check_records_once(race.recorder);
    ck_assert_int_eq(pthread_join(writer, NULL), 0);
    ck_assert_uint_eq(copy_and_check_records_once(race.recorder), PLACES - 1);
    printf("%lu records in %lu copies\n", (unsigned long)copied, (unsigned long)rounds);
    domi_recorder_free(race.recorder);
}

/* --- nesting ---------------------------------------------------------------------------------- */

/* The nesting of the records of a trace (runtime/trace/nesting.h): the order of steps at the same
 * time, outer records that are missing or still under way, and matching begins and ends for any
 * records. */

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

DOMT_TEST(walk_begins_outer_records_first_and_ends_them_last)
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

DOMT_TEST(walk_copes_with_missing_outer_records)
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

DOMT_TEST(walk_begins_an_open_record_without_an_end)
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

DOMT_TEST(open_record_that_ended_meanwhile_comes_once)
{
    const domi_record records[] = {make_record(DOMI_RECORD_RUN, 10, 20),
                                   make_record(DOMI_RECORD_RUN, 20, 30)};
    domi_record open[DOMI_RECORD_DEPTHS] = {0};

    open[3] = make_record(DOMI_RECORD_RUN, 10, 10);
    check_steps_of_records(records, 2, open, "(R10 R20) (R20 R30) ");
    /* the record of the run that was open is missing, so nothing of that run is shown */
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

DOMT_TEST(walk_matches_begins_and_ends_for_any_records)
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
