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
    uint16_t web, kv, rooms, echo; /* ports of the listeners */
    unsigned status;               /* status of the last answer; 0: it had none */
    char answer[DOMT_ANSWER_MAX];  /* the last answer as a whole, with a zero at its end */
    const char *body;              /* pointer into `answer`: the part behind the head */
} domt_site;

/* Start the site with its own configuration, but on ports that the kernel chooses, with two
 * threads, and with settings up to a NULL, each as --set takes it. */
void domt_site_start_program(domt_site *site, const char *const settings[]);
/* Send SIGTERM, and check that the program ends with status 0 and a consistent profile. */
void domt_site_stop_program(domt_site *site);

/* Write the arguments with which the site is started, up to a NULL; domt_site_gather_arguments()
 * starts the program itself, the other function `./dev serve` with the program beside the test.
 * `room` is the size of the array. */
void domt_site_gather_arguments(const char *const settings[], const char **ret_arguments,
                                size_t room);
void domt_site_gather_arguments_of_dev_serve(const char *const settings[],
                                             const char **ret_arguments, size_t room);

/* Start the site by arguments that domt_site_gather_arguments() or the other function has written.
 */
void domt_site_start_by_arguments(domt_site *site, const char *const arguments[]);

/* Returns the port of a listener in the program's output; 0: it was not printed. */
uint16_t domt_site_port_in_output(const char *said, const char *listener);

/* Read the program's output until it names the port of a listener; returns that port. */
uint16_t domt_site_await_port(domt_service *service, const char *listener);

/* Send a request such as "GET /json" with further fields, each with its line end ("": none), and
 * read to the end of the connection. Returns the status. */
unsigned domt_site_ask(domt_site *site, const char *start, const char *fields, const char *body);

/* Send a complete request, which asks for the end of the connection. Returns the status. */
unsigned domt_site_send_raw_request(domt_site *site, const char *request);

/* Check that the answer to a request has this status and contains `part` (NULL: any). */
void domt_site_expect_answer(domt_site *site, const char *start, const char *body, unsigned status,
                             const char *part);

/* Send a text over a connection. */
void domt_send_text(int fd, const char *text);

#endif
