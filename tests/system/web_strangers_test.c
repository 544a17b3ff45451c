/* Strangers at the example `web`: floods of heads and of WebSocket frames, and the three modes of
 * slowhttptest. A good client is answered beside them. */
#include "tests/support/crowd.h"
#include "tests/support/suite.h"
#include "tests/system/site.h"
#include "tests/system/talks.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Floods of heads and of WebSocket frames at the example `web`: the bytes of strangers use bounded
 * memory, a good client is answered beside them, and each stranger gets the correct answer. */

#define MIB   (UINT64_C(1) << 20)
#define COUNT 200
#define FEW   40

static domt_service service;
static int fds[COUNT];

/* Start the service with further settings. Returns the connection of the good client. */
static int start_web_with_good_client(const char *setting)
{
    return domt_protocol_start_and_connect(&service, &domt_web,
                                           (const char *const[]){"--set", setting, NULL});
}

/* Check that the good client is answered, and that memory has grown by less than `most`. */
static void check_good_client_and_memory(const char *what, int good, uint64_t before,
                                         uint64_t ceiling)
{
    uint64_t now = domt_service_rss_bytes(&service);
    uint64_t grown = now > before ? now - before : 0;
    double worst_ms = domt_measure_worst_trip_ms(good, &domt_web, 50);

    fprintf(stderr, "%s: %llu KiB more, worst round trip %.1f ms\n", what,
            (unsigned long long)grown / 1024, worst_ms);
    if (!DOMT_SANITIZED)
        ck_assert_uint_lt(grown, ceiling);
}

/* Send `count` fields of `size` bytes each, without the end of the head. */
static void send_fields_of_head(int fd, uint32_t count, uint32_t size)
{
    char field[1024];

    domt_send_all(fd, "GET /json HTTP/1.1\r\n", 20);
    memset(field, 'f', size);
    memcpy(field + size - 4, ":x\r\n", 4);
    for (uint32_t i = 0; i < count; i++)
        domt_send_all(fd, field, size);
}

/* Check that the connection has got one answer, with this status. */
static void expect_one_answer_and_close(int fd, const char *begin)
{
    char text[512];
    ssize_t size = recv(fd, text, sizeof text - 1, 0);

    ck_assert_int_gt(size, 0);
    text[size] = '\0';
    ck_assert_msg(strncmp(text, begin, strlen(begin)) == 0, "%s instead of %s", text, begin);
    ck_assert_ptr_nonnull(strstr(text, "\r\nConnection: close\r\n"));
    ck_assert_int_eq(recv(fd, text, sizeof text, 0), 0);
    close(fd);
}

DOMT_TEST(heads_that_do_not_end_are_bounded)
{
    /* Without a part of a head that is read in time, there is no 408; a sanitizer needs more time
     * for that. */
    int good =
        start_web_with_good_client(DOMT_SCALE("channel.headTimeout=1s", "channel.headTimeout=4s"));
    uint64_t before = domt_service_rss_bytes(&service);

    for (int i = 0; i < COUNT; i++) {
        fds[i] = domt_connect_to_port(service.port);
        /* with 60 of at most 100 fields, and 30,020 of at most 32,768 bytes */
        send_fields_of_head(fds[i], 60, 500);
    }
    check_good_client_and_memory("heads", good, before, COUNT * MIB / 8);
    for (int i = 0; i < COUNT; i++)
        expect_one_answer_and_close(fds[i], "HTTP/1.1 408 ");
    check_good_client_and_memory("afterwards", good, before, COUNT * MIB / 8);
    close(good);
    domt_service_stop(&service);
    ck_assert_uint_eq(domt_service_count_in_profile(&service, "channels slow"), COUNT);
}

DOMT_TEST(heads_that_are_too_large_are_refused)
{
    int good = start_web_with_good_client("channel.headTimeout=10s");
    uint64_t before = domt_service_rss_bytes(&service);

    for (int i = 0; i < COUNT; i++) {
        fds[i] = domt_connect_to_port(service.port);
        if (i % 2 == 0)
            send_fields_of_head(fds[i], 101, 20);
        else
            send_fields_of_head(fds[i], 40, 1000);
    }
    for (int i = 0; i < COUNT; i++)
        expect_one_answer_and_close(fds[i], "HTTP/1.1 431 ");
    check_good_client_and_memory("large heads", good, before, COUNT * MIB / 8);
    close(good);
    domt_service_stop(&service);
}

