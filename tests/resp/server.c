/* Starts redis-server, and sends bytes to it; server.h describes the functions. */
#include "tests/resp/server.h"
#include "tests/support/suite.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROGRAM "/usr/bin/redis-server"

static char directory[64];
static char path[96];
static pid_t child;

static void execute_redis_server(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || freopen("/dev/null", "w", stdout) == NULL)
        _exit(1);
    execl(PROGRAM, PROGRAM, "--port", "0", "--unixsocket", path, "--dir", directory, "--save", "",
          "--appendonly", "no", "--enable-debug-command", "yes", (char *)NULL);
    _exit(1);
}

/* Connect to redis-server. Returns the descriptor, or -1 if nobody accepts yet. */
static int try_to_connect_to_redis(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval limit = {.tv_sec = 20};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

bool domt_redis_start_server(void)
{
    if (access(PROGRAM, X_OK) != 0) {
        printf("no " PROGRAM " (Debian: redis-server): nothing is compared\n");
        return false;
    }
    snprintf(directory, sizeof directory, "/tmp/domus-redis-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/socket", directory);
    pid_t parent = getpid();
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        execute_redis_server(parent);
    for (int i = 0; i < 2000; i++) {
        int fd = try_to_connect_to_redis();
        if (fd >= 0) {
            close(fd);
            return true;
        }
        ck_assert_int_eq(waitpid(child, NULL, WNOHANG), 0);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    ck_abort_msg("redis-server does not listen");
    return false;
}

void domt_redis_stop_server(void)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    unlink(path);
    rmdir(directory);
}

const char *domt_redis_send_and_read_answer(const char *bytes, size_t size, size_t *ret_size)
{
    static char answer[1 << 20];
    size_t got = 0;
    int fd = try_to_connect_to_redis();

    ck_assert_int_ge(fd, 0);
    for (size_t sent = 0; sent < size;) {
        ssize_t result = send(fd, bytes + sent, size - sent, MSG_NOSIGNAL);
        if (result <= 0)
            break; /* redis-server has closed the connection because of earlier bytes */
        sent += (size_t)result;
    }
    shutdown(fd, SHUT_WR);
    for (;;) {
        ssize_t result = recv(fd, answer + got, sizeof answer - 1 - got, 0);
        if (result <= 0)
            break;
        got += (size_t)result;
    }
    close(fd);
    answer[got] = '\0';
    *ret_size = got;
    return answer;
}
