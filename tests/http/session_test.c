/* Signed values are verified unchanged, for the same purpose, before they expire, and with keys of
 * the ring alone; keys are read strictly. Cookies of sessions have their attributes, are read as
 * they were set, and are refused under another name, key or time; tokens of forms belong to their
 * session. */
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include <domus/http_session.h>
#include <domus/http_sign.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIGNED_AT 1000
#define EXPECTED  "VQJi.2000.aGVsbG8.u3pgJ2hM_Z5P-4CHWmn7zo8usFnW6mTPIUFWZLBPHp8"

/* Make a ring of keys, one for each letter; a key's bytes are all that letter. */
static domus_http_keys make_ring_of_keys(const char *letters)
{
    domus_http_keys ring = {.count = 0};
    char bytes[DOMUS_HTTP_KEY_LEAST];

    for (; *letters != '\0'; letters++) {
        memset(bytes, *letters, sizeof bytes);
        ck_assert_int_eq(domus_http_keys_add(&ring, bytes, sizeof bytes), 0);
    }
    return ring;
}

static domus_slice sign_value(const domus_http_keys *ring, const char *purpose, int64_t expires,
                              const void *value, size_t size)
{
    domus_appender to = {0};
    domus_slice made;

    ck_assert_int_eq(domus_http_sign(ring, purpose, expires, value, size, &to), 0);
    ck_assert_int_eq(domus_append_end(&to, &made), 0);
    return made;
}

static int64_t verify_value(const domus_http_keys *ring, const char *purpose, int64_t now,
                            domus_slice text, char *to)
{
    return domus_http_unsign(ring, purpose, now, domus_slice_data(text), text.size, to,
                             DOMUS_HTTP_SIGNED_MAX);
}

/* The signature is the HMAC-SHA256 that Python has computed of this text. */
DOMT_TEST(a_signed_value_has_its_expected_text)
{
    domus_http_keys ring = make_ring_of_keys("k");
    domus_slice made = sign_value(&ring, "p", 2000, "hello", 5);

    ck_assert_msg(domus_slice_equals(made, EXPECTED, sizeof EXPECTED - 1), "%.*s", (int)made.size,
                  domus_slice_data(made));
    domus_slice_free(made);
}

DOMT_TEST(signed_values_of_every_size_are_verified)
{
    domus_http_keys ring = make_ring_of_keys("ab");
    static char value[DOMUS_HTTP_SIGNED_MAX + 1], to[DOMUS_HTTP_SIGNED_MAX];

    for (size_t i = 0; i < sizeof value; i++)
        value[i] = (char)(i * 7);
    for (size_t size = 0; size <= DOMUS_HTTP_SIGNED_MAX; size += size < 80 ? 1 : 1352) {
        domus_slice made = sign_value(&ring, "purpose", DOMUS_HTTP_NEVER, value, size);
        ck_assert_uint_eq(made.size, DOMUS_HTTP_SIGNED_SIZE(size));
        ck_assert_int_eq(verify_value(&ring, "purpose", INT64_MAX, made, to), (int64_t)size);
        ck_assert_mem_eq(to, value, size);
        if (size != 0)
            ck_assert_int_eq(domus_http_unsign(&ring, "purpose", 1, domus_slice_data(made),
                                               made.size, to, size - 1),
                             -EMSGSIZE);
        domus_slice_free(made);
    }
}

DOMT_TEST(each_changed_byte_of_a_signed_value_is_refused)
{
    domus_http_keys ring = make_ring_of_keys("a");
    domus_slice made = sign_value(&ring, "p", 2000, "value", 5);
    char text[128], to[DOMUS_HTTP_SIGNED_MAX];
    size_t size = made.size;

    for (size_t i = 0; i < size; i++) {
        for (int bit = 0; bit < 8; bit++) {
            memcpy(text, domus_slice_data(made), size);
            text[i] = (char)(text[i] ^ (1 << bit));
            memset(to, 'x', sizeof to);
            ck_assert_int_eq(domus_http_unsign(&ring, "p", SIGNED_AT, text, size, to, sizeof to),
                             -EBADMSG);
            ck_assert_int_eq(to[0], 'x');
        }
    }
    memcpy(text, domus_slice_data(made), size);
    for (size_t i = 0; i < size; i++)
        ck_assert_int_eq(domus_http_unsign(&ring, "p", SIGNED_AT, text, i, to, sizeof to),
                         -EBADMSG);
    text[size] = '=';
    ck_assert_int_eq(domus_http_unsign(&ring, "p", SIGNED_AT, text, size + 1, to, sizeof to),
                     -EBADMSG);
    domus_slice_free(made);
}

