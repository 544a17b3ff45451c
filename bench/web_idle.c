/* This file measures what idle connections cost (web_idle.h): the resident set of the server, and
 * what domus counts as its own memory, with and without them. Connections of HTTP have had an
 * answer, and WebSockets an echo. */
#include "bench/web_idle.h"

#include "bench/support/measure.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define CONNECTIONS 10000u
#define LOOK_S      0.3 /* seconds after which the library has measured its memory anew */

/* Number of connections before memory is first looked at, and of the requests on each. After them
 * everything that is made only once exists, and each receive buffer of the thread was used. */
#define WARM      100u
#define WARM_ASKS 20u

static int fds[CONNECTIONS + WARM];

/* Send a request for a path and read its answer. Returns the number of bytes of the body, which is
 * the end of `answer`; or a negative errno. */
static int send_request_for_path(int fd, const char *path, char *answer, size_t room)
{
    char request[128];
    size_t size = 0;
    int length = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path);

    if (send(fd, request, (size_t)length, MSG_NOSIGNAL) != length)
        return -errno;
    for (;;) {
        ssize_t got = recv(fd, answer + size, room - 1 - size, 0);
        if (got <= 0)
            return got < 0 ? -errno : -ECONNRESET;
        size += (size_t)got;
        answer[size] = '\0';
        const char *end = strstr(answer, "\r\n\r\n");
        const char *field = strstr(answer, "Content-Length: ");
        if (end == NULL)
            continue;
        if (strncmp(answer, "HTTP/1.1 200 ", 13) != 0 || field == NULL)
            return -EBADMSG;
        long body = strtol(field + strlen("Content-Length: "), NULL, 10);
        if (answer + size == end + 4 + body)
            return (int)body;
    }
}

/* Change a connection of HTTP to a WebSocket, and get an echo on it. Returns 0, or a negative
 * errno. */
static int change_to_websocket(int fd)
{
    static const char request[] = "GET /socket HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n"
                                  "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                                  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    static const char accepted[] = "HTTP/1.1 101 ";
    /* a WebSocket frame with the text "hi", whose mask has only zeros */
    static const unsigned char text[] = {0x81, 0x82, 0, 0, 0, 0, 'h', 'i'};
    static const unsigned char echoed[] = {0x81, 2, 'h', 'i'};
    char answer[1024];
    size_t size = 0;

    if (send(fd, request, sizeof request - 1, MSG_NOSIGNAL) != (ssize_t)sizeof request - 1)
        return -EPIPE;
    do {
        ssize_t got = recv(fd, answer + size, sizeof answer - 1 - size, 0);
        if (got <= 0)
            return -ECONNRESET;
        size += (size_t)got;
        answer[size] = '\0';
    } while (strstr(answer, "\r\n\r\n") == NULL);
    if (strncmp(answer, accepted, sizeof accepted - 1) != 0)
        return -EBADMSG;
    if (send(fd, text, sizeof text, MSG_NOSIGNAL) != (ssize_t)sizeof text)
        return -EPIPE;
    ssize_t got = recv(fd, answer, sizeof echoed, MSG_WAITALL);
    return got == (ssize_t)sizeof echoed && memcmp(answer, echoed, sizeof echoed) == 0 ? 0
                                                                                       : -EBADMSG;
}

static int open_connection(uint16_t port, uint32_t asks, bool upgrades, int *ret_fd)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char answer[1024];

    *ret_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*ret_fd < 0)
        return -errno;
    if (connect(*ret_fd, (const struct sockaddr *)&address, sizeof address) != 0)
        return -errno;
    int body = 0;
    for (uint32_t i = 0; body >= 0 && i < asks; i++)
        body = send_request_for_path(*ret_fd, "/", answer, sizeof answer);
    if (body >= 0 && upgrades)
        body = change_to_websocket(*ret_fd);
    return body < 0 ? body : 0;
}

/* Returns the bytes of own memory that domus counts; 0 for any other server. */
static double read_own_memory_of_domus(int fd)
{
    char answer[1024];
    int body = send_request_for_path(fd, "/memory", answer, sizeof answer);

    return body > 0 ? strtod(strstr(answer, "\r\n\r\n") + 4, NULL) : 0;
}

static int measure_memory_of_connections(const struct versus *versus, uint32_t which, bool upgrades,
                                         const struct server *server)
{
    const char *kind = upgrades ? "idle_websocket" : "idle";
    bool is_domus = which < versus->contenders;
    double resident = 0;
    double own = 0;

    for (uint32_t i = 0; i < CONNECTIONS + WARM; i++) {
        if (i == WARM) {
            measure_sleep_seconds(LOOK_S);
            resident = measure_resident_bytes(server->pid);
            own = is_domus ? read_own_memory_of_domus(fds[0]) : 0;
        }
        int error =
            open_connection(server->port, i < WARM ? WARM_ASKS : 1, upgrades && i > 0, &fds[i]);
        if (error != 0)
            return error;
    }
    measure_sleep_seconds(LOOK_S);
    printf("web_%s_%s_resident %.0f bytes/connection\n", kind, versus->names[which],
           (measure_resident_bytes(server->pid) - resident) / CONNECTIONS);
    if (is_domus)
        printf("web_%s_%s_own %.0f bytes/connection\n", kind, versus->names[which],
               (read_own_memory_of_domus(fds[0]) - own) / CONNECTIONS);
    fflush(stdout);
    return 0;
}

static int measure_idle_connections_on_server(const struct versus *versus, uint32_t which,
                                              bool upgrades)
{
    struct server server;
    struct server_usage usage;
    int error = versus_start_server(versus, which, &server);

    if (error != 0)
        return error;
    memset(fds, -1, sizeof fds);
    error = measure_memory_of_connections(versus, which, upgrades, &server);
    for (uint32_t i = 0; i < CONNECTIONS + WARM; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    int end = server_stop(&server, &usage);
    if (error != 0)
        fprintf(stderr, "web: idle connections of %s: %s\n", versus->names[which],
                strerror(-error));
    return error != 0 ? error : end;
}

int web_idle_run_row(const struct versus *versus)
{
    struct rlimit files;
    int error = 0;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return -errno;
    files.rlim_cur = files.rlim_max;
    if (files.rlim_max < CONNECTIONS + WARM + 64 || setrlimit(RLIMIT_NOFILE, &files) != 0) {
        fprintf(stderr, "web: the row idle needs %u open files: left out\n",
                CONNECTIONS + WARM + 64);
        return 0;
    }
    for (uint32_t which = 0; error == 0 && which < versus->servers; which++)
        error = measure_idle_connections_on_server(versus, which, false);
    for (uint32_t which = 0; error == 0 && which < versus->contenders; which++)
        error = measure_idle_connections_on_server(versus, which, true);
    return error;
}
