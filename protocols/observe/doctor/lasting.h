/* Findings that last, for observers who look at a program repeatedly: a finding begins when its
 * rule finds something at two of three looks, and ends when the rule finds nothing at three, so
 * that findings do not flicker. */
#ifndef DOMI_PROTOCOLS_OBSERVE_DOCTOR_LASTING_H
#define DOMI_PROTOCOLS_OBSERVE_DOCTOR_LASTING_H

#include "protocols/observe/doctor/rule.h"

/* a finding begins when its rule has found something at DOMI_LASTING_BEGINS of the last
 * DOMI_LASTING_LOOKS looks */
#define DOMI_LASTING_BEGINS 2u
#define DOMI_LASTING_LOOKS  3u

/* The results of one rule at the last looks. If all is 0, the rule has found nothing. */
typedef struct domi_lasting {
    /* a bit for each of the last looks, the newest in bit 0, which is set if the rule has found
     * something */
    uint32_t spoken;
    bool is_on;
} domi_lasting;

typedef enum domi_lasting_change {
    DOMI_LASTING_SAME,
    DOMI_LASTING_BEGUN,
    DOMI_LASTING_ENDED,
} domi_lasting_change;

/* Record whether the rule has found something at a look. Returns whether its finding begins, ends
 * or stays as it was. */
domi_lasting_change domi_lasting_record_whether_rule_spoke(domi_lasting *lasting, bool has_spoken);

#endif
