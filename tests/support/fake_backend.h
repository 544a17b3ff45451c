/* A ring without a kernel: operations are noted, and the test says what they bring.
 *
 * It holds on to the contract of io/backend/backend.h from the kernel's side: at most one operation
 * of a kind is in flight on a descriptor (M13; datagrams to be sent are as many as one likes),
 * nothing is begun on one that is closed, a buffer is given only when it is out and seen only after
 * publish(), a completion belongs to an operation that is in flight. Whatever breaks it fails the
 * test. Nothing completes by itself. */
#ifndef DOMT_FAKE_BACKEND_H
#define DOMT_FAKE_BACKEND_H

#include "io/backend/gathered.h"

#include <sys/types.h>

#define DOMT_FAKE_BUFFERS_MAX 1024u
#define DOMT_FAKE_DEFERRED    20u /* as many as the kernel completes in one enter */

typedef enum domt_op_kind {
    DOMT_ACCEPT,
    DOMT_RECEIVE,
    DOMT_POLL,
    DOMT_SEND, /* send and send_message */
    DOMT_SEND_DATAGRAM,
    DOMT_CANCEL,
} domt_op_kind;

/* An operation in flight. */
typedef struct domt_op {
    struct domt_op *next;
    domt_op_kind kind;
    int fd; /* -1 of a cancel */
    uint64_t user_data;
    bool once;                    /* a receive of one shot */
    uint64_t target;              /* of a cancel */
    const void *data;             /* of a send */
    uint32_t size;                /* of a send, in all */
    const struct msghdr *message; /* of a send_message: `gathered.message`; NULL of a send */
    domi_gathered gathered;       /* what a send_message was given */
    domi_datagram_out datagram;   /* of a send_datagram */
} domt_op;

typedef struct domt_fake {
    domt_op *ops; /* in flight, the oldest first */
    domi_completion *completions;
    uint32_t completions_head;
    uint32_t completions_tail;
    uint32_t completions_shown; /* up to here the owner sees them */
    uint32_t reaped_max;        /* the most completions that one reap had room for */
    bool defers;     /* as under DEFER_TASKRUN, an enter shows DOMT_FAKE_DEFERRED of them at most */
    uint32_t barren; /* so many enters show nothing, though something is deferred */
    bool floods;     /* each enter brings DOMT_FAKE_DEFERRED more, of the wake poll */
    uint32_t buffers_count;
    struct {
        char *data;
        uint32_t size;
        bool given;
    } buffers[DOMT_FAKE_BUFFERS_MAX];
    uint16_t queue[DOMT_FAKE_BUFFERS_MAX]; /* given buffers, the oldest first */
    uint32_t queue_head;
    uint32_t queue_tail;
    uint32_t published; /* how far the kernel sees the queue */
    uint32_t enters;
    uint32_t forgotten;              /* descriptors */
    int enter_result;                /* what an enter returns; 0 at first */
    bool pending;                    /* operations were begun since the last enter */
    uint32_t begun[DOMT_CANCEL + 1]; /* by kind */
} domt_fake;

extern const domi_backend domt_fake_backend;

/* Set the results of open() and start() for rings to come; 0 at first. */
void domt_fake_fail(int open_result, int start_result);

/* How many rings are open. */
int domt_fake_open_count(void);

/* The operation of `kind` in flight on `fd` (of cancels: the oldest, with -1); NULL: none. */
domt_op *domt_fake_find(domt_fake *fake, domt_op_kind kind, int fd);

/* Complete an operation; it goes on when `flags` has DOMI_MORE. */
void domt_fake_complete(domt_fake *fake, domt_op *op, int32_t result, uint16_t flags);

/* Bring bytes for the receive on `fd`, in the next provided buffer, or -ENOBUFS without one.
 * Returns whether there was one. */
bool domt_fake_bytes(domt_fake *fake, int fd, const void *bytes, uint32_t size, bool more);

/* End the receive on `fd` with `result`: 0 is the peer's FIN. */
void domt_fake_receive_ends(domt_fake *fake, int fd, int32_t result);

/* Complete the send on `fd`: it has taken `result` bytes, or failed. */
void domt_fake_sent(domt_fake *fake, int fd, int32_t result);

/* Copy the bytes that the send on `fd` would put on the wire, cut at `size`. Returns how
 * many there are. */
uint32_t domt_fake_wire(domt_fake *fake, int fd, char *bytes, uint32_t size);

/* Carry out the oldest cancel: it completes with the number of operations that it hit, and each of
 * these with -ECANCELED. */
void domt_fake_cancel_step(domt_fake *fake);

/* Bring a completion that the ring was not asked for. */
void domt_fake_inject(domt_fake *fake, const domi_completion *completion);

/* How many provided buffers the kernel sees. */
uint32_t domt_fake_buffers_free(const domt_fake *fake);

#endif
