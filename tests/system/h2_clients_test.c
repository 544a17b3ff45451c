/* Clients of HTTP/2 that other projects have made, which are answered, and peers of HTTP/2 that
 * let the server wait, whose time runs out. */
#include "tests/support/suite.h"
#include "tests/system/h2.h"
#include "tests/system/h2_server.h"
#include "tests/system/h2spec.h"
#include "tests/system/judges.h"
#include "tests/system/secure.h"

#include <stdio.h>

/* Clients of other projects with a server of HTTP/2: curl, nghttp, h2load, node's http2, and
 * Chromium. Programs that are not installed are left out. Any server is tested by GET of one path.
 * The example `web` also has tests with bodies of a million bytes in both directions, ranges,
 * errors, events, and the same page in a browser over TLS. */

static domt_h2_server server;
static domt_tree tree;

/* Test the server by a command of other programs, in which $U is the url, $O the first bytes of the
 * answer, and $T and $IN are as in domt_run_judge_command(). `of_web` means that only the example
 * `web` can pass the test. */
static void test_server_by_command(const char *programs, bool of_web, const char *command)
{
    static char line[4096];

    if (!domt_are_judges_installed(programs) ||
        !domt_h2_server_begin(&server, (const char *const[]){"web.tick=100ms", NULL}))
        return;
    if (of_web && !server.is_site) {
        puts("only the example web is judged by this");
        return;
    }
    server.site.web = server.port;
    domt_make_directory_for_judges(&tree);
    ck_assert_int_lt(snprintf(line, sizeof line, "U=$URL%s; export U\n%s", domt_h2_path, command),
                     (int)sizeof line);
    domt_run_judge_command(&tree, &server.site, line);
    domt_tree_remove_copy(&tree);
    domt_h2_server_end(&server);
}

/* The curl of Debian 12 cannot use a connection with prior knowledge twice; over TLS it can, see
 * below. */
DOMT_TEST(curl_gets_pages_by_h2)
{
    test_server_by_command("curl", false,
                           "C=\"curl -fsS --http2-prior-knowledge\"\n"
                           "[ $($C -o $T/a -w %{http_version} $U) = 2 ] && [ -s $T/a ] || exit 1\n"
                           "$C -I $U | grep -qi \"^content-length: $(wc -c <$T/a)\" || exit 2");
}

/* nghttp prints each frame; it sends PRIORITY for idle streams first. */
DOMT_TEST(nghttp_shows_the_frames_of_the_server)
{
    test_server_by_command("nghttp", false,
                           "nghttp -nv --no-color $U >$T/x 2>&1 || nghttp -nv $U >$T/x || exit 1\n"
                           "grep -q \"recv SETTINGS frame.*flags=0x00\" $T/x || exit 2\n"
                           "grep -q \"recv SETTINGS frame.*flags=0x01\" $T/x || exit 3\n"
                           "grep -q \"recv (stream_id=[0-9]*) :status: 200\" $T/x || exit 4\n"
                           "grep -q \"recv DATA frame.*flags=0x0[01]\" $T/x || exit 5\n"
                           "grep -q \"; END_STREAM\" $T/x || exit 6\n"
                           "! grep -qE \"recv (RST_STREAM|GOAWAY)\" $T/x || exit 7\n"
                           "nghttp -ns -m 50 $U | grep -c \" 200 \" | grep -qx 50 || exit 8\n"
                           "nghttp -n -w 1 -W 16 $U && nghttp -n --no-dep -c 0 -b 10 $U || exit 9");
}

DOMT_TEST(h2load_counts_no_error_of_the_server)
{
    test_server_by_command(
        "h2load", false,
        "for m in 1 10 100; do h2load -n 2000 -c 10 -m $m $U >$T/x || exit 1\n"
        "grep -q \" 2000 succeeded, 0 failed, 0 errored, 0 timeout\" $T/x || exit 2\n"
        "grep -q \"status codes: 2000 2xx\" $T/x || exit 3; done\n"
        "h2load -n 500 -c 5 -m 20 -w 10 -W 12 $U | grep -q \" 500 succeeded, 0 failed\" || exit 4");
}

/* node resets streams by itself if it has more than 10 MB of data to send, so the command raises
 * this limit. */
