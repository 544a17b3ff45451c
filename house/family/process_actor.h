/* The state of an actor that is a process, for two files: process.c gathers events and makes steps,
 * process_work.c records what ends beside the conversation of the process. */
#ifndef DOMI_HOUSE_FAMILY_PROCESS_ACTOR_H
#define DOMI_HOUSE_FAMILY_PROCESS_ACTOR_H

#include "house/family/processes.h"

#include <domus/message.h>
#include <domus/receive.h>

#include <errno.h>
#include <stdalign.h>

/* Tags of the receives of a process; its yields have other tags. DOMI_TAG_MESSAGE marks the two
 * receives that do not end by themselves, DOMI_TAG_LOOKED the receive that ends when all waiting
 * mail was looked at. */
#define DOMI_TAG_MESSAGE UINT64_MAX
#define DOMI_TAG_LOOKED  (UINT64_MAX - 1)

/* The error with which a receive is ended to wake the conversation of the process. */
#define DOMI_WOKEN (-EINTR)

static_assert(DOMI_TAG_LOOKED > DOMUS_PROCESS_TAG_MAX, "yields have tags of their own");

/* The part of the state that is not needed before init. */
typedef struct domi_process_room {
    /* the events that the next step gets: messages and answers */
    domus_process_event events[DOMUS_PROCESS_EVENTS_MAX];
    /* messages that hold the events' payloads; NULL: none */
    domus_message *held[DOMUS_PROCESS_EVENTS_MAX];
    int results[DOMUS_PROCESS_EVENTS_MAX]; /* the results of blocking work, for the events */
    alignas(16) unsigned char state[];
} domi_process_room;

/* A piece of work that is under way, or has ended and whose result no step has got yet. */
typedef struct domi_process_piece domi_process_piece;

struct domi_process_piece {
    domi_process_piece *next;
    domi_process_piece *previous;
    uint64_t tag;
    int result; /* the result of the function, or a negative errno */
};

typedef struct domi_process_actor {
    const domus_process *process; /* the user's description of the process */
    domus_address spawner;        /* the actor that made the process and gets its notices */
    const domus_type *input_type; /* type of the message that holds the input */
    domi_process_room *room;      /* memory for events; NULL before init, and after close */
    uint32_t count;               /* number of gathered events */
    bool listening;               /* the receive of messages is under way */
    /* the receive that is ended to wake the conversation is under way */
    bool can_wake;
    bool looking; /* the receive that ends when all mail was looked at is under way */
    bool began;   /* the first step has begun */
    bool is_told; /* the last event has come, and no step has got it yet */
    domus_process_cancel cancel;   /* the payload of the last event */
    domi_living living;            /* entry in the list of living processes */
    domi_process_piece *works;     /* pieces of work that are under way */
    domi_process_piece *ended;     /* pieces of work that have ended, the newest first */
    const domus_type *result_type; /* the type of the results of work, as its first answer said */
    uint32_t works_count;          /* number of pieces in `works` and `ended` */
    char method[DOMUS_PROCESS_METHOD_MAX + 1]; /* name of the method that runs, NUL-terminated */
    alignas(8) unsigned char input[DOMUS_PROCESS_INPUT_MAX];
} domi_process_actor;

struct domus_process_output {
    domus_stack *stack;        /* the conversation of this step */
    domi_process_actor *actor; /* the actor whose step it is */
    uint32_t yield_count;      /* number of asks and sleeps that this step has begun */
    bool done;                 /* the step has finished the process */
};

/* Returns 0 if the step may yield once more; else a negative errno. */
static inline int domi_process_check_may_yield(const domus_process_output *out, uint64_t tag)
{
    if (tag > DOMUS_PROCESS_TAG_MAX)
        return -EINVAL;
    return out->yield_count == DOMUS_PROCESS_YIELDS_MAX ? -ENOBUFS : 0;
}

/* The pattern of receives that accept no message. */
extern const domus_pattern domi_process_nothing;

/* Free a list of pieces of work whose results are not delivered. */
void domi_process_free_works(domi_process_piece **list);

/* Gather recorded ends of work, and a recorded last event, as far as there is room for events. */
void domi_process_add_noted(domi_process_actor *actor);

/* The handler of the last event. */
int domi_process_handle_cancel(domus_stack *stack, void *self, const void *cancel);

#endif
