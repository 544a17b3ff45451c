/* Patterns of keys, as used by KEYS and SCAN: *, ?, [a-z], [^a], and a backslash before a literal
 * byte.
 *
 * When a match fails, only the last star is tried again further on: so the time is bounded by the
 * product of both lengths. */
#include "glob.h"

/* A class in a pattern, such as [a-z], and the byte of a text that it must match. */
struct class
{
    const char *at, *end;
    bool fits;
};

/* Read a class behind its '['; a class without ']' extends to the end of the pattern. */
static void match_byte_with_class_of_pattern(struct class *class, char byte)
{
    const char *at = class->at, *end = class->end;
    bool is_not = at < end && *at == '^';

    at += is_not;
    class->fits = false;
    for (; at < end && *at != ']'; at++) {
        char low = *at, high = low;
        if (low == '\\' && end - at >= 2) {
            low = high = *++at;
        } else if (end - at >= 3 && at[1] == '-') {
            high = at[2];
            at += 2;
        }
        if (low > high) {
            char swapped = low;
            low = high;
            high = swapped;
        }
        class->fits = class->fits || (byte >= low && byte <= high);
    }
    class->at = at < end ? at + 1 : end;
    class->fits = class->fits != is_not;
}

/* Returns the place where the pattern continues if its next part matches the byte; NULL if that
 * part does not match. */
static const char *match_byte_with_next_pattern_part(const char *at, const char *end, char byte)
{
    if (*at == '?')
        return at + 1;
    if (*at == '[') {
        struct class class = {at + 1, end, false};
        match_byte_with_class_of_pattern(&class, byte);
        return class.fits ? class.at : NULL;
    }
    if (*at == '\\' && end - at >= 2)
        at++;
    return *at == byte ? at + 1 : NULL;
}

bool kv_matches_pattern(const char *pattern, size_t pattern_size, const char *text, size_t size)
{
    const char *at = pattern, *end = pattern + pattern_size;
    const char *star = NULL; /* the rest of the pattern behind the last star */
    size_t from = 0;         /* offset of the text at which the rest of the pattern is tried next */

    for (size_t i = 0; i < size;) {
        const char *next = NULL;
        if (at < end && *at == '*') {
            star = ++at;
            from = i;
            continue;
        }
        if (at < end)
            next = match_byte_with_next_pattern_part(at, end, text[i]);
        if (next != NULL) {
            at = next;
            i++;
        } else if (star != NULL) {
            at = star;
            i = ++from;
        } else {
            return false;
        }
    }
    while (at < end && *at == '*')
        at++;
    return at == end;
}
