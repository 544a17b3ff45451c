/* This file starts a server process, reads its output and ends it (server.h). */
#include "bench/support/server.h"

#include "bench/support/measure.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_NS_MAX UINT64_C(10000000000)
#define STOP_NS_MAX  UINT64_C(10000000000)
/* ms between two attempts to connect to a server that does not say when it listens */
#define TRY_MS 10

static int set_error_text_and_return_error(struct server *server, int error, const char *text)
{
    server->error = text;
    return error;
}

/* Read one line of a server's output. In a line `listening` the port follows the last colon or
 * blank. */
static void read_line_of_output(struct server *server)
{
    const char *line = server->line;
    const char *received = strstr(line, "received ");

    if (strncmp(line, "listening ", strlen("listening ")) == 0 && server->port == 0) {
        const char *colon = strrchr(line, ':');
        const char *blank = strrchr(line, ' ');
        unsigned long port = strtoul((colon != NULL ? colon : blank) + 1, NULL, 10);

        server->port = port <= UINT16_MAX ? (uint16_t)port : 0;
    } else if (strncmp(line, "cpu_us ", strlen("cpu_us ")) == 0 && received != NULL) {
        server->has_received = true;
        server->received = strtoull(received + strlen("received "), NULL, 10);
    }
}

/* Cut the bytes of a server's output into lines, and read each line. Only the beginning of a line
 * that is too long is kept. */
static void read_lines_of_output(struct server *server, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == '\n') {
            server->line[server->line_length] = '\0';
            server->line_length = 0;
            read_line_of_output(server);
        } else if (server->line_length < SERVER_LINE_MAX - 1) {
            server->line[server->line_length++] = bytes[i];
        }
    }
}

