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
/* number of deferred completions that one enter shows, as with the kernel */
#define DOMT_FAKE_DEFERRED 20u

typedef enum domt_op_kind {
    DOMT_ACCEPT,
    DOMT_RECEIVE,
    DOMT_POLL,
    DOMT_SEND, /* an operation of the calls send() and send_message() of the backend */
    DOMT_SEND_DATAGRAM,
    DOMT_CANCEL,
} domt_op_kind;

/* An operation that was begun on the fake ring and has not completed. */
typedef struct domt_op {
    struct domt_op *next;
    domt_op_kind kind;
    int fd; /* descriptor that the operation uses; -1 for a cancel */
    uint64_t user_data;
    bool once;                    /* for a receive: it ends with its first completion */
    uint64_t target;              /* for a cancel: the user data of the operations to cancel */
    const void *data;             /* bytes that a send would put on the wire */
    uint32_t size;                /* number of bytes that a send would put on the wire */
    const struct msghdr *message; /* for a send_message: its `gathered.message`; NULL for a send */
    domi_gathered gathered;       /* copy of the pieces that a send_message got */
    domi_datagram_out datagram;   /* copy of the datagram that a send_datagram got */
} domt_op;

typedef struct domt_fake {
    domt_op *ops; /* operations in flight on the ring, the oldest first */
    domi_completion *completions;
    uint32_t completions_head;
    uint32_t completions_tail;
    uint32_t completions_shown; /* completions before this number can be reaped */
    uint32_t reaped_max;        /* the largest room for completions that any call of reap() had */
    /* true: completions wait for an enter, which shows DOMT_FAKE_DEFERRED of them
     * (DEFER_TASKRUN) */
    bool defers;
    uint32_t barren; /* so many of the next enters show no completion, though some are deferred */
    bool floods;     /* true: each enter adds DOMT_FAKE_DEFERRED completions of the wake poll */
    uint32_t buffers_count;
    struct {
        char *data;
        uint32_t size;
        bool given;
    } buffers[DOMT_FAKE_BUFFERS_MAX];
    /* numbers of the provided buffers that were given to the ring, the oldest first */
    uint16_t queue[DOMT_FAKE_BUFFERS_MAX];
    uint32_t queue_head;
    uint32_t queue_tail;
    uint32_t published; /* entries of `queue` before this number are seen by the kernel */
    uint32_t enters;
    uint32_t forgotten; /* number of descriptors that the ring was told to forget */
    int enter_result;   /* result that each enter returns; 0 unless a test sets an error */
    bool pending;       /* operations were begun on the ring since the last enter */
    uint32_t begun[DOMT_CANCEL + 1]; /* number of operations that were begun, by their kind */
} domt_fake;

extern const domi_backend domt_fake_backend;

/* Set the results of the backend's open() and start() for fake rings that are made later; both are
 * 0 at first. */
void domt_fake_set_open_results(int open_result, int start_result);

/* Returns how many fake rings are open. */
int domt_fake_count_open_rings(void);

/* Returns the oldest operation of `kind` that is in flight on the descriptor `fd` (-1 for cancels);
 * NULL if there is none. */
domt_op *domt_fake_find_operation(domt_fake *fake, domt_op_kind kind, int fd);

/* Complete an operation with `result`. It stays in flight if `flags` has DOMI_MORE, else it is
 * freed. */
void domt_fake_complete_operation(domt_fake *fake, domt_op *op, int32_t result, uint16_t flags);

/* Complete the receive on `fd` with bytes in the next provided buffer, or with -ENOBUFS if the ring
 * has no buffer. Returns whether there was a buffer. */
bool domt_fake_complete_receive(domt_fake *fake, int fd, const void *bytes, uint32_t size,
                                bool more);

/* End the receive on `fd` with `result`; 0 stands for the peer's FIN. */
void domt_fake_end_receive(domt_fake *fake, int fd, int32_t result);

/* Complete the send on `fd` with `result`: the number of bytes taken, or an error. */
void domt_fake_complete_send(domt_fake *fake, int fd, int32_t result);

/* Copy the bytes that the send in flight on `fd` would put on the wire, at most `size` of them.
 * Returns how many bytes were copied. */
uint32_t domt_fake_copy_send_bytes(domt_fake *fake, int fd, char *bytes, uint32_t size);

/* Carry out the oldest cancel in flight: the operations that it names complete with -ECANCELED, and
 * the cancel itself with 0, or with -ENOENT if it found no operation. */
void domt_fake_complete_cancel(domt_fake *fake);

/* Add a completion to the ring that belongs to no operation which was begun. */
void domt_fake_add_completion(domt_fake *fake, const domi_completion *completion);

/* Returns how many provided buffers the kernel can still fill. */
uint32_t domt_fake_count_free_buffers(const domt_fake *fake);

#endif
