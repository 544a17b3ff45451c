/* Systems whose observation port is open, and requests to it; one system at a time. */
#ifndef DOMT_PORT_H
#define DOMT_PORT_H

#include "tests/runtime/running.h"

#include <domus/observe.h>

extern void *domt_port;
extern uint16_t domt_port_number;
extern char domt_port_text[4u << 20]; /* the last answer, with its head */

/* Start a system that wants a port; open the port; do both; or close the port and end the
 * system. */
domus_system *domt_port_start(domus_config *config);
int domt_port_open(domus_system *system);
domus_system *domt_port_begin(domus_config *config);
void domt_port_end(domus_system *system);

/* Send a request, such as "GET /health". Returns the connection. */
int domt_port_send(const char *start_line);

/* Send a request, and read the whole answer. Returns its status; 0: no answer came. */
unsigned domt_port_ask(const char *start_line);

#endif
