/* A system in which a test misuses listeners and channels: its actors listen, answer and count, and
 * peers of the test connect to it. */
#ifndef DOMT_MISUSE_H
#define DOMT_MISUSE_H

#include "tests/runtime/running.h"

#include <domus/listen.h>

#include <sys/types.h>

extern domus_system *domt_misuse_system;

/* Counts and results that the actors of the misused system have recorded. */
typedef struct domt_misuse {
    _Atomic uint32_t listening; /* number of calls of domus_listen() that have returned */
    _Atomic int result;         /* result of the last domus_listen() */
    /* endpoint of the last listener; read it after `listening` has grown */
    domus_endpoint found;
    _Atomic uint32_t opened; /* number of calls of on_open; `closed`: of on_close */
    _Atomic uint32_t closed;
    _Atomic int last_error; /* error that the last on_close got */
    /* channel of the last on_open; it is written before `opened` grows, so a test that has seen
     * `opened` grow reads the right one */
    domus_address last_channel;
    /* `cancelled`: number of sleeps that were cancelled; `slept`: number of sleeps that were not */
    _Atomic uint32_t cancelled;
    _Atomic uint32_t slept;
} domt_misuse;

extern domt_misuse domt_misuse_seen;

/* A notice whose handler fails with an error, and the rows of behaviours that handle it. */
extern const domus_type domt_misuse_fail_type;
extern const domus_on domt_misuse_rows[];

/* Start the system of the test with `threads` threads. */
void domt_misuse_start_system(uint32_t threads);

/* Returns the endpoint of the newest listener; safe while actors make more listeners. */
domus_endpoint domt_misuse_newest_endpoint(void);

/* Connect to an IPv4 endpoint. Returns the socket, whose receives wait for at most 5 s; -1 with
 * errno if the connect fails. */
int domt_misuse_connect(const domus_endpoint *at);

/* Receive `size` bytes from a socket, and return the result of recv(2). The call is repeated on
 * EINTR, which comes when the kernel tears down a ring of this thread. */
ssize_t domt_misuse_receive(int fd, void *bytes, size_t size);

bool domt_misuse_try_echo(int fd);

/* Functions for behaviours of the test's actors, which record in domt_misuse_seen that they were
 * called. domt_misuse_listen_and_record() calls domus_listen() at the endpoint `at`. */
int domt_misuse_listen_and_record(domus_stack *stack, const char *at);
/* an on_mount, which listens at 127.0.0.1:0 */
int domt_misuse_on_mount_listen(domus_stack *stack, void *self);
int domt_misuse_on_open_count(domus_stack *stack, void *self, const void *payload);
int domt_misuse_on_read_echo(domus_stack *stack, void *self, const void *payload);
int domt_misuse_on_close_count(domus_stack *stack, void *self, const void *payload);

#endif
