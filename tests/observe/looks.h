/* Made-up looks at a program, for tests of the doctor: ten seconds of a program without a fault,
 * which tests then change. */
#ifndef DOMT_LOOKS_H
#define DOMT_LOOKS_H

#include "protocols/observe/doctor/rule.h"

#define DOMT_LOOKS_SECONDS 10

/* Two looks at a program with two threads and 16 actors; the threads are busy for half of the
 * time. */
typedef struct domt_looks {
    domi_look before, after;
} domt_looks;

void domt_looks_make_two_looks(domt_looks *looks);
void domt_looks_free_both(domt_looks *looks);

/* Give a thread these shares of its time to state actors and to sleep, in percent; the rest is
 * `other`. */
void domt_looks_set_time_shares(domt_looks *looks, uint32_t thread, uint32_t state, uint32_t sleep);

/* Change the number of actors of the program's only behaviour, all of which are then on one
 * thread. */
void domt_looks_set_number_of_actors(domt_looks *looks, uint64_t alive, uint32_t thread);

/* Let the doctor judge two looks, which have to make a span. Returns the number of findings. */
uint32_t domt_looks_judge_span(const domt_looks *looks, domi_finding ret_findings[DOMI_RULES_MAX]);

/* Returns the finding of the rule with this name; NULL if the rule has found nothing. */
const domi_finding *domt_find_finding_of_rule(const domi_finding *findings, uint32_t count,
                                              const char *rule);

#endif