#define NODE                                                                                       \
    "cat >$T/n.js <<END\n"                                                                         \
    "const assert = require(\"assert\"), http2 = require(\"http2\"), fs = require(\"fs\");\n"      \
    "const url = new URL(process.argv[2]), of = process.argv[3];\n"                                \
    "const session = http2.connect(url.origin, {maxSessionMemory: 100});\n"                        \
    "session.on(\"error\", (e) => { throw e; });\n"                                                \
    "function ask(fields, body, seen) { return new Promise((good, bad) => {\n"                     \
    "  const s = session.request(fields); let head = null, parts = [];\n"                          \
    "  s.on(\"response\", (h) => { head = h; if (seen) seen(s, h); });\n"                          \
    "  s.on(\"data\", (d) => parts.push(d)); s.on(\"error\", bad);\n"                              \
    "  s.on(\"close\", () => good({head, code: s.rstCode, body: Buffer.concat(parts)}));\n"        \
    "  if (body === undefined) s.end(); else s.end(body); }); }\n"                                 \
    "const ping = () => new Promise((good, bad) => session.ping((e) => e ? bad(e) : good()));\n"   \
    "async function main() {\n"
#define NODE_END                                                                                   \
    "}\n"                                                                                          \
    "main().then(() => session.close()).catch((e) => { console.log(e); process.exit(1); });\n"     \
    "END\n"                                                                                        \
    "node $T/n.js $U $IN"

DOMT_TEST(node_makes_many_requests_at_a_time)
{
    test_server_by_command("node", false,
                           NODE
                           "  const path = url.pathname, first = await ask({\":path\": path});\n"
                           "  assert(first.head[\":status\"] === 200 && first.body.length > 0);\n"
                           "  for (let i = 0; i < 5; i++) {\n"
                           "    const all = await Promise.all(Array.from({length: 100}, () => "
                           "ask({\":path\": path})));\n"
                           "    for (const one of all) assert(one.body.equals(first.body)); }\n"
                           "  await ping();\n"
                           "  const head = await ask({\":path\": path, \":method\": \"HEAD\"});\n"
                           "  assert(head.head[\":status\"] === 200 && head.body.length === 0);\n"
                           "  const gone = ask({\":path\": path}, undefined, (s) => "
                           "s.close(http2.constants.NGHTTP2_CANCEL));\n"
                           "  await gone.catch(() => 0);\n"
                           "  const again = await ask({\":path\": path});\n"
                           "  assert(again.body.equals(first.body));\n" NODE_END);
}

/* --- the example web -------------------------------------------------------------------------- */

DOMT_TEST(curl_uses_the_site_by_h2)
{
    test_server_by_command(
        "curl", true,
        "C=\"curl -sS --http2-prior-knowledge\"\n"
        "$C -X POST -T $IN $URL/echo | cmp - $IN || exit 1\n"
        "$C -X POST -T - $URL/echo <$IN | cmp - $IN || exit 2\n"
        "[ \"$($C -H Expect:100-continue -d hello $URL/echo)\" = hello ] || exit 3\n"
        "[ $($C -w %{http_code} -o $T/x -X PUT -d v $URL/kv/k) = 204 ] || exit 4\n"
        "[ \"$($C $URL/kv/k)\" = v ] || exit 5\n"
        "[ $($C -w %{http_code} -X DELETE $URL/kv/k) = 204 ] || exit 6\n"
        "[ $($C -w %{http_code} -o $T/x $URL/kv/k) = 404 ] || exit 7\n"
        "[ $($C -r 3-5 -w %{http_code}%{size_download} -o $T/x $URL/static/page.css) = 2063 ] || "
        "exit 8\n"
        "$C --compressed -o $T/z $URL/static/page.js && $C -o $T/x $URL/static/page.js || exit 9\n"
        "cmp $T/x $T/z || exit 10\n"
        "$C -m 2 $URL/events >$T/x; [ $(grep -c ^data: $T/x) -ge 5 ] || exit 11\n"
        "E=$($C -I $URL/static/page.css | grep -i ^etag: | cut -d\" \" -f2 | tr -d \"\\r\")\n"
        "[ $($C -w %{http_code} -H \"If-None-Match: $E\" $URL/static/page.css) = 304 ] || exit 12");
}

DOMT_TEST(nghttp_and_h2load_upload)
{
    test_server_by_command(
        "nghttp h2load", true,
        "nghttp -d $IN $URL/echo | cmp - $IN || exit 1\n"
        "nghttp -d $IN -p 200 -w 10 -W 10 $URL/echo | cmp - $IN || exit 2\n"
        "h2load -n 40 -c 4 -m 5 -d $IN $URL/echo >$T/x || exit 3\n"
        "grep -q \" 40 succeeded, 0 failed, 0 errored, 0 timeout\" $T/x || exit 4\n"
        "for p in json kv/none; do h2load -n 2000 -c 8 -m 32 $URL/$p >$T/x || exit 5\n"
        "grep -q \" 0 errored, 0 timeout\" $T/x || exit 6; done");
}

