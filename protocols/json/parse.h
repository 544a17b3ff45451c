/* The two sides of a parse: parse.cpp takes a text apart with RapidJSON, and calls these functions
 * for what it finds. It is the only file of C++, so it has no knowledge of tables.
 *
 * A function returns false to stop: it has then said what is wrong. Offsets are bytes from the
 * begin of the text. The texts of keys, texts and numbers lie in the text itself, where decoding
 * has changed it; that of a number ends with no zero. */
#ifndef DOMI_PROTOCOLS_JSON_PARSE_H
#define DOMI_PROTOCOLS_JSON_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOMI_JSON_PADDING   16u /* bytes of room, a zero first, that a text has behind it */
#define DOMI_JSON_REAL_ROOM 32u /* bytes for any double as text */

typedef struct domi_json_reader domi_json_reader;

bool domi_json_on_key(domi_json_reader *reader, char *text, uint32_t size);
bool domi_json_on_text(domi_json_reader *reader, char *text, uint32_t size);
bool domi_json_on_number(domi_json_reader *reader, char *text, uint32_t size);
bool domi_json_on_bool(domi_json_reader *reader, bool value, size_t offset);
bool domi_json_on_null(domi_json_reader *reader, size_t offset);
bool domi_json_on_open(domi_json_reader *reader, bool is_array, size_t offset);
bool domi_json_on_close(domi_json_reader *reader, size_t offset);

/* Take a text apart in its place: `size` bytes without a zero among them, and the padding. Returns
 * NULL if all of it is one value, or a function has stopped; otherwise words that say what is
 * wrong, and `ret_offset` gets the place. */
const char *domi_json_parse(domi_json_reader *reader, char *text, size_t size, size_t *ret_offset);

/* Write a finite double so that it reads back equal. Returns the number of bytes. */
size_t domi_json_real_text(double value, char text[DOMI_JSON_REAL_ROOM]);

#ifdef __cplusplus
}
#endif

#endif
