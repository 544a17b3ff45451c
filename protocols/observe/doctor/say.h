/* Writes the texts of findings: numbers for people, sentences, and lines of YAML. */
#ifndef DOMI_PROTOCOLS_OBSERVE_DOCTOR_SAY_H
#define DOMI_PROTOCOLS_OBSERVE_DOCTOR_SAY_H

#include "protocols/observe/doctor/rule.h"

/* A number as text in `at`, which is valid until the end of the expression that made it. */
typedef struct domi_word {
    char at[24];
} domi_word;

/* Write a number with up to three figures: "12", "3.4", "120 k" for 120,000; "0" for a NaN, and for
 * a number below 0 or above 1e18. */
domi_word domi_format_amount_as_word(double number);

/* Write a share, from 0 to 1, as a percentage such as "83 %". */
domi_word domi_format_share_as_percent(double share);

/* Write a time in ns with its unit, as "1.5 ms". */
domi_word domi_format_time_as_word(double ns);

/* Write a size in bytes with its unit, as "4.0 MB". */
domi_word domi_format_bytes_as_word(double bytes);

/* Write the sentence that says what is wrong in a finding. Returns true, so that a rule can end
 * with this call. */
bool domi_finding_write_sentence(domi_finding *finding, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Add to a finding's change a line of YAML that sets a key, such as `scheduler: {steal: {floor:
 * 4}}`. If the last line has the same section, the key is added to that line, because YAML allows a
 * section only once. */
void domi_finding_advise_value_of_key(domi_finding *finding, const char *key, const char *format,
                                      ...) __attribute__((format(printf, 3, 4)));

/* Add to a finding's change a sentence about what else to do, as a comment in the YAML. */
void domi_finding_advise_in_words(domi_finding *finding, const char *sentence);

/* Returns a number as a whole number, raised to `least` or lowered to `most`. */
uint64_t domi_clamp_double_to_whole_number(double value, uint64_t least, uint64_t most);

#endif
