/* Starts other programs, finds free ports, and reads figures of processes; tests/support/process.h
 * has the contract. */
#include "tests/support/process.h"

#include "tests/support/suite.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

pid_t domt_process_start_program(const char *const *arguments)
{
    pid_t child = fork();

    if (child == 0) {
        int nowhere = open("/dev/null", O_WRONLY);
        (void)dup2(nowhere, STDOUT_FILENO);
        (void)dup2(nowhere, STDERR_FILENO);
        execvp(arguments[0], (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    ck_assert_int_gt(child, 0);
    return child;
}

void domt_process_terminate(pid_t program)
{
    (void)kill(program, SIGTERM);
    ck_assert_int_eq(waitpid(program, NULL, 0), program);
}

bool domt_path_has_program(const char *name)
{
    const char *const arguments[] = {name, "-v", NULL};
    int status;

    ck_assert_int_ne(waitpid(domt_process_start_program(arguments), &status, 0), -1);
    bool has = WIFEXITED(status) && WEXITSTATUS(status) != 127;
    if (!has)
        printf("%s is not installed: it is left away\n", name);
    return has;
}

uint16_t domt_find_free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, size), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    close(fd);
    return ntohs(address.sin_port);
}

uint64_t domt_resident_bytes(pid_t process)
{
    unsigned long pages = 0;
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/statm", (int)process);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%*u %lu", &pages), 1);
    fclose(file);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

int domt_compare_u64(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one;
    uint64_t b = *(const uint64_t *)other;

    return (a > b) - (a < b);
}

int domt_compare_double(const void *one, const void *other)
{
    double a = *(const double *)one;
    double b = *(const double *)other;

    return (a > b) - (a < b);
}
