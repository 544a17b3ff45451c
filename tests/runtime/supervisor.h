/* A socket that stands for the one of systemd: programs in child processes send their states to it
 * (sd_notify). */
#ifndef DOMT_SUPERVISOR_H
#define DOMT_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>

#define DOMT_SUPERVISOR_TEXT_MAX 1024

/* Listen at an abstract name, or at a path, and set $NOTIFY_SOCKET, which child processes
 * inherit. */
void domt_supervisor_listen(bool at_path);

/* Fill the supervisor's socket with messages "full", so that it takes no more until some are
 * received. */
void domt_supervisor_fill_socket(void);

/* Close the supervisor's socket, and unset $NOTIFY_SOCKET. */
void domt_supervisor_close(void);

/* Wait at most `ms` milliseconds for the next message of a program. Returns it as text, valid until
 * the next call; NULL: none came. */
const char *domt_supervisor_next_message(uint32_t ms);

/* Wait for a message that contains `part`, and skip all others. The test fails if none comes within
 * 20 s. */
const char *domt_supervisor_expect_message(const char *part);

/* Returns how many messages that come within the next `ms` milliseconds contain `part`. */
uint32_t domt_supervisor_count_messages(const char *part, uint32_t ms);

#endif
