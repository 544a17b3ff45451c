/* Signed values come back as they were signed, for the same purpose, before they expire, and by
 * keys of the ring alone; and keys are read strictly. */
#include "tests/support/suite.h"

#include <domus/http_sign.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOW      1000
#define EXPECTED "VQJi.2000.aGVsbG8.u3pgJ2hM_Z5P-4CHWmn7zo8usFnW6mTPIUFWZLBPHp8"

/* A ring with keys that are made of these letters. */
static domus_http_keys ring_of(const char *letters)
{
    domus_http_keys ring = {.count = 0};
    char bytes[DOMUS_HTTP_KEY_LEAST];

    for (; *letters != '\0'; letters++) {
        memset(bytes, *letters, sizeof bytes);
        ck_assert_int_eq(domus_http_keys_add(&ring, bytes, sizeof bytes), 0);
    }
    return ring;
}

static domus_slice sign(const domus_http_keys *ring, const char *purpose, int64_t expires,
                        const void *value, size_t size)
{
    domus_appender to = {0};
    domus_slice made;

    ck_assert_int_eq(domus_http_sign(ring, purpose, expires, value, size, &to), 0);
    ck_assert_int_eq(domus_append_end(&to, &made), 0);
    return made;
}

static int64_t unsign(const domus_http_keys *ring, const char *purpose, int64_t now,
                      domus_slice text, char *to)
{
    return domus_http_unsign(ring, purpose, now, domus_slice_data(text), text.size, to,
                             DOMUS_HTTP_SIGNED_MAX);
}

/* HMAC-SHA256 was computed by Python for this text. */
DOMT_TEST(a_signed_value_is_this_text)
{
    domus_http_keys ring = ring_of("k");
    domus_slice made = sign(&ring, "p", 2000, "hello", 5);

    ck_assert_msg(domus_slice_equals(made, EXPECTED, sizeof EXPECTED - 1), "%.*s", (int)made.size,
                  domus_slice_data(made));
    domus_slice_free(made);
}

DOMT_TEST(values_of_every_size_come_back)
{
    domus_http_keys ring = ring_of("ab");
    static char value[DOMUS_HTTP_SIGNED_MAX + 1], to[DOMUS_HTTP_SIGNED_MAX];

    for (size_t i = 0; i < sizeof value; i++)
        value[i] = (char)(i * 7);
    for (size_t size = 0; size <= DOMUS_HTTP_SIGNED_MAX; size += size < 80 ? 1 : 1352) {
        domus_slice made = sign(&ring, "purpose", DOMUS_HTTP_NEVER, value, size);
        ck_assert_uint_eq(made.size, DOMUS_HTTP_SIGNED_SIZE(size));
        ck_assert_int_eq(unsign(&ring, "purpose", INT64_MAX, made, to), (int64_t)size);
        ck_assert_mem_eq(to, value, size);
        if (size != 0)
            ck_assert_int_eq(domus_http_unsign(&ring, "purpose", 1, domus_slice_data(made),
                                               made.size, to, size - 1),
                             -EMSGSIZE);
        domus_slice_free(made);
    }
}

DOMT_TEST(each_changed_byte_is_seen)
{
    domus_http_keys ring = ring_of("a");
    domus_slice made = sign(&ring, "p", 2000, "value", 5);
    char text[128], to[DOMUS_HTTP_SIGNED_MAX];
    size_t size = made.size;

    for (size_t i = 0; i < size; i++) {
        for (int bit = 0; bit < 8; bit++) {
            memcpy(text, domus_slice_data(made), size);
            text[i] = (char)(text[i] ^ (1 << bit));
            memset(to, 'x', sizeof to);
            ck_assert_int_eq(domus_http_unsign(&ring, "p", NOW, text, size, to, sizeof to),
                             -EBADMSG);
            ck_assert_int_eq(to[0], 'x');
        }
    }
    memcpy(text, domus_slice_data(made), size);
    for (size_t i = 0; i < size; i++)
        ck_assert_int_eq(domus_http_unsign(&ring, "p", NOW, text, i, to, sizeof to), -EBADMSG);
    text[size] = '=';
    ck_assert_int_eq(domus_http_unsign(&ring, "p", NOW, text, size + 1, to, sizeof to), -EBADMSG);
    domus_slice_free(made);
}