/* Read the bytes of a server's output that have come. Returns false if no more will come. */
static bool read_server_output_without_waiting(struct server *server)
{
    char bytes[4096];
    ssize_t length;

    while ((length = read(server->output, bytes, sizeof bytes)) > 0)
        read_lines_of_output(server, bytes, (size_t)length);
    return length < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Returns whether a server listens at the port, by a connection to it. */
static bool does_server_listen_at_port(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool connected = fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0;

    if (fd >= 0)
        close(fd);
    return connected;
}

/* Read a server's output until the server listens (with `for_listening`), or until it ends. If
 * `port` is not 0, the server does not say that it listens, and connections to that port are tried.
 * Returns 0; -ECHILD when it has ended; -ETIMEDOUT. */
static int await_state_of_server(struct server *server, bool for_listening, uint16_t port,
                                 uint64_t patience_ns)
{
    uint64_t end_ns = measure_now_ns() + patience_ns;
    struct pollfd fds[2] = {
        {.fd = server->watch, .events = POLLIN},
        {.fd = server->output, .events = POLLIN},
    };

    for (;;) {
        uint64_t now_ns = measure_now_ns();
        if (now_ns >= end_ns)
            return -ETIMEDOUT;

        int wait_ms = port != 0 ? TRY_MS : (int)((end_ns - now_ns) / 1000000) + 1;
        int count = poll(fds, 2, wait_ms);
        if (count < 0 && errno != EINTR)
            return -errno;
        if (count == 0 && port != 0 && does_server_listen_at_port(port))
            server->port = port;
        if (for_listening && server->port != 0)
            return 0;
        if (count <= 0)
            continue;
        /* poll() told before this read whether the server has ended, so the last lines of one that
         * has ended are read here, too */
        if (fds[1].fd >= 0 && !read_server_output_without_waiting(server))
            fds[1].fd = -1;
        if (for_listening && server->port != 0)
            return 0;
        if (fds[0].revents != 0)
            return -ECHILD;
    }
}

/* Move this process to the CPUs that the server is to have, which inherits them. */
static bool move_process_to_server_cpus(int cpu)
{
    cpu_set_t both;

    if (cpu == SERVER_ANY_CPU)
        return true;
    if (cpu != SERVER_TWO_CPUS)
        return measure_pin_thread_to_cpu(cpu) == 0;
    CPU_ZERO(&both);
    CPU_SET(0, &both);
    CPU_SET(1, &both);
    return sched_setaffinity(0, sizeof both, &both) == 0;
}

static _Noreturn void become_program_of_server(int cpu, char *const arguments[], int output,
                                               pid_t parent)
{
    /* The child must not outlive the bench. If the bench ended before this request, the child sees
     * another parent and ends here. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(127);
    if (move_process_to_server_cpus(cpu) && dup2(output, STDOUT_FILENO) >= 0)
        execv(arguments[0], arguments);
    _exit(127);
}

static int spawn_process_of_server(struct server *server, int cpu, char *const arguments[])
{
    int output[2];
    pid_t parent = getpid();

    *server = (struct server){.pid = -1, .watch = -1, .output = -1, .stop_signal = SIGTERM};
    if (pipe2(output, O_CLOEXEC) != 0)
        return set_error_text_and_return_error(server, -errno, "no pipe");
    server->pid = fork();
    if (server->pid == 0)
        become_program_of_server(cpu, arguments, output[1], parent);
    close(output[1]);
    server->output = output[0];
    if (server->pid < 0)
        return set_error_text_and_return_error(server, -errno, "no process");
    server->watch = pidfd_open(server->pid, 0);
    if (server->watch < 0 || fcntl(server->output, F_SETFL, O_NONBLOCK) != 0)
        return set_error_text_and_return_error(server, -errno, "cannot watch it");
    return 0;
}

/* Collect the status of a server's process, which has ended or is killed first, and close its
 * descriptors. */
static int collect_status_of_server(struct server *server, bool kill_first,
                                    struct rusage *ret_rusage)
{
    int status = -1;

    if (server->pid > 0) {
        if (kill_first)
            kill(server->pid, SIGKILL);
        while (wait4(server->pid, &status, 0, ret_rusage) < 0 && errno == EINTR)
            ;
    }
    if (server->watch >= 0)
        close(server->watch);
    if (server->output >= 0)
        close(server->output);
    server->pid = -1;
    server->watch = -1;
    server->output = -1;
    return status;
}

int server_start(struct server *server, int cpu, char *const arguments[])
{
    return server_start_at_port(server, cpu, arguments, 0, SIGTERM);
}

int server_start_at_port(struct server *server, int cpu, char *const arguments[], uint16_t port,
                         int stop_signal)
{
    struct rusage unused;
    int error = spawn_process_of_server(server, cpu, arguments);

    server->stop_signal = stop_signal;
    if (error == 0) {
        error = await_state_of_server(server, true, port, START_NS_MAX);
        if (error != 0)
            set_error_text_and_return_error(server, error,
                                            error == -ECHILD ? "it ended before it listened"
                                                             : "it did not say that it listens");
    }
    if (error == 0) {
        error = measure_cpu_ns_of_other_process(server->pid, &server->listening_cpu_ns);
        if (error != 0)
            set_error_text_and_return_error(server, error, "its CPU time cannot be read");
    }
    if (error != 0)
        collect_status_of_server(server, true, &unused);
    return error;
}

static uint64_t nanoseconds_of_timeval(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_usec * 1000;
}

int server_stop(struct server *server, struct server_usage *ret_usage)
{
    struct rusage rusage = {0};
    struct pollfd ended = {.fd = server->watch, .events = POLLIN};
    bool had_ended = poll(&ended, 1, 0) > 0;

    kill(server->pid, server->stop_signal);
    bool stopped = await_state_of_server(server, false, 0, STOP_NS_MAX) == -ECHILD;
    int status = collect_status_of_server(server, !stopped, &rusage);

    if (had_ended)
        return set_error_text_and_return_error(server, -ECHILD, "it ended by itself");
    if (!stopped)
        return set_error_text_and_return_error(server, -ETIMEDOUT,
                                               "it did not end when it was told to");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return set_error_text_and_return_error(server, -ECHILD,
                                               "it did not exit with 0 when it was told to end");
    *ret_usage = (struct server_usage){
        .cpu_ns = nanoseconds_of_timeval(rusage.ru_utime) +
                  nanoseconds_of_timeval(rusage.ru_stime) - server->listening_cpu_ns,
        .has_received = server->has_received,
        .received = server->received,
    };
    return 0;
}
