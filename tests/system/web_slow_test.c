/* slowhttptest attacks the example `web` in its three modes at the same time: heads that do not
 * end, bodies that drip, and answers that are read byte by byte. The service ends each of these
 * connections in time, and a good client is answered meanwhile. Without slowhttptest nothing is
 * tested. The long form (DOMT_LONG) has ten times the connections. */
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
    ck_assert_uint_ge(domt_service_profile_count(&site.service, "channels slow"),
                      2 * (uint64_t)count);
    ck_assert_uint_ge(domt_service_profile_count(&site.service, "channels cut"), count);
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
