/* curl and python3's http.client check the answers: they send requests to a child process that
 * serves by a stage in a kit, one connection after the other. Where these programs are missing,
 * nothing is compared. */
#include "tests/http/multipart.h"
#include "tests/http/trace.h"
#include "tests/support/suite.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static domus_http_gzip gzip = {.whole_max = 1u << 20};
static const domus_http_options options = {.body_max = 1u << 24, .gzip = &gzip};

/* --- the service ------------------------------------------------------------------------------ */

/* Answer with the request's body in pieces of 1000 bytes. */
static void answer_in_pieces(domt_codec *http, uint64_t id, domus_slice body)
{
    const domus_http_response head = {.status = 200, .media = "text/plain"};
    domus_http_trailers trailers = {domt_slice_of_text("X-Trailer: end\r\n")};
    uint64_t word = 0;

    domus_stage_kit_stream(http->kit, &word);
    ck_assert_int_eq(domus_stage_kit_encode(http->kit, id, &domus_http_response_type, &head), 0);
    while (body.size != 0) {
        domus_piece piece = {.bytes = body};
        piece.bytes.size = body.size < 1000 ? body.size : 1000;
        ck_assert_int_eq(domus_stage_kit_encode(http->kit, id, &domus_piece_type, &piece), 0);
        body.offset += piece.bytes.size;
        body.size -= piece.bytes.size;
    }
    ck_assert_int_eq(domus_stage_kit_encode(http->kit, id, &domus_http_trailers_type, &trailers),
                     0);
    domus_stage_kit_stream(http->kit, NULL);
    domus_slice_free(trailers.fields);
}

/* Answer with the events of a form as text, in pieces of 100 bytes. */
static domus_slice events_of_form_as_text(const domus_http_request *request)
{
    domus_slice type = {NULL, 0, 0};
    char text[256];

    (void)domus_http_field(request->fields, "content-type", &type);
    (void)snprintf(text, sizeof text, "%.*s", (int)type.size, domus_slice_data(type));
    return domt_slice_of_text(domt_multipart_trace_of_bytes(
        text, NULL, domus_slice_data(request->body), request->body.size, 0, 100));
}

static void answer_request_of_curl(domt_codec *http, const domus_stage_message *message)
{
    const domus_http_request *request = message->payload;
    domus_http_response response = {.status = 200, .media = "text/plain", .body = request->body};
    domus_slice path = domus_http_path(request);

    if (domus_slice_equals(path, "/pieces", 7)) {
        answer_in_pieces(http, message->id, request->body);
        return;
    }
    if (domus_slice_equals(path, "/none", 5))
        response = (domus_http_response){.status = 204};
    bool is_form = domus_slice_equals(path, "/form", 5);
    if (is_form)
        response.body = events_of_form_as_text(request);
    ck_assert_int_eq(
        domus_stage_kit_encode(http->kit, message->id, &domus_http_response_type, &response), 0);
    if (is_form)
        domus_slice_free(response.body);
}

static bool send_output_of_kit(domt_codec *http, int fd)
{
    size_t size;
    const char *output = domus_stage_kit_output(http->kit, &size);

    for (size_t sent = 0; sent < size;) {
        ssize_t result = send(fd, output + sent, size - sent, MSG_NOSIGNAL);
        if (result <= 0)
            return false;
        sent += (size_t)result;
    }
    domus_stage_kit_clear(http->kit);
    return true;
}

static void serve_connection(int fd)
{
    static char bytes[100000];
    domus_stage_message message;
    domt_codec http;
    int result = 0;
    ssize_t size;

    domt_http_start_codec(&http, &options);
    while (result == 0 && !domus_stage_kit_is_last(http.kit) &&
           (size = recv(fd, bytes, sizeof bytes, 0)) > 0) {
        ck_assert_int_eq(domus_stage_kit_feed(http.kit, bytes, (size_t)size), 0);
        while ((result = domus_stage_kit_next(http.kit, &message)) == 1)
            answer_request_of_curl(&http, &message);
        if (result < 0)
            (void)domus_stage_kit_fail(http.kit, DOMUS_NO_ID, NULL, result);
        if (!send_output_of_kit(&http, fd))
            break;
    }
    domt_codec_stop(&http);
    (void)close(fd);
}

