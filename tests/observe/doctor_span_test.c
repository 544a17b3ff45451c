/* Looks from which the doctor makes no span, and spans with absurd figures. */
#include "protocols/observe/doctor/lasting.h"
#include "tests/observe/looks.h"
#include "tests/support/suite.h"

#include <string.h>

static domi_finding findings[DOMI_RULES_MAX];

/* --- looks that are no span ------------------------------------------------------------------- */

static void another_pid(domt_looks *looks)
{
    looks->after.pid = 8;
}

static void another_name(domt_looks *looks)
{
    looks->after.program[0] = 'c';
}

static void fewer_threads(domt_looks *looks)
{
    looks->after.thread_count = 1;
}

static void fewer_runners(domt_looks *looks)
{
    looks->before.runner_count = 0;
}

static void a_restart(domt_looks *looks)
{
    looks->before.uptime_ns = looks->after.uptime_ns + 1;
}

/* The process in a container has the same pid after each start, and its uptime may be larger at the
 * second look. */
static void another_start(domt_looks *looks)
{
    looks->before.uptime_ns = 1000000;
    looks->after.uptime_ns += 12000000;
}

static void no_time(domt_looks *looks)
{
    looks->after.now_ns = looks->before.now_ns;
}

static void a_moment(domt_looks *looks)
{
    looks->after.now_ns = looks->before.now_ns + 99999999;
}

static void the_past(domt_looks *looks)
{
    looks->before.now_ns = looks->after.now_ns + 1;
}

static void for_ever(domt_looks *looks)
{
    looks->after.now_ns = UINT64_MAX;
}

static void no_level(domt_looks *looks)
{
    domi_look_copy_name(looks->after.level, DOMI_LOOK_NAME, "off");
}

static void no_machine(domt_looks *looks)
{
    looks->before.machine.cpus = 0;
}

DOMT_TEST(looks_that_do_not_belong_together_are_refused)
{
    static const struct {
        void (*make)(domt_looks *looks);
        const char *why;
    } wrong[] = {
        {another_pid, "different programs"},
        {another_name, "different programs"},
        {fewer_threads, "threads"},
        {fewer_runners, "threads"},
        {a_restart, "anew"},
        {another_start, "anew"},
        {no_time, "100 ms"},
        {a_moment, "100 ms"},
        {the_past, "older"},
        {for_ever, "year"},
        {no_level, "profile.level"},
        {no_machine, "machine=1"},
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        domt_looks looks;
        domi_span span;
        domt_looks_make(&looks);
        wrong[i].make(&looks);
        const char *why = domi_span_init(&looks.before, &looks.after, &span);
        ck_assert_msg(why != NULL && strstr(why, wrong[i].why) != NULL, "%zu: %s", i,
                      why != NULL ? why : "a span");
        domt_looks_free(&looks);
    }
}

/* The behaviours of a pool may be listed in another order at the second look. */
DOMT_TEST(behaviours_are_found_in_any_order)
{
    domt_looks looks;
    domi_span span;

    domt_looks_make(&looks);
    for (int way = 0; way < 2; way++) {
        domi_look_actors *actors = way == 0 ? looks.before.actors : looks.after.actors;
        for (int i = 0; i < 2; i++) {
            actors[i].thread = DOMI_LOOK_POOL;
            domi_look_copy_name(actors[i].pool, DOMI_LOOK_NAME, "work");
            domi_look_copy_name(actors[i].name, DOMI_LOOK_NAME, way == i ? "a" : "b");
            actors[i].counts = (domi_look_behaviour){.runs = way == i ? 10 : 20};
        }
    }
    ck_assert_ptr_null(domi_span_init(&looks.before, &looks.after, &span));
    ck_assert_uint_eq(span.actors_count, 2);
    ck_assert_uint_eq(span.actors[0].runs + span.actors[1].runs, 0);
    domi_span_fini(&span);
    domt_looks_free(&looks);
}

/* Counters that all went back, and figures that all have their largest value: no rule divides by
 * zero, and the words of each are a sentence. */
DOMT_TEST(absurd_figures_do_no_harm)
{
    for (int way = 0; way < 3; way++) {
        domt_looks looks;
        domt_looks_make(&looks);
        domi_look *to = way == 0 ? &looks.before : &looks.after;
        memset(to->threads, 0xff, 2 * sizeof *to->threads);
        memset(&to->outside, 0xff, sizeof to->outside);
        memset(&to->memory, 0xff, sizeof to->memory);
        memset(&to->usage, 0xff, sizeof to->usage);
        memset(&to->settings, way == 2 ? 0 : 0xff, sizeof to->settings);
        memset(&to->machine, 0xff, sizeof to->machine);
        memset(&to->actors[0].counts, 0xff, sizeof to->actors[0].counts);
        memset(&to->runners[0].times, 0xff, sizeof to->runners[0].times);
        memset(&to->ports[0].counts, 0xff, sizeof to->ports[0].counts);
        to->actors[1].thread = INT64_MAX;
        uint32_t count = domt_looks_judge(&looks, findings);
        for (uint32_t i = 0; i < count; i++) {
            ck_assert_ptr_null(strstr(findings[i].sentence, "nan"));
            ck_assert_ptr_null(strstr(findings[i].sentence, "inf"));
        }
        domt_looks_free(&looks);
    }
}

DOMT_TEST(nothing_is_said_of_looks_that_tell_nothing)
{
    domt_looks looks = {0};

    looks.after.now_ns = looks.after.uptime_ns = UINT64_C(1000000000);
    looks.before.machine.cpus = looks.after.machine.cpus = 1;
    uint32_t count = domt_looks_judge(&looks, findings);
    ck_assert_msg(count == 0, "%s", findings[0].rule->name);
}

/* `looks` has a 1 for each look at which a rule finds something; `said` has the report for each
 * look: b the finding begins, e it ends. */
DOMT_TEST(what_comes_and_goes_neither_begins_nor_ends)
{
    static const struct {
        const char *looks, *said;
    } rows[] = {
        {"1", "."},
        {"11", ".b"},
        {"101", "..b"},
        {"1001001", "......."},
        {"1101001000", ".b.......e"},
        {"110001", ".b..e."},
        {"11100111", ".b......"},
        {"1100011", ".b..e.b"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        domi_lasting lasting = {0};
        for (size_t k = 0; rows[i].looks[k] != '\0'; k++) {
            domi_lasting_change change = domi_lasting_note(&lasting, rows[i].looks[k] == '1');
            ck_assert_msg(rows[i].said[k] == ".be"[change], "%s: %zu", rows[i].looks, k);
        }
    }
}

DOMT_SUITE(60)
