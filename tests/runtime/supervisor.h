/* A socket that stands for that of systemd: programs in child processes send their states to it. */
#ifndef DOMT_SUPERVISOR_H
#define DOMT_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>

#define DOMT_SUPERVISOR_TEXT_MAX 1024

/* Listen at an abstract name, or at a path, and set $NOTIFY_SOCKET for children of this process. */
void domt_supervise(bool at_path);

/* Fill the socket with messages "full", so that it takes no more until some are received. */
void domt_supervisor_fill(void);

/* Stop listening, and unset the variable. */
void domt_supervise_end(void);

/* Wait at most `ms` milliseconds for the next message. Returns it, valid until the next call; NULL:
 * none came. */
const char *domt_supervisor_hears(uint32_t ms);

/* Wait for a message with `part`; others are skipped. The test fails if there is none in 20 s. */
const char *domt_supervisor_expects(const char *part);

/* Returns how many messages of the next `ms` milliseconds contain `part`. */
uint32_t domt_supervisor_counts(const char *part, uint32_t ms);

#endif
