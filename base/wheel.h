/* A hierarchical timer wheel with ticks of 1 ms: arming and cancelling take constant time, and due
 * timers come in the order of their ticks.
 *
 * The wheel belongs to one thread. It reads no clock: its owner advances it to the time that the
 * owner has. Nodes are embedded in the objects that they time, so nothing is allocated here. A
 * wheel must not be moved in memory once it is initialized.
 *
 * A timer never fires early. It fires at the first advance at or after the tick that holds its
 * time, so up to 1 ms late plus the distance between advances. Timers of one tick fire in the order
 * in which they were armed. A time that is further away than the wheel reaches (about 12 days)
 * waits in the last level and moves to lower levels as the wheel turns; such a timer may fire after
 * others of its tick. */
#ifndef DOMI_BASE_WHEEL_H
#define DOMI_BASE_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* nanoseconds of one tick of the timer wheel: a millisecond */
#define DOMI_WHEEL_TICK_NS UINT64_C(1000000)
/* number of levels of slots; each is 64 times as coarse as the one below */
#define DOMI_WHEEL_LEVELS 5
#define DOMI_WHEEL_BITS   6                       /* bits of a tick that choose a slot */
#define DOMI_WHEEL_SLOTS  (1u << DOMI_WHEEL_BITS) /* number of slots of a level */

typedef struct domi_wheel_node domi_wheel_node;

struct domi_wheel_node {
    /* next node in the list of the wheel's slot; NULL: the node is not armed */
    domi_wheel_node *next;
    domi_wheel_node *previous; /* pointer to the link that points to this node */
    uint64_t expires_ns;       /* time at which the timer node is due */
};

typedef struct domi_wheel {
    uint64_t tick;  /* first tick whose nodes the wheel has not handed out yet */
    uint32_t count; /* number of nodes that are armed on the wheel, the due ones included */
    /* for each level a word with one bit for each slot that is not empty */
    uint64_t occupied[DOMI_WHEEL_LEVELS];
    /* heads of the lists of nodes, one for each slot of each level */
    domi_wheel_node slots[DOMI_WHEEL_LEVELS][DOMI_WHEEL_SLOTS];
    domi_wheel_node past; /* nodes that were armed for a tick handed out already: due at once */
    domi_wheel_node due;  /* nodes that have expired and that the owner has not taken yet */
    uint64_t next_ns;     /* last result of domi_wheel_find_next_time(), valid if `knows_next` */
    bool knows_next;      /* whether `next_ns` still holds, so that it need not be found again */
} domi_wheel;

/* Make an empty wheel that stands at `now_ns`. */
void domi_wheel_init(domi_wheel *wheel, uint64_t now_ns);

static inline void domi_wheel_node_init(domi_wheel_node *node)
{
    node->next = NULL;
    node->previous = NULL;
    node->expires_ns = 0;
}

static inline bool domi_wheel_is_armed(const domi_wheel_node *node)
{
    return node->next != NULL;
}

/* Arm `node`, which must not be armed, for the time `expires_ns`. A time in the past is due at the
 * next advance. */
void domi_wheel_arm_node(domi_wheel *wheel, domi_wheel_node *node, uint64_t expires_ns);

/* Disarm `node`, also if it is due and was not yet taken. A node that is not armed
 * is left alone. */
void domi_wheel_disarm_node(domi_wheel *wheel, domi_wheel_node *node);

/* Advance the wheel to `now_ns` and move the nodes that have expired to the due list. */
void domi_wheel_advance_to_time(domi_wheel *wheel, uint64_t now_ns);

/* Take the next due node of the wheel, disarmed; NULL when none is left. Between two calls the
 * caller may arm and cancel any node. */
domi_wheel_node *domi_wheel_take_due_node(domi_wheel *wheel);

/* Find the time that domi_wheel_next_ns() returns, and store it in the wheel. */
uint64_t domi_wheel_find_next_time(domi_wheel *wheel);

/* Returns the time at which domi_wheel_advance_to_time() next has something to do: an expiry, or an
 * earlier move of nodes to a lower level. UINT64_MAX when nothing is armed; 0 when a due node waits
 * to be taken or a node was armed for a time in the past. Constant time. After an advance to
 * `now_ns`, and with nothing left to take, the result is later than `now_ns`. */
static inline uint64_t domi_wheel_next_ns(domi_wheel *wheel)
{
    return wheel->knows_next ? wheel->next_ns : domi_wheel_find_next_time(wheel);
}

#endif
