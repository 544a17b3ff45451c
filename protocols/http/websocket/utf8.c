/* Checks UTF-8 by the table of RFC 3629, section 4: a first byte tells how many bytes follow, and
 * for four first bytes the range of the second byte is restricted. So overlong forms, surrogates
 * and numbers beyond U+10FFFF are refused at the first wrong byte. */
#include "protocols/http/websocket/utf8.h"

#include <string.h>

#define HIGH_BITS UINT64_C(0x8080808080808080)

/* Returns how many bytes at the start of a text are ASCII, counted in steps of 8. */
static size_t count_ascii_bytes(const unsigned char *bytes, size_t size)
{
    size_t i = 0;

    for (; i + 8 <= size; i += 8) {
        uint64_t some;
        memcpy(&some, bytes + i, 8);
        if ((some & HIGH_BITS) != 0)
            break;
    }
    return i;
}

/* Begin a UTF-8 character of several bytes. Returns false if no character begins with this byte. */
static bool begin_utf8_character(domi_utf8 *at, unsigned char byte)
{
    at->low = 0x80;
    at->high = 0xbf;
    if (byte < 0xc2 || byte > 0xf4)
        return false;
    at->left = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
    if (byte == 0xe0)
        /* a second byte below this range would make a character for which two bytes are enough */
        at->low = 0xa0;
    else if (byte == 0xed)
        at->high = 0x9f; /* a second byte above this range would make a surrogate */
    else if (byte == 0xf0)
        /* a second byte below this range would make a character for which three bytes are enough */
        at->low = 0x90;
    else if (byte == 0xf4)
        at->high = 0x8f; /* a second byte above this range would make a number beyond U+10FFFF */
    return true;
}

bool domi_utf8_check_further_bytes(domi_utf8 *at, const char *bytes, size_t size)
{
    const unsigned char *byte = (const unsigned char *)bytes;
    size_t i = 0;

    while (i < size) {
        if (at->left == 0) {
            i += count_ascii_bytes(byte + i, size - i);
            if (i == size)
                break;
            if (byte[i] >= 0x80 && !begin_utf8_character(at, byte[i]))
                return false;
        } else {
            if (byte[i] < at->low || byte[i] > at->high)
                return false;
            at->left--;
            at->low = 0x80;
            at->high = 0xbf;
        }
        i++;
    }
    return true;
}
