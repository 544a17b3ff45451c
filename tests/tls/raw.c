/* A peer of the stage of TLS that is OpenSSL itself; raw.h describes it. */
#include "tests/tls/raw.h"

#include "base/check.h"
#include "tests/support/suite.h"

#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>

/* OpenSSL reports each key of a handshake as a line "LABEL RANDOM SECRET" in hex: store the secret
 * of this peer's own application data. */
static void store_own_traffic_secret(const SSL *ssl, const char *line)
{
    domt_raw *raw = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    const char *label =
        SSL_is_server(ssl) ? "SERVER_TRAFFIC_SECRET_0 " : "CLIENT_TRAFFIC_SECRET_0 ";
    const char *hex = strrchr(line, ' ') + 1;
    size_t size;

    if (strncmp(line, label, strlen(label)) == 0 && strlen(hex) == 2 * sizeof raw->secret)
        DOMI_CHECK(OPENSSL_hexstr2buf_ex(raw->secret, sizeof raw->secret, &size, hex, '\0') == 1);
}

static void begin_raw_connection(domt_raw *raw, const SSL_METHOD *method)
{
    raw->context = SSL_CTX_new(method);
    SSL_CTX_set_app_data(raw->context, raw);
    SSL_CTX_set_keylog_callback(raw->context, store_own_traffic_secret);
    ck_assert_int_eq(SSL_CTX_set_ciphersuites(raw->context, "TLS_AES_128_GCM_SHA256"), 1);
}

static void make_raw_connection(domt_raw *raw)
{
    raw->ssl = SSL_new(raw->context);
    raw->in = BIO_new(BIO_s_mem());
    raw->out = BIO_new(BIO_s_mem());
    SSL_set_bio(raw->ssl, raw->in, raw->out);
}

void domt_raw_open_server(domt_raw *raw, const domt_pki *pki, const char *file)
{
    const char *path = domt_pki_path_of_file(pki, file);

    begin_raw_connection(raw, TLS_server_method());
    ck_assert_int_eq(SSL_CTX_use_certificate_chain_file(raw->context, path), 1);
    ck_assert_int_eq(SSL_CTX_use_PrivateKey_file(raw->context, path, SSL_FILETYPE_PEM), 1);
    ck_assert_int_eq(SSL_CTX_set_num_tickets(raw->context, 0), 1);
    make_raw_connection(raw);
    SSL_set_accept_state(raw->ssl);
}

void domt_raw_open_client(domt_raw *raw, const domt_pki *pki, int version, const char *host)
{
    begin_raw_connection(raw, TLS_client_method());
    ck_assert_int_eq(SSL_CTX_load_verify_file(raw->context, domt_pki_path_of_file(pki, "ca")), 1);
    SSL_CTX_set_verify(raw->context, SSL_VERIFY_PEER, NULL);
    ck_assert_int_eq(SSL_CTX_set_max_proto_version(raw->context, version), 1);
    make_raw_connection(raw);
    SSL_set_connect_state(raw->ssl);
    ck_assert_int_eq(SSL_set1_host(raw->ssl, host), 1);
    ck_assert_int_eq((int)SSL_set_tlsext_host_name(raw->ssl, host), 1);
}

void domt_raw_free_peer(domt_raw *raw)
{
    SSL_free(raw->ssl);
    SSL_CTX_free(raw->context);
}

void domt_raw_flush_to_side(domt_raw *raw, domt_side *side)
{
    char *bytes;
    long size = BIO_get_mem_data(raw->out, &bytes);

    domt_side_feed_in_pieces(side, bytes, (size_t)size, 0);
    (void)BIO_reset(raw->out);
}

bool domt_raw_exchange_bytes_with_side(domt_raw *raw, domt_side *side)
{
    bool goes_on = true;

    while (goes_on) {
        size_t size;
        (void)SSL_do_handshake(raw->ssl);
        goes_on = BIO_pending(raw->out) != 0;
        domt_raw_flush_to_side(raw, side);
        char *bytes = domt_side_take_output(side, &size);
        goes_on = goes_on || size != 0;
        ck_assert_int_eq(BIO_write(raw->in, bytes, (int)size), (int)size);
        free(bytes);
    }
    return SSL_is_init_finished(raw->ssl) == 1;
}

size_t domt_raw_read_received(domt_raw *raw, char *to, size_t room)
{
    size_t size = 0;

    ERR_clear_error();
    return SSL_read_ex(raw->ssl, to, room, &size) == 1 ? size : 0;
}

void domt_raw_expect_echo_of_line(domt_raw *raw, domt_side *side, const char *line)
{
    char bytes[256];

    snprintf(bytes, sizeof bytes, "%s\n", line);
    ck_assert_int_eq(SSL_write(raw->ssl, bytes, (int)strlen(bytes)), (int)strlen(bytes));
    (void)domt_raw_exchange_bytes_with_side(raw, side);
    ck_assert_str_eq(side->last, line);
    memset(bytes, 0, sizeof bytes);
    ck_assert_int_eq(SSL_read(raw->ssl, bytes, sizeof bytes - 1), (int)strlen(line) + 1);
    ck_assert_int_eq(memcmp(bytes, line, strlen(line)), 0);
}
