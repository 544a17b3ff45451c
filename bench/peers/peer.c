/* This file has the common part of the bare echo servers (peer.h). */
#include "bench/peers/peer.h"

#include "bench/support/measure.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#define BACKLOG 4096

_Noreturn void peer_print_error_and_exit(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

static long parse_number(const char *text, long max)
{
    char *end;
    long value = strtol(text, &end, 10);

    return end == text || *end != '\0' || value < 0 || value > max ? -1 : value;
}

void peer_read_arguments_and_pin(struct peer *peer, int argc, char **argv)
{
    long port = argc == 3 ? parse_number(argv[1], UINT16_MAX) : -1;
    long cpu = argc == 3 ? parse_number(argv[2], 4095) : -1;

    if (port < 0 || cpu < 0) {
        fprintf(stderr, "usage: %s PORT CPU\n", argv[0]);
        exit(2);
    }
    *peer = (struct peer){.port = (uint16_t)port, .cpu = (int)cpu};
    if (measure_pin_thread_to_cpu((int)cpu) != 0) {
        fprintf(stderr, "%s: there is no CPU %ld for this process\n", argv[0], cpu);
        exit(EXIT_FAILURE);
    }
}

int peer_open_listening_socket(struct peer *peer, int flags)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(peer->port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

    if (fd < 0)
        peer_print_error_and_exit("socket");
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
        peer_print_error_and_exit("setsockopt");
    if (bind(fd, (const struct sockaddr *)&address, sizeof address) != 0)
        peer_print_error_and_exit("bind");
    if (listen(fd, BACKLOG) != 0)
        peer_print_error_and_exit("listen");
    return fd;
}

int peer_open_signal_descriptor(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        peer_print_error_and_exit("sigprocmask");

    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        peer_print_error_and_exit("signalfd");
    return fd;
}

void peer_print_listening_port(struct peer *peer, int listener)
{
    struct sockaddr_in address = {0};
    socklen_t length = sizeof address;

    if (getsockname(listener, (struct sockaddr *)&address, &length) != 0)
        peer_print_error_and_exit("getsockname");
    peer->port = ntohs(address.sin_port);
    printf("listening %" PRIu16 "\n", peer->port);
    fflush(stdout);
    peer->cpu_ns = measure_process_cpu_ns();
}

void peer_print_cpu_time(const struct peer *peer)
{
    uint64_t cpu_ns = measure_process_cpu_ns() - peer->cpu_ns;

    printf("cpu_us %" PRIu64 " received %" PRIu64 "\n", cpu_ns / 1000, peer->received);
    fflush(stdout);
}
