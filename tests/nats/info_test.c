/* INFO is read as far as a client needs it, and wrong values in it are errors; keys sign as the
 * tools of NATS do; and failed allocations are reported. */
#include "tests/nats/trace.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int parse_info_text(const char *json, domus_nats_server_info *ret_info)
{
    domus_nats_info info;

    ck_assert_int_eq(domus_slice_copy(json, strlen(json), &info.json), 0);
    int error = domus_nats_info_read(&info, ret_info);
    domus_nats_info_type.release(&info);
    return error;
}

DOMT_TEST(fields_of_info_are_read)
{
    domus_nats_server_info info;

    ck_assert_int_eq(
        parse_info_text(
            "{\"server_id\":\"ID\",\"server_name\":\"n\\u0001\",\"version\":\"2.9.10\",\"nonce\":"
            "\"xyz\",\"max_payload\":1048576,\"client_id\":7,\"headers\":true,"
            "\"auth_required\":true,\"tls_required\":true,\"tls_available\":true,"
            "\"jetstream\":true,\"ldm\":true,\"connect_urls\":[\"a:1\",\"\",\"[::1]:2\"],"
            "\"other\":{\"x\":[]}}",
            &info),
        0);
    ck_assert_str_eq(info.server_id, "ID");
    ck_assert_str_eq(info.server_name, "n?");
    ck_assert_str_eq(info.version, "2.9.10");
    ck_assert_str_eq(info.nonce, "xyz");
    ck_assert_uint_eq(info.max_payload, 1048576);
    ck_assert_uint_eq(info.client_id, 7);
    ck_assert(info.headers && info.auth_required && info.tls_required && info.tls_available &&
              info.jetstream && info.lame_duck);
    ck_assert_uint_eq(info.urls, 2);
    ck_assert_str_eq(info.url[1], "[::1]:2");
    ck_assert_int_eq(parse_info_text("{}", &info), 0);
    ck_assert(!info.headers && info.max_payload == 0 && info.urls == 0 && info.version[0] == '\0');
    ck_assert_int_eq(parse_info_text("{\"connect_urls\":null,\"client_id\":99999999999}", &info),
                     0);
    ck_assert_uint_eq(info.client_id, UINT32_MAX);
}

DOMT_TEST(wrong_info_is_refused)
{
    static const char *const wrong[] = {
        "",
        "x",
        "[]",
        "{",
        "{} {}",
        "{\"server_id\":1}",
        "{\"nonce\":null}",
        "{\"max_payload\":\"1\"}",
        "{\"max_payload\":-1}",
        "{\"max_payload\":1.5}",
        "{\"headers\":1}",
        "{\"ldm\":\"true\"}",
        "{\"connect_urls\":{}}",
        "{\"connect_urls\":[1]}",
        "{\"server_id\":\"\\ud800\"}",
    };
    domus_nats_server_info info;
    char deep[8000];

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(parse_info_text(wrong[i], &info) == -EPROTO, "%s", wrong[i]);
    memset(deep, '[', sizeof deep);
    deep[sizeof deep - 1] = '\0';
    ck_assert_int_eq(parse_info_text(deep, &info), -EPROTO);
}

DOMT_TEST(urls_in_info_have_a_limit)
{
    static char json[40000];
    domus_nats_server_info info;
    int size = snprintf(json, sizeof json, "{\"connect_urls\":[\"%0299d\",\"%0300d\"", 1, 2);

    for (int i = 0; i < 100; i++)
        size += snprintf(json + size, sizeof json - (size_t)size, ",\"h%d:1\"", i);
    snprintf(json + size, sizeof json - (size_t)size, "]}");
    ck_assert_int_eq(parse_info_text(json, &info), 0);
    ck_assert_uint_eq(info.urls, DOMUS_NATS_SERVERS_MAX);
    ck_assert_uint_eq(strlen(info.url[0]), 299);
    ck_assert_str_eq(info.url[1], "h0:1");
    ck_assert_str_eq(info.url[DOMUS_NATS_SERVERS_MAX - 1], "h30:1");
}

/* --- keys ------------------------------------------------------------------------------------- */

/* The key of RFC 8032, section 7.1, test 1, in the form in which NATS writes a seed and a public
 * key; the RFC gives its signature of an empty message. */
#define SEED "SUAJ2YNRTXX72WTAXKCEV5ES5QWMIRCJYVUXWMTJDFYDXLADDSXH6YALCA"
#define KEY  "UDLVVGABQKYQVN6VJP7NHSLEA45A5YLS6PNKMIZFV4BBU2HXA5IRUVAL"
#define SIGNATURE                                                                                  \
    "5VZDAMNgrHKQhuLMgG6CioSHfx645dl02HPgZSJJAVVfuIIVkKM7rMYeOXAc-bRr0lv18FlbviRlUUFDjnoQCw"

