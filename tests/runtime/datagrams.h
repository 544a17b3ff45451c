/* A system whose thread 0 has an actor that opens channels of datagrams, plain sockets that send to
 * them, and a way to run functions of the test as one of the actors. */
#ifndef DOMT_DATAGRAMS_H
#define DOMT_DATAGRAMS_H

#include "tests/runtime/running.h"

/* How a channel answers each datagram. */
typedef enum domt_answers {
    DOMT_ECHO,   /* answers with the bytes that came */
    DOMT_NAME,   /* answers with the endpoint of the sender as text */
    DOMT_SILENT, /* does not answer */
} domt_answers;

extern _Atomic int domt_answers_now;
extern _Atomic uint32_t domt_datagrams_read; /* number of calls of on_read */
extern _Atomic uint32_t domt_bytes_read;     /* number of bytes that came in these calls */
extern _Atomic uint32_t domt_datagrams_opened, domt_datagrams_closed;
extern _Atomic int domt_last_close;  /* error of the last on_close; 1: there was none yet */
extern _Atomic int domt_last_answer; /* result of the last send of an answer */
extern _Atomic int domt_last_name;   /* result of the last domus_buffer_peer() */

extern domus_system *domt_datagram_system;
extern domus_address domt_opener; /* the actor that opens channels, on thread 0 */

/* Start the system; `config` NULL: that of domt_config(2). End it with
 * domt_end(domt_datagram_system). */
void domt_datagrams_begin(const domus_config *config);

/* Run `function` as the actor, and return its result. The function may park. */
typedef int domt_deed(domus_stack *stack, void *argument);
int domt_do(domus_address actor, domt_deed *function, void *argument);

/* Let another actor run `function`; for functions that run as an actor. Returns what domus_notice()
 * does. */
int domt_tell(domus_stack *stack, domus_address actor, domt_deed *function, void *argument);

/* Open a channel; returns the errors of domus_datagram_open(). `at` NULL: the channel is bound to
 * nothing. */
int domt_open(const char *at, const domus_datagram_options *options, domus_address *ret_channel,
              domus_endpoint *ret_at);

/* Make a buffer; a failure fails the test. */
domus_buffer *domt_buffer_of(domus_stack *stack, size_t size);

/* Write a text to a connected channel; run as that channel. */
int domt_write_text(domus_stack *stack, void *text);

/* Returns the counters of a channel. */
domus_datagram_counters domt_counts(domus_address channel);

/* Open a plain socket, bound to `at` (NULL: to nothing); `ret_at` (may be NULL) gets its
 * endpoint. */
int domt_socket(const char *at, domus_endpoint *ret_at);

/* Send to an endpoint, and receive within 10 s; both fail the test on an error. The receive returns
 * the number of bytes. */
void domt_post(int fd, const domus_endpoint *to, const void *bytes, size_t size);
size_t domt_get(int fd, void *bytes, size_t size);

#endif
