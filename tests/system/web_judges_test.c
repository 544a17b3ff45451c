/* Programs of other projects with the examples `web` and `grpc`. Programs that are not installed
 * are left out. */
#include "tests/support/service.h"
#include "tests/support/suite.h"
#include "tests/system/judges.h"

#include <stdio.h>
#include <stdlib.h>

/* Load generators of other projects with the example web: every request is answered with the right
 * bytes. Programs that are not installed are left out. */

static domt_site site;
static domt_tree tree;

static void test_web_by_command(const char *programs, const char *command)
{
    if (!domt_are_judges_installed(programs))
        return;
    domt_make_directory_for_judges(&tree);
    domt_site_start_program(&site, (const char *const[]){NULL});
    domt_run_judge_command(&tree, &site, command);
    domt_site_stop_program(&site);
    domt_tree_remove_copy(&tree);
}

DOMT_TEST(ab_keeps_its_connections)
{
    test_web_by_command(
        "ab",
        "for p in static/page.css kv/none; do ab -q -k -n 2000 -c 32 $URL/$p >$T/x || exit 1\n"
        "grep -q \"^Complete requests: *2000$\" $T/x || exit 2\n"
        "grep -q \"^Failed requests: *0$\" $T/x || exit 3\n"
        "grep -q \"^Keep-Alive requests: *2000$\" $T/x || exit 4; done\n"
        "ab -q -n 300 -c 8 -p $IN -T text/plain $URL/echo >$T/x || exit 5\n"
        "grep -q \"^Failed requests: *0$\" $T/x && ! grep -q Non-2xx $T/x");
}

DOMT_TEST(wrk_counts_no_error)
{
    test_web_by_command("wrk",
                        "wrk -t1 -c64 -d500ms $URL/static/page.css >$T/x 2>&1 || wrk -t1 -c64 -d1s "
                        "$URL/static/page.css >$T/x || exit 1\n"
                        "grep -q \" [1-9][0-9]* requests in\" $T/x || exit 2\n"
                        "! grep -qE \"Socket errors|Non-2xx\" $T/x");
}

DOMT_TEST(h2load_pipelines_requests_without_failure)
{
    test_web_by_command(
        "h2load", "h2load --h1 -n 4000 -c 32 -m 8 $URL/json >$T/x || exit 1\n"
                  "grep -q \" 4000 succeeded, 0 failed, 0 errored, 0 timeout\" $T/x || exit 2\n"
                  "grep -q \"status codes: 4000 2xx\" $T/x");
}

DOMT_TEST(python_reads_what_it_has_written)
{
    test_web_by_command(
        "python3",
        "python3 - $URL $IN <<END\n"
        "import http.client, sys\n"
        "c = http.client.HTTPConnection(sys.argv[1][7:], timeout=10)\n"
        "data = open(sys.argv[2], \"rb\").read()\n"
        "def ask(method, path, body=None, headers={}, status=200):\n"
        "    c.request(method, path, body, headers)\n"
        "    r = c.getresponse()\n"
        "    got = r.read()\n"
        "    assert r.status == status, (method, path, r.status)\n"
        "    return r, got\n"
        "sock = None\n"
        "for i in range(3):\n"
        "    assert ask(\"POST\", \"/echo\", data)[1] == data\n"
        "    sock = sock or c.sock\n"
        "    assert c.sock is sock\n"
        "    assert ask(\"POST\", \"/echo\", iter([b\"a\", b\"\", b\"bc\"]))[1] == b\"abc\"\n"
        "ask(\"PUT\", \"/kv/k\", b\"v\" * 1000, status=204)\n"
        "r, got = ask(\"HEAD\", \"/kv/k\")\n"
        "assert got == b\"\" and r.getheader(\"Content-Length\") == \"1000\"\n"
        "assert ask(\"GET\", \"/kv/k\")[1] == b\"v\" * 1000\n"
        "r, got = ask(\"GET\", \"/static/page.css\", headers={\"Range\": \"bytes=0-9\"}, "
        "status=206)\n"
        "assert len(got) == 10 and r.getheader(\"Content-Range\").startswith(\"bytes 0-9/\")\n"
        "ask(\"DELETE\", \"/kv/k\", status=204)\n"
        "ask(\"GET\", \"/kv/k\", status=404)\n"
        "assert c.sock is sock\n"
        "ask(\"GET\", \"/json\", headers={\"Connection\": \"close\"})\n"
        "assert c.sock is None\n"
        "END\n");
}

DOMT_TEST(curl_gets_several_ranges)
{
    test_web_by_command("curl",
                        "curl -fs -r 0-4,10-14 -D $T/h -o $T/b $URL/static/page.css || exit 1\n"
                        "grep -q \"^HTTP/1.1 206 \" $T/h || exit 2\n"
                        "grep -q \"^Content-Length: $(wc -c <$T/b)\" $T/h || exit 3\n"
                        "[ $(grep -c \"^Content-Range: bytes \" $T/b) = 2 ]");
}

/* --- grpc ------------------------------------------------------------------------------------- */

/* The example `grpc` with a client that uses node's http2 module, and writes each byte of its
 * calls (grpc.js). Without node nothing is tested. */

static domt_service service;

DOMT_TEST(node_calls_methods_of_each_kind)
{
    static char line[1024];

    if (!domt_are_judges_installed("node"))
        return;
    domt_service_start(&service,
                       (const char *const[]){DOMT_BIN_DIR "/grpc", "--config",
                                             DOMT_SOURCE_DIR "/examples/grpc/grpc.yaml", "--set",
                                             "listeners.grpc.address=127.0.0.1:0", NULL});
    snprintf(line, sizeof line, "timeout -k 1 50 node " DOMT_SOURCE_DIR "/tests/system/grpc.js %u",
             service.port);
    int status = system(line); /* NOLINT(cert-env33-c): a test may use the shell */
    ck_assert_int_eq(status, 0);
    domt_service_stop(&service);
}

DOMT_SUITE(60)
