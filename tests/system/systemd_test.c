/* A program under systemd's own tools, where they are installed: systemd-socket-activate passes a
 * socket to it, and systemd-run starts it as a unit, if systemd runs here. */
#include "tests/support/service.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define ACTIVATE "/usr/bin/systemd-socket-activate"
#define WAITS    5000 /* number of waits of a millisecond each, before a test gives up */

static int connect_to_unix_socket(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    for (int i = 0; i < WAITS; i++) {
        if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0)
            return fd;
        domt_sleep_ms(1);
    }
    ck_abort_msg("nobody listens at %s", path);
    return -1;
}

/* The first client connects to the socket before the program has started. */
DOMT_TEST(a_socket_of_systemd_is_served)
{
    static domt_service service;
    char path[64], byte = 0;
    const char *const arguments[] = {ACTIVATE,
                                     "-l",
                                     path,
                                     "--fdname=echo",
                                     DOMT_BIN_DIR "/echo",
                                     "--config",
                                     DOMT_SOURCE_DIR "/config/domus.yaml",
                                     NULL};

    if (access(ACTIVATE, X_OK) != 0) {
        printf("skipped: no %s\n", ACTIVATE);
        return;
    }
    snprintf(path, sizeof path, "/tmp/domus-systemd-%d", (int)getpid());
    domt_service_spawn(&service, arguments);
    int fd = connect_to_unix_socket(path);
    ck_assert_int_eq(send(fd, "x", 1, MSG_NOSIGNAL), 1);
    ck_assert_int_eq(recv(fd, &byte, 1, 0), 1);
    ck_assert_int_eq(byte, 'x');
    close(fd);
    domt_service_stop(&service);
    ck_assert_ptr_nonnull(strstr(service.said, "listening echo unix:/tmp/domus-systemd-"));
    ck_assert_ptr_nonnull(strstr(service.error, ", which was passed, and not 127.0.0.1:7000"));
    unlink(path);
}

/* Run a shell command, and store its output in `text`. Returns its status. */
static int run_shell_command(char *text, size_t size, const char *command)
{
    FILE *output = popen(command, "re");

    ck_assert_ptr_nonnull(output);
    size_t got = fread(text, 1, size - 1, output);
    text[got] = '\0';
    return pclose(output);
}

/* For Type=notify, systemd-run returns when the program has reported that it is ready. */
DOMT_TEST(a_unit_of_systemd_is_ready_fed_and_stopped)
{
    char command[1024], text[4096];
    int pid = (int)getpid();

    if (access("/run/systemd/system", F_OK) != 0 || geteuid() != 0) {
        printf("skipped: systemd does not run here, or this is not root\n");
        return;
    }
    snprintf(
        command, sizeof command,
        "systemd-run --unit=domus-test-%d -p Type=notify -p WatchdogSec=1 -p TimeoutStartSec=10 "
        "%s/echo --config %s/config/domus.yaml --set listeners.echo.address=127.0.0.1:0 2>&1",
        pid, DOMT_BIN_DIR, DOMT_SOURCE_DIR);
    ck_assert_msg(run_shell_command(text, sizeof text, command) == 0, "%s", text);
    domt_sleep_ms(2500); /* sleeps for longer than the watchdog's time, and the unit still runs */
    snprintf(command, sizeof command,
             "systemctl show -p ActiveState -p StatusText -p NRestarts domus-test-%d", pid);
    ck_assert_int_eq(run_shell_command(text, sizeof text, command), 0);
    ck_assert_msg(strstr(text, "ActiveState=active\n") != NULL &&
                      strstr(text, "NRestarts=0\n") != NULL && strstr(text, "messages/s") != NULL,
                  "%s", text);
    snprintf(command, sizeof command, "systemctl stop domus-test-%d 2>&1", pid);
    ck_assert_msg(run_shell_command(text, sizeof text, command) == 0, "%s", text);
}

DOMT_SUITE(60)
