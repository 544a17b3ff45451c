/* Writes the sentences of findings: numbers for people, and lines of YAML. */
#ifndef DOMI_PROTOCOLS_OBSERVE_DOCTOR_SAY_H
#define DOMI_PROTOCOLS_OBSERVE_DOCTOR_SAY_H

#include "protocols/observe/doctor/rule.h"

/* A number as text, which is valid until the end of the expression that made it: `.at`. */
typedef struct domi_word {
    char at[24];
} domi_word;

/* Write a number with up to three figures: "12", "3.4", "120 k" for 120,000; "0" if it is not a
 * number. */
domi_word domi_word_amount(double number);

/* Write a share from 0 to 1 as "83 %". */
domi_word domi_word_percent(double share);

/* Write a time as "1.5 ms". */
domi_word domi_word_time(double ns);

/* Write a size as "4.0 MB". */
domi_word domi_word_bytes(double bytes);

/* Write the sentence of a finding. Returns true, so that a rule can end with it. */
bool domi_finding_say(domi_finding *finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Add a line of YAML that sets a key, such as `scheduler: {steal: {floor: 4}}`. If the last line
 * has the same section, the key is added to it, because YAML allows a section only once. */
void domi_finding_set(domi_finding *finding, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Add a sentence about what else to change, as a comment in the YAML. */
void domi_finding_advise(domi_finding *finding, const char *sentence);

/* Returns a whole number that is at least `least` and at most `most`. */
uint64_t domi_clamp(double value, uint64_t least, uint64_t most);

#endif
