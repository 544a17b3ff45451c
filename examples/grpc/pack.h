/* As much of protobuf as two small messages need: numbers and texts, by their field's number. A
 * service of more messages has them made by a generator, such as protobuf-c. */
#ifndef PACK_H
#define PACK_H

#include <domus/slice.h>

/* Find a field in a message. A number goes to `ret_number`, a text to `ret_text`, which owns
 * nothing; they stay as they are if it is not there. Returns false if the message is wrong. */
bool pack_find(domus_slice message, unsigned field, uint64_t *ret_number, domus_slice *ret_text);

/* Append a field, unless it is 0 or empty. */
void pack_number(domus_appender *to, unsigned field, uint64_t number);
void pack_text(domus_appender *to, unsigned field, domus_slice text);

#endif
