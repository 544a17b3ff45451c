/* TLS: strangers at a server: harmful names, certificates and pieces of handshakes, early data, and
 * ends in either direction. */
#include "tests/support/suite.h"
#include "tests/tls/forge.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static domt_pki pki;
static domt_side side; /* the server under test: a side of the stage of TLS */
static domt_raw raw;   /* OpenSSL's own client, which talks to the server under test */
static domt_forge forge;
static domus_tls_settings settings;

static void prepare_authority_and_server_settings(void)
{
    domt_pki_make_authority(&pki);
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "a", .names = "DNS:a.example"});
    settings = domt_make_server_settings(&pki, "a");
}

static void open_server_and_openssl_client(int version)
{
    ck_assert_int_eq(domt_side_open_by_role(&side, domt_make_tls_context(&settings), NULL), 0);
    domt_raw_open_client(&raw, &pki, version, "a.example");
}

static void complete_handshake_with_raw_client(int version)
{
    open_server_and_openssl_client(version);
    ck_assert(domt_raw_exchange_bytes_with_side(&raw, &side));
    if (version == TLS1_3_VERSION)
        domt_forge_begin_with_keys(&forge, &raw);
}

static void close_server_and_raw_client(void)
{
    domt_raw_free_peer(&raw);
    domt_side_close_connection(&side);
    domus_tls_free(side.options.tls);
}

/* --- the start -------------------------------------------------------------------------------- */

/* Returns the ClientHello that the raw client sends first; the caller frees it. */
static unsigned char *take_client_hello(size_t *ret_size)
{
    char *bytes;

    ck_assert_int_le(SSL_do_handshake(raw.ssl), 0);
    *ret_size = (size_t)BIO_get_mem_data(raw.out, &bytes);
    unsigned char *copy = malloc(*ret_size);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, *ret_size);
    (void)BIO_reset(raw.out);
    return copy;
}

static int add_unknown_hello_extension(SSL *ssl, unsigned type, unsigned context,
                                       const unsigned char **ret_bytes, size_t *ret_size,
                                       X509 *certificate, size_t index, int *alert, void *size)
{
    static unsigned char bytes[17000];

    *ret_bytes = bytes;
    *ret_size = *(size_t *)size;
    return 1;
}

/* Let the raw client offer an unknown extension of `size` bytes in its ClientHello. */
static void offer_unknown_extension_in_hello(size_t *size)
{
    ck_assert_int_eq(SSL_CTX_add_custom_ext(raw.context, 4000, SSL_EXT_CLIENT_HELLO,
                                            add_unknown_hello_extension, NULL, size, NULL, NULL),
                     1);
    SSL_free(raw.ssl);
    raw.ssl = SSL_new(raw.context);
    raw.in = BIO_new(BIO_s_mem());
    raw.out = BIO_new(BIO_s_mem());
    SSL_set_bio(raw.ssl, raw.in, raw.out);
    SSL_set_connect_state(raw.ssl);
}

DOMT_TEST(largest_hello_may_come_byte_by_byte)
{
    static size_t sizes[] = {15800, 16300};

    prepare_authority_and_server_settings();
    for (int i = 0; i < 2; i++) {
        size_t size;
        open_server_and_openssl_client(TLS1_3_VERSION);
        offer_unknown_extension_in_hello(&sizes[i]);
        unsigned char *hello = take_client_hello(&size);
        domt_side_feed_in_pieces(&side, (char *)hello, size, 1);
        ck_assert_int_eq(side.error, i == 0 ? 0 : -EPROTO);
        if (i == 0)
            ck_assert(domt_raw_exchange_bytes_with_side(&raw, &side));
        free(hello);
        close_server_and_raw_client();
    }
    domt_pki_free_authority(&pki);
}

DOMT_TEST(hello_split_into_many_records_is_refused)
{
    unsigned char piece[6] = {22, 3, 1, 0, 1, 0};
    unsigned char first[10] = {22, 3, 1, 0, 5};
    size_t size, answered;

    prepare_authority_and_server_settings();
    open_server_and_openssl_client(TLS1_3_VERSION);
    unsigned char *hello = take_client_hello(&size);
    memcpy(first + 5, hello + 5, 5);
    domt_side_feed_in_pieces(&side, (char *)first, sizeof first, 0);
    uint32_t records = 1;
    for (size_t i = 10; i < size && side.error == 0; i++, records++) {
        piece[5] = hello[i];
        domt_side_feed_in_pieces(&side, (char *)piece, sizeof piece, 0);
    }
    ck_assert_int_eq(side.error, -EPROTO);
    ck_assert_uint_eq(records, 33);
    ck_assert_str_eq(domt_side_tls_info(&side).failure, "too many empty records");
    free(domt_side_take_output(&side, &answered));
    ck_assert_uint_eq(answered, 7); /* the server answers with an alert that is not encrypted */
    free(hello);
    close_server_and_raw_client();
    domt_pki_free_authority(&pki);
}

