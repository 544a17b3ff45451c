/* TLS of the example web: programs of other projects judge it (curl, redis-cli, s_client,
 * Chromium, testssl.sh), and wrong settings are reported before anything starts. */
#include "tests/support/suite.h"
#include "tests/system/judges.h"
#include "tests/system/secure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Programs of other projects test the example web behind TLS: curl, redis-cli, OpenSSL's s_client,
 * and Chromium on its page. Programs that are not installed are left out. */

static domt_secure secure;
static const char *const nothing[] = {NULL};

#define CURL "curl -sSf --max-time 20 --cacert $CA "

DOMT_TEST(curl_uses_the_site_in_both_versions_of_tls)
{
    static const char *const versions[] = {"--tls-max 1.2", "--tlsv1.3"};
    char command[1024];

    if (!domt_secure_are_programs_installed("curl"))
        return;
    domt_secure_make_authority(&secure);
    domt_secure_start_site(&secure, nothing);
    domt_secure_expect_command_succeeds(&secure, "seq 200000 | head -c 1000000 >$T/in");
    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof command,
                 CURL "%s -w \" %%{http_version} %%{ssl_verify_result}\" "
                      "https://localhost:$WEB/json https://localhost:$WEB/json",
                 versions[i]);
        domt_secure_expect_command_succeeds(&secure, command);
        ck_assert_msg(strstr(domt_secure_output, "hello") != NULL, "%s", domt_secure_output);
        ck_assert_msg(strstr(domt_secure_output, " 1.1 0") != NULL, "%s", domt_secure_output);
        snprintf(command, sizeof command,
                 CURL "%s -T $T/in -X POST -o $T/out https://localhost:$WEB/echo && "
                      "cmp $T/in $T/out",
                 versions[i]);
        domt_secure_expect_command_succeeds(&secure, command);
        snprintf(command, sizeof command,
                 CURL "%s -T $T/in -X PUT https://localhost:$WEB/kv/a && " CURL
                      "%s -o $T/out https://localhost:$WEB/kv/a && cmp $T/in $T/out",
                 versions[i], versions[i]);
        domt_secure_expect_command_succeeds(&secure, command);
        snprintf(
            command, sizeof command,
            CURL "%s -N --max-time 3 https://localhost:$WEB/events | grep -m 1 data:", versions[i]);
        domt_secure_expect_command_succeeds(&secure, command);
    }
    ck_assert_int_ne(domt_secure_run_command(&secure, "curl -sSf http://localhost:$WEB/json"), 0);
    domt_secure_expect_command_succeeds(&secure,
                                        "openssl req -x509 -config $T/cnf -newkey ec -pkeyopt "
                                        "ec_paramgen_curve:P-256 -nodes -subj /CN=stranger "
                                        "-keyout $T/other.key -out $T/other.pem");
    ck_assert_int_eq(domt_secure_run_command(
                         &secure, "curl -sSf --cacert $T/other.pem https://localhost:$WEB/json"),
                     60); /* curl's error 60: the certificate's authority is unknown */
    ck_assert_int_eq(
        domt_secure_run_command(&secure, CURL "--tls-max 1.1 https://localhost:$WEB/json"), 35);
    domt_secure_end_site(&secure);
}

/* The source of a server that answers with the X-Forwarded-Proto of the request, and ends after 20
 * s. */
static const char upstream[] = "import http.server\n"
                               "class Says(http.server.BaseHTTPRequestHandler):\n"
                               "    def do_GET(self):\n"
                               "        body = self.headers['X-Forwarded-Proto'].encode()\n"
                               "        self.send_response(200)\n"
                               "        self.send_header('Content-Length', str(len(body)))\n"
                               "        self.end_headers()\n"
                               "        self.wfile.write(body)\n"
                               "server = http.server.HTTPServer(('127.0.0.1', 0), Says)\n"
                               "print(server.server_port, flush=True)\n"
                               "server.serve_forever()\n";

static void check_forwarded_proto(const char *scheme, const char *const more[3])
{
    char setting[64], command[128];

    domt_secure_make_authority(&secure);
    domt_tree_write(&secure.tree, "up.py", upstream);
    domt_secure_expect_command_succeeds(
        &secure, "timeout 20 python3 $T/up.py >$T/port 2>/dev/null & "
                 "for i in $(seq 100); do test -s $T/port && break; sleep 0.1; done; "
                 "cat $T/port");
    unsigned port = 0;
    ck_assert_int_eq(sscanf(domt_secure_output, "%u", &port), 1); /* NOLINT(cert-err34-c) */
    snprintf(setting, sizeof setting, "web.upstream=127.0.0.1:%u", port);
    domt_secure_start_site(&secure,
                           (const char *const[]){setting, more[0], more[1], more[2], NULL});
    snprintf(command, sizeof command, CURL "%s://localhost:$WEB/proxy/a", scheme);
    domt_secure_expect_command_succeeds(&secure, command);
    ck_assert_str_eq(domt_secure_output, scheme);
    domt_secure_end_site(&secure);
}

