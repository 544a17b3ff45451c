/* Several clients send the same lines to kv and to redis-server, and have to receive the same
 * bytes.
 *
 * A line of a dialogue is the letter of a client, a space (or '~', when a time-out is awaited), and
 * what the client sends: commands with ';' between them, as for domt_resp_send_command(), or CLOSE.
 * After each line the answers to all clients are read: redis-server is quick, so its answers tell
 * how much kv has to send. If one server has sent more, the other one has some seconds to send it,
 * too. */
#ifndef DOMT_DIALOGUE_H
#define DOMT_DIALOGUE_H

#include <stdint.h>

/* Run a dialogue, whose lines end with a NULL. Clients connect when they are first named. */
void domt_compare_dialogue_at_two_ports(const char *const lines[], uint16_t kv_port,
                                        uint16_t redis_port);

/* Run a dialogue with a redis-server that is started for it, unless redis-server is not
 * installed. */
void domt_compare_dialogue_with_redis(const char *const lines[], uint16_t kv_port);

#endif
