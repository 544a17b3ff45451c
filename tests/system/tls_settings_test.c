/* The settings of TLS of a listener: errors are reported before anything starts, with the key, the
 * file and the reason; and correct settings have their effect. */
#include "tests/support/suite.h"
#include "tests/system/secure.h"

#include <stdio.h>
#include <string.h>

static domt_secure secure;

#define TEN(file)     file file file file file file file file file file
#define SEVENTY(file) TEN(file) TEN(file) TEN(file) TEN(file) TEN(file) TEN(file) TEN(file)
#define LONG_PATH     "$T/./././././././././././././././././a.pem,"
#define LONG_LIST     TEN(LONG_PATH) TEN(LONG_PATH) TEN(LONG_PATH) TEN(LONG_PATH)

/* Check that the example web with a setting ends with status 2 and prints this text. */
static void check_setting_is_refused(const char *setting, const char *said)
{
    char command[PATH_MAX + 1024];

    snprintf(command, sizeof command,
             DOMT_BIN_DIR "/web --set listeners.web.tls.certFile=$T/a.pem --set "
                          "listeners.web.tls.keyFile=$T/a.key --config " DOMT_SOURCE_DIR
                          "/examples/web/web.yaml --set %s",
             setting);
    int status = domt_secure_run_command(&secure, command);
    ck_assert_msg(status == 2, "%s: status %d: %s", setting, status, domt_secure_output);
    ck_assert_msg(strstr(domt_secure_output, said) != NULL, "%s: %s", setting, domt_secure_output);
}

DOMT_TEST(wrong_settings_end_the_start_with_key_and_reason)
{
    static const struct {
        const char *setting, *said;
    } rows[] = {
        {"listeners.web.tls.certFile=/nix.pem",
         "web: listeners.web.tls.certFile: /nix.pem: No such file or directory\n"},
        {"listeners.web.tls.keyFile=/nix.key",
         "web: listeners.web.tls.keyFile: /nix.key: No such file or directory\n"},
        {"listeners.web.tls.keyFile=$T/b.key", "b.key: key values mismatch"},
        {"listeners.web.tls.keyFile=$T", "Is a directory"},
        {"listeners.web.tls.certFile=/dev/null", "/dev/null: not a regular file"},
        {"listeners.web.tls.certFile=$T/cnf", "listeners.web.tls.certFile: /"},
        {"listeners.web.tls.certFile=$T/a.pem,$T/b.pem",
         "listeners.web.tls.keyFile: has to have as many files as certFile"},
        {"listeners.web.tls.certFile=$T/a.pem,,",
         "listeners.web.tls.certFile: an element is empty"},
        {"listeners.web.tls.certFile=" SEVENTY("$T/a.pem,"),
         "listeners.web.tls.certFile: more than 64"},
        {"listeners.web.tls.certFile=" LONG_LIST "$T/b.pem",
         "listeners.web.tls.keyFile: has to have as many files as certFile"},
        {"listeners.web.tls.clientCaFile=$T/cnf", "listeners.web.tls.clientCaFile: /"},
        {"listeners.web.tls.clients=optional", "listeners.web.tls.clients: needs clientCaFile"},
        {"listeners.web.tls.clients=maybe", "expected "},
        {"listeners.web.tls.minVersion=1.1", "expected "},
        {"listeners.web.tls.ciphers=ROT13", "listeners.web.tls.ciphers: "},
        {"listeners.web.tls.cipherSuites=ROT13", "listeners.web.tls.cipherSuites: "},
        {"listeners.web.tls.alpn=,", "listeners.web.tls.alpn: an element is empty"},
        {"listeners.kv.tls.alpn=resp", "listeners.kv.tls.alpn: needs certFile"},
        {"listeners.kv.tls.keyFile=/x", "listeners.kv.tls.keyFile: needs certFile"},
        {"listeners.kv.tls.minVersion=1.3", "listeners.kv.tls.minVersion: needs certFile"},
    };

    if (!domt_secure_is_possible(""))
        return;
    domt_secure_make_authority(&secure);
    domt_secure_issue_certificate(&secure, "b", "DNS:b.example");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check_setting_is_refused(rows[i].setting, rows[i].said);
    domt_secure_end_site(&secure);
}

/* A program that is built without TLS refuses these settings: it must not serve unencrypted what
 * its operator wants to keep secret. */
DOMT_TEST(program_without_tls_does_not_start)
{
    if (!domt_secure_is_possible(""))
        return;
    domt_secure_make_authority(&secure);
    int status = domt_secure_run_command(
        &secure, DOMT_BIN_DIR "/echo --config " DOMT_SOURCE_DIR "/config/domus.yaml --set "
                              "listeners.echo.address=127.0.0.1:0 --set "
                              "listeners.echo.tls.certFile=$T/a.pem");
    ck_assert_int_eq(status, 2);
    ck_assert_str_eq(domt_secure_output,
                     "echo: listeners.echo.tls.certFile: this program has no TLS\n");
    status = domt_secure_run_command(&secure, DOMT_BIN_DIR
                                     "/echo --config " DOMT_SOURCE_DIR "/config/domus.yaml --set "
                                     "listeners.echo.address=127.0.0.1:0 --set "
                                     "listeners.echo.tls.minVersion=1.3");
    ck_assert_int_eq(status, 2);
    ck_assert_str_eq(domt_secure_output,
                     "echo: listeners.echo.tls.minVersion: this program has no TLS\n");
    domt_secure_end_site(&secure);
}