static pid_t child;
static unsigned port;

static void start_server(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pid_t parent = getpid();

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(fd, 16), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    port = ntohs(address.sin_port);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (getppid() == parent)
            serve_connection(accept(fd, NULL, NULL));
        _exit(0);
    }
    (void)close(fd);
}

static void stop_server(void)
{
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
}

/* --- the judges ------------------------------------------------------------------------------- */

/* Returns whether a program is installed. */
static bool has_program(const char *program)
{
    char line[128];

    (void)snprintf(line, sizeof line, "command -v %s >/dev/null", program);
    if (system(line) == 0) /* NOLINT(cert-env33-c): a test may use the shell */
        return true;
    printf("no %s: nothing is compared with it\n", program);
    return false;
}

/* Check that a shell command succeeds; in the command "$URL" is the address of the service, $IN a
 * file of a million bytes, and $OUT a file for the answer. */
static void expect_shell_command_succeeds(const char *command)
{
    char line[2048];

    (void)snprintf(line, sizeof line,
                   "URL=http://127.0.0.1:%u; T=$(mktemp -d) || exit 1; IN=$T/in; OUT=$T/out; "
                   "seq 200000 | head -c 1000000 >$IN; (%s); S=$?; rm -rf $T; exit $S",
                   port, command);
    int status = system(line); /* NOLINT(cert-env33-c): a test may use the shell */
    ck_assert_msg(status == 0, "%s", command);
}

DOMT_TEST(curl_understands_the_answers)
{
    if (!has_program("curl"))
        return;
    start_server();
    expect_shell_command_succeeds("test \"$(curl -sS -d hello $URL/)\" = hello");
    expect_shell_command_succeeds("curl -sS --data-binary @$IN $URL/ | cmp - $IN");
    expect_shell_command_succeeds(
        "curl -sS --data-binary @$IN -H 'Expect: 100-continue' $URL/ | cmp - $IN");
    expect_shell_command_succeeds("curl -sS --data-binary @$IN $URL/pieces | cmp - $IN");
    expect_shell_command_succeeds("curl -sS -X POST -T - $URL/ <$IN | cmp - $IN");
    expect_shell_command_succeeds("curl -sS -T $IN $URL/pieces | cmp - $IN");
    expect_shell_command_succeeds("curl -sS -0 --data-binary @$IN $URL/pieces | cmp - $IN");
    expect_shell_command_succeeds(
        "curl -sS -0 -d hello -H 'Connection: keep-alive' $URL/ | grep -q '^hello$'");
    expect_shell_command_succeeds(
        "curl -sSI $URL/pieces >$OUT && grep -q '^Transfer-Encoding: chunked' $OUT");
    expect_shell_command_succeeds("test $(curl -sS -o $OUT -w '%{http_code}' $URL/none) = 204");
    expect_shell_command_succeeds(
        "test $(curl -sS -o $OUT -w '%{http_code}' -H 'Host: a b' $URL/) = 400");
    expect_shell_command_succeeds("test $(curl -sS -o $OUT -w '%{http_code}' -X BREW $URL/) = 501");
    expect_shell_command_succeeds(
        "test $(curl -sS -o $OUT -w '%{http_code}' $URL/$(head -c 12000 $IN | tr -d '\\n')) "
        "= 414");
    stop_server();
}

