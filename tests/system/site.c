/* Starts the example web, and sends HTTP to it by plain sockets: one request and one answer for
 * each connection. */
#include "tests/system/site.h"

#include "tests/support/crowd.h"
#include "tests/support/suite.h"
#include "tests/system/talks.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ARGUMENTS_MAX 64
#define WAIT_MS       10000

/* Write the arguments of the site: those of `begin`, the settings of all tests, and these
 * settings. */
static void gather_arguments_of_site(const char *const begin[], const char *const settings[],
                                     const char **ret_arguments, size_t room)
{
    static const char *const always[] = {"listeners.web.address=127.0.0.1:0",
                                         "listeners.kv.address=127.0.0.1:0",
                                         "listeners.rooms.address=127.0.0.1:0",
                                         "listeners.echo.address=127.0.0.1:0", "system.threads=2",
                                         /* web.checkHost is on only in the test of this setting */
                                         "web.checkHost=false",
                                         /* the observation port is on only in the tests of
                                          * observation */
                                         "observe.listen=", NULL};
    const char *const *const lists[] = {always, settings};
    size_t count = 0;

    while (begin[count] != NULL) {
        ret_arguments[count] = begin[count];
        count++;
    }
    for (size_t i = 0; i < 2; i++) {
        for (const char *const *setting = lists[i]; *setting != NULL; setting++) {
            ck_assert_uint_lt(count, room - 3);
            ret_arguments[count++] = "--set";
            ret_arguments[count++] = *setting;
        }
    }
    ret_arguments[count] = NULL;
}

void domt_site_gather_arguments(const char *const settings[], const char **ret_arguments,
                                size_t room)
{
    static const char *const begin[] = {DOMT_BIN_DIR "/web",
                                        "--config",
                                        DOMT_SOURCE_DIR "/examples/web/web.yaml",
                                        "--set",
                                        "web.root=" DOMT_SOURCE_DIR "/examples/web/static",
                                        NULL};

    gather_arguments_of_site(begin, settings, ret_arguments, room);
}

void domt_site_gather_arguments_of_dev_serve(const char *const settings[],
                                             const char **ret_arguments, size_t room)
{
    static const char *const begin[] = {"/bin/sh", DOMT_SOURCE_DIR "/dev", "serve", NULL};

    ck_assert_int_eq(setenv("DOMUS_BIN", DOMT_BIN_DIR, 1), 0);
    gather_arguments_of_site(begin, settings, ret_arguments, room);
}

uint16_t domt_site_port_in_output(const char *said, const char *listener)
{
    char begin[64];

    snprintf(begin, sizeof begin, "listening %s 127.0.0.1:", listener);
    const char *line = strstr(said, begin);
    return line != NULL && strchr(line, '\n') != NULL
               ? (uint16_t)strtoul(line + strlen(begin), NULL, 10)
               : 0;
}

uint16_t domt_site_await_port(domt_service *service, const char *listener)
{
    while (domt_site_port_in_output(service->said, listener) == 0) {
        struct pollfd waiting = {.fd = service->output, .events = POLLIN};
        size_t length = strlen(service->said);
        ck_assert_int_eq(poll(&waiting, 1, WAIT_MS), 1);
        ssize_t size =
            read(service->output, service->said + length, sizeof service->said - 1 - length);
        ck_assert_int_gt(size, 0);
        service->said[length + (size_t)size] = '\0';
    }
    return domt_site_port_in_output(service->said, listener);
}

void domt_site_start_program(domt_site *site, const char *const settings[])
{
    const char *arguments[ARGUMENTS_MAX];

    domt_site_gather_arguments(settings, arguments, ARGUMENTS_MAX);
    domt_site_start_by_arguments(site, arguments);
}

void domt_site_start_by_arguments(domt_site *site, const char *const arguments[])
{
    domt_service_start(&site->service, arguments);
    /* "echo" is the listener that is printed last */
    site->echo = domt_site_await_port(&site->service, "echo");
    site->web = domt_site_port_in_output(site->service.said, "web");
    site->kv = domt_site_port_in_output(site->service.said, "kv");
    site->rooms = domt_site_port_in_output(site->service.said, "rooms");
    ck_assert(site->web != 0 && site->kv != 0 && site->rooms != 0);
}

void domt_site_stop_program(domt_site *site)
{
    domt_service_stop(&site->service);
}

/* Read an answer up to the end of the connection, or up to its reset. */
static void read_answer_to_end(domt_site *site, int fd)
{
    size_t size = 0;
    ssize_t part;

    while ((part = recv(fd, site->answer + size, sizeof site->answer - 1 - size, 0)) > 0)
        size += (size_t)part;
    site->answer[size] = '\0';
    const char *end = strstr(site->answer, "\r\n\r\n");
    site->body = end != NULL ? end + 4 : site->answer + size;
    site->status = strncmp(site->answer, "HTTP/1.1 ", 9) == 0
                       ? (unsigned)strtoul(site->answer + 9, NULL, 10)
                       : 0;
}

unsigned domt_site_ask(domt_site *site, const char *start, const char *fields, const char *body)
{
    char head[2048];
    size_t size = body != NULL ? strlen(body) : 0;
    int fd = domt_connect_to_port(site->web);

    int length =
        snprintf(head, sizeof head, "%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s",
                 start, fields);
    ck_assert_uint_lt((size_t)length, sizeof head - 64);
    if (body != NULL)
        length += snprintf(head + length, 64, "Content-Length: %zu\r\n", size);
    length += snprintf(head + length, 8, "\r\n");
    domt_send_all(fd, head, (size_t)length);
    if (body != NULL)
        /* the service may refuse the body while it is sent */
        (void)send(fd, body, size, MSG_NOSIGNAL);
    read_answer_to_end(site, fd);
    close(fd);
    return site->status;
}

unsigned domt_site_send_raw_request(domt_site *site, const char *request)
{
    int fd = domt_connect_to_port(site->web);

    domt_send_all(fd, request, strlen(request));
    read_answer_to_end(site, fd);
    close(fd);
    return site->status;
}

void domt_site_expect_answer(domt_site *site, const char *start, const char *body, unsigned status,
                             const char *part)
{
    unsigned got = domt_site_ask(site, start, "", body);

    ck_assert_msg(got == status, "%s: %u and not %u: %s", start, got, status, site->answer);
    ck_assert_msg(part == NULL || strstr(site->answer, part) != NULL, "%s: not '%s' in: %s", start,
                  part, site->answer);
}

void domt_send_text(int fd, const char *text)
{
    domt_send_all(fd, text, strlen(text));
}
