/* Systems whose observation port (domus/observe.h) is open, and HTTP requests to this port; a test
 * has one such system at a time. */
#ifndef DOMT_PORT_H
#define DOMT_PORT_H

#include "tests/runtime/running.h"

#include <domus/observe.h>

extern void *domt_port;
extern uint16_t domt_port_number;
extern char domt_port_text[4u << 20]; /* the port's last answer, with its head */

/* Start a system whose configuration has an observation port, which is not opened yet. */
domus_system *domt_port_start_system(domus_config *config);

/* Open the observation port of the system. Returns 0, or the error of the open. */
int domt_port_open(domus_system *system);

/* Start a system, and open its observation port. */
domus_system *domt_port_start_and_open(domus_config *config);

/* Close the observation port, and end the system. */
void domt_port_close_and_end(domus_system *system);

/* Connect to the observation port, and send a request, such as "GET /health". Returns the
 * connection. */
int domt_port_send_request(const char *start_line);

/* Send a request to the observation port, and read the whole answer into domt_port_text. Returns
 * the status of the answer; 0: none came. */
unsigned domt_port_request_and_read(const char *start_line);

#endif
