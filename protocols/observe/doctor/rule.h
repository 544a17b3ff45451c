/* A rule of the doctor: one way in which a program may be ill, how this is recognized, and what
 * helps.
 *
 * The table of all rules (rules.c) is used by the port, by the program `domus` and for
 * docs/doctor.md. A rule judges only a span, and finds nothing in a program that is idle or
 * healthy; a thread that works all the time is healthy. */
#ifndef DOMI_PROTOCOLS_OBSERVE_DOCTOR_RULE_H
#define DOMI_PROTOCOLS_OBSERVE_DOCTOR_RULE_H

#include "protocols/observe/doctor/span.h"

#define DOMI_FINDING_TEXT 384u /* bytes of a sentence, with a zero */

/* The harm of an illness. Findings are sorted by it, the worst first. */
typedef enum domi_harm {
    DOMI_HARM_LOSS = 3,  /* work is refused, is lost or fails */
    DOMI_HARM_DELAY = 2, /* work waits longer than necessary */
    DOMI_HARM_COST = 1,  /* work takes more CPU time than necessary */
} domi_harm;

struct domi_finding;

typedef struct domi_rule {
    /* name in lower case and '-', which never changes, because programs may use it */
    const char *name;
    const char *title; /* title in docs/doctor.md */
    const char *keys;  /* keys of the configuration, separated by ", "; "": none */
    domi_harm harm;
    /* Judge a span. Returns whether the program is ill in this way; then the sentence and the
     * change of `finding`, which are empty before, are set. */
    bool (*judge)(const domi_span *span, struct domi_finding *finding);
    const char *limit; /* a sentence that explains the limit of the rule */
    /* text for docs/doctor.md: the cause of the illness, and how it is recognized */
    const char *cause;
    const char *remedy; /* text for docs/doctor.md: what to change, and what that costs */
} domi_rule;

typedef struct domi_finding {
    const domi_rule *rule;
    char sentence[DOMI_FINDING_TEXT]; /* a sentence that says what is wrong, with the figure */
    char change[DOMI_FINDING_TEXT];   /* lines of YAML, or a sentence if no key helps */
} domi_finding;

#define DOMI_RULES_MAX 64u /* an upper bound of the number of rules */

/* Returns the rule with a number from 0 on; NULL behind the last one. */
const domi_rule *domi_rule_at(uint32_t index);

/* Judge a span by all rules. Returns the number of findings, the worst first. */
uint32_t domi_doctor_judge(const domi_span *span, domi_finding ret_findings[DOMI_RULES_MAX]);

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
