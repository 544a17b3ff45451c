/* Made-up looks at a program for tests of the doctor: ten seconds of a healthy program, which tests
 * make ill. */
#ifndef DOMT_LOOKS_H
#define DOMT_LOOKS_H

#include "protocols/observe/doctor/rule.h"

#define DOMT_LOOKS_SECONDS 10

/* Two looks at a program of two threads with 16 actors, which are busy for half of their time. */
typedef struct domt_looks {
    domi_look before, after;
} domt_looks;

void domt_looks_make(domt_looks *looks);
void domt_looks_free(domt_looks *looks);

/* Give a thread these shares of its time, in percent; the rest of it is `other`. */
void domt_looks_share(domt_looks *looks, uint32_t thread, uint32_t state, uint32_t sleep);

/* Give the behaviour of the 16 actors another number of them, all on one thread. */
void domt_looks_settle(domt_looks *looks, uint64_t alive, uint32_t thread);

/* Judge them, and hold that there is a span. Returns how many findings there are. */
uint32_t domt_looks_judge(const domt_looks *looks, domi_finding ret_findings[DOMI_RULES_MAX]);

/* Returns the finding of a rule; NULL if there is none. */
const domi_finding *domt_finding_of(const domi_finding *findings, uint32_t count, const char *rule);

#endif