DOMT_TEST(signed_value_holds_for_its_purpose_and_time)
{
    domus_http_keys ring = make_ring_of_keys("a");
    domus_slice made = sign_value(&ring, "p", 2000, "v", 1);
    char to[DOMUS_HTTP_SIGNED_MAX];

    ck_assert_int_eq(verify_value(&ring, "p", 1999, made, to), 1);
    ck_assert_int_eq(verify_value(&ring, "p", 2000, made, to), -EKEYEXPIRED);
    ck_assert_int_eq(verify_value(&ring, "P", 1999, made, to), -EBADMSG);
    ck_assert_int_eq(verify_value(&ring, "", 1999, made, to), -EBADMSG);
    ck_assert_int_eq(verify_value(&ring, "q", 2000, made, to), -EBADMSG);
    domus_slice_free(made);
}

DOMT_TEST(signed_values_are_verified_while_keys_rotate)
{
    domus_http_keys first = make_ring_of_keys("a"), both = make_ring_of_keys("ba"),
                    second = make_ring_of_keys("b");
    domus_http_keys none = {.count = 0};
    domus_slice old = sign_value(&first, "p", 2000, "v", 1);
    domus_slice new = sign_value(&both, "p", 2000, "v", 1);
    char to[DOMUS_HTTP_SIGNED_MAX];

    ck_assert_int_eq(verify_value(&both, "p", SIGNED_AT, old, to), 1);
    ck_assert_int_eq(verify_value(&both, "p", SIGNED_AT, new, to), 1);
    ck_assert_int_eq(verify_value(&second, "p", SIGNED_AT, new, to), 1);
    ck_assert_int_eq(verify_value(&second, "p", SIGNED_AT, old, to), -EBADMSG);
    ck_assert_int_eq(verify_value(&first, "p", SIGNED_AT, new, to), -EBADMSG);
    ck_assert_int_eq(verify_value(&none, "p", SIGNED_AT, old, to), -EBADMSG);
    domus_slice_free(old);
    domus_slice_free(new);
    domus_http_keys_wipe(&both);
    ck_assert_mem_eq(&both, &none, sizeof none);
}

DOMT_TEST(values_that_cannot_be_signed_are_refused)
{
    domus_http_keys ring = make_ring_of_keys("a"), none = {.count = 0};
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

DOMT_TEST(texts_of_signing_keys_are_read_strictly)
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
        if (error == 0) /* the first key is the same in all rows */
            ck_assert_int_eq(ring.keys[0].bytes[31], 31);
    }
}

DOMT_TEST(rings_and_texts_of_keys_have_bounds)
{
    domus_http_keys ring = make_ring_of_keys("abcdefgh");
    char bytes[DOMUS_HTTP_KEY_MOST + 1] = {0};
    static char text[DOMUS_HTTP_KEYS_TEXT_MAX + 1];
    const char *key = "hex:" HEX_32;

    ck_assert_uint_eq(ring.count, DOMUS_HTTP_KEYS_MAX);
    ck_assert_int_eq(domus_http_keys_add(&ring, bytes, 32), -ENOBUFS);
    ring = make_ring_of_keys("a");
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

/* Read keys from a file with these permissions. Returns the result. */
static int read_keys_of_file(const char *path, mode_t mode, domus_http_keys *ring)
{
    char words[DOMUS_HTTP_KEYS_WORDS] = "";

    ck_assert_int_eq(chmod(path, mode), 0);
    int error = domus_http_keys_read(path, ring, words, sizeof words);
    ck_assert((error == 0) == (words[0] == '\0'));
    return error;
}

DOMT_TEST(files_of_keys_that_others_may_read_are_refused)
{
    char path[] = "/tmp/domt-keys-XXXXXX";
    int fd = mkstemp(path);
    domus_http_keys ring = {.count = 0};
    static char filler[DOMUS_HTTP_KEYS_TEXT_MAX];

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, OTHER "\n", sizeof OTHER), sizeof OTHER);
    ck_assert_int_eq(read_keys_of_file(path, 0600, &ring), 0);
    ck_assert_uint_eq(ring.count, 1);
    ck_assert_int_eq(read_keys_of_file(path, 0400, &ring), 0);
    ck_assert_int_eq(read_keys_of_file(path, 0640, &ring), -EPERM);
    ck_assert_int_eq(read_keys_of_file(path, 0604, &ring), -EPERM);
    ck_assert_int_eq(read_keys_of_file(path, 0601, &ring), -EPERM);
    memset(filler, '\n', sizeof filler);
    ck_assert_int_eq(write(fd, filler, sizeof filler), sizeof filler);
    ck_assert_int_eq(read_keys_of_file(path, 0600, &ring), -EMSGSIZE);
    close(fd);
    unlink(path);
    ck_assert_int_eq(domus_http_keys_read(path, &ring, NULL, 0), -ENOENT);
    ck_assert_int_eq(domus_http_keys_read("/tmp", &ring, NULL, 0), -EPERM);
    ck_assert_int_eq(domus_http_keys_read("/dev/null", &ring, NULL, 0), -EPERM);
}

