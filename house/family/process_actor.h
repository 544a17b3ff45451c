/* The state of an actor that is a process, for the two files that use it: process.c gathers events
 * and makes steps, process_work.c notes what ends beside the conversation of the process. */
#ifndef DOMI_HOUSE_FAMILY_PROCESS_ACTOR_H
#define DOMI_HOUSE_FAMILY_PROCESS_ACTOR_H

#include "house/family/processes.h"

#include <domus/message.h>
#include <domus/receive.h>

#include <errno.h>
#include <stdalign.h>

/* Tags of the receives of a process; its yields have other tags. DOMI_TAG_MESSAGE: of the two
 * receives that do not end by themselves. DOMI_TAG_LOOKED: of the receive that ends when all
 * waiting mail was looked at. */
#define DOMI_TAG_MESSAGE UINT64_MAX
#define DOMI_TAG_LOOKED  (UINT64_MAX - 1)

/* The error with which the receive ends that wakes the process. */
#define DOMI_WOKEN (-EINTR)

static_assert(DOMI_TAG_LOOKED > DOMUS_PROCESS_TAG_MAX, "yields have tags of their own");

/* The part of the state that is not needed before init. */
typedef struct domi_process_room {
    /* the messages and answers that a step gets */
    domus_process_event events[DOMUS_PROCESS_EVENTS_MAX];
    /* messages that hold the events' payloads; NULL: none */
    domus_message *held[DOMUS_PROCESS_EVENTS_MAX];
    int results[DOMUS_PROCESS_EVENTS_MAX]; /* the results of blocking work */
    alignas(16) unsigned char state[];
} domi_process_room;

/* A piece of work that is under way, or has ended and was not shown. */
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
    domi_process_room *room;      /* NULL before init, and after close */
    uint32_t count;               /* events gathered */
    bool listening;               /* the receive of messages is under way */
    bool can_wake;                /* so is the one that fails to let the conversation go on */
    bool looking; /* the receive that ends when all mail was looked at is under way */
    bool began;   /* the first step was begun */
    bool is_told; /* the last event has come, and was not shown */
    domus_process_cancel cancel;   /* the event of a cancel */
    domi_living living;            /* the entry in the list of living processes */
    domi_process_piece *works;     /* work that is under way */
    domi_process_piece *ended;     /* work that has ended, the newest first */
    const domus_type *result_type; /* the type of what work returns, as its first answer said */
    uint32_t works_count;          /* entries of both */
    char method[DOMUS_PROCESS_METHOD_MAX + 1]; /* name of the method that runs, NUL-terminated */
    alignas(8) unsigned char input[DOMUS_PROCESS_INPUT_MAX];
} domi_process_actor;

struct domus_process_output {
    domus_stack *stack;        /* the conversation of this step */
    domi_process_actor *actor; /* the actor whose step it is */
    uint32_t yield_count;      /* asks and sleeps that this step has begun */
    bool done;                 /* the step has finished the process */
};

/* Returns 0 if the step may write one more yield. */
static inline int domi_process_may_yield(const domus_process_output *out, uint64_t tag)
{
    if (tag > DOMUS_PROCESS_TAG_MAX)
        return -EINVAL;
    return out->yield_count == DOMUS_PROCESS_YIELDS_MAX ? -ENOBUFS : 0;
}

/* The pattern of receives that take no message. */
extern const domus_pattern domi_process_nothing;

/* Free a list of work whose results are not delivered. */
void domi_process_free_works(domi_process_piece **list);

/* Make events of what was noted, as many as there is room for. */
void domi_process_add_noted(domi_process_actor *actor);

/* The handler of the last event. */
int domi_process_on_cancel(domus_stack *stack, void *self, const void *cancel);

#endif
