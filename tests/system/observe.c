/* Starts the example web with its observation port; tests/system/observe.h describes the
 * functions. */
#include "tests/system/observe.h"

#include "tests/support/suite.h"
#include "tests/system/judges.h"
#include "tests/system/talks.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define ARGUMENTS_MAX 64

/* Collect the arguments of the program. A test that wants another address of the port puts it
 * behind the default one. */
static void gather_arguments_of_web(const char *const settings[], const char *file,
                                    const char **ret_arguments)
{
    const char *all[16] = {"observe.listen=127.0.0.1:0"};
    size_t count = 1, end = 0;

    for (; *settings != NULL; settings++) {
        ck_assert_uint_lt(count, 15);
        all[count++] = *settings;
    }
    domt_site_gather_arguments(all, ret_arguments, ARGUMENTS_MAX - 2);
    while (ret_arguments[end] != NULL)
        end++;
    if (file != NULL) {
        ret_arguments[end++] = "--config";
        ret_arguments[end++] = file;
        ret_arguments[end] = NULL;
    }
}

void domt_observed_start_web(domt_observed *observed, const char *const settings[],
                             const char *file)
{
    const char *arguments[ARGUMENTS_MAX];

    gather_arguments_of_web(settings, file, arguments);
    domt_site_start_by_arguments(&observed->site, arguments);
    observed->port.web = domt_site_await_port(&observed->site.service, "observe");
}

void domt_observed_stop_web(domt_observed *observed)
{
    domt_site_stop_program(&observed->site);
}

int domt_observed_run_with_wrong_setting(domt_observed *observed, const char *const settings[])
{
    const char *arguments[ARGUMENTS_MAX];

    gather_arguments_of_web(settings, NULL, arguments);
    domt_service_spawn(&observed->site.service, arguments);
    return domt_service_wait(&observed->site.service, 10000);
}

void domt_observed_expect_answer_over_unix(const char *socket_path, const char *path,
                                           unsigned status, const char *part)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    char text[8192];
    size_t size = 0;
    ssize_t got;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(to.sun_path, sizeof to.sun_path, "%s", socket_path);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    /* the port allows any host here, because no browser page can use a Unix socket */
    snprintf(text, sizeof text,
             "GET %s HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", path);
    domt_send_text(fd, text);
    while ((got = recv(fd, text + size, sizeof text - 1 - size, 0)) > 0)
        size += (size_t)got;
    close(fd);
    text[size] = '\0';
    ck_assert_msg(strtoul(text + strlen("HTTP/1.1 "), NULL, 10) == status, "%s: %s", path, text);
    ck_assert_msg(strstr(text, part) != NULL, "%s: no '%s' in: %s", path, part, text);
}

void domt_observed_run_python_judge(domt_observed *observed, const char *what,
                                    const char *const settings[], const char *file)
{
    char line[PATH_MAX];

    if (!domt_are_judges_installed("python3"))
        return;
    domt_observed_start_web(observed, settings, file);
    snprintf(line, sizeof line,
             "timeout -k 1 30 python3 " DOMT_SOURCE_DIR "/tests/system/observe_judge.py %s "
             "http://127.0.0.1:%u http://127.0.0.1:%u",
             what, observed->port.web, observed->site.web);
    int status = system(line); /* NOLINT(cert-env33-c): a test may use the shell */
    ck_assert_msg(status == 0, "%s: %d", what, status);
    domt_observed_stop_web(observed);
}
