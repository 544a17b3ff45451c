/* A rule of the doctor: one way in which a program may be ill, how it is seen, and what helps.
 *
 * The table of all rules (rules.c) is what the port, the program `domus` and docs/doctor.md are
 * made from. A rule judges a span alone, and says nothing about a program that is idle or healthy;
 * a thread that works all the time is healthy. */
#ifndef DOMI_PROTOCOLS_OBSERVE_DOCTOR_RULE_H
#define DOMI_PROTOCOLS_OBSERVE_DOCTOR_RULE_H

#include "protocols/observe/doctor/span.h"

#define DOMI_FINDING_TEXT 384u /* bytes of a sentence, with a NUL */

/* The harm that an illness does. Findings are sorted by it, the worst first. */
typedef enum domi_harm {
    DOMI_HARM_LOSS = 3,  /* work is refused, lost or fails */
    DOMI_HARM_DELAY = 2, /* work waits for longer than it has to */
    DOMI_HARM_COST = 1,  /* work takes more of the CPU than it has to */
} domi_harm;

struct domi_finding;

typedef struct domi_rule {
    const char *name;  /* lower case and '-'; it never changes, as programs may know it */
    const char *title; /* for docs/doctor.md */
    const char *keys;  /* keys of the configuration, divided by ", "; "": none */
    domi_harm harm;
    /* Judge a span. Returns whether the program is ill in this way; then the sentence and the
     * change of `finding` are set, which are empty before. */
    bool (*judge)(const domi_span *span, struct domi_finding *finding);
    const char *limit;  /* a sentence: why this is a limit */
    const char *cause;  /* for docs/doctor.md: how it comes about, and how it is seen */
    const char *remedy; /* likewise: what to change, and what that costs */
} domi_rule;

typedef struct domi_finding {
    const domi_rule *rule;
    char sentence[DOMI_FINDING_TEXT]; /* what is wrong, with the figure */
    char change[DOMI_FINDING_TEXT];   /* lines of YAML, or a sentence if no key helps */
} domi_finding;

#define DOMI_RULES_MAX 64u /* more than there are */

/* The rule of a number, from 0 on; NULL behind the last one. */
const domi_rule *domi_rule_at(uint32_t index);

/* Judge a span by all rules. Returns how many findings there are, the worst first. */
uint32_t domi_doctor_judge(const domi_span *span, domi_finding ret_findings[DOMI_RULES_MAX]);

/* The rules, by subject: the tables of the files rules_*.c. Each ends with a row without a name. */
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
