/* A ring without a kernel: it records the operations, and the test decides their results.
 *
 * It checks the contract of io/backend/backend.h from the kernel's side: at most one operation of a
 * kind is in flight on a descriptor (M13; any number of datagrams may be sent), no operation is
 * begun on a closed descriptor, a buffer is given back only when it is out and is seen only after
 * publish(), and a completion belongs to an operation in flight. A breach fails the test. No
 * operation completes by itself. */
#ifndef DOMT_FAKE_BACKEND_H
#define DOMT_FAKE_BACKEND_H

#include "io/backend/gathered.h"

#include <sys/types.h>

#define DOMT_FAKE_BUFFERS_MAX 1024u
#define DOMT_FAKE_DEFERRED    20u /* as many completions as the kernel shows in one enter */

typedef enum domt_op_kind {
    DOMT_ACCEPT,
    DOMT_RECEIVE,
    DOMT_POLL,
    DOMT_SEND, /* used for send and for send_message */
    DOMT_SEND_DATAGRAM,
    DOMT_CANCEL,
} domt_op_kind;

/* An operation in flight. */
typedef struct domt_op {
    struct domt_op *next;
    domt_op_kind kind;
    int fd; /* descriptor of the operation; -1 for a cancel */
    uint64_t user_data;
    bool once;                    /* a receive that ends with its first completion */
    uint64_t target;              /* user data that a cancel looks for */
    const void *data;             /* bytes of a send */
    uint32_t size;                /* number of bytes of a send */
    const struct msghdr *message; /* the `gathered.message` of a send_message; NULL for a send */
    domi_gathered gathered;       /* argument of a send_message */
    domi_datagram_out datagram;   /* argument of a send_datagram */
} domt_op;

typedef struct domt_fake {
    domt_op *ops; /* operations in flight, the oldest first */
    domi_completion *completions;
    uint32_t completions_head;
    uint32_t completions_tail;
    uint32_t completions_shown; /* completions [0, this) are seen by the owner */
    uint32_t reaped_max;        /* the most completions that one reap had room for */
    /* as under DEFER_TASKRUN, one enter shows at most DOMT_FAKE_DEFERRED completions */
    bool defers;
    uint32_t barren; /* number of enters that show nothing, though completions are deferred */
    bool floods;     /* each enter adds DOMT_FAKE_DEFERRED completions of the wake poll */
    uint32_t buffers_count;
    struct {
        char *data;
        uint32_t size;
        bool given;
    } buffers[DOMT_FAKE_BUFFERS_MAX];
    /* numbers of the buffers that were given back, the oldest first */
    uint16_t queue[DOMT_FAKE_BUFFERS_MAX];
    uint32_t queue_head;
    uint32_t queue_tail;
    uint32_t published; /* length of the queue that the kernel sees */
    uint32_t enters;
    uint32_t forgotten;              /* descriptors that the ring was told to forget */
    int enter_result;                /* result of an enter; 0 at first */
    bool pending;                    /* operations were begun since the last enter */
    uint32_t begun[DOMT_CANCEL + 1]; /* operations that were begun, by kind */
} domt_fake;

extern const domi_backend domt_fake_backend;

/* Set the results of open() and start() for later rings; both are 0 at first. */
void domt_fake_fail(int open_result, int start_result);

/* Returns how many rings are open. */
int domt_fake_open_count(void);

/* Returns the operation of `kind` in flight on `fd` (for cancels, whose fd is -1: the oldest);
 * NULL: none. */
domt_op *domt_fake_find(domt_fake *fake, domt_op_kind kind, int fd);

/* Complete an operation; it stays in flight if `flags` has DOMI_MORE. */
void domt_fake_complete(domt_fake *fake, domt_op *op, int32_t result, uint16_t flags);

/* Bring bytes for the receive on `fd` in the next provided buffer, or -ENOBUFS if there is none.
 * Returns whether there was a buffer. */
bool domt_fake_bytes(domt_fake *fake, int fd, const void *bytes, uint32_t size, bool more);

/* End the receive on `fd` with `result`; 0 stands for the peer's FIN. */
void domt_fake_receive_ends(domt_fake *fake, int fd, int32_t result);

/* Complete the send on `fd` with `result`: the number of bytes taken, or an error. */
void domt_fake_sent(domt_fake *fake, int fd, int32_t result);

/* Copy the bytes that the send on `fd` would put on the wire, cut at `size`. Returns how
 * many there are. */
uint32_t domt_fake_wire(domt_fake *fake, int fd, char *bytes, uint32_t size);

/* Carry out the oldest cancel: it completes with the number of operations that it hit, and each of
 * these with -ECANCELED. */
void domt_fake_cancel_step(domt_fake *fake);

/* Bring a completion for which no operation was begun. */
void domt_fake_inject(domt_fake *fake, const domi_completion *completion);

/* Returns how many provided buffers the kernel sees. */
uint32_t domt_fake_buffers_free(const domt_fake *fake);

#endif
