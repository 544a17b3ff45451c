/* TLS: tickets resume sessions with all contexts that share keys, until the keys have changed
 * twice; and files are read again. */
#include "tests/support/suite.h"
#include "tests/tls/raw.h"

#include "protocols/tls/tickets.h"

#include <errno.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static domt_pki pki;
static domt_side server;
static domt_raw raw;
/* the client sends the certificate FOLDER/FILE.pem of this name; NULL: none */
static const char *shown;
static bool verified;  /* whether the server has verified the last client's certificate */
static int names_told; /* how many names of authorities were sent to the last client */

/* Count the names of authorities that the server sends when it asks the client for a
 * certificate. */
static int count_names_of_authorities(SSL *ssl, void *none)
{
    const STACK_OF(X509_NAME) *names = SSL_get0_peer_CA_list(ssl);

    names_told = names != NULL ? sk_X509_NAME_num(names) : 0;
    return 1;
}

/* Let a raw client connect to a server and exchange a line, with `session` if it is not NULL.
 * Returns a session of this connection, which the caller frees. */
static SSL_SESSION *connect_raw_client_and_exchange_line(domus_tls *tls, int version,
                                                         SSL_SESSION *session, bool resumes)
{
    ck_assert_int_eq(domt_side_open_by_role(&server, tls, NULL), 0);
    domt_raw_open_client(&raw, &pki, version, "a.example");
    SSL_set_cert_cb(raw.ssl, count_names_of_authorities, NULL);
    if (shown != NULL) {
        const char *path = domt_pki_path_of_file(&pki, shown);
        ck_assert_int_eq(SSL_use_certificate_file(raw.ssl, path, SSL_FILETYPE_PEM), 1);
        ck_assert_int_eq(SSL_use_PrivateKey_file(raw.ssl, path, SSL_FILETYPE_PEM), 1);
    }
    if (session != NULL)
        ck_assert_int_eq(SSL_set_session(raw.ssl, session), 1);
    ck_assert(domt_raw_exchange_bytes_with_side(&raw, &server));
    domt_raw_expect_echo_of_line(&raw, &server, "hello");
    ck_assert(domt_side_tls_info(&server).resumed == resumes);
    verified = domt_side_tls_info(&server).verified;
    SSL_SESSION *next = SSL_get1_session(raw.ssl);
    SSL_set_shutdown(raw.ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    domt_raw_free_peer(&raw);
    domt_side_close_connection(&server);
    SSL_SESSION_free(session);
    return next;
}

static domus_tls *make_server_context(domus_tls *tickets_of, const char *ca)
{
    domus_tls_settings settings = domt_make_server_settings(&pki, "a");

    settings.tickets_of = tickets_of;
    settings.ca_file = ca;
    settings.verify = ca != NULL ? DOMUS_TLS_VERIFY_OPTIONAL : DOMUS_TLS_VERIFY_DEFAULT;
    return domt_make_tls_context(&settings);
}

DOMT_TEST(sessions_resume_while_shared_keys_change)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

    domt_pki_make_authority(&pki);
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "a", .names = "DNS:a.example"});
    for (int i = 0; i < 2; i++) {
        domus_tls *one = make_server_context(NULL, NULL);
        domus_tls *same = make_server_context(one, NULL);
        domus_tls *stranger = make_server_context(NULL, NULL);
        domus_tls *asks_more = make_server_context(one, domt_pki_path_of_file(&pki, "ca"));
        SSL_SESSION *session = connect_raw_client_and_exchange_line(one, versions[i], NULL, false);
        session = connect_raw_client_and_exchange_line(one, versions[i], session, true);
        session = connect_raw_client_and_exchange_line(same, versions[i], session, true);
        ck_assert_int_eq(domus_tls_rotate(one), 0);
        session = connect_raw_client_and_exchange_line(
            same, versions[i], session, true); /* the ticket of this connection has the new key */
        ck_assert_int_eq(domus_tls_rotate(same), 0);
        session = connect_raw_client_and_exchange_line(one, versions[i], session, true);
        ck_assert_int_eq(domus_tls_rotate(one), 0);
        ck_assert_int_eq(domus_tls_rotate(one), 0);
        session = connect_raw_client_and_exchange_line(one, versions[i], session, false);
        session = connect_raw_client_and_exchange_line(stranger, versions[i], session, false);
        SSL_SESSION_free(session);
        session = connect_raw_client_and_exchange_line(one, versions[i], NULL, false);
        session = connect_raw_client_and_exchange_line(one, versions[i], session, true);
        session = connect_raw_client_and_exchange_line(asks_more, versions[i], session, false);
        SSL_SESSION_free(session);
        domus_tls_free(one);
        domus_tls_free(same);
        domus_tls_free(stranger);
        domus_tls_free(asks_more);
    }
    domt_pki_free_authority(&pki);
}

