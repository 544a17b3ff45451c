/* A socket that stands for that of systemd: programs in child processes send their states to it. */
#ifndef DOMT_SUPERVISOR_H
#define DOMT_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>

#define DOMT_SUPERVISOR_TEXT_MAX 1024

/* Listen at an abstract name, or at a path, and let children of this process get it as
 * $NOTIFY_SOCKET. */
void domt_supervise(bool at_path);

/* Fill the socket with messages "full", so that no more are taken until some are heard. */
void domt_supervisor_fill(void);

/* Stop listening, and take the variable back. */
void domt_supervise_end(void);

/* Wait for the next message, for at most `ms`. Returns it, until the next call; NULL: none came. */
const char *domt_supervisor_hears(uint32_t ms);

/* Wait for a message with `part`; others are left out. The test fails if there is none in 20 s. */
const char *domt_supervisor_expects(const char *part);

/* How many messages have this within the next `ms`. */
uint32_t domt_supervisor_counts(const char *part, uint32_t ms);

#endif
