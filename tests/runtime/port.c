/* Requests to the observation port of a running system; tests/runtime/port.h has the contract. */
#include "tests/runtime/port.h"
#include "tests/support/crowd.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void *domt_port;
uint16_t domt_port_number;
char domt_port_text[4u << 20];
static char error[256];

domus_system *domt_port_start_system(domus_config *config)
{
    config->observe.listen = "127.0.0.1:0";
    return domt_start_system(config);
}

int domt_port_open(domus_system *system)
{
    error[0] = '\0';
    return domus_observe_front.open(system, error, sizeof error, &domt_port, &domt_port_number);
}

domus_system *domt_port_start_and_open(domus_config *config)
{
    domus_system *system = domt_port_start_system(config);
    ck_assert_msg(domt_port_open(system) == 0, "%s", error);
    return system;
}

void domt_port_close_and_end(domus_system *system)
{
    domus_observe_front.close(domt_port);
    domt_end_system(system);
}

int domt_port_send_request(const char *start_line)
{
    char request[512];
    int fd = domt_connect_to_port(domt_port_number);
    int length =
        snprintf(request, sizeof request,
                 "%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", start_line);
    /* the result is ignored, because the port may have reset the connection at once */
    (void)send(fd, request, (size_t)length, MSG_NOSIGNAL);
    return fd;
}

unsigned domt_port_request_and_read(const char *start_line)
{
    int fd = domt_port_send_request(start_line);
    size_t size = 0;
    ssize_t got;

    while ((got = recv(fd, domt_port_text + size, sizeof domt_port_text - 1 - size, 0)) > 0)
        size += (size_t)got;
    close(fd);
    domt_port_text[size] = '\0';
    return size > 12 ? (unsigned)strtoul(domt_port_text + strlen("HTTP/1.1 "), NULL, 10) : 0;
}