#define NOW 1000000

/* Returns the fields of a request that sends back the cookie which an answer has set. */
static domus_slice fields_that_send_cookie_back(domus_appender *fields)
{
    static char text[8192];
    domus_slice set;

    ck_assert_int_eq(domus_append_end(fields, &set), 0);
    const char *value = domus_slice_data(set) + strlen("Set-Cookie: ");
    size_t size = (size_t)((const char *)memchr(value, ';', set.size) - value);
    snprintf(text, sizeof text, "Cookie: other=1; %.*s\r\n", (int)size, value);
    domus_slice_free(set);
    return domt_slice_of_text(text);
}

static domus_slice fields_with_sealed_value(const domus_http_session_cookie *cookie,
                                            const domus_http_keys *keys, const void *value,
                                            size_t size)
{
    domus_appender fields = {0};

    ck_assert_int_eq(domus_http_session_seal(&fields, cookie, keys, NOW, value, size), 0);
    return fields_that_send_cookie_back(&fields);
}

DOMT_TEST(session_cookies_have_their_attributes)
{
    static const struct {
        domus_http_session_cookie cookie;
        const char *expected;
    } rows[] = {
        {{.name = NULL},
         "Set-Cookie: __Host-session=AAECAwQFBgcICQoLDA0ODw; Path=/; Max-Age=43200; SameSite=Lax; "
         "Secure; HttpOnly\r\n"},
        {{.insecure = true},
         "Set-Cookie: session=AAECAwQFBgcICQoLDA0ODw; Path=/; Max-Age=43200; SameSite=Lax; "
         "HttpOnly\r\n"},
        {{.name = "a", .lifetime_s = 60, .site = DOMUS_HTTP_SITE_STRICT},
         "Set-Cookie: a=AAECAwQFBgcICQoLDA0ODw; Path=/; Max-Age=60; SameSite=Strict; Secure; "
         "HttpOnly\r\n"},
        {{.site = DOMUS_HTTP_SITE_NONE, .with_browser = true},
         "Set-Cookie: __Host-session=AAECAwQFBgcICQoLDA0ODw; Path=/; SameSite=None; Secure; "
         "HttpOnly\r\n"},
    };
    const domus_http_session_id id = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};
    domus_appender fields = {0};
    domus_slice made;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert_int_eq(domus_http_session_set_id(&fields, &rows[i].cookie, &id), 0);
        ck_assert_int_eq(domus_append_end(&fields, &made), 0);
        ck_assert_msg(domus_slice_equals(made, rows[i].expected, strlen(rows[i].expected)), "%.*s",
                      (int)made.size, domus_slice_data(made));
        domus_slice_free(made);
    }
    ck_assert_int_eq(domus_http_session_clear(&fields, NULL), 0);
    ck_assert_int_eq(domus_append_end(&fields, &made), 0);
    static const char gone[] = "Set-Cookie: __Host-session=; Path=/; Max-Age=0; SameSite=Lax; "
                               "Secure; HttpOnly\r\n";
    ck_assert(domus_slice_equals(made, gone, sizeof gone - 1));
    domus_slice_free(made);
}

