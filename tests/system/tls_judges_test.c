/* Programs of other projects test the example web behind TLS: curl, redis-cli, OpenSSL's s_client,
 * and Chromium on its page. Programs that are not installed are left out. */
#include "tests/support/suite.h"
#include "tests/system/secure.h"

#include <stdio.h>
#include <string.h>

static domt_secure secure;
static const char *const nothing[] = {NULL};

#define CURL "curl -sSf --max-time 20 --cacert $CA "

DOMT_TEST(curl_uses_the_site_in_both_versions)
{
    static const char *const versions[] = {"--tls-max 1.2", "--tlsv1.3"};
    char command[1024];

    if (!domt_secure_is_possible("curl"))
        return;
    domt_secure_make_authority(&secure);
    domt_secure_start_site(&secure, nothing);
    domt_secure_run_command_well(&secure, "seq 200000 | head -c 1000000 >$T/in");
    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof command,
                 CURL "%s -w \" %%{http_version} %%{ssl_verify_result}\" "
                      "https://localhost:$WEB/json https://localhost:$WEB/json",
                 versions[i]);
        domt_secure_run_command_well(&secure, command);
        ck_assert_msg(strstr(domt_secure_output, "hello") != NULL, "%s", domt_secure_output);
        ck_assert_msg(strstr(domt_secure_output, " 1.1 0") != NULL, "%s", domt_secure_output);
        snprintf(command, sizeof command,
                 CURL "%s -T $T/in -X POST -o $T/out https://localhost:$WEB/echo && "
                      "cmp $T/in $T/out",
                 versions[i]);
        domt_secure_run_command_well(&secure, command);
        snprintf(command, sizeof command,
                 CURL "%s -T $T/in -X PUT https://localhost:$WEB/kv/a && " CURL
                      "%s -o $T/out https://localhost:$WEB/kv/a && cmp $T/in $T/out",
                 versions[i], versions[i]);
        domt_secure_run_command_well(&secure, command);
        snprintf(
            command, sizeof command,
            CURL "%s -N --max-time 3 https://localhost:$WEB/events | grep -m 1 data:", versions[i]);
        domt_secure_run_command_well(&secure, command);
    }
    ck_assert_int_ne(domt_secure_run_command(&secure, "curl -sSf http://localhost:$WEB/json"), 0);
    domt_secure_run_command_well(&secure, "openssl req -x509 -config $T/cnf -newkey ec -pkeyopt "
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
    domt_secure_run_command_well(
        &secure, "timeout 20 python3 $T/up.py >$T/port 2>/dev/null & "
                 "for i in $(seq 100); do test -s $T/port && break; sleep 0.1; done; "
                 "cat $T/port");
    unsigned port = 0;
    ck_assert_int_eq(sscanf(domt_secure_output, "%u", &port), 1); /* NOLINT(cert-err34-c) */
    snprintf(setting, sizeof setting, "web.upstream=127.0.0.1:%u", port);
    domt_secure_start_site(&secure,
                           (const char *const[]){setting, more[0], more[1], more[2], NULL});
    snprintf(command, sizeof command, CURL "%s://localhost:$WEB/proxy/a", scheme);
    domt_secure_run_command_well(&secure, command);
    ck_assert_str_eq(domt_secure_output, scheme);
    domt_secure_end_site(&secure);
}

DOMT_TEST(a_server_behind_the_site_hears_how_clients_came)
{
    if (!domt_secure_is_possible("curl python3"))
        return;
    check_forwarded_proto("https", (const char *const[]){NULL, NULL, NULL});
    check_forwarded_proto(
        "http", (const char *const[]){"listeners.web.tls.certFile=", "listeners.web.tls.keyFile=",
                                      "listeners.web.tls.alpn="});
}

DOMT_TEST(redis_cli_uses_kv)
{
    if (!domt_secure_is_possible("redis-cli"))
        return;
    domt_secure_make_authority(&secure);
    domt_secure_start_site(&secure, nothing);
    domt_secure_run_command_well(
        &secure, "R=\"redis-cli --tls --cacert $CA -p $KV\"; $R set a hello && "
                 "test \"$($R get a)\" = hello && test \"$($R -3 -r 50 incr n | tail -1)\" = 50"
                 " && seq 100000 | $R -x set large && test $($R strlen large) = 588895");
    domt_secure_run_command_well(
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
    if (!domt_secure_is_possible(""))
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
        domt_secure_run_command_well(&secure, command);
    }
    domt_secure_end_site(&secure);
}

/* The page is loaded over https, and uses a WebSocket over TLS and events. */
DOMT_TEST(chromium_uses_the_page)
{
    if (!domt_secure_is_possible("chromium python3"))
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

DOMT_SUITE(110)