/* Find a text in bytes that may hold zeros. Returns where it begins. */
static unsigned char *find_text_in_bytes(unsigned char *bytes, size_t size, const char *text)
{
    unsigned char *at = memmem(bytes, size, text, strlen(text));

    ck_assert_ptr_nonnull(at);
    return at;
}

DOMT_TEST(server_name_with_odd_bytes_is_harmless)
{
    static const unsigned char odd[] = {0, '\n', 0xff, '%'};

    prepare_authority_and_server_settings();
    for (size_t i = 0; i < sizeof odd; i++) {
        size_t size;
        open_server_and_openssl_client(TLS1_3_VERSION);
        unsigned char *hello = take_client_hello(&size);
        find_text_in_bytes(hello, size, "a.example")[4] = odd[i];
        domt_side_feed_in_pieces(&side, (char *)hello, size, 0);
        ck_assert_int_eq(side.error, odd[i] == 0 ? -EPROTO : 0);
        ck_assert_uint_lt(strlen(domt_side_tls_info(&side).name), 10);
        free(hello);
        close_server_and_raw_client();
    }
    domt_pki_free_authority(&pki);
}

DOMT_TEST(server_name_of_256_bytes_is_refused)
{
    static unsigned char hello[512];
    size_t used = 5, name = 256;

    /* The test builds a ClientHello of TLS 1.2 with one extension, the name of the server, by
     * hand. */
    prepare_authority_and_server_settings();
    open_server_and_openssl_client(TLS1_2_VERSION);
    hello[used++] = 1;
    used += 3;
    hello[used] = hello[used + 1] = 3;
    used += 2 + 32 + 1;
    memcpy(hello + used, "\x00\x02\xc0\x2b\x01\x00", 6);
    used += 6;
    const size_t sizes[] = {name + 9, 0, name + 5, name + 3};
    for (int i = 0; i < 4; i++, used += 2) {
        hello[used] = (unsigned char)(sizes[i] >> 8);
        hello[used + 1] = (unsigned char)sizes[i];
    }
    hello[used++] = 0;
    hello[used++] = (unsigned char)(name >> 8);
    hello[used++] = (unsigned char)name;
    memset(hello + used, 'x', name);
    used += name;
    memcpy(hello, "\x16\x03\x01", 3);
    hello[3] = (unsigned char)((used - 5) >> 8);
    hello[4] = (unsigned char)(used - 5);
    hello[7] = (unsigned char)((used - 9) >> 8);
    hello[8] = (unsigned char)(used - 9);
    domt_side_feed_in_pieces(&side, (char *)hello, used, 0);
    ck_assert_int_eq(side.error, -EPROTO);
    ck_assert_str_eq(domt_side_tls_info(&side).name, "");
    close_server_and_raw_client();
    domt_pki_free_authority(&pki);
}

DOMT_TEST(early_data_is_refused)
{
    size_t written;

    prepare_authority_and_server_settings();
    complete_handshake_with_raw_client(TLS1_3_VERSION);
    domt_raw_expect_echo_of_line(&raw, &side, "first");
    SSL_SESSION *session = SSL_SESSION_dup(SSL_get0_session(raw.ssl));
    ck_assert_int_eq(SSL_SESSION_set_max_early_data(session, 1000), 1);
    domus_tls *tls = side.options.tls;
    domt_raw_free_peer(&raw);
    domt_side_close_connection(&side);
    ck_assert_int_eq(domt_side_open_by_role(&side, tls, NULL), 0);
    domt_raw_open_client(&raw, &pki, TLS1_3_VERSION, "a.example");
    ck_assert_int_eq(SSL_set_session(raw.ssl, session), 1);
    ck_assert_int_eq(SSL_write_early_data(raw.ssl, "steal\n", 6, &written), 1);
    ck_assert(domt_raw_exchange_bytes_with_side(&raw, &side));
    ck_assert_int_eq(SSL_get_early_data_status(raw.ssl), SSL_EARLY_DATA_REJECTED);
    ck_assert(domt_side_tls_info(&side).resumed);
    ck_assert_uint_eq(side.messages, 0);
    domt_raw_expect_echo_of_line(&raw, &side, "late");
    SSL_SESSION_free(session);
    close_server_and_raw_client();
    domt_pki_free_authority(&pki);
}

