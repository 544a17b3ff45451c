/* `./dev serve` and the live line of the example `web`, which it shows: the line comes on a
 * terminal alone, fits it, and Ctrl-C ends the program in order. */
#include "tests/support/crowd.h"
#include "tests/support/suite.h"
#include "tests/system/site.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS_MAX 64

static domt_site site;
static bool by_script;       /* start ./dev serve, and not the program */
static const char *log_path; /* standard error; NULL: the terminal */
static char text[262144];

/* Begin the program on a terminal of so many columns. Returns the other end of the terminal. */
static int start_on_terminal(const char *term, unsigned short columns, pid_t *ret_pid)
{
    const char *arguments[ARGUMENTS_MAX];
    struct winsize size = {.ws_row = 24, .ws_col = columns};
    size_t count = 0;
    int ours = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

    (by_script ? domt_site_served : domt_site_arguments)(
        (const char *const[]){"web.tick=100ms", NULL}, arguments, ARGUMENTS_MAX - 1);
    while (arguments[count] != NULL)
        count++;
    arguments[count] = by_script ? NULL : "--live"; /* which ./dev serve says */
    arguments[count + 1] = NULL;
    ck_assert(ours >= 0 && grantpt(ours) == 0 && unlockpt(ours) == 0);
    ck_assert_int_eq(ioctl(ours, TIOCSWINSZ, &size), 0);
    *ret_pid = fork();
    ck_assert_int_ge(*ret_pid, 0);
    if (*ret_pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)setsid();
        int terminal = open(ptsname(ours), O_RDWR); /* of the session that this has begun */
        int errors = log_path != NULL ? open(log_path, O_WRONLY) : terminal;
        if (terminal < 0 || dup2(terminal, 0) < 0 || dup2(terminal, 1) < 0 || dup2(errors, 2) < 0 ||
            setenv("TERM", term, 1) != 0)
            _exit(127);
        execv(arguments[0], (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    return ours;
}

/* Wait for three ticks, which a page hears of. */
static void wait_for_ticks(uint16_t port)
{
    static char events[65536];
    int fd = domt_connect(port);

    domt_say(fd, "GET /events HTTP/1.1\r\nHost: a\r\n\r\n");
    for (int i = 0; i < 3; i++)
        domt_read_until(fd, "event: rates", events, sizeof events);
    close(fd);
}

static void type_key(int terminal, char key)
{
    ck_assert_int_eq(write(terminal, &key, 1), 1);
}

/* Type Ctrl-C, and check that the program ends with 0. Its output until then is appended. */
static void interrupt(int terminal, pid_t pid)
{
    size_t length = strlen(text);
    ssize_t size;
    int status;

    type_key(terminal, 3);
    while ((size = read(terminal, text + length, sizeof text - 1 - length)) > 0)
        length += (size_t)size; /* up to EIO: nobody has the terminal any more */
    text[length] = '\0';
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x: %s", status, text);
    close(terminal);
}

START_TEST(a_terminal_shows_one_line_of_rates)
{
    unsigned shares[8];
    pid_t pid;
    int terminal = start_on_terminal("xterm", 200, &pid);

    size_t length = domt_read_until(terminal, "listening echo", text, sizeof text);
    ck_assert_uint_ne(domt_site_port(text, "web"), 0);
    /* The next one takes the place of one, unless the log has a line between them. */
    length += domt_read_until(terminal, "\033[K\r", text + length, sizeof text - length);
    const char *line = strstr(text, " requests/s, ");
    ck_assert_ptr_nonnull(line);
    ck_assert_int_eq(sscanf(strstr(line, "sleep %: "), "sleep %%: %u/%u/%u/%u %u/%u/%u/%u",
                            &shares[0], &shares[1], &shares[2], &shares[3], &shares[4], &shares[5],
                            &shares[6], &shares[7]),
                     8);
    ck_assert_uint_ge(shares[0] + shares[1] + shares[2] + shares[3], 50);  /* the rest is other */
    ck_assert_uint_le(shares[4] + shares[5] + shares[6] + shares[7], 102); /* they are rounded */
    interrupt(terminal, pid);
    const char *profile = strstr(text + length, "thread (");
    ck_assert(profile != NULL && profile[-1] == '\n'); /* on a line of its own */
}
END_TEST

/* The script is run from elsewhere, as a user may, and each service answers. */
START_TEST(dev_serve_serves)
{
    const char *arguments[ARGUMENTS_MAX];

    ck_assert_int_eq(chdir("/"), 0);
    domt_site_served((const char *const[]){NULL}, arguments, ARGUMENTS_MAX);
    domt_site_start_by(&site, arguments);
    domt_site_holds(&site, "GET /", NULL, 200, "<html");
    domt_site_holds(&site, "PUT /kv/a", "one", 204, NULL);
    int kv = domt_connect(site.kv);
    domt_say(kv, "GET a\r\n");
    (void)domt_read_until(kv, "$3\r\none\r\n", text, sizeof text);
    int rooms = domt_connect(site.rooms);
    domt_say(rooms, "/join garden\nhello\n");
    (void)domt_read_until(rooms, "hello\n", text, sizeof text);
    int echo = domt_connect(site.echo);
    domt_say(echo, "any bytes");
    (void)domt_read_until(echo, "any bytes", text, sizeof text);
    close(kv);
    close(rooms);
    close(echo);
    domt_site_stop(&site);
    ck_assert_ptr_null(strstr(site.service.said, "requests/s")); /* it is no terminal */
}
END_TEST

START_TEST(dev_serve_shows_the_line_on_a_terminal)
{
    pid_t pid;

    by_script = true;
    int terminal = start_on_terminal("xterm", 80, &pid);
    size_t length = domt_read_until(terminal, "listening echo", text, sizeof text);
    ck_assert_uint_ne(domt_site_port(text, "web"), 0);
    length += domt_read_until(terminal, "\033[K", text + length, sizeof text - length);
    ck_assert_ptr_nonnull(strstr(text, " requests/s, "));
    interrupt(terminal, pid);
}
END_TEST

START_TEST(the_line_fits_a_narrow_terminal)
{
    pid_t pid;
    int terminal = start_on_terminal("xterm", 40, &pid);

    size_t length = domt_read_until(terminal, "listening echo", text, sizeof text);
    domt_read_until(terminal, "\033[K", text + length, sizeof text - length);
    const char *begin = strrchr(text, '\r') + 1;
    ck_assert_uint_eq((size_t)(strstr(begin, "\033[K") - begin), 39);
    interrupt(terminal, pid);
}
END_TEST

/* A pipe, a file, or a terminal that knows no lines gets the ports alone. */
START_TEST(there_is_no_line_without_a_terminal)
{
    pid_t pid;

    domt_site_start(&site, (const char *const[]){"web.live=true", "web.tick=100ms", NULL});
    wait_for_ticks(site.web);
    domt_service_signal(&site.service, SIGINT);
    ck_assert_int_eq(domt_service_wait(&site.service, 10000), 0);
    ck_assert(strpbrk(site.service.said, "\r\033") == NULL);
    ck_assert(strpbrk(site.service.error, "\r\033") == NULL);
    ck_assert(strstr(site.service.said, "requests/s") == NULL);

    int terminal = start_on_terminal("dumb", 80, &pid);
    (void)domt_read_until(terminal, "listening echo", text, sizeof text);
    wait_for_ticks(domt_site_port(text, "web"));
    interrupt(terminal, pid);
    ck_assert(strchr(text, '\033') == NULL && strstr(text, "requests/s") == NULL);
}
END_TEST

/* A terminal that was stopped by Ctrl-S takes nothing: the site goes on, and ends in order. The log
 * goes elsewhere, because it is written whatever it takes. */
START_TEST(a_stopped_terminal_holds_up_nobody)
{
    pid_t pid;
    int status;

    log_path = "/dev/null";
    int terminal = start_on_terminal("xterm", 80, &pid);
    size_t length = domt_read_until(terminal, "listening echo", text, sizeof text);
    domt_read_until(terminal, "\033[K", text + length, sizeof text - length);
    type_key(terminal, 19);
    wait_for_ticks(domt_site_port(text, "web"));
    uint64_t begun_ns = domt_monotonic_ns();
    ck_assert_int_eq(kill(pid, SIGTERM), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_uint_lt(domt_monotonic_ns() - begun_ns, UINT64_C(4000000000));
    close(terminal);
}
END_TEST

DOMT_MAIN("web_live", 30, a_terminal_shows_one_line_of_rates, dev_serve_serves,
          dev_serve_shows_the_line_on_a_terminal, the_line_fits_a_narrow_terminal,
          there_is_no_line_without_a_terminal, a_stopped_terminal_holds_up_nobody)
