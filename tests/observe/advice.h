/* Checks the advice of the doctor against the keys of the configuration. */
#ifndef DOMT_ADVICE_H
#define DOMT_ADVICE_H

#include "protocols/observe/doctor/rule.h"

/* Check that each line of YAML in a finding names keys and values that the configuration accepts,
 * and that each key whose value is known from the look gets another value than now, in the
 * direction that helps. */
void domt_advice_check_keys(const domi_finding *finding, const domi_look_settings *now);

#endif
