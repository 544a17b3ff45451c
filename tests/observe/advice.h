/* Holds the advice of the doctor to the keys of the configuration. */
#ifndef DOMT_ADVICE_H
#define DOMT_ADVICE_H

#include "protocols/observe/doctor/rule.h"

/* Hold that each line of YAML of a finding names keys with values that the configuration takes, and
 * that each key that a look has gets another value than it has now, in the direction that helps. */
void domt_advice_holds(const domi_finding *finding, const domi_look_settings *now);

#endif