DOMT_TEST(a_server_behind_the_site_hears_the_scheme_of_clients)
{
    if (!domt_secure_are_programs_installed("curl python3"))
        return;
    check_forwarded_proto("https", (const char *const[]){NULL, NULL, NULL});
    check_forwarded_proto(
        "http", (const char *const[]){"listeners.web.tls.certFile=", "listeners.web.tls.keyFile=",
                                      "listeners.web.tls.alpn="});
}

DOMT_TEST(redis_cli_uses_kv_over_tls)
{
    if (!domt_secure_are_programs_installed("redis-cli"))
        return;
    domt_secure_make_authority(&secure);
    domt_secure_start_site(&secure, nothing);
    domt_secure_expect_command_succeeds(
        &secure, "R=\"redis-cli --tls --cacert $CA -p $KV\"; $R set a hello && "
                 "test \"$($R get a)\" = hello && test \"$($R -3 -r 50 incr n | tail -1)\" = 50"
                 " && seq 100000 | $R -x set large && test $($R strlen large) = 588895");
    domt_secure_expect_command_succeeds(
        &secure, "R=\"redis-cli --tls --cacert $CA -p $KV\"; "
                 "seq 10000 | sed \"s/.*/set key& &/\" | $R --pipe | grep \"errors: 0, "
                 "replies: 10000\" && test $($R dbsize) = 10003");
    ck_assert_int_ne(domt_secure_run_command(&secure,
                                             "redis-cli --tls --cacert $CA -h localhost.invalid "
                                             "-p $KV ping"),
                     0);
    domt_secure_end_site(&secure);
}

DOMT_TEST(s_client_talks_to_echo_and_to_the_rooms)
{
    if (!domt_secure_are_programs_installed(""))
        return;
    domt_secure_make_authority(&secure);
    domt_secure_start_site(&secure, nothing);
    static const char *const ports[] = {"$ECHO", "$ROOMS"};
    for (int i = 0; i < 2; i++) {
        char command[512];
        snprintf(command, sizeof command,
                 "(echo hello; sleep 1) | openssl s_client -quiet -no_ign_eof -CAfile $CA "
                 "-verify_return_error -connect 127.0.0.1:%s | grep -x hello",
                 ports[i]);
        domt_secure_expect_command_succeeds(&secure, command);
    }
    domt_secure_end_site(&secure);
}

/* The page is loaded over https, and uses a WebSocket over TLS and events. */
DOMT_TEST(chromium_uses_the_page_over_tls)
{
    if (!domt_secure_are_programs_installed("chromium python3"))
        return;
    domt_secure_make_authority(&secure);
    domt_secure_start_site(&secure,
                           (const char *const[]){"web.tick=100ms", "listeners.rooms.tls.certFile=",
                                                 "listeners.rooms.tls.keyFile=", NULL});
    char command[PATH_MAX];
    snprintf(command, sizeof command,
             "timeout -k 5 90 python3 " DOMT_SOURCE_DIR "/tests/system/browser.py %u %u "
             "\"$(openssl x509 -in %s/a.pem -noout -pubkey | openssl pkey -pubin -outform der | "
             "openssl dgst -sha256 -binary | base64)\"",
             secure.site.web, secure.site.rooms, secure.tree.root);
    ck_assert_int_eq(system(command), 0); /* NOLINT(cert-env33-c): a test may use the shell */
    domt_secure_end_site(&secure);
}

/* --- tls settings ----------------------------------------------------------------------------- */