DOMT_TEST(name_that_is_asked_for_chooses_the_certificate)
{
    static const char *const settings[] = {"listeners.web.tls.certFile=@T@/a.pem, @T@/b.pem",
                                           "listeners.web.tls.keyFile=@T@/a.key, @T@/b.key", NULL};

    if (!domt_secure_is_possible("curl"))
        return;
    domt_secure_make_authority(&secure);
    domt_secure_issue_certificate(&secure, "b", "DNS:b.example");
    domt_secure_start_site(&secure, settings);
    domt_secure_run_command_well(&secure, "curl -sSf --cacert $CA https://localhost:$WEB/json");
    domt_secure_run_command_well(&secure,
                                 "curl -sSf --cacert $CA --resolve b.example:$WEB:127.0.0.1 "
                                 "https://b.example:$WEB/json");
    ck_assert_int_eq(domt_secure_run_command(
                         &secure, "curl -sSf --cacert $CA --resolve c.example:$WEB:127.0.0.1 "
                                  "https://c.example:$WEB/json"),
                     60);
    domt_secure_end_site(&secure);
}

DOMT_TEST(versions_ciphers_and_protocols_are_as_they_are_set)
{
    static const char *const settings[] = {
        "listeners.web.tls.minVersion=1.3",
        "listeners.kv.tls.ciphers=ECDHE-ECDSA-AES128-GCM-SHA256",
        "listeners.web.tls.cipherSuites=TLS_CHACHA20_POLY1305_SHA256", "listeners.kv.tls.alpn=resp",
        NULL};
#define CLIENT "true | openssl s_client -CAfile $CA -connect 127.0.0.1:"

    if (!domt_secure_is_possible(""))
        return;
    domt_secure_make_authority(&secure);
    domt_secure_start_site(&secure, settings);
    domt_secure_run_command_well(&secure, CLIENT "$WEB | grep TLS_CHACHA20_POLY1305_SHA256");
    ck_assert_int_ne(domt_secure_run_command(&secure, CLIENT "$WEB -tls1_2"), 0);
    ck_assert_int_ne(domt_secure_run_command(&secure, CLIENT "$WEB -alpn h2"), 0);
    domt_secure_run_command_well(&secure, CLIENT
                                 "$WEB -alpn h2,http/1.1 | grep \"ALPN protocol: http/1.1\"");
    domt_secure_run_command_well(&secure,
                                 CLIENT "$KV -tls1_2 | grep \"ECDHE-ECDSA-AES128-GCM-SHA256\"");
    ck_assert_int_ne(domt_secure_run_command(&secure, CLIENT
                                             "$KV -tls1_2 -cipher ECDHE-ECDSA-AES256-GCM-SHA384"),
                     0);
    domt_secure_end_site(&secure);
}

DOMT_TEST(clients_show_certificates_when_they_have_to)
{
    static const char *const settings[] = {"listeners.web.tls.clientCaFile=@T@/ca.pem",
                                           "listeners.kv.tls.clientCaFile=@T@/ca.pem",
                                           "listeners.kv.tls.clients=optional", NULL};

    if (!domt_secure_is_possible("curl redis-cli"))
        return;
    domt_secure_make_authority(&secure);
    domt_secure_issue_certificate(&secure, "client", "DNS:client.example");
    domt_secure_start_site(&secure, settings);
    domt_secure_run_command_well(&secure,
                                 "curl -sSf --cacert $CA --cert $T/client.pem --key $T/client.key "
                                 "https://localhost:$WEB/json");
    ck_assert_int_ne(
        domt_secure_run_command(&secure, "curl -sSf --cacert $CA https://localhost:$WEB/json"), 0);
    domt_secure_run_command_well(&secure, "redis-cli --tls --cacert $CA -p $KV ping | grep PONG");
    domt_secure_run_command_well(&secure, "redis-cli --tls --cacert $CA --cert $T/client.pem --key "
                                          "$T/client.key -p $KV ping | grep PONG");
    domt_secure_run_command_well(
        &secure, "openssl req -x509 -config $T/cnf -newkey rsa:2048 -nodes -subj /CN=stranger "
                 "-keyout $T/s.key -out $T/s.pem; ! redis-cli --tls --cacert $CA --cert "
                 "$T/s.pem --key $T/s.key -p $KV ping | grep PONG");
    domt_secure_end_site(&secure);
}

DOMT_SUITE(110)
