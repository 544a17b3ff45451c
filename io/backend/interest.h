/* The interest of the epoll backend in each descriptor: which operations wait for it, and which
 * reports of it the kernel was told to make.
 *
 * A descriptor has at most one operation that waits for input (an accept, a receive or a multishot
 * poll), one that waits for output (a send), and any number of polls of one shot. Registrations are
 * level-triggered and lazy. They stay when an operation ends, because mostly the next one begins
 * soon; the kernel is told of the end only when it has reported something that nobody waits for.
 *
 * Two kinds are different. A multishot poll is edge-triggered, because nobody reads its descriptor.
 * Polls of one shot are for descriptors of others, who may close them as soon as nothing waits, so
 * the kernel reports these once, and what was told before is never relied on. Owner thread. */
#ifndef DOMI_IO_BACKEND_INTEREST_H
#define DOMI_IO_BACKEND_INTEREST_H

#include "base/slab.h"
#include "io/backend/output.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum domi_input {
    DOMI_INPUT_ACCEPT,
    DOMI_INPUT_RECEIVE,
    DOMI_INPUT_RECEIVE_ONCE,
    DOMI_INPUT_DATAGRAMS,
    DOMI_INPUT_POLL,
} domi_input;

/* A poll of one shot. */
typedef struct domi_poll {
    struct domi_poll *next;
    uint64_t user_data; /* comes back with the completion */
    uint32_t events;    /* POLLIN, POLLOUT and others that end the poll */
} domi_poll;

typedef struct domi_interest {
    /* user_data of the operation that waits for input; 0: none */
    DOMI_KEEP_PLACE(64) uint64_t input_data;
    uint64_t output_data; /* user_data of the send that waits for room; 0: none */
    domi_output output;   /* the bytes that this send has to write */
    domi_poll *polls;     /* polls of one shot on this descriptor */
    int fd;               /* the descriptor */
    uint32_t told;        /* the events that epoll_ctl(2) was told to report; 0: none */
    uint32_t generation;  /* comes back with each report, so that old reports are known */
    uint8_t input;        /* a domi_input: which operation waits for input */
    bool fills_buffers;   /* the last receive has filled a buffer */
} domi_interest;

typedef struct domi_interests {
    int epoll_fd;            /* the descriptor of the epoll instance */
    domi_interest **of_fd;   /* indexed by descriptor; NULL: nothing was ever begun on that one */
    uint32_t capacity;       /* entries of `of_fd` */
    uint32_t generation;     /* the generation of the youngest interest */
    bool has_told;           /* the kernel was told something since the last look */
    domi_slab interest_slab; /* holds objects of domi_interest */
    domi_slab poll_slab;     /* holds objects of domi_poll */
} domi_interests;

/* Returns 0; a negative errno of epoll_create1(2). */
int domi_interests_init(domi_interests *interests);
void domi_interests_fini(domi_interests *interests);

/* Returns the interest in `fd`; NULL if nothing was begun on it. */
static inline domi_interest *domi_interest_find(const domi_interests *interests, int fd)
{
    return fd >= 0 && (uint32_t)fd < interests->capacity ? interests->of_fd[fd] : NULL;
}

/* Returns the interest that a report of the kernel is about; NULL if that interest is gone. */
domi_interest *domi_interest_reported(const domi_interests *interests, uint64_t data);

/* Find the interest in `fd`, or make it. Returns 0; -EBADF; -ENOMEM. */
int domi_interest_make(domi_interests *interests, int fd, domi_interest **ret_interest);

/* Tell the kernel what is waited for now. Returns 0; -EBADF; -EPERM for a file that is always
 * ready; -ENOMEM. */
int domi_interest_tell(domi_interests *interests, domi_interest *interest);

/* Tell the kernel only if it does not report enough. The same results. */
int domi_interest_tell_more(domi_interests *interests, domi_interest *interest);

/* Take note that the kernel has reported on `interest`: a report of one shot was the last one. */
void domi_interest_note_report(domi_interest *interest);

/* Add a poll of one shot. Returns 0; the errors of domi_interest_tell(), and then there is none. */
int domi_interest_add_poll(domi_interests *interests, domi_interest *interest, uint32_t events,
                           uint64_t user_data);

/* Take `*place`, a poll, out of its list, and free it. */
void domi_interest_end_poll(domi_interests *interests, domi_poll **place);

/* Forget a descriptor that is about to be closed. */
void domi_interest_forget(domi_interests *interests, int fd);

#endif
