/* As much of protobuf as two small messages need: numbers and texts, by the numbers of their
 * fields. A service with more messages should use a generator such as protobuf-c. */
#ifndef PACK_H
#define PACK_H

#include <domus/slice.h>

/* Find a field in a message. A number is stored in `ret_number`, a text in `ret_text`, which owns
 * nothing; both are unchanged if the field is missing. Returns false if the message is invalid. */
bool pack_find_last_value_of_field(domus_slice message, unsigned field, uint64_t *ret_number,
                                   domus_slice *ret_text);

/* Append a field to a message of protobuf, unless the number is 0 or the text is empty. */
void pack_append_number(domus_appender *to, unsigned field, uint64_t number);
void pack_append_text(domus_appender *to, unsigned field, domus_slice text);

#endif
