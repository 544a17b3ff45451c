/* Sentences of findings: numbers as people read them, and lines of YAML. */
#ifndef DOMI_PROTOCOLS_OBSERVE_DOCTOR_SAY_H
#define DOMI_PROTOCOLS_OBSERVE_DOCTOR_SAY_H

#include "protocols/observe/doctor/rule.h"

/* A number as a word, which lasts to the end of the expression that made it: `.at`. */
typedef struct domi_word {
    char at[24];
} domi_word;

/* "12", "3.4", "120,000" -> "120 k": three figures; "0" for what is no number. */
domi_word domi_word_amount(double number);

/* A share of 0..1 as "83 %" */
domi_word domi_word_percent(double share);

/* A time as "1.5 ms" */
domi_word domi_word_time(double ns);

/* Bytes as "4.0 MB" */
domi_word domi_word_bytes(double bytes);

/* Write the sentence of a finding. Returns true, so that a rule ends with it. */
bool domi_finding_say(domi_finding *finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Add a line of YAML that gives a key its value, as `scheduler: {steal: {floor: 4}}`. If the last
 * line is of the same section, the key goes into it, since a section may stand there once. */
void domi_finding_set(domi_finding *finding, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Add a sentence about what else to change, as a line that is no YAML: a comment. */
void domi_finding_advise(domi_finding *finding, const char *sentence);

/* A whole number between two others. */
uint64_t domi_clamp(double value, uint64_t least, uint64_t most);

#endif
