/* Cookies of sessions have their attributes, come back as they were set, and are none of another
 * cookie, key or time; tokens of forms are those of their session. */
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include <domus/http_session.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NOW 1000000

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

/* The fields of a request with the cookie that an answer has set. */
static domus_slice send_back(domus_appender *fields)
{
    static char text[8192];
    domus_slice set;

    ck_assert_int_eq(domus_append_end(fields, &set), 0);
    const char *value = domus_slice_data(set) + strlen("Set-Cookie: ");
    size_t size = (size_t)((const char *)memchr(value, ';', set.size) - value);
    snprintf(text, sizeof text, "Cookie: other=1; %.*s\r\n", (int)size, value);
    domus_slice_free(set);
    return domt_http_slice(text);
}

static domus_slice seal(const domus_http_session_cookie *cookie, const domus_http_keys *keys,
                        const void *value, size_t size)
{
    domus_appender fields = {0};

    ck_assert_int_eq(domus_http_session_seal(&fields, cookie, keys, NOW, value, size), 0);
    return send_back(&fields);
}

DOMT_TEST(cookies_have_their_attributes)
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

DOMT_TEST(wrong_cookies_are_refused)
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
    domus_http_keys keys = ring_of("a"), none = {.count = 0};
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
    domus_slice back = send_back(&fields);
    ck_assert_int_eq(domus_http_session_unseal(back, &longest, &keys, NOW, to, sizeof to),
                     sizeof to);
    ck_assert_uint_le(back.size, strlen("Cookie: other=1; \r\n") + 4096);
    domus_slice_free(back);
}

DOMT_TEST(sealed_values_come_back)
{
    domus_http_keys keys = ring_of("a"), rotated = ring_of("ba"), other = ring_of("b");
    const domus_http_session_cookie named = {.name = "b"};
    domus_slice back = seal(NULL, &keys, "user=7", 6);
    char to[16];

    ck_assert_int_eq(domus_http_session_unseal(back, NULL, &keys, NOW + 43199, to, 16), 6);
    ck_assert_mem_eq(to, "user=7", 6);
    ck_assert_int_eq(domus_http_session_unseal(back, NULL, &keys, NOW + 43200, to, 16),
                     -EKEYEXPIRED);
    ck_assert_int_eq(domus_http_session_unseal(back, NULL, &rotated, NOW, to, 16), 6);
    ck_assert_int_eq(domus_http_session_unseal(back, NULL, &other, NOW, to, 16), -EBADMSG);
    ck_assert_int_eq(domus_http_session_unseal(back, NULL, &keys, NOW, to, 5), -EMSGSIZE);
    ck_assert_int_eq(domus_http_session_unseal(back, &named, &keys, NOW, to, 16), -ENOENT);
    /* under the name of another cookie it is no value of that */
    char text[512];
    const char *name = memchr(domus_slice_data(back), '_', back.size);
    const char *value = name + strlen("__Host-session");
    snprintf(text, sizeof text, "Cookie: b%.*s\r\n",
             (int)(domus_slice_data(back) + back.size - 2 - value), value);
    domus_slice renamed = domt_http_slice(text);
    ck_assert_int_eq(domus_http_session_unseal(renamed, &named, &keys, NOW, to, 16), -EBADMSG);
    domus_slice_free(renamed);
    domus_slice_free(back);
}

DOMT_TEST(ids_come_back)
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
    domus_slice back = send_back(&fields);
    ck_assert_int_eq(domus_http_session_get_id(back, NULL, &got), 0);
    ck_assert_mem_eq(&one, &got, sizeof one);
    domus_slice_free(back);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        snprintf(text, sizeof text, "Cookie: __Host-session=%s\r\n", wrong[i]);
        back = domt_http_slice(text);
        ck_assert_int_eq(domus_http_session_get_id(back, NULL, &got), -EBADMSG);
        ck_assert_mem_eq(&one, &got, sizeof one);
        domus_slice_free(back);
    }
    ck_assert_int_eq(domus_http_session_get_id((domus_slice){NULL, 0, 0}, NULL, &got), -ENOENT);
}

DOMT_TEST(tokens_are_those_of_their_session)
{
    domus_http_keys keys = ring_of("a"), rotated = ring_of("ba"), other = ring_of("b");
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

DOMT_SUITE(10)
