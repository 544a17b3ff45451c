/* The rules of the doctor just below and just above their thresholds, with made-up looks at a
 * program. */
#include "tests/observe/advice.h"
#include "tests/observe/cases.h"
#include "tests/observe/looks.h"
#include "tests/support/suite.h"

#include <string.h>

static domi_finding findings[DOMI_RULES_MAX];

static const domt_case *const lists[] = {domt_cases_of_time, domt_cases_of_limits};
#define LISTS (sizeof lists / sizeof lists[0])

/* Returns the first case of a rule; NULL if there is none. */
static const domt_case *find_case(const char *rule)
{
    for (size_t i = 0; i < LISTS; i++) {
        for (const domt_case *at = lists[i]; at->rule != NULL; at++) {
            if (strcmp(at->rule, rule) == 0)
                return at;
        }
    }
    return NULL;
}

static void check_case(const domt_case *at, bool over)
{
    domt_looks looks;

    domt_looks_make(&looks);
    at->make(&looks, over);
    const domi_finding *found =
        domt_find_finding(findings, domt_looks_judge(&looks, findings), at->rule);
    ck_assert_msg((found != NULL) == over, "%s: %s: %d", at->rule, at->change, over);
    if (found != NULL) {
        ck_assert_msg(strstr(found->change, at->change) != NULL, "%s: %s", at->rule, found->change);
        domt_advice_check(found, &looks.after.settings);
        ck_assert(found->sentence[strlen(found->sentence) - 1] == '.');
    }
    domt_looks_free(&looks);
}

DOMT_TEST(each_rule_speaks_on_one_side_of_its_threshold)
{
    for (size_t i = 0; i < LISTS; i++) {
        for (const domt_case *at = lists[i]; at->rule != NULL; at++) {
            check_case(at, false);
            check_case(at, true);
        }
    }
}

DOMT_TEST(each_rule_has_a_case_and_all_its_words)
{
    const domi_rule *rule;
    uint32_t count = 0;

    for (; (rule = domi_rule_at(count)) != NULL; count++) {
        ck_assert_msg(find_case(rule->name) != NULL, "%s has no case", rule->name);
        ck_assert_msg(rule->title != NULL && rule->limit != NULL && rule->cause != NULL &&
                          rule->remedy != NULL && rule->keys != NULL,
                      "%s", rule->name);
        ck_assert(strspn(rule->name, "abcdefghijklmnopqrstuvwxyz-") == strlen(rule->name));
    }
    ck_assert_uint_lt(count, DOMI_RULES_MAX);
}

DOMT_TEST(nothing_is_said_of_healthy_programs)
{
    static const uint32_t shares[][4] = {
        {40, 50, 40, 50}, {0, 100, 0, 100}, {50, 0, 50, 0}, {95, 0, 95, 0}, {100, 0, 100, 0},
    };

    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        domt_looks looks;
        domt_looks_make(&looks);
        for (uint32_t thread = 0; thread < 2; thread++)
            domt_looks_set_shares(&looks, thread, shares[i][2 * thread], shares[i][2 * thread + 1]);
        uint32_t count = domt_looks_judge(&looks, findings);
        ck_assert_msg(count == 0, "%zu: %s", i, findings[0].rule->name);
        domt_looks_free(&looks);
    }
}

DOMT_TEST(the_worst_is_told_first)
{
    static const char *const rules[] = {"epoll", "stalls", "mailbox-full", "mail-waits"};
    domt_looks looks;

    domt_looks_make(&looks);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        find_case(rules[i])->make(&looks, true);
    ck_assert_uint_eq(domt_looks_judge(&looks, findings), 4);
    for (uint32_t i = 1; i < 4; i++)
        ck_assert_int_ge(findings[i - 1].rule->harm, findings[i].rule->harm);
    ck_assert_str_eq(findings[0].rule->name, "mailbox-full");
    ck_assert_str_eq(findings[3].rule->name, "epoll");
    domt_looks_free(&looks);
}

DOMT_SUITE(60)