DOMT_TEST(seed_gives_public_key_and_signature)
{
    char key[DOMUS_NATS_NKEY_SIZE], signature[DOMUS_NATS_SIGNATURE_SIZE];

    ck_assert_int_eq(domus_nats_sign(SEED, "", 0, key, signature), 0);
    ck_assert_str_eq(key, KEY);
    ck_assert_str_eq(signature, SIGNATURE);
    ck_assert_int_eq(domus_nats_sign(SEED, "abc", 3, key, signature), 0);
    ck_assert_str_ne(signature, SIGNATURE);
    ck_assert_int_eq(domus_nats_sign(SEED, NULL, 0, key, NULL), 0);
}

DOMT_TEST(wrong_seed_is_refused)
{
    static const char *const wrong[] = {
        "",
        KEY,
        SEED "A",
        /* this seed belongs to an account, not to a user */
        "SAAJ2YNRTXX72WTAXKCEV5ES5QWMIRCJYVUXWMTJDFYDXLADDSXH6YHY3Q",
        /* This seed has a '1', which is no digit of base32. */
        "SUAJ2YNRTXX72WTAXKCEV5ES5QWMIRCJYVUXWMTJDFYDXLADDSXH6YALC1",
    };
    char key[DOMUS_NATS_NKEY_SIZE];

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_int_eq(domus_nats_sign(wrong[i], "", 0, key, NULL), -EBADMSG);
    for (size_t i = 0; i < sizeof SEED - 1; i++) {
        char changed[] = SEED;
        changed[i] = changed[i] == 'A' ? 'B' : 'A';
        ck_assert_int_eq(domus_nats_sign(changed, "", 0, key, NULL), -EBADMSG);
    }
}

/* --- memory ----------------------------------------------------------------------------------- */

DOMT_TEST(allocation_failure_while_decoding_is_returned)
{
    static char bytes[100000];
    size_t size = (size_t)snprintf(bytes, sizeof bytes,
                                   "INFO {}\r\n-ERR 'x'\r\nPING\r\nPONG\r\n"
                                   "MSG a 1 r 80000\r\n") +
                  80002;

    memcpy(bytes + size - 2, "\r\n", 2);
    for (size_t step = 3000; step <= 99000; step += 96000) {
        domt_codec_work work = {{&domus_nats_stage, NULL}, NULL, bytes, size, step};
        domt_fail_each_allocation(domt_codec_decode_as_work_says, &work);
    }
    domt_codec_work small = {{&domus_nats_stage, NULL}, NULL, "MSG a 1 2\r\nhi\r\n", 15, 4};
    domt_fail_each_allocation(domt_codec_decode_as_work_says, &small);
}

static int encode_publication_with_each_failure(void *context)
{
    static const domus_pipeline_stage stages[2] = {{&domus_nats_stage, NULL}, {NULL, NULL}};
    static const domus_pipeline pipeline = {.stages = stages};
    static const char payload[1000];
    domus_nats_publish publish = {.used = 0};
    domus_nats_subscribe subscribe = {.tag = 0};
    domus_appender headers = {0};
    domus_stage_kit *kit;

    int result = domus_stage_kit_new(&pipeline, &kit);
    if (result != 0)
        return result;
    result = domus_nats_set_subject(&publish, "a");
    if (result == 0)
        result = domus_nats_set_payload(&publish, payload, sizeof payload);
    (void)domus_nats_headers_add(&headers, "A", "b");
    int block = domus_nats_headers_end(&headers, &publish.headers);
    if (result == 0)
        result = block;
    if (result == 0)
        result = domus_stage_kit_encode(kit, DOMUS_NO_ID, &domus_nats_publish_type, &publish);
    if (result == 0)
        result = domus_nats_subscribe_make("a", "b", &subscribe);
    domus_nats_subscribe_type.release(&subscribe);
    domus_nats_publish_free(&publish);
    domus_stage_kit_free(kit);
    return result;
}

DOMT_TEST(allocation_failure_while_encoding_is_returned)
{
    domt_fail_each_allocation(encode_publication_with_each_failure, NULL);
}

/* A server that announces many values of INFO or bytes of a message does not make the client
 * allocate memory before they have come. */
DOMT_TEST(memory_grows_only_with_received_bytes)
{
    static const char large[] = "MSG a 1 8000000\r\nabc";
    domt_codec_work work = {{&domus_nats_stage, NULL}, NULL, large, sizeof large - 1, 1000};

    ck_assert_uint_lt(domt_largest_allocated_block(domt_codec_decode_as_work_says, &work), 70000);
}

DOMT_SUITE(30)
