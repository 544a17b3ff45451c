/* Fuzzes signed values, and texts of keys. The first byte chooses the case:
 *
 * - 0: the rest is a text from a stranger. It is verified only if the key would have signed exactly
 *   these bytes.
 * - 1: two bytes say where and how a signed value is changed; the rest is the value. The value is
 *   verified without the change, and refused with it.
 * - 2: the rest is a text of keys; each key that is accepted can sign. */
#include "tests/fuzz/support/fuzz.h"

#include <domus/http_sign.h>

#include <stdlib.h>
#include <string.h>

#define ROOM 8192u

static domus_http_keys make_ring_of_keys(void)
{
    domus_http_keys ring = {.count = 0};

    domt_fuzz_abort_unless(domus_http_keys_add(&ring, "01234567890123456789012345678901", 32) == 0);
    domt_fuzz_abort_unless(domus_http_keys_add(&ring, "abcdefghijabcdefghijabcdefghijab", 32) == 0);
    return ring;
}

static domus_slice sign_value(const domus_http_keys *ring, int64_t expires, const void *value,
                              size_t size)
{
    domus_appender to = {0};
    domus_slice made;

    domt_fuzz_abort_unless(domus_http_sign(ring, "purpose", expires, value, size, &to) == 0);
    domt_fuzz_abort_unless(domus_append_end(&to, &made) == 0);
    return made;
}

/* Returns the time of expiry that stands in a signed text; 0: it has none. */
static int64_t expiry_of_signed_text(const char *text, size_t size)
{
    char digits[20] = "";

    if (size > 5)
        memcpy(digits, text + 5, size - 5 < 19 ? size - 5 : 19);
    return strtoll(digits, NULL, 10);
}

static void check_text_of_stranger(const domus_http_keys *ring, const char *text, size_t size)
{
    static char value[ROOM];
    int64_t got = domus_http_unsign(ring, "purpose", 1, text, size, value, sizeof value);

    if (got < 0)
        return;
    bool is_same = false;
    for (uint32_t i = 0; i < ring->count; i++) {
        const domus_http_keys one = {.count = 1, .keys = {ring->keys[i]}};
        domus_slice made = sign_value(&one, expiry_of_signed_text(text, size), value, (size_t)got);
        is_same |= domus_slice_equals(made, text, size);
        domus_slice_free(made);
    }
    domt_fuzz_abort_unless(is_same);
}

static void check_changed_value_is_refused(const domus_http_keys *ring, const uint8_t *data,
                                           size_t size)
{
    static char value[ROOM], text[2 * ROOM];

    if (size < 3 || size > 2000)
        return;
    domus_slice made = sign_value(ring, 1000, data + 2, size - 2);
    memcpy(text, domus_slice_data(made), made.size);
    int64_t got = domus_http_unsign(ring, "purpose", 999, text, made.size, value, sizeof value);
    domt_fuzz_abort_unless(got == (int64_t)size - 2 && memcmp(value, data + 2, size - 2) == 0);
    size_t at = data[0] % made.size;
    text[at] = (char)(text[at] ^ data[1]);
    got = domus_http_unsign(ring, "purpose", 999, text, made.size, value, sizeof value);
    domt_fuzz_abort_unless((got >= 0) == (data[1] == 0));
    domus_slice_free(made);
}

static void check_accepted_keys_can_sign(const char *text, size_t size)
{
    domus_http_keys ring = {.count = 0};
    char words[DOMUS_HTTP_KEYS_WORDS] = "";
    int error = domus_http_keys_parse(text, size, &ring, words, sizeof words);

    domt_fuzz_abort_unless((error == 0) == (words[0] == '\0'));
    domt_fuzz_abort_unless((error == 0) == (ring.count != 0) && ring.count <= DOMUS_HTTP_KEYS_MAX);
    for (uint32_t i = 0; i < ring.count; i++)
        domt_fuzz_abort_unless(ring.keys[i].size >= DOMUS_HTTP_KEY_LEAST &&
                               ring.keys[i].size <= DOMUS_HTTP_KEY_MOST);
    if (error == 0)
        domus_slice_free(sign_value(&ring, 1, text, size < 100 ? size : 100));
    domus_http_keys_wipe(&ring);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    domus_http_keys ring = make_ring_of_keys();

    if (size == 0)
        return 0;
    if (data[0] % 3 == 0)
        check_text_of_stranger(&ring, (const char *)data + 1, size - 1);
    else if (data[0] % 3 == 1)
        check_changed_value_is_refused(&ring, data + 1, size - 1);
    else
        check_accepted_keys_can_sign((const char *)data + 1, size - 1);
    return 0;
}
