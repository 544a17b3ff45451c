/* The rules of the doctor: at their thresholds, with looks and spans that tell nothing, and in
 * docs/doctor.md. */
#include "protocols/observe/doctor/lasting.h"
#include "protocols/observe/doctor/report.h"
#include "tests/observe/advice.h"
#include "tests/observe/cases.h"
#include "tests/observe/looks.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The rules of the doctor just below and just above their thresholds, with made-up looks at a
 * program. */

static domi_finding findings[DOMI_RULES_MAX];

static const domt_case *const lists[] = {domt_cases_of_time, domt_cases_of_limits};
#define LISTS (sizeof lists / sizeof lists[0])

/* Returns the first case of the rule with this name; NULL if there is none. */
static const domt_case *find_case_of_rule(const char *rule)
{
    for (size_t i = 0; i < LISTS; i++) {
        for (const domt_case *at = lists[i]; at->rule != NULL; at++) {
            if (strcmp(at->rule, rule) == 0)
                return at;
        }
    }
    return NULL;
}

static void check_case_at_threshold(const domt_case *at, bool over)
{
    domt_looks looks;

    domt_looks_make_two_looks(&looks);
    at->make(&looks, over);
    const domi_finding *found =
        domt_find_finding_of_rule(findings, domt_looks_judge_span(&looks, findings), at->rule);
    ck_assert_msg((found != NULL) == over, "%s: %s: %d", at->rule, at->change, over);
    if (found != NULL) {
        ck_assert_msg(strstr(found->change, at->change) != NULL, "%s: %s", at->rule, found->change);
        domt_advice_check_keys(found, &looks.after.settings);
        ck_assert(found->sentence[strlen(found->sentence) - 1] == '.');
    }
    domt_looks_free_both(&looks);
}

DOMT_TEST(each_rule_finds_only_beyond_its_threshold)
{
    for (size_t i = 0; i < LISTS; i++) {
        for (const domt_case *at = lists[i]; at->rule != NULL; at++) {
            check_case_at_threshold(at, false);
            check_case_at_threshold(at, true);
        }
    }
}

DOMT_TEST(each_rule_has_a_case_and_its_texts)
{
    const domi_rule *rule;
    uint32_t count = 0;

    for (; (rule = domi_rule_at_place_in_all_tables(count)) != NULL; count++) {
        ck_assert_msg(find_case_of_rule(rule->name) != NULL, "%s has no case", rule->name);
        ck_assert_msg(rule->title != NULL && rule->limit != NULL && rule->cause != NULL &&
                          rule->remedy != NULL && rule->keys != NULL,
                      "%s", rule->name);
        ck_assert(strspn(rule->name, "abcdefghijklmnopqrstuvwxyz-") == strlen(rule->name));
    }
    ck_assert_uint_lt(count, DOMI_RULES_MAX);
}

DOMT_TEST(rules_find_nothing_in_healthy_looks)
{
    static const uint32_t shares[][4] = {
        {40, 50, 40, 50}, {0, 100, 0, 100}, {50, 0, 50, 0}, {95, 0, 95, 0}, {100, 0, 100, 0},
    };

    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        domt_looks looks;
        domt_looks_make_two_looks(&looks);
        for (uint32_t thread = 0; thread < 2; thread++)
            domt_looks_set_time_shares(&looks, thread, shares[i][2 * thread],
                                       shares[i][2 * thread + 1]);
        uint32_t count = domt_looks_judge_span(&looks, findings);
        ck_assert_msg(count == 0, "%zu: %s", i, findings[0].rule->name);
        domt_looks_free_both(&looks);
    }
}

DOMT_TEST(findings_come_worst_first)
{
    static const char *const rules[] = {"epoll", "stalls", "mailbox-full", "mail-waits"};
    domt_looks looks;

    domt_looks_make_two_looks(&looks);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        find_case_of_rule(rules[i])->make(&looks, true);
    ck_assert_uint_eq(domt_looks_judge_span(&looks, findings), 4);
    for (uint32_t i = 1; i < 4; i++)
        ck_assert_int_ge(findings[i - 1].rule->harm, findings[i].rule->harm);
    ck_assert_str_eq(findings[0].rule->name, "mailbox-full");
    ck_assert_str_eq(findings[3].rule->name, "epoll");
    domt_looks_free_both(&looks);
}

/* --- doctor span ------------------------------------------------------------------------------ */

/* Looks from which the doctor makes no span, and spans with absurd figures. */

/* --- looks that are no span ------------------------------------------------------------------- */

