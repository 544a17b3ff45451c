/* The two sides of a parse: parse.cpp splits a text with RapidJSON, and calls these functions for
 * what it finds. It is the only file of C++, so it knows nothing of tables.
 *
 * A function returns false to stop the parse, and has then reported what is wrong. Offsets are
 * bytes from the begin of the text. Keys, texts and numbers are passed as pointers into the text,
 * which decoding has changed; no zero ends a number. */
#ifndef DOMI_PROTOCOLS_JSON_PARSE_H
#define DOMI_PROTOCOLS_JSON_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* bytes that must follow a text in its buffer, of which the first is zero */
#define DOMI_JSON_PADDING   16u
#define DOMI_JSON_REAL_ROOM 32u /* bytes of the text of any double, at most */

typedef struct domi_json_reader domi_json_reader;

bool domi_json_on_key_expect_value_of_row(domi_json_reader *reader, char *text, uint32_t size);
bool domi_json_on_text_store_it_in_member(domi_json_reader *reader, char *text, uint32_t size);
bool domi_json_on_number_store_it_in_member(domi_json_reader *reader, char *text, uint32_t size);
bool domi_json_on_bool_store_it_in_member(domi_json_reader *reader, bool value, size_t offset);
bool domi_json_on_null_leave_member_absent(domi_json_reader *reader, size_t offset);
bool domi_json_on_open_of_object_or_array(domi_json_reader *reader, bool is_array, size_t offset);
bool domi_json_on_close_of_object_or_array(domi_json_reader *reader, size_t offset);

/* Parse a text in its place. The text has `size` bytes, none of which is zero, and
 * DOMI_JSON_PADDING behind them. Returns NULL if the whole text is one value, or if a called
 * function has stopped the parse; otherwise an error text, and `ret_offset` gets the offset of the
 * error. */
const char *domi_json_parse(domi_json_reader *reader, char *text, size_t size, size_t *ret_offset);

/* Write a finite double as the text from which the same double is read. Returns the number of
 * bytes. */
size_t domi_json_real_text(double value, char text[DOMI_JSON_REAL_ROOM]);

#ifdef __cplusplus
}
#endif

#endif