DOMT_TEST(curl_decompresses_the_answers)
{
    if (!has_program("curl"))
        return;
    start_server();
    expect_shell_command_succeeds("curl -sS --compressed --data-binary @$IN $URL/ | cmp - $IN");
    expect_shell_command_succeeds(
        "curl -sS --compressed --data-binary @$IN $URL/pieces | cmp - $IN");
    expect_shell_command_succeeds(
        "curl -sS -H 'Accept-Encoding: gzip' --data-binary @$IN $URL/ | gzip -d | cmp - $IN");
    expect_shell_command_succeeds(
        "curl -sS -H 'Accept-Encoding: gzip' --data-binary @$IN $URL/pieces | gzip -d | "
        "cmp - $IN");
    expect_shell_command_succeeds(
        "test $(curl -sS --compressed --data-binary @$IN -o $OUT -w '%{size_download}' $URL/) -lt "
        "600000");
    expect_shell_command_succeeds(
        "curl -sS -0 --compressed --data-binary @$IN $URL/pieces | cmp - $IN");
    stop_server();
}

DOMT_TEST(curl_keeps_the_connection)
{
    if (!has_program("curl"))
        return;
    start_server();
    expect_shell_command_succeeds(
        "test \"$(curl -sS -w '%{num_connects} ' -d a $URL/ -o $OUT $URL/pieces -o $OUT "
        "$URL/none -o $OUT $URL/ -o $OUT)\" = '1 0 0 0 '");
    expect_shell_command_succeeds(
        "test \"$(curl -sS -w '%{num_connects} ' -H 'Connection: close' -d a $URL/ -o $OUT $URL/ "
        "-o $OUT)\" = '1 1 '");
    stop_server();
}

/* curl sends forms as browsers do; it writes a quote in a name as %22, and before version 7.81 as
 * \". */
DOMT_TEST(forms_of_curl_are_understood)
{
    if (!has_program("curl"))
        return;
    start_server();
    expect_shell_command_succeeds(
        "printf 'one\\r\\n--two\\r' >$T/f; printf 'a [x y]\\nf \"q\"\\\\é.txt\" c/d "
        "[one\\r\\n--two\\r]"
        "\\ne \"\" application/octet-stream []\\nDONE\\n' >$T/want; : >$T/e; "
        "curl -sS -F 'a=x y' -F \"f=@$T/f;type=c/d;filename=\\\"q\\\\\\\"\\\\\\\\é.txt\\\"\" "
        "-F \"e=@$T/e;filename=\\\"\\\"\" $URL/form >$OUT; cmp $OUT $T/want || { cat -A $OUT "
        "$T/want; exit 1; }");
    expect_shell_command_succeeds(
        "head -c 30000 $IN >$T/f; curl -sS -F f=@$T/f $URL/form | tail -c +33 | head -c 30000 | "
        "cmp - $T/f");
    stop_server();
}

DOMT_TEST(python_understands_the_answers)
{
    if (!has_program("python3"))
        return;
    start_server();
    expect_shell_command_succeeds(
        "python3 - $URL $IN <<'END'\n"
        "import http.client, sys\n"
        "c = http.client.HTTPConnection(sys.argv[1][7:], timeout=10)\n"
        "data = open(sys.argv[2], 'rb').read()\n"
        "for path, body in (('/', data), ('/pieces', data), ('/', iter([b'a', b'bc'])),\n"
        "                   ('/none', None), ('/pieces', b'x'), ('/', None)):\n"
        "    c.request('POST', path, body)\n"
        "    r = c.getresponse()\n"
        "    got = r.read()\n"
        "    want = b'abc' if type(body).__name__ == 'list_iterator' else body or b''\n"
        "    assert got == want and r.status == (204 if path == '/none' else 200)\n"
        "c.request('HEAD', '/')\n"
        "r = c.getresponse()\n"
        "assert r.read() == b'' and r.getheader('Date').endswith(' GMT')\n"
        "c.request('GET', '/')\n"
        "assert c.getresponse().status == 200\n"
        "END\n");
    stop_server();
}

DOMT_SUITE(60)
