/* Text that can be shown: bytes of strangers as printable ASCII, and errors by their names.
 *
 * A peer or a file may hold bytes that move a terminal's cursor, change the direction of what it
 * shows or begin a line of their own. Whoever prints such bytes escapes them first; the library
 * does so in its log lines and in the errors of a configuration. */
#ifndef DOMUS_TEXT_H
#define DOMUS_TEXT_H

#include <domus/export.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Write `length` bytes into `text` (of `size` bytes, NUL-terminated): printable ASCII as it is, a
 * backslash as two, newline, carriage return and tab as \n, \r and \t, any other byte as \x and two
 * hexadecimal digits. A text that does not fit is cut, but never within an escape.
 *
 * Returns the length that the whole text has, without the zero at its end. `bytes` and `text` must
 * not overlap.
 * Thread-safety: any thread. */
DOMUS_API size_t domus_text_escape(const char *bytes, size_t length, char *text, size_t size);

/* Returns the name of an errno, such as "ECONNRESET"; `error` may be the number, or its negative as
 * functions of domus return it. "0" for 0; "?" for a number that is none. The text is constant.
 * Thread-safety: any thread. */
DOMUS_API const char *domus_error_name(int error);

#ifdef __cplusplus
}
#endif

#endif
