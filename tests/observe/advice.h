/* Checks the advice of the doctor against the keys of the configuration. */
#ifndef DOMT_ADVICE_H
#define DOMT_ADVICE_H

#include "protocols/observe/doctor/rule.h"

/* Check that each line of YAML of a finding names keys with values that the configuration accepts,
 * and that each key that a look contains gets another value than now, in the direction that
 * helps. */
void domt_advice_check_keys(const domi_finding *finding, const domi_look_settings *now);

#endif
