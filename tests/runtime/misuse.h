/* A system in which a test misuses listeners and channels: how its actors listen, answer and count,
 * and how peers connect to it. */
#ifndef DOMT_MISUSE_H
#define DOMT_MISUSE_H

#include "tests/runtime/running.h"

#include <domus/listen.h>

#include <sys/types.h>

extern domus_system *domt_misuse_system;

/* Counts and results of the actors. */
typedef struct domt_misuse {
    _Atomic uint32_t listening; /* listens that have returned */
    _Atomic int result;         /* result of the last listen */
    domus_endpoint found;       /* endpoint of the last listener; read after `listening` */
    _Atomic uint32_t opened;    /* calls of on_open and on_close */
    _Atomic uint32_t closed;
    _Atomic int last_error; /* error of the last on_close */
    /* channel of the last on_open; written before `opened` grows, so it is valid for a test that
     * has seen `opened` grow */
    domus_address last_channel;
    _Atomic uint32_t cancelled; /* sleeps that were cancelled, and sleeps that were not */
    _Atomic uint32_t slept;
} domt_misuse;

extern domt_misuse domt_misuse_seen;

/* The type of a notice at which the actor fails; the rows below handle it. */
extern const domus_type domt_misuse_fail_type;
extern const domus_on domt_misuse_rows[];

/* Start the system. */
void domt_misuse_begin(uint32_t threads);

/* Returns the endpoint of the newest listener, while others may be made. */
domus_endpoint domt_misuse_found(void);

/* Returns a connection to the IPv4 endpoint; -1 with errno. Its receives wait for at most 5 s. */
int domt_misuse_connect(const domus_endpoint *at);

/* Receive all `size` bytes, and return what recv(2) returns. The call is repeated if a ring that
 * this thread has opened and closed interrupts it. */
ssize_t domt_misuse_receive(int fd, void *bytes, size_t size);

bool domt_misuse_echoes(int fd);

/* Functions of behaviours, which record in domt_misuse_seen what they did. */
int domt_misuse_listen(domus_stack *stack, const char *at);
int domt_misuse_mount(domus_stack *stack, void *self); /* listens at 127.0.0.1:0 */
int domt_misuse_open(domus_stack *stack, void *self, const void *payload);
int domt_misuse_read(domus_stack *stack, void *self, const void *payload);
int domt_misuse_close(domus_stack *stack, void *self, const void *payload);

#endif