DOMT_TEST(purposes_and_times_hold)
{
    domus_http_keys ring = ring_of("a");
    domus_slice made = sign(&ring, "p", 2000, "v", 1);
    char to[DOMUS_HTTP_SIGNED_MAX];

    ck_assert_int_eq(unsign(&ring, "p", 1999, made, to), 1);
    ck_assert_int_eq(unsign(&ring, "p", 2000, made, to), -EKEYEXPIRED);
    ck_assert_int_eq(unsign(&ring, "P", 1999, made, to), -EBADMSG);
    ck_assert_int_eq(unsign(&ring, "", 1999, made, to), -EBADMSG);
    ck_assert_int_eq(unsign(&ring, "q", 2000, made, to), -EBADMSG);
    domus_slice_free(made);
}

DOMT_TEST(keys_rotate)
{
    domus_http_keys first = ring_of("a"), both = ring_of("ba"), second = ring_of("b");
    domus_http_keys none = {.count = 0};
    domus_slice old = sign(&first, "p", 2000, "v", 1);
    domus_slice new = sign(&both, "p", 2000, "v", 1);
    char to[DOMUS_HTTP_SIGNED_MAX];

    ck_assert_int_eq(unsign(&both, "p", NOW, old, to), 1);
    ck_assert_int_eq(unsign(&both, "p", NOW, new, to), 1);
    ck_assert_int_eq(unsign(&second, "p", NOW, new, to), 1);
    ck_assert_int_eq(unsign(&second, "p", NOW, old, to), -EBADMSG);
    ck_assert_int_eq(unsign(&first, "p", NOW, new, to), -EBADMSG);
    ck_assert_int_eq(unsign(&none, "p", NOW, old, to), -EBADMSG);
    domus_slice_free(old);
    domus_slice_free(new);
    domus_http_keys_wipe(&both);
    ck_assert_mem_eq(&both, &none, sizeof none);
}

DOMT_TEST(what_cannot_be_signed_is_refused)
{
    domus_http_keys ring = ring_of("a"), none = {.count = 0};
    static char value[DOMUS_HTTP_SIGNED_MAX + 1];
    char purpose[DOMUS_HTTP_PURPOSE_MAX + 2] = {0};
    domus_appender to = {0};

    ck_assert_int_eq(domus_http_sign(&none, "p", 1, "v", 1, &to), -ENOKEY);
    ck_assert_int_eq(domus_http_sign(&ring, "", 1, "v", 1, &to), -EINVAL);
    ck_assert_int_eq(domus_http_sign(&ring, "p", 0, "v", 1, &to), -EINVAL);
    ck_assert_int_eq(domus_http_sign(&ring, "p", -1, "v", 1, &to), -EINVAL);
    ck_assert_int_eq(domus_http_sign(&ring, "p", 1, value, sizeof value, &to), -EMSGSIZE);
    memset(purpose, 'p', DOMUS_HTTP_PURPOSE_MAX + 1);
    ck_assert_int_eq(domus_http_sign(&ring, purpose, 1, "v", 1, &to), -EINVAL);
    ck_assert_uint_eq(to.size, 0);
    purpose[DOMUS_HTTP_PURPOSE_MAX] = '\0';
    ck_assert_int_eq(domus_http_sign(&ring, purpose, 1, "v", 1, &to), 0);
    domus_append_drop(&to);
}

/* --- keys ------------------------------------------------------------------------------------- */

#define HEX_32 "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F"
#define B64_32 "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
#define OTHER  "hex:ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"

