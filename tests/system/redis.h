/* Tests talk RESP with a server: the example kv, and redis-server beside it, which is the judge. */
#ifndef DOMT_REDIS_H
#define DOMT_REDIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define DOMT_REPLY_MAX 65536

/* Start redis-server on a free port of 127.0.0.1, without a file of its own, and wait until it
 * answers. It dies with the test. Returns false if it is not installed. */
bool domt_redis_start(pid_t *ret_pid, uint16_t *ret_port);
void domt_redis_stop(pid_t pid);

/* Send a command that is written as words with spaces between; a word in quotes may have spaces.
 * "%N" as a whole word stands for N letters. */
void domt_resp_send(int fd, const char *words);

/* Send a command, and read all of its reply. Returns the number of bytes; `reply` has a zero
 * behind them. */
size_t domt_resp_ask(int fd, const char *words, char reply[DOMT_REPLY_MAX]);

/* Hold that a command gets exactly this reply. */
void domt_resp_holds(int fd, const char *words, const char *reply);

/* Hold that each of these commands, up to a NULL, gets the same reply from both servers. */
void domt_resp_compare(int fd, int redis, const char *const commands[]);

#endif