/* --- frames ----------------------------------------------------------------------------------- */

static int open_websocket_and_read_head(void)
{
    static const char ask[] = "GET /socket HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
                              "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    char text[512] = "";
    size_t size = 0;
    int fd = domt_connect_with_small_buffers(&service);

    domt_send_all(fd, ask, sizeof ask - 1);
    while (strstr(text, "\r\n\r\n") == NULL) {
        /* reads single bytes, so that no part of the first frame is read */
        ssize_t part = recv(fd, text + size, 1, 0);
        ck_assert_int_eq(part, 1);
        text[++size] = '\0';
    }
    ck_assert_int_eq(strncmp(text, "HTTP/1.1 101 ", 13), 0);
    return fd;
}

/* Send as many of these frames as the service accepts on each connection, until it accepts none for
 * a while. Returns the bytes. */
static uint64_t send_frames_until_full(int count, const char *frame, size_t size)
{
    static char bytes[16384];
    uint64_t sent = 0;
    uint64_t begin_ns = domt_monotonic_ns();
    uint64_t last_ns = begin_ns;
    size_t filled = sizeof bytes / size * size;

    for (size_t at = 0; at < filled; at += size)
        memcpy(bytes + at, frame, size);
    for (uint64_t now_ns = begin_ns;
         now_ns - last_ns < 200 * 1000000u && now_ns - begin_ns < 400 * 1000000u;
         now_ns = domt_monotonic_ns()) {
        for (int i = 0; i < count; i++) {
            ssize_t part = send(fds[i], bytes, filled, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (part > 0)
                last_ns = now_ns;
            sent += part > 0 ? (uint64_t)part : 0;
        }
        domt_sleep_ms(1);
    }
    return sent;
}

/* Peers send frames and read nothing: the service answers each up to a limit, or closes. */
static void check_flood_of_frames(const char *what, const char *frame, size_t size)
{
    int good = start_web_with_good_client("channel.headTimeout=10s");

    for (int i = 0; i < FEW; i++)
        fds[i] = open_websocket_and_read_head();
    uint64_t before = domt_service_rss_bytes(&service);
    uint64_t sent = send_frames_until_full(FEW, frame, size);
    ck_assert_uint_gt(sent, 0);
    check_good_client_and_memory(what, good, before, FEW * 4 * MIB);
    for (int i = 0; i < FEW; i++)
        domt_client_close(&(domt_client){.fd = fds[i]}, true);
    check_good_client_and_memory("afterwards", good, before, FEW * 4 * MIB);
    close(good);
    domt_service_stop(&service);
}

DOMT_TEST(floods_of_frames_hurt_nobody)
{
    /* each frame is masked by zeros: a ping of four bytes, a text, a piece of a message that does
     * not end */
    check_flood_of_frames("pings", "\x89\x84\0\0\0\0ping", 10);
    check_flood_of_frames("texts", "\x81\x84\0\0\0\0text", 10);
    check_flood_of_frames("pieces", "\x01\x84\0\0\0\0part", 10);
}

/* --- web slow --------------------------------------------------------------------------------- */

/* slowhttptest attacks the example `web` in its three modes at the same time: heads that do not
 * end, bodies that drip, and answers that are read byte by byte. The service ends each of these
 * connections in time, and a good client is answered meanwhile. Without slowhttptest nothing is
 * tested. The long form (DOMT_LONG) has ten times the connections. */

#define MODES     3
#define BIG_BYTES (4u << 20) /* more bytes than the kernel and the service hold for a peer */

static domt_site site;
static char directory[] = "/tmp/domus-slow-XXXXXX";
static char connections[16];

/* One run of slowhttptest, in one of its modes. */
typedef struct attack {
    const char *options[10];
    const char *path;
    pid_t pid;
    int output;
} attack;

static attack attacks[MODES] = {
    {.options = {"-H", "-i", "1", NULL}, .path = "/json"},
    {.options = {"-B", "-i", "1", "-s", "8192", NULL}, .path = "/echo"},
    {.options = {"-X", "-n", "1", "-z", "4096", "-w", "512", "-y", "1024", NULL},
     .path = "/static/big.bin"},
};

static bool has_slowhttptest(void)
{
    /* NOLINTNEXTLINE(cert-env33-c): a test may use the shell */
    bool has = system("command -v slowhttptest >/dev/null") == 0;

    if (!has)
        printf("no slowhttptest: nothing is compared with it\n");
    return has;
}

/* Make a directory with one large file, which the site serves. */
static void make_large_file(void)
{
    char path[128];

    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/big.bin", directory);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, BIG_BYTES), 0);
    close(fd);
}

static void remove_large_file(void)
{
    char path[128];

    snprintf(path, sizeof path, "%s/big.bin", directory);
    (void)unlink(path);
    (void)rmdir(directory);
}

static void begin_slowhttptest(attack *one)
{
    const char *arguments[32] = {"slowhttptest", "-c", connections, "-r", "1000",
                                 "-l",           "10", "-p",        "9",  "-u"};
    char url[128];
    size_t count = 10;
    int ends[2];

    snprintf(url, sizeof url, "http://127.0.0.1:%u%s", site.web, one->path);
    arguments[count++] = url;
    for (const char *const *option = one->options; *option != NULL; option++)
        arguments[count++] = *option;
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    one->pid = fork();
    ck_assert_int_ge(one->pid, 0);
    if (one->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)dup2(ends[1], STDERR_FILENO);
        (void)execvp(arguments[0], (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    close(ends[1]);
    one->output = ends[0];
}

/* Check that the attack ends because the service has ended all of its connections. */
static void expect_slowhttptest_is_over(attack *one)
{
    static char said[1 << 16];
    size_t size = 0;
    ssize_t part;

    while ((part = read(one->output, said + size, sizeof said - 1 - size)) > 0)
        size += (size_t)part;
    said[size] = '\0';
    close(one->output);
    ck_assert_int_eq(waitpid(one->pid, NULL, 0), one->pid);
    const char *last = strstr(said, "Exit status:");
    ck_assert_msg(last != NULL && strstr(last, "No open connections left") != NULL, "%s: %s",
                  one->options[0], last != NULL ? last : said);
    ck_assert_ptr_null(strstr(said, "service available:   NO"));
}

DOMT_TEST(slow_clients_are_ended_and_good_ones_served)
{
    char root[128];

    if (!has_slowhttptest())
        return;
    uint32_t count = getenv("DOMT_LONG") != NULL ? 1000 : 100;
    snprintf(connections, sizeof connections, "%u", count);
    ck_assert(domt_raise_descriptor_limit(8000));
    make_large_file();
    snprintf(root, sizeof root, "web.root=%s", directory);
    domt_site_start_program(&site, (const char *const[]){root, "channel.headTimeout=300ms",
                                                         "channel.minRateGrace=300ms",
                                                         "channel.sendTimeout=300ms",
                                                         "channel.socket.sendBuffer=16KiB", NULL});
    for (int i = 0; i < MODES; i++)
        begin_slowhttptest(&attacks[i]);
    for (int i = 0; i < 20; i++)
        domt_site_expect_answer(&site, "GET /json", NULL, 200, NULL);
    for (int i = 0; i < MODES; i++)
        expect_slowhttptest_is_over(&attacks[i]);
    domt_site_expect_answer(&site, "GET /json", NULL, 200, NULL);
    domt_site_stop_program(&site);
    remove_large_file();
    /* the service counts slow heads and bodies as slow, and peers that do not read as cut */
    ck_assert_uint_ge(domt_service_count_in_profile(&site.service, "channels slow"),
                      2 * (uint64_t)count);
    ck_assert_uint_ge(domt_service_count_in_profile(&site.service, "channels cut"), count);
}

/* The bytes of a request come one by one, and a head that is too slow is answered with an error in
 * time. */
DOMT_TEST(a_head_that_drips_gets_408)
{
    static const char head[] = "GET /json HTTP/1.1\r\nX: ";
    char text[512];
    ssize_t part = 0;

    domt_site_start_program(&site, (const char *const[]){"channel.headTimeout=200ms", NULL});
    int fd = domt_connect_to_port(site.web);
    domt_send_all(fd, head, sizeof head - 1);
    for (uint32_t i = 0; i < 1000 && part <= 0; i++) {
        (void)send(fd, "x", 1, MSG_NOSIGNAL);
        domt_sleep_ms(10);
        part = recv(fd, text, sizeof text - 1, MSG_DONTWAIT);
    }
    ck_assert_int_gt(part, 0);
    text[part] = '\0';
    ck_assert_ptr_eq(strstr(text, "HTTP/1.1 408 Request Timeout\r\n"), text);
    ck_assert_ptr_nonnull(strstr(text, "\r\nConnection: close\r\n"));
    close(fd);
    domt_site_stop_program(&site);
}

DOMT_SUITE(120)
