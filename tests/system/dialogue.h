/* Several clients talk with kv and with redis-server, and have to hear the same bytes.
 *
 * A line of a dialogue is the letter of a client, a space (or '~', when a time-out is waited for),
 * and what it sends: commands with ';' between them, as of domt_resp_send(), or CLOSE. After each
 * line all clients are listened to: redis-server is quick, and what it says tells how much kv has
 * to say. If one of them has said more, the other one has some seconds to say it, too. */
#ifndef DOMT_DIALOGUE_H
#define DOMT_DIALOGUE_H

#include <stdint.h>

/* Hold a dialogue, up to a NULL. Clients are connected when they are first named. */
void domt_dialogue(const char *const lines[], uint16_t kv_port, uint16_t redis_port);

/* The same with a redis-server that is started for it, unless it is not installed. */
void domt_dialogue_with_redis(const char *const lines[], uint16_t kv_port);

#endif
