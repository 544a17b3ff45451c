/* A system in which a test misuses listeners and channels: how its actors listen, answer and count,
 * and how strangers connect to it. */
#ifndef DOMT_MISUSE_H
#define DOMT_MISUSE_H

#include "tests/runtime/running.h"

#include <domus/listen.h>

#include <sys/types.h>

extern domus_system *domt_misuse_system;

/* Things that the actors have seen and done. */
typedef struct domt_misuse {
    _Atomic uint32_t listening; /* listens that came back */
    _Atomic int result;         /* of the last listen */
    domus_endpoint found;       /* where the last listener listens; read after `listening` */
    _Atomic uint32_t opened;    /* calls of on_open and on_close */
    _Atomic uint32_t closed;
    _Atomic int last_error;     /* of the last on_close */
    domus_address last_channel; /* read after `opened` */
    _Atomic uint32_t cancelled; /* sleeps that were cancelled, and those that were not */
    _Atomic uint32_t slept;
} domt_misuse;

extern domt_misuse domt_misuse_seen;

/* Rows of an actor that fails when it gets a notice of this type. */
extern const domus_type domt_misuse_fail_type;
extern const domus_on domt_misuse_rows[];

/* Start the system. */
void domt_misuse_begin(uint32_t threads);

/* Returns where the newest listener is, while others may come. */
domus_endpoint domt_misuse_found(void);

/* Returns a connection to the IPv4 endpoint; -1 with errno. Its receives wait for 5 s at most. */
int domt_misuse_connect(const domus_endpoint *at);

/* Returns what recv(2) of all `size` bytes does. It is tried again if a ring that this thread has
 * opened and closed interrupts it. */
ssize_t domt_misuse_receive(int fd, void *bytes, size_t size);

bool domt_misuse_echoes(int fd);

/* Functions of behaviours, which note what they did in domt_misuse_seen. */
int domt_misuse_listen(domus_stack *stack, const char *at);
int domt_misuse_mount(domus_stack *stack, void *self); /* listens at 127.0.0.1:0 */
int domt_misuse_open(domus_stack *stack, void *self, const void *payload);
int domt_misuse_read(domus_stack *stack, void *self, const void *payload);
int domt_misuse_close(domus_stack *stack, void *self, const void *payload);

#endif
