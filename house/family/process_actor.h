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

/* The error with which a receive is ended in order to wake the conversation of the process. */
#define DOMI_WOKEN (-EINTR)

static_assert(DOMI_TAG_LOOKED > DOMUS_PROCESS_TAG_MAX, "yields have tags of their own");

/* The part of a process's state that is not needed before `init` of the process. */
typedef struct domi_process_room {
    /* the events that the next step of the process gets: messages and answers */
    domus_process_event events[DOMUS_PROCESS_EVENTS_MAX];
    /* messages that hold the payloads of the gathered events; NULL: the event has none */
    domus_message *held[DOMUS_PROCESS_EVENTS_MAX];
    /* the results of blocking work to which these events point */
    int results[DOMUS_PROCESS_EVENTS_MAX];
    alignas(16) unsigned char state[];
} domi_process_room;

/* A piece of blocking work that is under way, or has ended and whose result no step has got yet. */
typedef struct domi_process_piece domi_process_piece;

struct domi_process_piece {
    domi_process_piece *next;
    domi_process_piece *previous;
    uint64_t tag;
    int result; /* the result of the work's function, or a negative errno */
};

typedef struct domi_process_actor {
    const domus_process *process; /* the user's description of the process */
    domus_address spawner;        /* the actor that made the process and gets its notices */
    const domus_type *input_type; /* type of the message that holds the input of the process */
    /* memory for events of the process; NULL before init, and after close */
    domi_process_room *room;
    uint32_t count; /* number of events that were gathered for the next step */
    bool listening; /* whether the receive of the process's messages is under way */
    /* whether the receive that is ended to wake the conversation is under way */
    bool can_wake;
    /* whether the receive of the process that ends when all mail was looked at is under way */
    bool looking;
    bool began;   /* whether the first step of the process has begun */
    bool is_told; /* whether the last event of the process has come, and no step has got it yet */
    domus_process_cancel cancel; /* the payload of the last event of the process */
    domi_living living;          /* entry of the process in the list of living processes */
    domi_process_piece *works;   /* pieces of blocking work that are under way */
    domi_process_piece *ended;   /* pieces of blocking work that have ended, the newest first */
    /* the type of the results of work, as the first answer of work said */
    const domus_type *result_type;
    uint32_t works_count; /* number of pieces of work in `works` and `ended` */
    /* name of the method of the process that runs, NUL-terminated */
    char method[DOMUS_PROCESS_METHOD_MAX + 1];
    alignas(8) unsigned char input[DOMUS_PROCESS_INPUT_MAX];
} domi_process_actor;

struct domus_process_output {
    domus_stack *stack;        /* the conversation in which this step of the process runs */
    domi_process_actor *actor; /* the state of the process whose step this is */
    uint32_t yield_count; /* number of asks and sleeps that this step of the process has begun */
    bool done;            /* whether the step has finished the process */
};

/* Returns 0 if the step of a process may yield once more; else a negative errno. */
static inline int domi_process_check_may_yield(const domus_process_output *out, uint64_t tag)
{
    if (tag > DOMUS_PROCESS_TAG_MAX)
        return -EINVAL;
    return out->yield_count == DOMUS_PROCESS_YIELDS_MAX ? -ENOBUFS : 0;
}

/* The pattern of receives that accept no message: they end by themselves, or are ended. */
extern const domus_pattern domi_process_nothing;

/* Free a list of pieces of work whose results are not delivered. */
void domi_process_free_pieces_of_work(domi_process_piece **list);

/* Gather the recorded ends of work, and a recorded last event, as events of the next step, as far
 * as there is room. */
void domi_process_gather_recorded_events(domi_process_actor *actor);

/* Handle the last event of a process, domus_process_cancel, which is recorded for its next step. */
int domi_process_handle_last_event(domus_stack *stack, void *self, const void *cancel);

#endif
