/* A system whose thread 0 has an actor that opens channels of datagrams, plain sockets that talk to
 * them, and a way to run code of the test as one of the actors. */
#ifndef DOMT_DATAGRAMS_H
#define DOMT_DATAGRAMS_H

#include "tests/runtime/running.h"

/* How a channel answers. */
typedef enum domt_answers {
    DOMT_ECHO,   /* sends back what came */
    DOMT_NAME,   /* sends the endpoint of the sender as text */
    DOMT_SILENT, /* does not answer */
} domt_answers;

extern _Atomic int domt_answers_now;
extern _Atomic uint32_t domt_datagrams_read; /* on_read calls, */
extern _Atomic uint32_t domt_bytes_read;     /* and their bytes */
extern _Atomic uint32_t domt_datagrams_opened, domt_datagrams_closed;
extern _Atomic int domt_last_close;  /* the error of the last on_close; 1: there was none */
extern _Atomic int domt_last_answer; /* what the last send of an answer returned */
extern _Atomic int domt_last_name;   /* what the last domus_buffer_peer() returned */

extern domus_system *domt_datagram_system;
extern domus_address domt_opener; /* the actor that opens channels, on thread 0 */

/* Start; `config` NULL: that of domt_config(2). End with domt_end(domt_datagram_system). */
void domt_datagrams_begin(const domus_config *config);

/* Run `function` as the actor, and return what it returned. It may park. */
typedef int domt_deed(domus_stack *stack, void *argument);
int domt_do(domus_address actor, domt_deed *function, void *argument);

/* A deed may let another actor run `function`. Returns what domus_notice() does. */
int domt_tell(domus_stack *stack, domus_address actor, domt_deed *function, void *argument);

/* Open a channel; errors as of domus_datagram_open(). `at` NULL: none. */
int domt_open(const char *at, const domus_datagram_options *options, domus_address *ret_channel,
              domus_endpoint *ret_at);

/* Make a buffer, which has to work. */
domus_buffer *domt_buffer_of(domus_stack *stack, size_t size);

/* A deed of a connected channel: write a text. */
int domt_write_text(domus_stack *stack, void *text);

/* The counters of a channel. */
domus_datagram_counters domt_counts(domus_address channel);

/* A plain socket, bound to `at` (NULL: to nothing); `ret_at` (may be NULL) gets its endpoint. */
int domt_socket(const char *at, domus_endpoint *ret_at);

/* Send to an endpoint, and receive within 10 s; both hold that it works. Returns the bytes. */
void domt_post(int fd, const domus_endpoint *to, const void *bytes, size_t size);
size_t domt_get(int fd, void *bytes, size_t size);

#endif