DOMT_TEST(node_uses_the_site_by_h2)
{
    test_server_by_command("node", true,
                           NODE
                           "  const data = fs.readFileSync(of), post = {\":method\": \"POST\"};\n"
                           "  const both = await Promise.all(Array.from({length: 10}, () => "
                           "ask({...post, \":path\": \"/echo\"}, data)));\n"
                           "  for (const one of both) assert(one.body.equals(data));\n"
                           "  const none = await ask({\":path\": \"/kv/none\"});\n"
                           "  assert(none.head[\":status\"] === 404);\n"
                           "  const cut = session.request({...post, \":path\": \"/echo\"});\n"
                           "  cut.on(\"error\", () => 0); cut.write(data);\n"
                           "  await new Promise((good) => { cut.on(\"close\", good); "
                           "setTimeout(() => cut.close(8), 50); });\n"
                           "  await ping();\n"
                           "  const last = await ask({...post, \":path\": \"/echo\"}, \"abc\");\n"
                           "  assert(last.body.toString() === \"abc\");\n" NODE_END);
}

/* WebSockets in streams (RFC 8441), whose frames the test writes: two guests of a room receive each
 * other's lines, and one leaves. */
DOMT_TEST(node_opens_websockets_by_h2)
{
    test_server_by_command(
        "node", true,
        NODE "  const open = (name) => new Promise((good, bad) => {\n"
             "    const s = session.request({\":method\": \"CONNECT\", \":protocol\": "
             "\"websocket\", \":path\": \"/socket?room=garden&name=\" + name, "
             "\"sec-websocket-version\": \"13\"}, {endStream: false});\n"
             "    s.heard = \"\"; s.on(\"data\", (d) => s.heard += d.toString(\"latin1\"));\n"
             "    s.on(\"response\", (h) => h[\":status\"] === 200 ? good(s) : bad(h));\n"
             "    s.on(\"error\", bad); });\n"
             "  const say = (s, op, d) => s.write(Buffer.concat("
             "[Buffer.from([0x80 | op, 0x80 | d.length, 0, 0, 0, 0]), Buffer.from(d)]));\n"
             "  const hears = async (s, d) => { for (let i = 0; s.heard !== d; i++) {\n"
             "    assert(i < 500, JSON.stringify(s.heard));\n"
             "    await new Promise((f) => setTimeout(f, 10)); } s.heard = \"\"; };\n"
             "  await ask({\":path\": \"/json\"});\n"
             "  assert(session.remoteSettings.enableConnectProtocol === true);\n"
             "  const one = await open(\"ada\"), two = await open(\"grace\");\n"
             "  say(one, 1, \"hi\");\n"
             "  for (const s of [one, two]) await hears(s, \"\\x81\\x07ada: hi\");\n"
             "  const last = await ask({\":path\": \"/json\"});\n"
             "  assert(last.head[\":status\"] === 200);\n"
             "  const ended = new Promise((good) => one.on(\"end\", good));\n"
             "  say(one, 8, Buffer.from([3, 232])); await ended; one.end();\n"
             "  assert(one.heard === \"\\x88\\x02\\x03\\xe8\", JSON.stringify(one.heard));\n"
             "  say(two, 1, \"bye\"); await hears(two, \"\\x81\\x0agrace: bye\");\n"
             "  two.close(http2.constants.NGHTTP2_CANCEL);\n"
             "  await ping();\n" NODE_END);
}

/* --- TLS -------------------------------------------------------------------------------------- */

/* Start the site over TLS, where it offers h2 first. Returns false if another server is tested. */
static bool start_site_over_tls(domt_secure *secure, const char *programs)
{
    if (!domt_h2_is_example_web_tested() || !domt_secure_are_programs_installed(programs))
        return false;
    domt_secure_make_authority(secure);
    domt_secure_start_site(secure,
                           (const char *const[]){"web.tick=100ms", "listeners.rooms.tls.certFile=",
                                                 "listeners.rooms.tls.keyFile=",
                                                 "listeners.web.tls.alpn=h2,http/1.1", NULL});
    return true;
}