DOMT_TEST(texts_of_keys_are_read_strictly)
{
    static const struct {
        const char *text;
        int error;
        uint32_t count;
    } rows[] = {
        {"hex:" HEX_32, 0, 1},
        {"base64:" B64_32 "\n", 0, 1},
        {"# a comment with hex: in it\r\n\r\n  base64:" B64_32 ", " OTHER "\n#\n", 0, 2},
        {"hex:" HEX_32 HEX_32, 0, 1},
        {"", -EINVAL, 0},
        {"\n# nothing\n", -EINVAL, 0},
        {HEX_32, -EINVAL, 0},
        {B64_32, -EINVAL, 0},
        {"hex:" HEX_32 "0", -EINVAL, 0},
        {"hex:" HEX_32 HEX_32 "00", -EINVAL, 0},
        {"hex:0102", -EINVAL, 0},
        {"hex: " HEX_32, -EINVAL, 0},
        {"Hex:" HEX_32, -EINVAL, 0},
        {"hex:g00102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F", -EINVAL, 0},
        {"base64:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", -EINVAL, 0},
        {"base64:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9=", -EINVAL, 0},
        {"base64:AAECAwQFBgcICQoLDA0O\vDxAREhMUFRYXGBkaGxwdHh8=", -EINVAL, 0},
        {"base64:AAECAwQFBgcICQoLDA0ODw==", -EINVAL, 0},
        {"hex:" HEX_32 " base64:" B64_32, -EEXIST, 0},
        {OTHER " word", -EINVAL, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        domus_http_keys ring = {.count = 7};
        char words[DOMUS_HTTP_KEYS_WORDS] = "";
        int error =
            domus_http_keys_parse(rows[i].text, strlen(rows[i].text), &ring, words, sizeof words);
        ck_assert_msg(error == rows[i].error, "%s: %d", rows[i].text, error);
        ck_assert_uint_eq(ring.count, error == 0 ? rows[i].count : 7);
        ck_assert((error == 0) == (words[0] == '\0'));
        if (error == 0) /* the first key is one and the same */
            ck_assert_int_eq(ring.keys[0].bytes[31], 31);
    }
}

DOMT_TEST(rings_and_texts_have_bounds)
{
    domus_http_keys ring = ring_of("abcdefgh");
    char bytes[DOMUS_HTTP_KEY_MOST + 1] = {0};
    static char text[DOMUS_HTTP_KEYS_TEXT_MAX + 1];
    const char *key = "hex:" HEX_32;

    ck_assert_uint_eq(ring.count, DOMUS_HTTP_KEYS_MAX);
    ck_assert_int_eq(domus_http_keys_add(&ring, bytes, 32), -ENOBUFS);
    ring = ring_of("a");
    ck_assert_int_eq(domus_http_keys_add(&ring, bytes, DOMUS_HTTP_KEY_LEAST - 1), -EINVAL);
    ck_assert_int_eq(domus_http_keys_add(&ring, bytes, DOMUS_HTTP_KEY_MOST + 1), -EINVAL);
    ck_assert_int_eq(domus_http_keys_add(&ring, bytes, DOMUS_HTTP_KEY_LEAST), 0);
    ck_assert_int_eq(domus_http_keys_add(&ring, bytes, DOMUS_HTTP_KEY_MOST), 0);
    ck_assert_int_eq(domus_http_keys_add(&ring, bytes, DOMUS_HTTP_KEY_MOST), -EEXIST);
    memset(text, '\n', sizeof text);
    memcpy(text, key, strlen(key));
    ck_assert_int_eq(domus_http_keys_parse(text, sizeof text, &ring, NULL, 0), -EMSGSIZE);
    ck_assert_uint_eq(ring.count, 3);
    ck_assert_int_eq(domus_http_keys_parse(text, sizeof text - 1, &ring, NULL, 0), 0);
    ck_assert_uint_eq(ring.count, 1);
}

/* Read the keys of a file that has these permissions. */
static int read_file(const char *path, mode_t mode, domus_http_keys *ring)
{
    char words[DOMUS_HTTP_KEYS_WORDS] = "";

    ck_assert_int_eq(chmod(path, mode), 0);
    int error = domus_http_keys_read(path, ring, words, sizeof words);
    ck_assert((error == 0) == (words[0] == '\0'));
    return error;
}

DOMT_TEST(files_of_keys_are_the_users_alone)
{
    char path[] = "/tmp/domt-keys-XXXXXX";
    int fd = mkstemp(path);
    domus_http_keys ring = {.count = 0};
    static char filler[DOMUS_HTTP_KEYS_TEXT_MAX];

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, OTHER "\n", sizeof OTHER), sizeof OTHER);
    ck_assert_int_eq(read_file(path, 0600, &ring), 0);
    ck_assert_uint_eq(ring.count, 1);
    ck_assert_int_eq(read_file(path, 0400, &ring), 0);
    ck_assert_int_eq(read_file(path, 0640, &ring), -EPERM);
    ck_assert_int_eq(read_file(path, 0604, &ring), -EPERM);
    ck_assert_int_eq(read_file(path, 0601, &ring), -EPERM);
    memset(filler, '\n', sizeof filler);
    ck_assert_int_eq(write(fd, filler, sizeof filler), sizeof filler);
    ck_assert_int_eq(read_file(path, 0600, &ring), -EMSGSIZE);
    close(fd);
    unlink(path);
    ck_assert_int_eq(domus_http_keys_read(path, &ring, NULL, 0), -ENOENT);
    ck_assert_int_eq(domus_http_keys_read("/tmp", &ring, NULL, 0), -EPERM);
    ck_assert_int_eq(domus_http_keys_read("/dev/null", &ring, NULL, 0), -EPERM);
}

DOMT_SUITE(20)