/* --- the end ---------------------------------------------------------------------------------- */

static void expect_text_at_raw_client(const char *text)
{
    char bytes[256] = "";

    size_t size = domt_raw_read_received(&raw, bytes, sizeof bytes - 1);
    ck_assert_uint_eq(size, strlen(text));
    ck_assert_str_eq(bytes, text);
}

/* Let the raw client read what the stage has sent. */
static void carry_output_to_raw_client(void)
{
    size_t size;
    char *bytes = domt_side_take_output(&side, &size);

    ck_assert_int_eq(BIO_write(raw.in, bytes, (int)size), (int)size);
    free(bytes);
}

DOMT_TEST(client_that_sent_close_notify_gets_its_answers)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

    prepare_authority_and_server_settings();
    for (int i = 0; i < 2; i++) {
        complete_handshake_with_raw_client(versions[i]);
        ck_assert_int_eq(SSL_write(raw.ssl, "one\ntwo\n", 8), 8);
        ck_assert_int_eq(SSL_shutdown(raw.ssl), 0);
        domt_raw_flush_to_side(&raw, &side);
        ck_assert_int_eq(side.error, 0);
        ck_assert_uint_eq(side.messages, 2);
        ck_assert(domus_stage_kit_is_last(side.kit));
        carry_output_to_raw_client();
        expect_text_at_raw_client("one\n");
        expect_text_at_raw_client("two\n");
        expect_text_at_raw_client("");
        ck_assert_int_eq(SSL_get_shutdown(raw.ssl), SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
        close_server_and_raw_client();
    }
    domt_pki_free_authority(&pki);
}

DOMT_TEST(bytes_after_close_notify_are_discarded)
{
    static char records[128];
    size_t size;

    prepare_authority_and_server_settings();
    complete_handshake_with_raw_client(TLS1_3_VERSION);
    size = domt_forge_seal_record(&forge, DOMT_FORGE_DATA, "one\n", 4, records);
    size += domt_forge_seal_record(&forge, DOMT_FORGE_ALERT, "\x01\x00", 2, records + size);
    size += domt_forge_seal_record(&forge, DOMT_FORGE_DATA, "two\n", 4, records + size);
    domt_side_feed_in_pieces(&side, records, size, 0);
    ck_assert_int_eq(side.error, 0);
    ck_assert_uint_eq(side.messages, 1);
    domt_side_feed_in_pieces(&side, "rubbish", 7, 0);
    ck_assert_int_eq(side.error, 0);
    ck_assert_uint_eq(side.messages, 1);
    close_server_and_raw_client();
    domt_pki_free_authority(&pki);
}

/* --- certificates of clients ------------------------------------------------------------------ */

static void require_client_certificates(void)
{
    static char path[128];

    snprintf(path, sizeof path, "%s", domt_pki_path_of_file(&pki, "ca"));
    settings.ca_file = path;
}

/* Let the raw client send its certificate FOLDER/FILE.pem, and `others` further ones behind it. */
static void send_certificate_as_raw_client(const char *file, int others)
{
    const char *path = domt_pki_path_of_file(&pki, file);

    ck_assert_int_eq(SSL_use_certificate_file(raw.ssl, path, SSL_FILETYPE_PEM), 1);
    ck_assert_int_eq(SSL_use_PrivateKey_file(raw.ssl, path, SSL_FILETYPE_PEM), 1);
    for (int i = 0; i < others; i++)
        ck_assert_int_eq((int)SSL_add1_chain_cert(raw.ssl, pki.authority), 1);
}

/* Check the error and failure text of the server for a client that sends this certificate. */
static void check_verdict_on_client_certificate(int version, const char *file, int others,
                                                int error, const char *failure)
{
    open_server_and_openssl_client(version);
    send_certificate_as_raw_client(file, others);
    (void)domt_raw_exchange_bytes_with_side(&raw, &side);
    ck_assert_msg(side.error == error, "%s: %d %s", file, side.error,
                  domt_side_tls_info(&side).failure);
    if (error != 0) {
        ck_assert_str_eq(domt_side_tls_info(&side).failure, failure);
        ck_assert(!domt_side_tls_info(&side).verified);
    } else {
        domt_raw_expect_echo_of_line(&raw, &side, "hello");
        ck_assert_int_eq(sk_X509_NAME_num(SSL_get_client_CA_list(raw.ssl)), 1);
    }
    close_server_and_raw_client();
}

