/* Stacks: the conversations that an actor is having.
 *
 * A stack lives in the run's own frame (dispatch.c) and moves to a pooled one when it first parks;
 * one whose row names a frame is pooled from the start. A pooled stack is named by its address and
 * its epoch, which changes whenever it resumes or ends, so a late answer finds another epoch. Only
 * the thread that runs the house touches it, except `epoch`, which a late answer may read while
 * another house has the slot. */
#ifndef DOMI_HOUSE_STACK_H
#define DOMI_HOUSE_STACK_H

#include "house/manager.h"

struct domus_stack {
    domi_node node;         /* carries its own failure into the exception mailbox */
    _Atomic uint32_t epoch; /* pooled ones only */
    uint32_t frame_size;
    _Atomic(domi_house *) house;
    domi_manager *manager;  /* who runs it now */
    domi_envelope *ask;     /* the ask that it will answer; NULL: none, or answered */
    domi_envelope *message; /* what is being handled; NULL: nothing, or gone as the reply */
    domus_stack *pooled;    /* itself, or the one that it moves to; NULL: none yet */
    domus_resumed *then;
    domus_stack *next; /* among the house's parked ones */
    domus_stack *previous;
    int32_t failure;      /* an ask failed before it left: with this */
    bool waiting;         /* an ask is under way */
    bool answered;        /* what it handles was an ask and has its reply */
    bool parked;          /* linked at the house */
    bool failed;          /* its node is in the exception mailbox */
    domus_address sender; /* of an ask, once its envelope is gone */
    alignas(16) unsigned char frame[];
};

static_assert(offsetof(domus_stack, frame) == 112, "what pool.c's sizes leave for the frame");
static_assert(DOMUS_FRAME_MAX <= 960 - 112, "the largest frame fits the largest slab");

/* A pooled stack for `house` with a zeroed frame; NULL without memory or for a frame too large. */
domus_stack *domi_stack_new(domi_manager *manager, domi_house *house, uint32_t frame_size);

/* The handler returned `result`: park the conversation, or end it. */
void domi_stack_return(domus_stack *stack, int result);

/* The answer of an ask (a reply or exception of the house that runs): resume its stack, or drop it
 * when it is late. Frees the envelope. */
void domi_stack_resume(domi_manager *manager, domi_house *house, domi_envelope *answer);

/* The same for a stack whose ask failed before it left. */
void domi_stack_resume_failed(domi_manager *manager, domi_house *house, domi_node *node);

/* Such a node goes with its mailbox. */
void domi_stack_dropped(domi_manager *manager, domi_node *node);

/* The house is gone: free its parked stacks; asks that wait for an answer fail with -ESTALE. */
void domi_stack_drop_all(domi_manager *manager, domi_house *house);

static inline bool domi_node_is_stack(const domi_node *node)
{
    return node->slab >= DOMI_SLAB_STACK_192 && node->slab <= DOMI_SLAB_STACK_960;
}

static inline domi_house *domi_stack_house(const domus_stack *stack)
{
    return atomic_load_explicit((_Atomic(domi_house *) *)(uintptr_t)&stack->house,
                                memory_order_relaxed);
}

#endif
