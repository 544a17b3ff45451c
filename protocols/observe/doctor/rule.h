/* A rule of the doctor: one way in which a program may be ill, how this is recognized, and what
 * helps.
 *
 * The table of all rules (rules.c) is used by the port, by the program `domus` and for
 * docs/doctor.md. A rule judges only a span, and finds nothing in a program that is idle or
 * healthy; a thread that works all the time is healthy. */
#ifndef DOMI_PROTOCOLS_OBSERVE_DOCTOR_RULE_H
#define DOMI_PROTOCOLS_OBSERVE_DOCTOR_RULE_H

#include "protocols/observe/doctor/span.h"

#define DOMI_FINDING_TEXT 384u /* bytes of a text in a finding, with its zero byte */

/* The harm of an illness that a rule finds. Findings are sorted by it, the worst first. */
typedef enum domi_harm {
    DOMI_HARM_LOSS = 3,  /* harm of an illness by which work is refused, is lost or fails */
    DOMI_HARM_DELAY = 2, /* harm of an illness by which work waits longer than necessary */
    DOMI_HARM_COST = 1,  /* harm of an illness by which work takes more CPU time than necessary */
} domi_harm;

struct domi_finding;

typedef struct domi_rule {
    /* the rule's name in lower case and '-', which never changes, because programs may use it */
    const char *name;
    const char *title; /* the rule's title in docs/doctor.md */
    /* keys of the configuration that the rule may advise to change, separated by ", "; "": none */
    const char *keys;
    domi_harm harm;
    /* Judge the program in a span. Returns whether it is ill in this rule's way; then the rule has
     * set the sentence and the change of `finding`, which were empty. */
    bool (*judge)(const domi_span *span, struct domi_finding *finding);
    const char *limit; /* a sentence that explains from which figure on the rule finds something */
    /* text for docs/doctor.md: the cause of the illness, and how it is recognized */
    const char *cause;
    const char *remedy; /* text for docs/doctor.md: what to change, and what that costs */
} domi_rule;

typedef struct domi_finding {
    const domi_rule *rule;
    /* a sentence that says what is wrong with the program, with the figure */
    char sentence[DOMI_FINDING_TEXT];
    /* lines of YAML with the advised values, or a sentence if no key helps */
    char change[DOMI_FINDING_TEXT];
} domi_finding;

#define DOMI_RULES_MAX 64u /* number of rules, at most */

/* Returns the rule of this number, from 0 on; NULL behind the last rule. */
const domi_rule *domi_rule_at_place_in_all_tables(uint32_t index);

/* Judge a span by all rules. Returns the number of findings; these are sorted with the worst
 * first. */
uint32_t domi_judge_span_by_all_rules(const domi_span *span,
                                      domi_finding ret_findings[DOMI_RULES_MAX]);

/* The tables of rules, one for each file rules_*.c. Each ends with a row without a name. */
extern const domi_rule domi_rules_of_shares[];
extern const domi_rule domi_rules_of_balance[];
extern const domi_rule domi_rules_of_stealing[];
extern const domi_rule domi_rules_of_io[];
extern const domi_rule domi_rules_of_connections[];
extern const domi_rule domi_rules_of_mail[];
extern const domi_rule domi_rules_of_failures[];
extern const domi_rule domi_rules_of_waits[];
extern const domi_rule domi_rules_of_machine[];
extern const domi_rule domi_rules_of_memory[];

#endif