DOMT_TEST(clients_choose_h2_by_alpn)
{
    static domt_secure secure;

    if (!start_site_over_tls(&secure, "curl h2load"))
        return;
    domt_secure_expect_command_succeeds(
        &secure, "C=\"curl -sS --cacert $CA -o /dev/null -w %{http_version}\"\n"
                 "[ $($C --http2 https://localhost:$WEB/json) = 2 ] || exit 1\n"
                 "[ $($C --http1.1 https://localhost:$WEB/json) = 1.1 ] || exit 2\n"
                 "[ $($C --no-alpn https://localhost:$WEB/json) = 1.1 ] || exit 3\n"
                 "C=\"$C -o /dev/null -o /dev/null\"; U=https://localhost:$WEB/json\n"
                 "[ \"$($C -w \" %{num_connects}\" $U $U $U)\" = \" 1 0 0\" ] || exit 7\n"
                 "curl -Z --parallel-max 10 -sS --cacert $CA -o $T/p#1 -w \"%{http_code}\\n\" "
                 "\"$U?[1-20]\" | grep -cx 200 | grep -qx 20 || exit 8\n"
                 "h2load -n 500 -c 4 -m 10 https://localhost:$WEB/json >$T/x || exit 4\n"
                 "grep -q \"^Application protocol: h2$\" $T/x || exit 5\n"
                 "grep -q \" 500 succeeded, 0 failed\" $T/x || exit 6");
    domt_secure_end_site(&secure);
}

/* A browser gets the whole page over h2, and the page's chat goes by a WebSocket in a stream. */
DOMT_TEST(chromium_uses_the_page_by_h2)
{
    static domt_secure secure;
    char command[PATH_MAX];

    if (!start_site_over_tls(&secure, "chromium python3"))
        return;
    (void)snprintf(
        command, sizeof command,
        "DOMT_PROTOCOL=h2 timeout -k 5 90 python3 " DOMT_SOURCE_DIR "/tests/system/browser.py %u "
        "%u \"$(openssl x509 -in %s/a.pem -noout -pubkey | openssl pkey -pubin -outform der | "
        "openssl dgst -sha256 -binary | base64)\"",
        secure.site.web, secure.site.rooms, secure.tree.root);
    ck_assert_int_eq(system(command), 0); /* NOLINT(cert-env33-c): a test may use the shell */
    domt_secure_end_site(&secure);
}

/* --- h2 waits --------------------------------------------------------------------------------- */

/* Time-outs of the example `web` for peers that speak HTTP/2 and let the server wait: for a
 * window, for the rest of a body or of a head, for the rest of the preface, and for any byte at
 * all. */

#define NO_WINDOW FRAME(SETTINGS, 0, 0, "\0\4\0\0\0\0")
#define RAW(bytes)                                                                                 \
    {                                                                                              \
        .kind = DOMT_H2_RAW, .front = BYTES(bytes)                                                 \
    }
#define RESET                                                                                      \
    {                                                                                              \
        .kinds = DOMT_H2_RESETS, .codes = ANY_CODE                                                 \
    }

static const domt_h2_case waits[] = {
    {"waits/1", "an answer waits for a window, and the connection goes on",
     STEPS(NO_WINDOW, HEAD(1, WHOLE, GET), HEAR(RESET), PING()), PONG, false},
    {"waits/2", "an answer waits behind its first byte",
     STEPS(FRAME(SETTINGS, 0, 0, "\0\4\0\0\0\1"), HEAD(1, WHOLE, GET)), RESET, false},
    {"waits/3",
     "the rest of a body does not come",
     STEPS(HEAD(1, END_HEADERS,
                ":method: PUT\n:scheme: http\n:path: /kv/a\n:authority: @A\ncontent-length: 9\n"),
           DATA(1, 0, "a part")),
     {.kinds = DOMT_H2_ANSWERS | DOMT_H2_RESETS, .codes = ANY_CODE},
     false},
    {"waits/4", "the rest of a frame of fields does not come",
     STEPS(RAW("\0\0\x64\1\5\0\0\0\1\x82\x86")), CONNECTION_ERROR(ANY_CODE), false},
    {"waits/5", "the rest of a block of fields does not come", STEPS(HEAD(1, END_STREAM, GET)),
     CONNECTION_ERROR(ANY_CODE), false},
    {"waits/6", "the rest of the preface does not come", STEPS(RAW("PRI * HTTP/2.0\r\n\r\nSM")),
     CLOSED, true},
    {"waits/7", "the settings behind the preface do not come",
     STEPS(RAW("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")), CLOSED, true},
    {"waits/8", "nothing is asked for", STEPS(PING(), HEAR(PONG)), CLOSED, false},
};

DOMT_TEST(h2_peers_that_let_the_server_wait_are_ended)
{
    domt_h2spec_run_cases(
        waits, sizeof waits / sizeof waits[0],
        (const char *const[]){"channel.sendTimeout=500ms", "channel.minRateGrace=300ms",
                              "channel.headTimeout=500ms", "channel.idleTimeout=1500ms",
                              "channel.firstByteTimeout=500ms", NULL});
}

DOMT_SUITE(300)
