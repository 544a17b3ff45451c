/* Starts and stops nats-server for a test; tests/support/nats_server.h has the contract. */
#include "tests/support/nats_server.h"
#include "tests/support/suite.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROGRAM "/usr/sbin/nats-server"

static void become_nats_server(const domt_nats_server *server, pid_t parent)
{
    char config[100], port[16];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(config, sizeof config, "%s/conf", server->directory);
    snprintf(port, sizeof port, "%d", server->port != 0 ? server->port : -1);
    int out = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (getppid() != parent || out < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 ||
        chdir(server->directory) != 0)
        _exit(1);
    execl(PROGRAM, PROGRAM, "-a", "127.0.0.1", "-p", port, "-c", config, "--ports_file_dir",
          server->directory, (char *)NULL);
    _exit(1);
}

/* Read the port behind `key` from the file in which nats-server tells its ports when it listens.
 * Returns 0 while there is no file. */
static uint16_t read_port_of_nats_server(const domt_nats_server *server, const char *key)
{
    char path[128], text[512];
    unsigned port = 0;

    snprintf(path, sizeof path, "%s/nats-server_%d.ports", server->directory, (int)server->pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = '\0';
    const char *at = strstr(text, key);
    at = at != NULL ? strstr(at, "127.0.0.1:") : NULL;
    return at != NULL && sscanf(at + 10, "%u", &port) == 1 ? (uint16_t)port : 0;
}

uint16_t domt_nats_server_cluster_port(const domt_nats_server *server)
{
    return read_port_of_nats_server(server, "\"cluster\"");
}

static void write_config_file(const domt_nats_server *server, const char *config)
{
    char path[100];

    snprintf(path, sizeof path, "%s/conf", server->directory);
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "max_control_line: 4096\n%s\n", config != NULL ? config : "");
    ck_assert_int_eq(fclose(file), 0);
}

void domt_nats_server_start(domt_nats_server *server, const char *config, uint16_t port)
{
    ck_assert_msg(access(PROGRAM, X_OK) == 0,
                  "no " PROGRAM " (Debian: nats-server), which this test talks with");
    *server = (domt_nats_server){.port = port};
    snprintf(server->directory, sizeof server->directory, "/tmp/domus-nats-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(server->directory));
    write_config_file(server, config);
    pid_t parent = getpid();
    server->pid = fork();
    ck_assert_int_ge(server->pid, 0);
    if (server->pid == 0)
        become_nats_server(server, parent);
    for (int i = 0; i < 2000; i++) {
        uint16_t listens = read_port_of_nats_server(server, "\"nats\"");
        if (listens != 0) {
            server->port = listens;
            snprintf(server->url, sizeof server->url, "127.0.0.1:%u", listens);
            return;
        }
        ck_assert_msg(waitpid(server->pid, NULL, WNOHANG) == 0, "nats-server has ended");
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    ck_abort_msg("nats-server does not listen");
}

void domt_nats_server_kill(domt_nats_server *server, int signal)
{
    ck_assert_int_eq(kill(server->pid, signal), 0);
}

static int remove_entry(const char *path, const struct stat *status, int flag, struct FTW *walk)
{
    return remove(path);
}

void domt_nats_server_stop(domt_nats_server *server)
{
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
    ck_assert_int_eq(nftw(server->directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
}
