/* Connections of tests that send RESP to a server: the example kv, and redis-server, whose answers
 * are the correct ones. */
#ifndef DOMT_REDIS_H
#define DOMT_REDIS_H

#include "tests/support/service.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define DOMT_REPLY_MAX 65536

/* Start the example kv with its own configuration, but on a port that the kernel chooses, with two
 * threads, and with settings up to a NULL, each as --set takes it. */
void domt_kv_start(domt_service *service, const char *const settings[]);

/* Start kv, and connect to it; end both. */
int domt_kv_start_and_connect(domt_service *service, const char *const settings[]);
void domt_kv_close_and_stop(domt_service *service, int fd);

/* Start redis-server on a free port of 127.0.0.1, without a configuration file, and wait until it
 * answers. It ends with the test. Returns false, and prints a note, if it is not installed. */
bool domt_redis_start_server(pid_t *ret_pid, uint16_t *ret_port);
void domt_redis_stop_server(pid_t pid);

/* Send a command that is written as words separated by spaces; a quoted word may have spaces. "%N"
 * as a whole word stands for N letters. */
void domt_resp_send_command(int fd, const char *words);

/* Send a command, and read all of its reply. Returns the number of bytes; `reply` ends with a
 * zero. */
size_t domt_resp_ask_for_reply(int fd, const char *words, char reply[DOMT_REPLY_MAX]);

/* Check that a command gets exactly this reply. */
void domt_resp_expect_trace(int fd, const char *words, const char *reply);

/* Check that each of these commands, up to a NULL, gets the same reply from both servers; the
 * second function starts a redis-server for that, unless it is not installed. */
void domt_resp_compare_replies(int fd, int redis, const char *const commands[]);
void domt_resp_compare_with_new_redis(int fd, const char *const commands[]);

#endif