DOMT_TEST(wrong_options_of_session_cookies_are_refused)
{
    static const domus_http_session_cookie wrong[] = {
        {.name = ""},
        {.name = "a b"},
        {.name = "__Host-a", .insecure = true},
        {.name = "__host-a", .insecure = true},
        {.name = "__Secure-a", .insecure = true},
        {.site = DOMUS_HTTP_SITE_NONE, .insecure = true},
        {.site = 4},
        {.lifetime_s = -1},
        {.lifetime_s = 400 * 86400 + 1},
        {.name = "a2345678901234567890123456789012345678901234567890123456789012345"},
    };
    const domus_http_session_cookie longest = {
        .name = "a234567890123456789012345678901234567890123456789012345678901234",
        .lifetime_s = 400 * 86400};
    domus_http_keys keys = make_ring_of_keys("a"), none = {.count = 0};
    const domus_http_session_id id = {{0}};
    static char value[DOMUS_HTTP_SESSION_VALUE_MAX + 1];
    char to[DOMUS_HTTP_SESSION_VALUE_MAX];

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        domus_appender fields = {0};
        ck_assert_int_eq(domus_http_session_set_id(&fields, &wrong[i], &id), -EINVAL);
        domus_append_drop(&fields);
        fields = (domus_appender){0};
        ck_assert_int_eq(domus_http_session_seal(&fields, &wrong[i], &keys, NOW, "v", 1), -EINVAL);
    }
    domus_appender fields = {0};
    ck_assert_int_eq(domus_http_session_seal(&fields, NULL, &none, NOW, "v", 1), -ENOKEY);
    ck_assert_int_eq(domus_http_session_seal(&fields, NULL, &keys, -1, "v", 1), -EINVAL);
    ck_assert_int_eq(domus_http_session_seal(&fields, NULL, &keys, NOW, value, sizeof value),
                     -EMSGSIZE);
    ck_assert_uint_eq(fields.size, 0);
    ck_assert_int_eq(
        domus_http_session_seal(&fields, &longest, &keys, NOW, value, sizeof value - 1), 0);
    domus_slice back = fields_that_send_cookie_back(&fields);
    ck_assert_int_eq(domus_http_session_unseal(back, &longest, &keys, NOW, to, sizeof to),
                     sizeof to);
    ck_assert_uint_le(back.size, strlen("Cookie: other=1; \r\n") + 4096);
    domus_slice_free(back);
}

DOMT_TEST(sealed_values_are_opened_again)
{
    domus_http_keys keys = make_ring_of_keys("a"), rotated = make_ring_of_keys("ba"),
                    other = make_ring_of_keys("b");
    const domus_http_session_cookie named = {.name = "b"};
    domus_slice back = fields_with_sealed_value(NULL, &keys, "user=7", 6);
    char to[16];

    ck_assert_int_eq(domus_http_session_unseal(back, NULL, &keys, NOW + 43199, to, 16), 6);
    ck_assert_mem_eq(to, "user=7", 6);
    ck_assert_int_eq(domus_http_session_unseal(back, NULL, &keys, NOW + 43200, to, 16),
                     -EKEYEXPIRED);
    ck_assert_int_eq(domus_http_session_unseal(back, NULL, &rotated, NOW, to, 16), 6);
    ck_assert_int_eq(domus_http_session_unseal(back, NULL, &other, NOW, to, 16), -EBADMSG);
    ck_assert_int_eq(domus_http_session_unseal(back, NULL, &keys, NOW, to, 5), -EMSGSIZE);
    ck_assert_int_eq(domus_http_session_unseal(back, &named, &keys, NOW, to, 16), -ENOENT);
    /* the sealed value is refused when it comes under the name of another cookie */
    char text[512];
    const char *name = memchr(domus_slice_data(back), '_', back.size);
    const char *value = name + strlen("__Host-session");
    snprintf(text, sizeof text, "Cookie: b%.*s\r\n",
             (int)(domus_slice_data(back) + back.size - 2 - value), value);
    domus_slice renamed = domt_slice_of_text(text);
    ck_assert_int_eq(domus_http_session_unseal(renamed, &named, &keys, NOW, to, 16), -EBADMSG);
    domus_slice_free(renamed);
    domus_slice_free(back);
}

