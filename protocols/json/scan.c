/* Finds the end of a value, byte by byte. */
#include "protocols/json/scan.h"

#include <string.h>

/* Scan on within a text. Returns how many bytes belong to the text. */
static size_t scan_text(domi_json_scan *scan, const char *bytes, size_t size)
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

static bool is_between_values(char byte)
{
    return domi_json_is_space(byte) || (byte != '\0' && strchr(",:]}[{\"", byte) != NULL);
}

/* Scan a byte outside of texts. Returns whether it is the last byte of the value. */
static bool scan_byte(domi_json_scan *scan, char byte)
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

size_t domi_json_scan_value(domi_json_scan *scan, const char *bytes, size_t size, bool *ret_ended)
{
    size_t i = 0;

    *ret_ended = true;
    while (i < size) {
        if (scan->in_text) {
            i += scan_text(scan, bytes + i, size - i);
            if (!scan->in_text && scan->depth == 0)
                return i;
            continue;
        }
        if (scan->has_begun && scan->depth == 0 && is_between_values(bytes[i]))
            return i;
        scan->has_begun = true;
        if (scan_byte(scan, bytes[i++]))
            return i;
    }
    *ret_ended = false;
    return size;
}
