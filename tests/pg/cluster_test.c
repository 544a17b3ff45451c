/* The clusters of PostgreSQL of these tests: if a test is killed, neither its server nor its files
 * are left. */
#include "tests/support/postgres.h"
#include "tests/support/suite.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static bool accepts(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_there = connect(fd, (struct sockaddr *)&address, sizeof address) == 0;

    close(fd);
    return is_there;
}

/* Start a server, report its directory, and wait to be killed. */
static void be_killed(int told)
{
    domt_postgres server;

    domt_postgres_start(&server, NULL);
    if (write(told, &server, sizeof server) == sizeof server)
        pause();
    _exit(1);
}

DOMT_TEST(test_that_is_killed_leaves_nothing)
{
    domt_postgres server;
    int ends[2], status;

    ck_assert_int_eq(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0)
        be_killed(ends[1]);
    ck_assert_int_eq(read(ends[0], &server, sizeof server), sizeof server);
    ck_assert(access(server.directory, F_OK) == 0 && accepts(server.port));
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    for (int i = 0; i < 4000 && access(server.directory, F_OK) == 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    ck_assert_int_ne(access(server.directory, F_OK), 0);
    for (int i = 0; i < 4000 && accepts(server.port); i++)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    ck_assert(!accepts(server.port));
}

DOMT_SUITE(60)
