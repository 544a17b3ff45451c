/* Finds the end of a value of JSON, byte by byte (scan.h). */
#include "protocols/json/scan.h"

#include <string.h>

/* Go on within a text of JSON, up to its closing quote. Returns how many bytes belong to the
 * text. */
static size_t scan_rest_of_text(domi_json_scan *scan, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (scan->is_escaped) {
            scan->is_escaped = false;
        } else if (bytes[i] == '\\') {
            scan->is_escaped = true;
        } else if (bytes[i] == '"') {
            scan->in_text = false;
            return i + 1;
        }
    }
    return size;
}

static bool can_byte_end_number_or_word(char byte)
{
    return domi_json_is_space(byte) || (byte != '\0' && strchr(",:]}[{\"", byte) != NULL);
}

/* Look at one byte of a value that is not within a text. Returns whether it is the last byte of the
 * value. */
static bool scan_byte_outside_text(domi_json_scan *scan, char byte)
{
    if (byte == '"') {
        scan->in_text = true;
    } else if (byte == '{' || byte == '[') {
        scan->depth++;
    } else if ((byte == '}' || byte == ']') && scan->depth != 0) {
        scan->depth--;
        return scan->depth == 0;
    }
    return false;
}

size_t domi_json_scan_piece_of_value(domi_json_scan *scan, const char *bytes, size_t size,
                                     bool *ret_ended)
{
    size_t i = 0;

    *ret_ended = true;
    while (i < size) {
        if (scan->in_text) {
            i += scan_rest_of_text(scan, bytes + i, size - i);
            if (!scan->in_text && scan->depth == 0)
                return i;
            continue;
        }
        if (scan->has_begun && scan->depth == 0 && can_byte_end_number_or_word(bytes[i]))
            return i;
        scan->has_begun = true;
        if (scan_byte_outside_text(scan, bytes[i++]))
            return i;
    }
    *ret_ended = false;
    return size;
}