static void change_pid_of_second_look(domt_looks *looks)
{
    looks->after.pid = 8;
}

static void change_name_of_second_look(domt_looks *looks)
{
    looks->after.program[0] = 'c';
}

static void remove_thread_of_second_look(domt_looks *looks)
{
    looks->after.thread_count = 1;
}

static void remove_runner_of_second_look(domt_looks *looks)
{
    looks->before.runner_count = 0;
}

static void make_uptime_shorter(domt_looks *looks)
{
    looks->before.uptime_ns = looks->after.uptime_ns + 1;
}

/* A process in a container has the same pid after each start, and the uptime of another start may
 * be larger than that of the first look. */
static void change_start_of_second_look(domt_looks *looks)
{
    looks->before.uptime_ns = 1000000;
    looks->after.uptime_ns += 12000000;
}

static void leave_no_time_between_looks(domt_looks *looks)
{
    looks->after.now_ns = looks->before.now_ns;
}

static void leave_too_short_time_between_looks(domt_looks *looks)
{
    looks->after.now_ns = looks->before.now_ns + 99999999;
}

static void put_second_look_before_first(domt_looks *looks)
{
    looks->before.now_ns = looks->after.now_ns + 1;
}

static void leave_too_long_time_between_looks(domt_looks *looks)
{
    looks->after.now_ns = UINT64_MAX;
}

static void remove_level_of_profile(domt_looks *looks)
{
    domi_look_copy_name(looks->after.level, DOMI_LOOK_NAME, "off");
}

static void remove_figures_of_machine(domt_looks *looks)
{
    looks->before.machine.cpus = 0;
}

DOMT_TEST(unrelated_looks_make_no_span)
{
    static const struct {
        void (*make)(domt_looks *looks);
        const char *why;
    } wrong[] = {
        {change_pid_of_second_look, "different programs"},
        {change_name_of_second_look, "different programs"},
        {remove_thread_of_second_look, "threads"},
        {remove_runner_of_second_look, "threads"},
        {make_uptime_shorter, "anew"},
        {change_start_of_second_look, "anew"},
        {leave_no_time_between_looks, "100 ms"},
        {leave_too_short_time_between_looks, "100 ms"},
        {put_second_look_before_first, "older"},
        {leave_too_long_time_between_looks, "year"},
        {remove_level_of_profile, "profile.level"},
        {remove_figures_of_machine, "machine=1"},
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        domt_looks looks;
        domi_span span;
        domt_looks_make_two_looks(&looks);
        wrong[i].make(&looks);
        const char *why = domi_span_init(&looks.before, &looks.after, &span);
        ck_assert_msg(why != NULL && strstr(why, wrong[i].why) != NULL, "%zu: %s", i,
                      why != NULL ? why : "a span");
        domt_looks_free_both(&looks);
    }
}

/* A counter that went back has not grown; the rest of the span holds. */
DOMT_TEST(counter_that_went_back_counts_as_no_growth)
{
    domt_looks looks;
    domi_span span;

    domt_looks_make_two_looks(&looks);
    looks.before.threads[0].counters.runs = looks.after.threads[0].counters.runs + 1;
    looks.before.threads[1].counters.runs = looks.after.threads[1].counters.runs - 3;
    ck_assert_ptr_null(domi_span_init(&looks.before, &looks.after, &span));
    ck_assert_uint_eq(span.all.runs, 3);
    domi_span_fini(&span);
    domt_looks_free_both(&looks);
}

/* The behaviours of a program may be listed in another order at the second look. */
DOMT_TEST(behaviours_are_matched_in_any_order)
{
    domt_looks looks;
    domi_span span;

    domt_looks_make_two_looks(&looks);
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
    domt_looks_free_both(&looks);
}

/* Counters that all went back, and figures that all have their largest value: no rule divides by
 * zero, and the words of each finding are a sentence. */
DOMT_TEST(absurd_figures_break_no_rule)
{
    for (int way = 0; way < 3; way++) {
        domt_looks looks;
        domt_looks_make_two_looks(&looks);
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
        uint32_t count = domt_looks_judge_span(&looks, findings);
        for (uint32_t i = 0; i < count; i++) {
            ck_assert_ptr_null(strstr(findings[i].sentence, "nan"));
            ck_assert_ptr_null(strstr(findings[i].sentence, "inf"));
        }
        domt_looks_free_both(&looks);
    }
}