DOMT_TEST(client_certificates_are_limited_and_verified)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

    prepare_authority_and_server_settings();
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "right", .names = "DNS:c.example"});
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "old", .names = "DNS:c", .ends_s = -30});
    domt_pki_issue_certificate(
        &pki, &(domt_wish){.file = "server", .names = "DNS:c", .usage = "serverAuth"});
    domt_pki_issue_certificate(
        &pki, &(domt_wish){.file = "client", .names = "DNS:c", .usage = "clientAuth"});
    require_client_certificates();
    settings.chain_max = 4096;
    for (int i = 0; i < 2; i++) {
        check_verdict_on_client_certificate(versions[i], "right", 0, 0, NULL);
        check_verdict_on_client_certificate(versions[i], "client", 3, 0, NULL);
        check_verdict_on_client_certificate(versions[i], "old", 0, -EACCES,
                                            "certificate has expired");
        check_verdict_on_client_certificate(versions[i], "server", 0, -EACCES,
                                            "unsuitable certificate purpose");
        check_verdict_on_client_certificate(versions[i], "right", 12, -EPROTO,
                                            "excessive message size");
    }
    domt_pki_free_authority(&pki);
}

DOMT_TEST(malformed_client_certificate_is_refused)
{
    prepare_authority_and_server_settings();
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "right", .names = "DNS:c.example"});
    require_client_certificates();
    for (size_t from = 0; from < 200; from += 20) {
        size_t size;
        /* in TLS 1.2 the client's certificate is not encrypted, so the test can change it on the
         * way */
        open_server_and_openssl_client(TLS1_2_VERSION);
        send_certificate_as_raw_client("right", 0);
        unsigned char *flight = take_client_hello(&size);
        domt_side_feed_in_pieces(&side, (char *)flight, size, 0);
        free(flight);
        carry_output_to_raw_client();
        flight = take_client_hello(&size);
        unsigned char *at = find_text_in_bytes(flight, size, "c.example");
        for (size_t i = 0; i < 20; i++)
            at[-(long)(from + i)] ^= 0x5a;
        domt_side_feed_in_pieces(&side, (char *)flight, size, 0);
        ck_assert_int_lt(side.error, 0);
        ck_assert(!domt_side_tls_info(&side).done);
        free(flight);
        close_server_and_raw_client();
    }
    domt_pki_free_authority(&pki);
}

DOMT_TEST(certificate_name_with_nul_matches_no_host)
{
    domus_tls_peer peer;

    prepare_authority_and_server_settings();
    domt_pki_issue_certificate(
        &pki, &(domt_wish){.file = "nul", .names = "DNS:a.example?.evil", .nul = true});
    domt_side client;
    domus_tls_settings of_server = domt_make_server_settings(&pki, "nul");
    domus_tls_settings of_client = domt_make_client_settings(&pki);
    domus_tls *server_tls = domt_make_tls_context(&of_server),
              *client_tls = domt_make_tls_context(&of_client);
    ck_assert_int_eq(domt_side_open_by_role(&side, server_tls, NULL), 0);
    ck_assert_int_eq(domt_side_open_by_role(&client, client_tls, "a.example"), 0);
    domt_side_exchange_bytes_with_other(&client, &side, 0);
    ck_assert_int_eq(client.error, -EACCES);
    ck_assert_str_eq(domt_side_tls_info(&client).failure, "hostname mismatch");
    domt_side_close_connection(&client);
    domt_side_close_connection(&side);
    domus_tls_free(server_tls);
    domus_tls_free(client_tls);

    settings = domt_make_server_settings(&pki, "a");
    require_client_certificates();
    open_server_and_openssl_client(TLS1_3_VERSION);
    send_certificate_as_raw_client("nul", 0);
    ck_assert(domt_raw_exchange_bytes_with_side(&raw, &side));
    ck_assert_int_eq(domus_tls_kit_peer(side.kit, &peer), 0);
    ck_assert_uint_eq(peer.names.size, 0);
    domus_tls_peer_free(&peer);
    close_server_and_raw_client();
    domt_pki_free_authority(&pki);
}

DOMT_SUITE(60)
