/* A system with an actor on thread 0 that opens channels of datagrams, plain sockets that send to
 * these channels, and a way to run functions of the test as one of the actors. */
#ifndef DOMT_DATAGRAMS_H
#define DOMT_DATAGRAMS_H

#include "tests/runtime/running.h"

/* How the channels of datagrams answer each datagram (domt_answers_now). */
typedef enum domt_answers {
    DOMT_ECHO,   /* a channel answers with the bytes that came */
    DOMT_NAME,   /* a channel answers with the endpoint of the sender as text */
    DOMT_SILENT, /* a channel does not answer */
} domt_answers;

extern _Atomic int domt_answers_now;
/* number of datagrams that channels have read (calls of on_read) */
extern _Atomic uint32_t domt_datagrams_read;
/* number of bytes in the datagrams that channels have read */
extern _Atomic uint32_t domt_bytes_read;
extern _Atomic uint32_t domt_datagrams_opened, domt_datagrams_closed;
/* error of the last on_close of a channel; 1: none was called yet */
extern _Atomic int domt_last_close;
/* result of the last call by which a channel has sent an answer */
extern _Atomic int domt_last_answer;
extern _Atomic int domt_last_name; /* result of the last domus_buffer_peer() in on_read */

extern domus_system *domt_datagram_system;
extern domus_address domt_opener; /* the actor on thread 0 that opens channels of datagrams */

/* Start the system of the test; NULL: with the configuration of domt_config_of_threads(2).
 * domt_end_system(domt_datagram_system) ends it. */
void domt_datagrams_start_system(const domus_config *config);

/* Let the actor at this address run `function`, wait until it has returned, and return its result.
 * The function may park. */
typedef int domt_deed(domus_stack *stack, void *argument);
int domt_run_as_actor(domus_address actor, domt_deed *function, void *argument);

/* Send another actor a notice that lets it run `function`, without waiting; for functions that run
 * as an actor. Returns the result of domus_notice(). */
int domt_send_function_to_run(domus_stack *stack, domus_address actor, domt_deed *function,
                              void *argument);

/* Open a channel of datagrams. Returns the errors of domus_datagram_open(). If `at` is NULL, the
 * channel is bound to no endpoint. */
int domt_open_datagram_channel(const char *at, const domus_datagram_options *options,
                               domus_address *ret_channel, domus_endpoint *ret_at);

/* Make a buffer of `size` bytes; a failure fails the test. */
domus_buffer *domt_new_buffer(domus_stack *stack, size_t size);

/* Write a text to the peer of a connected channel. The channel itself has to run this function
 * (domt_run_as_actor()). */
int domt_channel_write_text(domus_stack *stack, void *text);

/* Returns the counters of a channel of datagrams. */
domus_datagram_counters domt_counters_of_datagrams(domus_address channel);

/* Open a plain socket for datagrams, bound to the endpoint `at` (NULL: unbound). `ret_at`, if it is
 * not NULL, gets the endpoint of the socket. */
int domt_open_datagram_socket(const char *at, domus_endpoint *ret_at);

/* Send a datagram from a plain socket to an endpoint, or receive one within 10 s; an error fails
 * the test. domt_receive_datagram() returns the number of bytes that came. */
void domt_send_datagram(int fd, const domus_endpoint *to, const void *bytes, size_t size);
size_t domt_receive_datagram(int fd, void *bytes, size_t size);

#endif
