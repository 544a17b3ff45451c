/* Findings that last, for whoever looks again and again: a rule begins when it speaks at two of
 * three looks, and ends when it is silent at three, so that nothing begins and ends all the time.
 */
#ifndef DOMI_PROTOCOLS_OBSERVE_DOCTOR_LASTING_H
#define DOMI_PROTOCOLS_OBSERVE_DOCTOR_LASTING_H

#include "protocols/observe/doctor/rule.h"

#define DOMI_LASTING_BEGINS                                                                        \
    2u /* looks of the last DOMI_LASTING_LOOKS at which a rule has spoken                          \
        */
#define DOMI_LASTING_LOOKS 3u

/* One rule. All 0: it has not spoken. */
typedef struct domi_lasting {
    uint32_t spoken; /* bits of the last looks, the newest is the first */
    bool is_on;
} domi_lasting;

typedef enum domi_lasting_change {
    DOMI_LASTING_SAME,
    DOMI_LASTING_BEGUN,
    DOMI_LASTING_ENDED,
} domi_lasting_change;

/* Note whether the rule has spoken at a look. Returns what that changes. */
domi_lasting_change domi_lasting_note(domi_lasting *lasting, bool has_spoken);

#endif
