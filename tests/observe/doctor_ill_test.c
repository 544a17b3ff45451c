/* The doctor finds the faults of real programs, each of which has one fault (ills.h). */
#include "protocols/observe/doctor/rule.h"
#include "protocols/observe/looking.h"
#include "tests/observe/ills.h"
#include "tests/observe/looks.h"
#include "tests/runtime/running.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ILLS_MAX 64
#define TRIES    4
#define SETTLING (100 * DOMT_MS)
#define LOOKED   (500 * DOMT_MS)

static domi_finding findings[DOMI_RULES_MAX];

struct patient {
    const domt_ill *ill;
    domt_ill_run run;
    domi_look before, after;
    bool is_missed;
};

static struct patient patients[ILLS_MAX];

/* Let the programs run for this time, and call the function `again` of each one every 10 ms. */
static void run_programs_for_time(size_t count, uint64_t time_ns)
{
    uint64_t until_ns = domt_now_ns() + time_ns;

    while (domt_now_ns() < until_ns) {
        for (size_t i = 0; i < count; i++)
            if (patients[i].ill->again != NULL)
                patients[i].ill->again(&patients[i].run);
        domt_pause_ns(10 * DOMT_MS);
    }
}

static void print_findings_of_span(const char *rule, const domi_span *span, uint32_t count)
{
    printf("%s:\n", rule);
    for (uint32_t i = 0; i < span->thread_count; i++) {
        const domi_span_thread *one = &span->threads[i];
        printf("  thread %u: state %.2f channels %.2f sleep %.2f cpu %.2f denied %.2f ready %.1f, "
               "%u iterations, %u cut, %u ms over, %u runs, %u steals, %u empty of %u wake-ups\n",
               i, one->state, one->channels, one->sleep, one->cpu, one->denied, one->ready,
               (unsigned)one->counters.iterations, (unsigned)one->counters.deadline_expiries,
               (unsigned)(one->counters.deadline_overrun_ns / 1000000),
               (unsigned)one->counters.runs, (unsigned)one->counters.steals,
               (unsigned)one->counters.wakeups_empty, (unsigned)one->counters.wakeups_received);
    }
    for (uint32_t i = 0; i < span->actors_count; i++)
        printf("  %s: %u runs, %u waits of %u ms\n", span->actors[i].name,
               (unsigned)span->actors[i].runs, (unsigned)span->actors[i].waits,
               (unsigned)(span->actors[i].wait_ns / 1000000));
    for (uint32_t i = 0; i < count; i++)
        printf("    %s: %s\n", findings[i].rule->name, findings[i].sentence);
    (void)fflush(stdout);
}

/* Judge a program, and print the findings if its own rule is not among them. `ret_is_denied`
 * tells whether other programs took the CPU; this is not seen if the program's machine consists
 * of files. */
static bool does_doctor_name_the_fault(const struct patient *patient, bool *ret_is_denied)
{
    domi_span span;
    const char *why = domi_span_init(&patient->before, &patient->after, &span);

    ck_assert_msg(why == NULL, "%s: %s", patient->ill->rule, why);
    uint32_t count = domi_judge_span_by_all_rules(&span, findings);
    *ret_is_denied =
        domt_find_finding_of_rule(findings, count, "cpu-denied") != NULL ||
        (patient->ill->prepare == NULL && (double)span.machine.idle_ns < 0.75e9 * span.seconds);
    bool is_found = domt_find_finding_of_rule(findings, count, patient->ill->rule) != NULL;
    if (!is_found || getenv("DOMT_PRINT") != NULL)
        print_findings_of_span(patient->ill->rule, &span, count);
    domi_span_fini(&span);
    return is_found;
}

/* Run programs at the same time. Returns how many of their faults the doctor did not find.
 * `ret_is_denied` tells whether one of the programs got too little of the CPU. */
static uint32_t run_and_judge_programs(const domt_ill *ills, size_t count, bool *ret_is_denied)
{
    uint32_t missed = 0;
    bool is_denied;

    *ret_is_denied = false;
    for (size_t i = 0; i < count; i++) {
        patients[i] = (struct patient){.ill = &ills[i]};
        domt_ill_start_program(&ills[i], &patients[i].run);
    }
    run_programs_for_time(count, SETTLING);
    for (size_t i = 0; i < count; i++)
        ck_assert_int_eq(domi_take_look_at_program(patients[i].run.system, &patients[i].before), 0);
    run_programs_for_time(count, LOOKED);
    for (size_t i = 0; i < count; i++)
        ck_assert_int_eq(domi_take_look_at_program(patients[i].run.system, &patients[i].after), 0);
    for (size_t i = 0; i < count; i++) {
        patients[i].is_missed = !does_doctor_name_the_fault(&patients[i], &is_denied);
        missed += patients[i].is_missed;
        *ret_is_denied = *ret_is_denied || (patients[i].is_missed && is_denied);
        domi_look_free_lists(&patients[i].before);
        domi_look_free_lists(&patients[i].after);
        domt_ill_end_program(&patients[i].run);
    }
    return missed;
}

