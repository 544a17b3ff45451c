/* The doctor finds nothing in programs without a fault: idle ones, and the example web under load
 * by each of its protocols, with no thread that sleeps. Findings about the machine may be true
 * here. */
#include "tests/support/crowd.h"
#include "tests/support/suite.h"
#include "tests/system/observe.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS  16
#define PIPELINE 8
/* a load whose clients receive fewer bytes in a second is none; a load has some megabytes */
#define SERVED_LEAST 1000

static domt_observed web;

/* A load: clients that send the same bytes again and again, and read the answers. */
struct load {
    const char *name, *request;
    size_t port; /* offset in domt_site of the port that the load uses */
};

static const struct load loads[] = {
    {"echo", "64 bytes of nothing, and more of it, so that there are 64 by now",
     offsetof(domt_site, echo)},
    {"web", "GET /json HTTP/1.1\r\nHost: localhost\r\n\r\n", offsetof(domt_site, web)},
    {"kv", "*3\r\n$3\r\nSET\r\n$4\r\nword\r\n$5\r\nthing\r\n*2\r\n$3\r\nGET\r\n$4\r\nword\r\n",
     offsetof(domt_site, kv)},
};
#define LOADS (sizeof loads / sizeof loads[0])

struct client {
    pthread_t thread;
    const struct load *load;
    atomic_bool *is_ending;
    size_t received; /* bytes received by the load's clients, set when the load has ended */
};

/* Send the load's requests and read the answers, on all connections, until the load shall end. */
static void *run_load_of_clients(void *client_)
{
    struct client *client = client_;
    uint16_t port = *(const uint16_t *)(const void *)((const char *)&web.site + client->load->port);
    char bytes[65536];
    int fds[CLIENTS];

    for (int i = 0; i < CLIENTS; i++)
        fds[i] = domt_connect_to_port(port);
    while (!atomic_load(client->is_ending)) {
        for (int i = 0; i < CLIENTS; i++) {
            for (int k = 0; k < PIPELINE; k++)
                (void)send(fds[i], client->load->request, strlen(client->load->request),
                           MSG_NOSIGNAL | MSG_DONTWAIT);
        }
        for (int i = 0; i < CLIENTS; i++) {
            ssize_t size = recv(fds[i], bytes, sizeof bytes, MSG_DONTWAIT);
            client->received += size > 0 ? (size_t)size : 0;
        }
    }
    for (int i = 0; i < CLIENTS; i++)
        close(fds[i]);
    return NULL;
}

/* Check that the doctor finds nothing in one second, except findings about CPU time that the
 * machine takes away. A thread that is denied the CPU has stalls, too, and its clients read
 * slowly. */
static void expect_no_finding(const char *name)
{
    static const char *const allowed[] = {"cpu-denied (",    "cpu-stolen (",
                                          "cpu-throttled (", "quota-under-threads (",
                                          "epoll (",         "memory-foreign ("};
    static const char *const of_denied[] = {"stalls (", "slow-readers ("};
    uint32_t findings = 0, excused = 0;

    ck_assert_uint_eq(domt_site_ask(&web.port, "GET /doctor?seconds=1", "", NULL), 200);
    for (const char *at = web.port.body; (at = strstr(at, "\n\n")) != NULL; at++)
        findings++;
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++)
        excused += strstr(web.port.body, allowed[i]) != NULL;
    for (size_t i = 0; i < sizeof of_denied / sizeof of_denied[0]; i++)
        excused += strstr(web.port.body, allowed[0]) != NULL &&
                   strstr(web.port.body, of_denied[i]) != NULL;
    ck_assert_msg(findings == excused, "%s: %s", name, web.port.body);
}

static void check_doctor_under_load(const struct load *load)
{
    atomic_bool is_ending = false;
    struct client client = {.load = load, .is_ending = &is_ending};

    ck_assert_int_eq(pthread_create(&client.thread, NULL, run_load_of_clients, &client), 0);
    domt_sleep_ms(200);
    expect_no_finding(load->name);
    atomic_store(&is_ending, true);
    pthread_join(client.thread, NULL);
    ck_assert_msg(client.received > SERVED_LEAST, "%s: only %zu bytes were served", load->name,
                  client.received);
}

DOMT_TEST(doctor_finds_nothing_in_an_idle_program)
{
    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    expect_no_finding("idle");
    domt_observed_stop_web(&web);
}

DOMT_TEST(doctor_finds_nothing_in_a_program_under_load)
{
    domt_observed_start_web(&web, (const char *const[]){NULL}, NULL);
    for (size_t i = 0; i < LOADS; i++)
        check_doctor_under_load(&loads[i]);
    domt_observed_stop_web(&web);
}

DOMT_SUITE(60)
