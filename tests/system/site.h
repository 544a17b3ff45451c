/* The example web as a service under test: its four ports, and requests to it. */
#ifndef DOMT_SITE_H
#define DOMT_SITE_H

#include "tests/support/service.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOMT_ANSWER_MAX 131072

typedef struct domt_site {
    domt_service service;
    uint16_t web, kv, rooms, echo; /* ports */
    unsigned status;               /* of the last answer; 0: it had none */
    char answer[DOMT_ANSWER_MAX];  /* the last one, all of it, with a zero behind */
    const char *body;              /* what stands behind its head */
} domt_site;

/* Start it as its own configuration has it, but on ports that the kernel chooses, with two threads,
 * and with settings up to a NULL, each as --set takes it. */
void domt_site_start(domt_site *site, const char *const settings[]);
/* Send SIGTERM; it must exit with 0, and its profile must be sound. */
void domt_site_stop(domt_site *site);

/* The arguments of the program, up to a NULL, and those of `./dev serve`, which takes the program
 * that was built beside the test; `room` is that of the array. */
void domt_site_arguments(const char *const settings[], const char **ret_arguments, size_t room);
void domt_site_served(const char *const settings[], const char **ret_arguments, size_t room);

/* Start it by such arguments. */
void domt_site_start_by(domt_site *site, const char *const arguments[]);

/* Read the port of a listener from what the program has printed; 0: it was not printed. */
uint16_t domt_site_port(const char *said, const char *listener);

/* Read what the program prints until it has named the port of a listener, and return that. */
uint16_t domt_site_await_port(domt_service *service, const char *listener);

/* Send a request, as "GET /json" and further fields, each with its line end ("": none), and read
 * all that comes up to the end of the connection. Returns the status. */
unsigned domt_site_ask(domt_site *site, const char *start, const char *fields, const char *body);

/* Send a whole request as it is, which asks for the end of the connection. Returns the status. */
unsigned domt_site_send(domt_site *site, const char *request);

/* Check that a request gets this status, and an answer that has `part` (NULL: whatever). */
void domt_site_holds(domt_site *site, const char *start, const char *body, unsigned status,
                     const char *part);

/* Send a text. */
void domt_say(int fd, const char *text);

#endif
