/* The table of all rules of the doctor, and the judgement of a span by all of them (rule.h). */
#include "protocols/observe/doctor/rule.h"

/* The tables of rules, one for each rules_*.c. Findings of the same harm are reported in this
 * order. */
static const domi_rule *const subjects[] = {
    domi_rules_of_memory, domi_rules_of_mail,     domi_rules_of_connections, domi_rules_of_machine,
    domi_rules_of_waits,  domi_rules_of_shares,   domi_rules_of_balance,     domi_rules_of_stealing,
    domi_rules_of_io,     domi_rules_of_failures,
};
#define SUBJECTS (sizeof subjects / sizeof subjects[0])

const domi_rule *domi_rule_at_place_in_all_tables(uint32_t index)
{
    for (size_t i = 0; i < SUBJECTS; i++) {
        for (const domi_rule *rule = subjects[i]; rule->name != NULL; rule++) {
            if (index-- == 0)
                return rule;
        }
    }
    return NULL;
}

/* Judge a span by all rules that have this harm, and add their findings. Returns the number of
 * findings so far. */
static uint32_t judge_by_rules_with_harm(const domi_span *span, domi_harm harm, uint32_t count,
                                         domi_finding *ret_findings)
{
    const domi_rule *rule;

    for (uint32_t i = 0;
         (rule = domi_rule_at_place_in_all_tables(i)) != NULL && count < DOMI_RULES_MAX; i++) {
        if (rule->harm != harm)
            continue;
        domi_finding *finding = &ret_findings[count];
        *finding = (domi_finding){.rule = rule};
        count += rule->judge(span, finding);
    }
    return count;
}

uint32_t domi_judge_span_by_all_rules(const domi_span *span,
                                      domi_finding ret_findings[DOMI_RULES_MAX])
{
    uint32_t count = judge_by_rules_with_harm(span, DOMI_HARM_LOSS, 0, ret_findings);

    count = judge_by_rules_with_harm(span, DOMI_HARM_DELAY, count, ret_findings);
    return judge_by_rules_with_harm(span, DOMI_HARM_COST, count, ret_findings);
}
