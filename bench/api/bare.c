/* The cost of a request's way alone: a program receives 100 bytes, sends them to a back end,
 * receives what that returns, and sends it to the client, one request at a time. It waits by epoll
 * on CPU 0; client and back end are on CPU 1, as load and database of the bench are. All contenders
 * of the bench also have these sleeps and wakes at such a rate.
 *
 *   api_bare RATE SECONDS
 *
 * stdout: CPU time of a request in that program, in us, user and system. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SIZE 100u /* bytes of a request, and of its answer, in this program */

static void exit_with_error(const char *what)
{
    perror(what);
    exit(1);
}

static void pin_to_cpu(size_t cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        exit_with_error("api_bare: CPU");
}

static double now_s(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Make a connection over loopback, of which this process has both ends. */
static void make_loopback_connection_to_itself(int ends[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    int on = 1;

    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0 ||
        connect(ends[0], (struct sockaddr *)&address, size) != 0 ||
        (ends[1] = accept(listener, NULL, NULL)) < 0)
        exit_with_error("api_bare: loopback");
    close(listener);
    for (int i = 0; i < 2; i++)
        (void)setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

static void receive_message_and_send_it_on(int from, int to)
{
    char bytes[SIZE];

    if (recv(from, bytes, sizeof bytes, MSG_WAITALL) != SIZE ||
        send(to, bytes, sizeof bytes, 0) != SIZE)
        exit(1); /* the process on the other side has ended, so this one ends, too */
}

/* Serve as the back end of the measured program: send all bytes that come back. */
static void serve_back_end(int fd)
{
    for (;;)
        receive_message_and_send_it_on(fd, fd);
}

/* Act as the client of the measured program: send requests at this rate, one at a time, and await
 * each answer. */
static void send_requests_at_rate(int fd, double rate)
{
    double next_s = now_s();

    for (;;) {
        char bytes[SIZE] = {0};
        if (send(fd, bytes, sizeof bytes, 0) != SIZE ||
            recv(fd, bytes, sizeof bytes, MSG_WAITALL) != SIZE)
            exit(1);
        next_s += 1 / rate;
        double wait_s = next_s - now_s();
        if (wait_s > 0)
            nanosleep(&(struct timespec){.tv_nsec = (long)(wait_s * 1e9)}, NULL);
    }
}

/* Start a process on CPU 1 that ends together with this one. */
static pid_t fork_load_or_back_end_on_cpu_1(int fd, double rate)
{
    pid_t child = fork();

    if (child < 0)
        exit_with_error("api_bare: fork");
    if (child != 0)
        return child;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin_to_cpu(1);
    if (rate == 0)
        serve_back_end(fd);
    send_requests_at_rate(fd, rate);
    exit(0);
}

static double own_cpu_time_us(void)
{
    struct rusage use;

    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e6 +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

int main(int count, char **arguments)
{
    int client[2], back[2], watched = epoll_create1(0);
    double rate = count == 3 ? strtod(arguments[1], NULL) : 0;
    double seconds = count == 3 ? strtod(arguments[2], NULL) : 0;
    uint64_t requests = 0;

    if (rate < 2 || seconds <= 0) {
        fprintf(stderr, "usage: api_bare RATE SECONDS\n");
        return 2;
    }
    make_loopback_connection_to_itself(client);
    make_loopback_connection_to_itself(back);
    const pid_t children[] = {fork_load_or_back_end_on_cpu_1(back[1], 0),
                              fork_load_or_back_end_on_cpu_1(client[0], rate)};
    pin_to_cpu(0);
    for (int i = 0; i < 2; i++) {
        struct epoll_event event = {.events = EPOLLIN,
                                    .data = {.fd = i == 0 ? client[1] : back[0]}};
        if (epoll_ctl(watched, EPOLL_CTL_ADD, event.data.fd, &event) != 0)
            exit_with_error("api_bare: epoll");
    }
    double began_us = own_cpu_time_us();
    for (double end_s = now_s() + seconds; now_s() < end_s;) {
        struct epoll_event event;
        if (epoll_wait(watched, &event, 1, 100) != 1)
            continue;
        bool is_asked = event.data.fd == client[1];
        receive_message_and_send_it_on(event.data.fd, is_asked ? back[0] : client[1]);
        requests += !is_asked;
    }
    double used_us = own_cpu_time_us() - began_us;
    for (int i = 0; i < 2; i++) {
        kill(children[i], SIGKILL);
        waitpid(children[i], NULL, 0);
    }
    if (requests == 0)
        return 1;
    printf("%.2f\n", used_us / (double)requests);
    return 0;
}