DOMT_TEST(session_ends_when_client_certificate_expires)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    SSL_SESSION *sessions[2];
    domt_wish wish = {.file = "c", .names = "DNS:c.example", .ends_s = 2};

    domt_pki_make_authority(&pki);
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "a", .names = "DNS:a.example"});
    domt_pki_issue_certificate(&pki, &wish);
    domus_tls *tls = make_server_context(NULL, domt_pki_path_of_file(&pki, "ca"));
    shown = "c";
    for (int i = 0; i < 2; i++) {
        sessions[i] = connect_raw_client_and_exchange_line(tls, versions[i], NULL, false);
        sessions[i] = connect_raw_client_and_exchange_line(tls, versions[i], sessions[i], true);
        ck_assert(verified);
    }
    sleep(3);
    shown = NULL;
    for (int i = 0; i < 2; i++) {
        SSL_SESSION_free(
            connect_raw_client_and_exchange_line(tls, versions[i], sessions[i], false));
        ck_assert(!verified);
    }
    domus_tls_free(tls);
    domt_pki_free_authority(&pki);
}

static void write_file_of_authorities(int count)
{
    static const char filler[] = "a-name-that-is-so-long-that-few-of-them-fit-into-a-handshake";
    FILE *all = fopen(domt_pki_path_of_file(&pki, "all"), "w");

    ck_assert_ptr_nonnull(all);
    for (int i = 0; i < count; i++) {
        unsigned char number[16];
        X509 *authority = X509_dup(pki.authority);
        X509_NAME *name = X509_NAME_dup(X509_get_subject_name(authority));
        (void)snprintf((char *)number, sizeof number, "%d", i);
        X509_NAME_add_entry_by_txt(name, "OU", MBSTRING_ASC, (const unsigned char *)filler, -1, -1,
                                   0);
        X509_NAME_add_entry_by_txt(name, "OU", MBSTRING_ASC, number, -1, -1, 0);
        ck_assert_int_eq(X509_set_subject_name(authority, name), 1);
        ck_assert_int_gt(i2d_re_X509_tbs(authority, NULL), 0);
        ck_assert_int_eq(PEM_write_X509(all, authority), 1);
        X509_NAME_free(name);
        X509_free(authority);
    }
    ck_assert_int_eq(fclose(all), 0);
}

/* A server sends its clients up to some number of names of authorities, and no names at all if they
 * would not fit. */
DOMT_TEST(too_many_authority_names_are_not_sent)
{
    static const struct {
        int count;
        bool are_told;
    } cases[] = {{10, true}, {300, false}};

    domt_pki_make_authority(&pki);
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "a", .names = "DNS:a.example"});
    for (int i = 0; i < 2; i++) {
        write_file_of_authorities(cases[i].count);
        domus_tls *tls = make_server_context(NULL, domt_pki_path_of_file(&pki, "all"));
        for (int j = 0; j < 2; j++) {
            names_told = -1;
            SSL_SESSION_free(connect_raw_client_and_exchange_line(
                tls, j == 0 ? TLS1_2_VERSION : TLS1_3_VERSION, NULL, false));
            ck_assert_int_eq(names_told, cases[i].are_told ? cases[i].count : 0);
        }
        domus_tls_free(tls);
    }
    domt_pki_free_authority(&pki);
}

DOMT_TEST(ticket_keys_change_with_time)
{
    domi_tls_tickets *tickets = domi_tls_tickets_new(100, 1000);
    domi_tls_key first, second, third, found;

    ck_assert(domi_tls_tickets_current_key(tickets, 1000, &first));
    ck_assert(domi_tls_tickets_current_key(tickets, 1099, &second));
    ck_assert_mem_eq(&first, &second, sizeof first);
    ck_assert_int_eq(domi_tls_tickets_find_key(tickets, first.name, 1099, &found), 1);
    ck_assert(domi_tls_tickets_current_key(tickets, 1100, &second));
    ck_assert_mem_ne(&first, &second, sizeof first);
    ck_assert_int_eq(domi_tls_tickets_find_key(tickets, first.name, 1199, &found), 2);
    ck_assert_mem_eq(&first, &found, sizeof first);
    ck_assert_int_eq(domi_tls_tickets_find_key(tickets, first.name, 1200, &found), 0);
    ck_assert_int_eq(domi_tls_tickets_find_key(tickets, second.name, 1200, &found), 2);
    /* No connection came for a long time, so the last key of the tickets is too old, too. */
    ck_assert(domi_tls_tickets_current_key(tickets, 1200, &third));
    ck_assert_int_eq(domi_tls_tickets_find_key(tickets, third.name, 1400, &found), 0);
    domi_tls_tickets_remove_owner(tickets);
}