/* Run and judge a program, and repeat it while other programs take the CPU; if that never ends, the
 * program cannot be judged. Returns whether its fault was found, or the program could not be
 * judged. */
static bool is_fault_found_or_unjudgeable(const domt_ill *ill)
{
    bool is_denied = true;

    for (int i = 0; i < TRIES && is_denied; i++) {
        if (run_and_judge_programs(ill, 1, &is_denied) == 0)
            return true;
    }
    if (is_denied)
        printf("skipped: %s: this machine has too much to do to tell\n", ill->rule);
    return is_denied;
}

static bool is_rule_in_list(const domt_ill *list, const char *rule)
{
    while (list->rule != NULL && strcmp(list->rule, rule) != 0)
        list++;
    return list->rule != NULL;
}

/* There is no program for the rule of threads that are woken for nothing: no known program makes
 * them wake so often, so that rule is only tested with made-up figures. */
DOMT_TEST(each_rule_has_a_faulty_program)
{
    const domi_rule *rule;

    for (uint32_t i = 0; (rule = domi_rule_at_place_in_all_tables(i)) != NULL; i++)
        ck_assert_msg(is_rule_in_list(domt_ills_of_time, rule->name) ||
                          is_rule_in_list(domt_ills_of_limits, rule->name) ||
                          is_rule_in_list(domt_ills_of_machine, rule->name) ||
                          is_rule_in_list(domt_ills_of_process, rule->name) ||
                          strcmp(rule->name, "wakeups-empty") == 0,
                      "%s has no program that is ill so", rule->name);
}

DOMT_TEST(doctor_names_faults_of_limits)
{
    size_t count = 0;
    bool is_denied;

    while (domt_ills_of_limits[count].rule != NULL)
        count++;
    ck_assert_uint_le(count, ILLS_MAX);
    bool is_missed[ILLS_MAX];
    (void)run_and_judge_programs(domt_ills_of_limits, count, &is_denied);
    for (size_t i = 0; i < count; i++)
        is_missed[i] = patients[i].is_missed;
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(!is_missed[i] ||
                          (is_denied && is_fault_found_or_unjudgeable(&domt_ills_of_limits[i])),
                      "%s", domt_ills_of_limits[i].rule);
}

DOMT_TEST(doctor_names_faults_of_time)
{
    const char *only = getenv("DOMT_ILL"); /* name of the only rule to test, if it is set */
    uint32_t missed = 0;

    for (const domt_ill *ill = domt_ills_of_time; ill->rule != NULL; ill++)
        if (only == NULL || strcmp(only, ill->rule) == 0)
            missed += !is_fault_found_or_unjudgeable(ill);
    ck_assert_uint_eq(missed, 0);
}

DOMT_TEST(doctor_names_faults_of_the_machine)
{
    for (const domt_ill *ill = domt_ills_of_machine; ill->rule != NULL; ill++)
        ck_assert_msg(is_fault_found_or_unjudgeable(ill), "%s", ill->rule);
}

/* These programs change limits of the test's process, which ends after this test. */
DOMT_TEST(doctor_names_lack_of_cpus_and_descriptors)
{
    bool is_denied;

    for (const domt_ill *ill = domt_ills_of_process; ill->rule != NULL; ill++) {
        int tries = 0;
        while (run_and_judge_programs(ill, 1, &is_denied) != 0)
            ck_assert_msg(++tries < TRIES, "%s", ill->rule);
    }
}

/* A healthy program that gets no CPU may show any fault. */
static bool does_doctor_find_no_fault(const struct patient *patient)
{
    domi_span span;

    ck_assert_ptr_null(domi_span_init(&patient->before, &patient->after, &span));
    uint32_t count = domi_judge_span_by_all_rules(&span, findings);
    bool is_denied = domt_find_finding_of_rule(findings, count, "cpu-denied") != NULL;
    if (count != 0)
        print_findings_of_span(patient->ill->rule, &span, count);
    domi_span_fini(&span);
    return count == 0 || is_denied;
}

DOMT_TEST(doctor_finds_no_fault_in_busy_programs)
{
    for (const domt_ill *well = domt_wells; well->rule != NULL; well++) {
        patients[0] = (struct patient){.ill = well};
        domt_ill_start_program(well, &patients[0].run);
        run_programs_for_time(1, SETTLING);
        ck_assert_int_eq(domi_take_look_at_program(patients[0].run.system, &patients[0].before), 0);
        run_programs_for_time(1, LOOKED);
        ck_assert_int_eq(domi_take_look_at_program(patients[0].run.system, &patients[0].after), 0);
        ck_assert_msg(does_doctor_find_no_fault(&patients[0]), "%s", well->rule);
        domi_look_free_lists(&patients[0].before);
        domi_look_free_lists(&patients[0].after);
        domt_ill_end_program(&patients[0].run);
    }
}

DOMT_SUITE(60)
