/* The texts of domus/text.h. In escapes a byte that is not printable ASCII becomes a short escape
 * such as \n, or \x and two hexadecimal digits. */
#include <domus/text.h>

#include <limits.h>
#include <string.h>

/* bytes of the longest escape, which are 4, and a zero */
#define ESCAPE_SIZE 5u

/* Write the escape of one byte, without a zero at its end. Returns its length. */
static size_t escape_byte(unsigned char byte, char escape[ESCAPE_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    static const char named[] = "\n\r\t\\";
    static const char letters[] = "nrt\\";
    const char *name = byte != '\0' ? strchr(named, byte) : NULL;

    if (name == NULL && byte >= ' ' && byte <= '~') {
        escape[0] = (char)byte;
        return 1;
    }
    escape[0] = '\\';
    if (name != NULL) {
        escape[1] = letters[name - named];
        return 2;
    }
    escape[1] = 'x';
    escape[2] = digits[byte >> 4];
    escape[3] = digits[byte & 15];
    return 4;
}

size_t domus_text_escape(const char *bytes, size_t length, char *text, size_t size)
{
    char escape[ESCAPE_SIZE];
    size_t wanted = 0;
    size_t end = 0; /* length of the escaped text that was written */

    for (size_t i = 0; i < length; i++) {
        size_t more = escape_byte((unsigned char)bytes[i], escape);

        /* The text ends with the last escape that fits: after the first one that does not, nothing
         * is written. */
        if (end == wanted && size > end + more) {
            memcpy(text + end, escape, more);
            end += more;
        }
        wanted += more;
    }
    if (size != 0)
        text[end] = '\0';
    return wanted;
}

const char *domus_error_name(int error)
{
    const char *name;

    if (error == 0)
        return "0"; /* the name of error 0, because not every C library has one */
    name = error == INT_MIN ? NULL : strerrorname_np(error < 0 ? -error : error);
    return name != NULL ? name : "?";
}
