/* The examples are what a stranger copies first. The folder is copied out of the tree and built
 * with the commands of docs/install.md and what is installed, with warnings as errors, and each
 * program answers.
 *
 * Builds with a sanitizer are left out, as in install_test.c. */
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"
#include "tests/tidy/tree.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char output[65536];
/* scratch directory, with the copy of the sources in `examples` and the installed tree in
 * `domus` */
static char scratch[64];
static domt_service service;

/* The script runs the block of docs/install.md behind the sentence that begins with "The examples,
 * in a copy". In it `cc` is a function that adds the warnings and the place of the libraries. */
static const char script[] =
    "cd '%s' || exit\n"
    "unset CC CFLAGS LDFLAGS LD_LIBRARY_PATH DESTDIR\n"
    "export LC_ALL=C\n"
    "DOMUS_INSTALL_MANUAL=no cmake --install '" DOMT_BIN_DIR
    "/..' --prefix \"$PWD/domus\" >log || exit\n"
    "cp -r '" DOMT_SOURCE_DIR "/examples' . || exit\n"
    "pc=$(find \"$PWD/domus\" -name domus.pc)\n"
    "export PKG_CONFIG_PATH=\"${pc%%/*}\"\n"
    "cc() { command cc -Wall -Wextra -Wpedantic -Werror \"$@\" "
    "-Wl,-rpath,\"$(pkg-config --variable=libdir domus)\"; }\n"
    "sed -n '/^The examples, in a copy/,/^```$/p' '" DOMT_SOURCE_DIR "/docs/install.md' | "
    "sed '1,/^```sh$/d; /^```$/d' >commands\n"
    "test $(grep -c 'cc ' commands) -ge 4 || exit\n"
    "cd examples || exit\n"
    "set -e\n"
    "{ . ../commands\n"
    "sed -n '/^```c$/,/^```$/p' '" DOMT_SOURCE_DIR "/README.md' | sed '/^```/d' >readme.c\n"
    "cc -Wno-unused-parameter readme.c $(pkg-config --cflags --libs domus-config) -o readme\n"
    "} 2>&1\n";

static void build_copied_examples(void)
{
    char command[4096];

    snprintf(scratch, sizeof scratch, "/tmp/domus-examples-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(scratch));
    snprintf(command, sizeof command, script, scratch);
    int status = domt_run_shell(output, sizeof output, "%s", command);
    ck_assert_msg(status == 0, "status %d: %s", status, output);
}

static void remove_scratch_directory(void)
{
    ck_assert_int_eq(domt_run_shell(output, sizeof output, "rm -r '%s'", scratch), 0);
}

/* Start an example of the copy with this configuration (NULL: the one that is installed) and these
 * settings, on ports that the kernel chooses. */
static void start_example_program(const char *program, const char *config, const char *settings[])
{
    static char path[128], configuration[192];
    const char *arguments[16] = {path, "--config", configuration};
    uint32_t count = 3;

    snprintf(path, sizeof path, "%s/examples/%s", scratch, program);
    if (config != NULL)
        snprintf(configuration, sizeof configuration, "%s/examples/%s", scratch, config);
    else
        snprintf(configuration, sizeof configuration, "%s/domus/share/doc/domus/domus.yaml",
                 scratch);
    for (; *settings != NULL; settings++) {
        arguments[count++] = "--set";
        arguments[count++] = *settings;
    }
    domt_service_start(&service, arguments);
}

/* Send `text` to the program's first listener, and check that the answer contains `part`. */
static void expect_answer_of_program(const char *text, const char *part)
{
    char got[4096];
    int fd = domt_connect_to_port(service.port);

    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    (void)domt_read_until_text(fd, part, got, sizeof got);
    close(fd);
}

#define UPGRADE                                                                                    \
    "GET /socket HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"     \
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"                 \
    "Origin: http://localhost\r\n\r\n"

static void run_examples_that_end_by_themselves(void)
{
    int status = domt_run_shell(output, sizeof output,
                                "cd '%s/examples' && for i in counter ping_pong scores testkit; do "
                                "timeout 60 ./$i 2>&1 || exit; done",
                                scratch);
    ck_assert_msg(status == 0, "status %d: %s", status, output);
}

DOMT_TEST(examples_are_built_as_readme_says_and_answer)
{
    char uploads[96];

    if (DOMT_SANITIZED)
        return;
    build_copied_examples();
    run_examples_that_end_by_themselves();
    /* "readme" is the program whose listing stands in README */
    static const char *const echoes[] = {"echo", "readme"};
    for (size_t i = 0; i < sizeof echoes / sizeof echoes[0]; i++) {
        start_example_program(echoes[i], NULL,
                              (const char *[]){"listeners.echo.address=127.0.0.1:0", NULL});
        expect_answer_of_program("hello\n", "hello\n");
        domt_service_stop(&service);
    }
    start_example_program("lines", "lines.yaml",
                          (const char *[]){"listeners.lines.address=127.0.0.1:0", NULL});
    expect_answer_of_program("hello\n", "1\n");
    domt_service_stop(&service);
    start_example_program("rooms/rooms", "rooms/rooms.yaml",
                          (const char *[]){"listeners.rooms.address=127.0.0.1:0", NULL});
    expect_answer_of_program("/join nowhere\n", "no such room");
    domt_service_stop(&service);
    start_example_program("grpc/grpc", "grpc/grpc.yaml",
                          (const char *[]){"listeners.grpc.address=127.0.0.1:0", NULL});
    expect_answer_of_program(
        "POST /notes.Notes/Say HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "HTTP/2");
    domt_service_stop(&service);
    start_example_program("kv/kv", "kv/kv.yaml",
                          (const char *[]){"listeners.kv.address=127.0.0.1:0", NULL});
    expect_answer_of_program("PING\r\n", "+PONG\r\n");
    domt_service_stop(&service);
    start_example_program(
        "cluster/cluster", "cluster/cluster.yaml",
        (const char *[]){"listeners.guests.address=127.0.0.1:0", "cluster.servers=", NULL});
    expect_answer_of_program("add x\n", "1 on ");
    domt_service_stop(&service);
    start_example_program("thumbnails/thumbnails", "thumbnails/thumbnails.yaml",
                          (const char *[]){"listeners.thumbnails.address=127.0.0.1:0", NULL});
    expect_answer_of_program("GET /thumbnail/7 HTTP/1.1\r\nHost: localhost\r\n\r\n", "#");
    domt_service_stop(&service);
    start_example_program(
        "web/web", "web/web.yaml",
        (const char *[]){"listeners.web.address=127.0.0.1:0", "listeners.kv.address=127.0.0.1:0",
                         "listeners.rooms.address=127.0.0.1:0",
                         "listeners.echo.address=127.0.0.1:0", "observe.listen=", NULL});
    expect_answer_of_program("GET /json HTTP/1.1\r\nHost: localhost\r\n\r\n", "200 OK");
    expect_answer_of_program(UPGRADE, "101 Switching Protocols");
    domt_service_stop(&service);
    snprintf(uploads, sizeof uploads, "api.uploads=%s/uploads", scratch);
    start_example_program("api/api", "api/api.yaml",
                          (const char *[]){"listeners.api.address=127.0.0.1:0", "observe.listen=",
                                           "api.database=sqlite::memory:", uploads, NULL});
    expect_answer_of_program("GET /issues HTTP/1.1\r\nHost: localhost\r\n\r\n", "{\"items\":[]");
    domt_service_stop(&service);
    remove_scratch_directory();
}

DOMT_SUITE(240)