DOMT_TEST(session_ids_are_read_back_from_cookies)
{
    static const char *const wrong[] = {"", "AAECAwQFBgcICQoLDA0OD", "AAECAwQFBgcICQoLDA0ODwA",
                                        "AAECAwQFBgcICQoLDA0OD+", "AAECAwQFBgcICQoLDA0ODx"};
    domus_http_session_id one, two, got;
    domus_appender fields = {0};
    char text[64];

    ck_assert_int_eq(domus_http_session_make_id(&one), 0);
    ck_assert_int_eq(domus_http_session_make_id(&two), 0);
    ck_assert_mem_ne(&one, &two, sizeof one);
    ck_assert_int_eq(domus_http_session_set_id(&fields, NULL, &one), 0);
    domus_slice back = fields_that_send_cookie_back(&fields);
    ck_assert_int_eq(domus_http_session_get_id(back, NULL, &got), 0);
    ck_assert_mem_eq(&one, &got, sizeof one);
    domus_slice_free(back);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        snprintf(text, sizeof text, "Cookie: __Host-session=%s\r\n", wrong[i]);
        back = domt_slice_of_text(text);
        ck_assert_int_eq(domus_http_session_get_id(back, NULL, &got), -EBADMSG);
        ck_assert_mem_eq(&one, &got, sizeof one);
        domus_slice_free(back);
    }
    ck_assert_int_eq(domus_http_session_get_id((domus_slice){NULL, 0, 0}, NULL, &got), -ENOENT);
}

DOMT_TEST(csrf_tokens_belong_to_their_session)
{
    domus_http_keys keys = make_ring_of_keys("a"), rotated = make_ring_of_keys("ba"),
                    other = make_ring_of_keys("b");
    domus_http_keys none = {.count = 0};
    char one[DOMUS_HTTP_CSRF_SIZE + 1], two[DOMUS_HTTP_CSRF_SIZE + 1];
    static char session[DOMUS_HTTP_CSRF_SESSION_MAX + 1];

    ck_assert_int_eq(domus_http_csrf_make(&keys, "s", 1, one), 0);
    ck_assert_int_eq(domus_http_csrf_make(&keys, "s", 1, two), 0);
    ck_assert_uint_eq(strlen(one), DOMUS_HTTP_CSRF_SIZE);
    ck_assert_str_ne(one, two);
    ck_assert(domus_http_csrf_is_right(&keys, "s", 1, one, DOMUS_HTTP_CSRF_SIZE));
    ck_assert(domus_http_csrf_is_right(&rotated, "s", 1, two, DOMUS_HTTP_CSRF_SIZE));
    ck_assert(!domus_http_csrf_is_right(&other, "s", 1, one, DOMUS_HTTP_CSRF_SIZE));
    ck_assert(!domus_http_csrf_is_right(&none, "s", 1, one, DOMUS_HTTP_CSRF_SIZE));
    ck_assert(!domus_http_csrf_is_right(&keys, "t", 1, one, DOMUS_HTTP_CSRF_SIZE));
    ck_assert(!domus_http_csrf_is_right(&keys, "", 0, one, DOMUS_HTTP_CSRF_SIZE));
    for (size_t i = 0; i < DOMUS_HTTP_CSRF_SIZE; i++) {
        ck_assert(!domus_http_csrf_is_right(&keys, "s", 1, one, i));
        one[i] = (char)(one[i] ^ 1);
        ck_assert(!domus_http_csrf_is_right(&keys, "s", 1, one, DOMUS_HTTP_CSRF_SIZE));
        one[i] = (char)(one[i] ^ 1);
    }
    ck_assert_int_eq(domus_http_csrf_make(&none, "s", 1, one), -ENOKEY);
    ck_assert_int_eq(domus_http_csrf_make(&keys, "", 0, one), -EINVAL);
    ck_assert_int_eq(domus_http_csrf_make(&keys, session, sizeof session, one), -EINVAL);
    ck_assert(!domus_http_csrf_is_right(&keys, session, sizeof session, two, sizeof two - 1));
    ck_assert_int_eq(domus_http_csrf_make(&keys, session, sizeof session - 1, one), 0);
}

DOMT_SUITE(20)
