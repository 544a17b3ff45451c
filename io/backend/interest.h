/* The interest of the epoll backend in each descriptor: which operations wait for it, and which
 * events of it the kernel was told to report.
 *
 * A descriptor has at most one operation that waits for input (an accept, a receive or a multishot
 * poll), one that waits for output (a send), and any number of one-shot polls. Registrations are
 * level-triggered and lazy. They stay when an operation ends, because mostly the next one begins
 * soon; the kernel is told of the end only when it has reported an event for which nothing waits.
 *
 * Two kinds are different. A multishot poll is edge-triggered, because nobody reads its descriptor.
 * One-shot polls are for descriptors of others, who may close them as soon as nothing waits, so the
 * kernel reports these once, and an earlier registration is never relied on. Owner thread. */
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

/* A one-shot poll of a descriptor. */
typedef struct domi_poll {
    struct domi_poll *next;
    uint64_t user_data; /* number that comes back with the poll's completion */
    uint32_t events;    /* events that end the poll: POLLIN, POLLOUT and others */
} domi_poll;

typedef struct domi_interest {
    /* user_data of the operation that waits for input on the descriptor; 0: none */
    DOMI_KEEP_PLACE(64) uint64_t input_data;
    /* user_data of the send that waits for room in the descriptor's socket; 0: none */
    uint64_t output_data;
    domi_output output; /* the bytes that the waiting send has to write */
    domi_poll *polls;   /* list of the one-shot polls that wait for this descriptor */
    int fd;             /* the descriptor to which the interest belongs */
    uint32_t told; /* the events that epoll_ctl(2) was told to report of the descriptor; 0: none */
    /* number that comes back with each report on this interest, so that reports on an older one are
     * recognized */
    uint32_t generation;
    uint8_t input; /* kind of the operation that waits for input on the descriptor, a domi_input */
    bool fills_buffers; /* the last receive on the descriptor has filled a buffer */
} domi_interest;

typedef struct domi_interests {
    int epoll_fd; /* the descriptor of the epoll instance */
    /* array of interests, by descriptor; an entry of NULL: no operation was ever begun on the
     * descriptor */
    domi_interest **of_fd;
    uint32_t capacity;       /* number of descriptors for which `of_fd` has room */
    uint32_t generation;     /* generation of the newest interest in the table */
    bool has_told;           /* epoll was told of a changed registration since the last
                                domi_epoll_fetch_reports() */
    domi_slab interest_slab; /* slab of all domi_interest objects of the table */
    domi_slab poll_slab;     /* slab of all domi_poll objects of the table */
} domi_interests;

/* Make the table of interests. Returns 0; a negative errno of epoll_create1(2). */
int domi_interests_init(domi_interests *interests);
void domi_interests_fini(domi_interests *interests);

/* Returns the interest in the descriptor `fd`; NULL if no operation was begun on it. */
static inline domi_interest *domi_interest_find(const domi_interests *interests, int fd)
{
    return fd >= 0 && (uint32_t)fd < interests->capacity ? interests->of_fd[fd] : NULL;
}

/* Returns the interest that a report of the kernel concerns; NULL if that interest is gone. */
domi_interest *domi_interest_find_reported(const domi_interests *interests, uint64_t data);

/* Find the interest in the descriptor `fd`, or make it. Returns 0; -EBADF; -ENOMEM. */
int domi_interest_find_or_make(domi_interests *interests, int fd, domi_interest **ret_interest);

/* Register with epoll exactly the events of the descriptor for which operations wait now. Returns
 * 0; -EBADF; -EPERM for a file that is always ready; -ENOMEM. */
int domi_interest_register_exact_events(domi_interests *interests, domi_interest *interest);

/* Register with epoll the events for which operations wait, only if it does not report all of them
 * already. Returns as domi_interest_register_exact_events(). */
int domi_interest_register_if_events_grow(domi_interests *interests, domi_interest *interest);

/* Record that the kernel has reported on the descriptor of `interest`: a one-shot registration
 * reports no more. */
void domi_interest_record_epoll_report(domi_interest *interest);

/* Add a one-shot poll to an interest, and register its events with epoll. Returns 0; the errors of
 * domi_interest_register_exact_events(), and then no poll was added. */
int domi_interest_add_one_shot_poll(domi_interests *interests, domi_interest *interest,
                                    uint32_t events, uint64_t user_data);

/* Remove the one-shot poll `*place` from its list, and free it. */
void domi_interest_remove_one_shot_poll(domi_interests *interests, domi_poll **place);

/* Forget the interest in a descriptor that is about to be closed. */
void domi_interest_forget_descriptor(domi_interests *interests, int fd);

#endif