/* --- files ------------------------------------------------------------------------------------ */

/* Returns the subject of the certificate that the server shows to a client. */
static const char *read_subject_of_server_certificate(domus_tls *tls)
{
    static char text[128];

    ck_assert_int_eq(domt_side_open_by_role(&server, tls, NULL), 0);
    domt_raw_open_client(&raw, &pki, TLS1_3_VERSION, "a.example");
    ck_assert(domt_raw_exchange_bytes_with_side(&raw, &server));
    X509_NAME_oneline(X509_get_subject_name(SSL_get0_peer_certificate(raw.ssl)), text, sizeof text);
    domt_raw_free_peer(&raw);
    domt_side_close_connection(&server);
    return text;
}

static void copy_pki_file_over(const char *from, const char *to)
{
    char command[300];

    snprintf(command, sizeof command, "cp '%s' '%s'", domt_pki_path_of_file(&pki, from),
             domt_pki_path_of_file(&pki, to));
    ck_assert_int_eq(system(command), 0);
}

DOMT_TEST(reload_of_broken_files_changes_nothing)
{
    char error[256];

    domt_pki_make_authority(&pki);
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "a", .names = "DNS:a.example"});
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "b", .names = "DNS:a.example"});
    copy_pki_file_over("a", "now");
    domus_tls_settings settings = domt_make_server_settings(&pki, "now");
    domus_tls *tls = domt_make_tls_context(&settings);
    ck_assert_str_eq(read_subject_of_server_certificate(tls), "/O=domus/CN=a");
    domt_pki_write_file(&pki, "now",
                        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    ck_assert_int_eq(domus_tls_reload(tls, error, sizeof error), -EBADMSG);
    ck_assert(strstr(error, "/now.pem: ") != NULL);
    ck_assert_str_eq(read_subject_of_server_certificate(tls), "/O=domus/CN=a");
    ck_assert_int_eq(unlink(domt_pki_path_of_file(&pki, "now")), 0);
    ck_assert_int_eq(domus_tls_reload(tls, NULL, 0), -ENOENT);
    copy_pki_file_over("b", "now");
    ck_assert_int_eq(domus_tls_reload(tls, error, sizeof error), 0);
    ck_assert_str_eq(read_subject_of_server_certificate(tls), "/O=domus/CN=b");
    domus_tls_free(tls);
    domt_pki_free_authority(&pki);
}

/* Try to make a context with these files of certificate and key. Returns its error, and the text of
 * the error. */
static int try_context_with_files(const char *certificate, const char *key, char *error,
                                  size_t size)
{
    domus_tls_settings settings = domt_make_server_settings(&pki, certificate);
    const domus_tls_certificate both = {domt_pki_path_of_file(&pki, certificate),
                                        key != NULL ? domt_pki_path_of_file(&pki, key) : NULL};
    domus_tls *tls = NULL;

    settings.certificates = &both;
    int result = domus_tls_new(&settings, error, size, &tls);
    ck_assert((result == 0) == (tls != NULL));
    domus_tls_free(tls);
    return result;
}

DOMT_TEST(context_errors_name_file_and_reason)
{
    static const struct {
        const char *certificate;
        const char *key;
        int error;
        const char *text;
    } cases[] = {{"a", "b", -EBADMSG, "/b.pem: key values mismatch"},
                 {"none", NULL, -ENOENT, "/none.pem: No such file or directory"},
                 {"empty", NULL, -EBADMSG, "/empty.pem: the file is empty"},
                 {"words", NULL, -EBADMSG, "/words.pem: no start line"},
                 {"a", "ca", -EBADMSG, "/ca.pem: no private key"},
                 {"a", "secret", -EBADMSG, "/secret.pem: no private key"},
                 {"a", "a", 0, ""}};
    static const char secret[] = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n"
                                 "-----END ENCRYPTED PRIVATE KEY-----\n";
    char error[256];

    domt_pki_make_authority(&pki);
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "a", .names = "DNS:a.example"});
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "b", .names = "DNS:a.example"});
    domt_pki_write_file(&pki, "empty", "");
    domt_pki_write_file(&pki, "words", "nothing\n");
    domt_pki_write_file(&pki, "secret", secret);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        error[0] = '\0';
        int result =
            try_context_with_files(cases[i].certificate, cases[i].key, error, sizeof error);
        ck_assert_msg(result == cases[i].error && strstr(error, cases[i].text) != NULL,
                      "%zu: %d %s", i, result, error);
    }
    domt_pki_free_authority(&pki);
}

/* The file of an authority may be encrypted, as one of a key may: loading it fails with -EBADMSG,
 * and nobody is asked for a password. */