/* The settings of TLS of a listener: errors are reported before anything starts, with the key, the
 * file and the reason; and correct settings have their effect. */

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

    if (!domt_secure_are_programs_installed(""))
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
    if (!domt_secure_are_programs_installed(""))
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

    if (!domt_secure_are_programs_installed("curl"))
        return;
    domt_secure_make_authority(&secure);
    domt_secure_issue_certificate(&secure, "b", "DNS:b.example");
    domt_secure_start_site(&secure, settings);
    domt_secure_expect_command_succeeds(&secure,
                                        "curl -sSf --cacert $CA https://localhost:$WEB/json");
    domt_secure_expect_command_succeeds(&secure,
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

    if (!domt_secure_are_programs_installed(""))
        return;
    domt_secure_make_authority(&secure);
    domt_secure_start_site(&secure, settings);
    domt_secure_expect_command_succeeds(&secure, CLIENT "$WEB | grep TLS_CHACHA20_POLY1305_SHA256");
    ck_assert_int_ne(domt_secure_run_command(&secure, CLIENT "$WEB -tls1_2"), 0);
    ck_assert_int_ne(domt_secure_run_command(&secure, CLIENT "$WEB -alpn h2"), 0);
    domt_secure_expect_command_succeeds(
        &secure, CLIENT "$WEB -alpn h2,http/1.1 | grep \"ALPN protocol: http/1.1\"");
    domt_secure_expect_command_succeeds(&secure, CLIENT
                                        "$KV -tls1_2 | grep \"ECDHE-ECDSA-AES128-GCM-SHA256\"");
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

    if (!domt_secure_are_programs_installed("curl redis-cli"))
        return;
    domt_secure_make_authority(&secure);
    domt_secure_issue_certificate(&secure, "client", "DNS:client.example");
    domt_secure_start_site(&secure, settings);
    domt_secure_expect_command_succeeds(
        &secure, "curl -sSf --cacert $CA --cert $T/client.pem --key $T/client.key "
                 "https://localhost:$WEB/json");
    ck_assert_int_ne(
        domt_secure_run_command(&secure, "curl -sSf --cacert $CA https://localhost:$WEB/json"), 0);
    domt_secure_expect_command_succeeds(&secure,
                                        "redis-cli --tls --cacert $CA -p $KV ping | grep PONG");
    domt_secure_expect_command_succeeds(&secure,
                                        "redis-cli --tls --cacert $CA --cert $T/client.pem --key "
                                        "$T/client.key -p $KV ping | grep PONG");
    domt_secure_expect_command_succeeds(
        &secure, "openssl req -x509 -config $T/cnf -newkey rsa:2048 -nodes -subj /CN=stranger "
                 "-keyout $T/s.key -out $T/s.pem; ! redis-cli --tls --cacert $CA --cert "
                 "$T/s.pem --key $T/s.key -p $KV ping | grep PONG");
    domt_secure_end_site(&secure);
}

/* --- tls scan --------------------------------------------------------------------------------- */

/* testssl.sh checks the protocols, ciphers and extensions of the example web, and tries known
 * attacks. It takes a minute or more, so only the long form (DOMT_LONG) runs it. */

static char report[262144];

/* Lines that have to be in the report; each space stands for any number of spaces. */
static const char *const findings[] = {
    "SSLv2 not offered (OK)",
    "SSLv3 not offered (OK)",
    "TLS 1 not offered",
    "TLS 1.1 not offered",
    "TLS 1.2 offered (OK)",
    "TLS 1.3 offered (OK): final",
    "NULL ciphers (no encryption) not offered (OK)",
    "Anonymous NULL Ciphers (no authentication) not offered (OK)",
    "Export ciphers (w/o ADH+NULL) not offered (OK)",
    "Triple DES Ciphers / IDEA not offered",
    "Obsolete CBC ciphers (AES, ARIA etc.) not offered",
    "Has server cipher order? yes (OK)",
    "Heartbleed (CVE-2014-0160) not vulnerable (OK)",
    "CCS (CVE-2014-0224) not vulnerable (OK)",
    "Ticketbleed (CVE-2016-9244), experiment. not vulnerable (OK)",
    "Secure Renegotiation (RFC 5746) supported (OK)",
    "Secure Client-Initiated Renegotiation not vulnerable (OK)",
    "CRIME, TLS (CVE-2012-4929) not vulnerable (OK)",
    "SWEET32 (CVE-2016-2183, CVE-2016-6329) not vulnerable (OK)",
    "BEAST (CVE-2011-3389) not vulnerable (OK)",
    "LUCKY13 (CVE-2013-0169), experimental not vulnerable (OK)",
};

/* Read the report of testssl.sh, and replace several spaces by one. */
static void read_report_of_testssl(void)
{
    char path[PATH_MAX];
    size_t size = 0;
    int letter;

    snprintf(path, sizeof path, "%s/scan", secure.tree.root);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while ((letter = fgetc(file)) != EOF && size + 1 < sizeof report)
        if (letter != ' ' || size == 0 || report[size - 1] != ' ')
            report[size++] = (char)letter;
    report[size] = '\0';
    fclose(file);
}

DOMT_TEST(testssl_finds_nothing_that_is_ours)
{
    char command[PATH_MAX];

    if (getenv("DOMT_LONG") == NULL || !domt_secure_are_programs_installed("testssl"))
        return;
    domt_secure_make_authority(&secure);
    domt_secure_start_site(&secure, (const char *const[]){NULL});
    snprintf(command, sizeof command,
             "cd %s && timeout -k 5 1200 testssl --quiet --color 0 --warnings batch --nodns none "
             "--ip 127.0.0.1 -p -s -P -S -U https://localhost:%u/ >scan 2>&1 </dev/null",
             secure.tree.root, secure.site.web);
    /* The status also counts remarks about the authority of the test, so it is not checked. */
    ck_assert_int_ne(system(command), -1); /* NOLINT(cert-env33-c): a test may use the shell */
    read_report_of_testssl();
    for (size_t i = 0; i < sizeof findings / sizeof findings[0]; i++)
        ck_assert_msg(strstr(report, findings[i]) != NULL, "not found: %s\n%s", findings[i],
                      report);
    ck_assert_msg(strstr(report, "VULNERABLE (NOT ok)") == NULL, "%s", report);
    domt_secure_end_site(&secure);
}

DOMT_SUITE(1300)