DOMT_TEST(rules_find_nothing_without_figures)
{
    domt_looks looks = {0};

    looks.after.now_ns = looks.after.uptime_ns = UINT64_C(1000000000);
    looks.before.machine.cpus = looks.after.machine.cpus = 1;
    uint32_t count = domt_looks_judge_span(&looks, findings);
    ck_assert_msg(count == 0, "%s", findings[0].rule->name);
}

/* `looks` has a 1 for each look at which a rule finds something; `said` has the doctor's report for
 * each look: b for the begin of the finding, e for its end. */
DOMT_TEST(flickering_finding_neither_begins_nor_ends)
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
            domi_lasting_change change =
                domi_lasting_record_whether_rule_spoke(&lasting, rows[i].looks[k] == '1');
            ck_assert_msg(rows[i].said[k] == ".be"[change], "%s: %zu", rows[i].looks, k);
        }
    }
}

/* --- doctor pages ----------------------------------------------------------------------------- */

/* docs/doctor.md has a section for each rule of the doctor, made from the table of rules.
 * DOMT_WRITE=1 build/dev/bin/tests/observe_doctor_judge writes the sections anew. */

#define PAGE     DOMT_SOURCE_DIR "/docs/doctor.md"
#define BEGIN    "## The rules\n"
#define TEXT_MAX (1u << 18)
#define COLUMNS  118u

static char page[TEXT_MAX], made[TEXT_MAX];
static size_t size;

static void append_bytes_to_page(const char *text, size_t length)
{
    ck_assert_uint_lt(size + length, TEXT_MAX);
    memcpy(made + size, text, length);
    size += length;
    made[size] = '\0';
}

static void append_text_to_page(const char *text)
{
    append_bytes_to_page(text, strlen(text));
}

/* Append a paragraph to the page, broken into lines. */
static void append_paragraph_to_page(const char *head, const char *text)
{
    size_t column = strlen(strrchr(head, '\n') + 1);
    bool begins = true;

    append_text_to_page(head);
    for (; *text != '\0'; begins = false) {
        size_t word = strcspn(text, " ");
        if (!begins && column + 1 + word > COLUMNS) {
            append_text_to_page("\n");
            column = 0;
        } else if (!begins) {
            append_text_to_page(" ");
            column++;
        }
        append_bytes_to_page(text, word);
        column += word;
        text += word;
        text += strspn(text, " ");
    }
    append_text_to_page("\n");
}

/* Append a list of keys to the page, each one as code. */
static void append_keys_to_page(const char *keys)
{
    append_text_to_page("\nKeys: ");
    while (*keys != '\0') {
        size_t length = strcspn(keys, ",");
        append_text_to_page("`");
        append_bytes_to_page(keys, length);
        append_text_to_page("`");
        keys += length;
        if (*keys == ',')
            append_text_to_page(", ");
        keys += strspn(keys, ", ");
    }
    append_text_to_page("\n");
}

static void append_rule_to_page(const domi_rule *rule)
{
    char head[256];

    snprintf(head, sizeof head, "\n### `%s`\n\n**%s** (%s). ", rule->name, rule->title,
             domi_word_of_harm(rule->harm));
    append_paragraph_to_page(head, rule->cause);
    append_paragraph_to_page("\nWhy it is a limit: ", rule->limit);
    append_paragraph_to_page("\nWhat helps: ", rule->remedy);
    if (rule->keys[0] != '\0')
        append_keys_to_page(rule->keys);
}

static void read_page_of_doctor(void)
{
    FILE *file = fopen(PAGE, "r");

    ck_assert_msg(file != NULL, "there is no " PAGE);
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    (void)fclose(file);
}

static void write_page_of_doctor(void)
{
    FILE *file = fopen(PAGE, "w");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(made, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

DOMT_TEST(doctor_page_describes_all_rules)
{
    const domi_rule *rule;

    read_page_of_doctor();
    const char *begin = strstr(page, BEGIN);
    ck_assert_ptr_nonnull(begin);
    append_bytes_to_page(page, (size_t)(begin - page) + strlen(BEGIN));
    for (uint32_t i = 0; (rule = domi_rule_at_place_in_all_tables(i)) != NULL; i++)
        append_rule_to_page(rule);
    if (getenv("DOMT_WRITE") != NULL)
        write_page_of_doctor();
    else
        ck_assert_msg(strcmp(page, made) == 0,
                      "docs/doctor.md is not as the rules are: write it anew by "
                      "DOMT_WRITE=1 build/dev/bin/tests/observe_doctor_judge");
}

DOMT_SUITE(60)