DOMT_TEST(encrypted_authority_is_refused_without_prompt)
{
    static const char encrypted[] = "-----BEGIN CERTIFICATE-----\nProc-Type: 4,ENCRYPTED\n"
                                    "DEK-Info: AES-128-CBC,00112233445566778899AABBCCDDEEFF\n\n"
                                    "AAAA\n-----END CERTIFICATE-----\n";
    char error[256];
    domus_tls *tls = NULL;

    domt_pki_make_authority(&pki);
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "a", .names = "DNS:a.example"});
    domt_pki_write_file(&pki, "secret", encrypted);
    domus_tls_settings settings = domt_make_server_settings(&pki, "a");
    settings.ca_file = domt_pki_path_of_file(&pki, "secret");
    ck_assert_int_eq(domus_tls_new(&settings, error, sizeof error, &tls), -EBADMSG);
    ck_assert_msg(strstr(error, "/secret.pem: bad password read") != NULL, "%s", error);
    domt_pki_free_authority(&pki);
}

DOMT_TEST(tls_settings_out_of_range_are_refused)
{
    static const char *const long_name[] = {
        "01234567890123456789012345678901234567890123456789012345678901234", NULL};
    char error[256];

    domt_pki_make_authority(&pki);
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "a", .names = "DNS:a.example"});
    const domus_tls_settings right = domt_make_server_settings(&pki, "a");
    for (int i = 0; i < 13; i++) {
        static const char *const named[] = {"role",      "verify",      "certificates_count",
                                            "depth_max", "chain_max",   "ticket_time_s",
                                            "held_max",  "ciphers",     "cipher_suites",
                                            "alpn",      "min_version", "verify",
                                            "quiet_max"};
        domus_tls_settings wrong = right;
        domus_tls *tls = NULL;
        wrong.role = i == 0 ? DOMUS_ROLE_PEER : wrong.role;
        /* verification of clients without a ca_file is an error */
        wrong.verify = i == 1 ? DOMUS_TLS_VERIFY_REQUIRED : wrong.verify;
        wrong.certificates_count = i == 2 ? 0 : 1;
        wrong.depth_max = i == 3 ? 17 : 16;
        wrong.chain_max = i == 4 ? 1023 : 1024;
        wrong.ticket_time_s = i == 5 ? 59 : 60;
        wrong.held_max = i == 6 ? 1048577 : 1048576;
        wrong.ciphers = i == 7 ? "none of these" : NULL;
        wrong.cipher_suites = i == 8 ? "none of these" : NULL;
        wrong.alpn = i == 9 ? long_name : NULL;
        wrong.min_version = i == 10 ? (domus_tls_version)2 : DOMUS_TLS_1_2;
        wrong.quiet_max = i == 12 ? 15 : 16;
        wrong.verify = i == 11 ? (domus_tls_verify)4 : wrong.verify;
        ck_assert_int_eq(domus_tls_new(&wrong, error, sizeof error, &tls), -EINVAL);
        ck_assert_msg(strncmp(error, named[i], strlen(named[i])) == 0, "%s", error);
        ck_assert_ptr_null(tls);
    }
    domt_pki_free_authority(&pki);
}

/* OpenSSL ignores ciphers that it does not know, so the library refuses a list that names one. */
DOMT_TEST(cipher_list_with_unknown_name_is_refused)
{
    static const struct {
        const char *ciphers, *suites, *said;
    } cases[] = {
        {"ECDHE-ECDSA-AES128-GCM-SHA256:ROT13:!MD5", NULL, "ciphers: OpenSSL has no 'ROT13'"},
        {NULL, "TLS_AES_128_GCM_SHA256:TLS_ROT13", "cipher_suites: OpenSSL has no 'TLS_ROT13'"},
        {"ECDHE+AESGCM:!ROT13,-ROT14 @SECLEVEL=1", "TLS_AES_128_GCM_SHA256", NULL},
    };
    char error[256];

    domt_pki_make_authority(&pki);
    domt_pki_issue_certificate(&pki, &(domt_wish){.file = "a", .names = "DNS:a.example"});
    domus_tls_settings settings = domt_make_server_settings(&pki, "a");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        domus_tls *tls = NULL;
        settings.ciphers = cases[i].ciphers;
        settings.cipher_suites = cases[i].suites;
        int result = domus_tls_new(&settings, error, sizeof error, &tls);
        ck_assert_int_eq(result, cases[i].said != NULL ? -EINVAL : 0);
        if (cases[i].said != NULL)
            ck_assert_str_eq(error, cases[i].said);
        domus_tls_free(tls);
    }
    domt_pki_free_authority(&pki);
}

DOMT_SUITE(60)
