/* A hierarchical timer wheel: 1 ms ticks, O(1) arm and cancel, due timers in order of their tick.
 *
 * One thread owns it. It reads no clock: its owner moves it on with the time it has. Nodes are
 * embedded in what they time, so nothing here allocates; a wheel does not move once initialized. A
 * timer never fires early; it fires at the first advance at or after the tick that holds its time
 * (so up to 1 ms late, plus the distance between advances). Timers of one tick fire in the order in
 * which they were armed. Times further away than the wheel reaches (about 12 days) are parked in
 * its last level and cascade down as it turns; they may fire after others of their tick. */
#ifndef DOMI_BASE_WHEEL_H
#define DOMI_BASE_WHEEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DOMI_WHEEL_TICK_NS UINT64_C(1000000)
#define DOMI_WHEEL_LEVELS  5
#define DOMI_WHEEL_BITS    6
#define DOMI_WHEEL_SLOTS   (1u << DOMI_WHEEL_BITS)

typedef struct domi_wheel_node domi_wheel_node;

struct domi_wheel_node {
    domi_wheel_node *next; /* NULL: not armed */
    domi_wheel_node *previous;
    uint64_t expires_ns;
};

typedef struct domi_wheel {
    uint64_t tick;                        /* all ticks below this one have been handed out */
    uint32_t count;                       /* armed nodes, the due ones included */
    uint64_t occupied[DOMI_WHEEL_LEVELS]; /* one bit per non-empty slot */
    domi_wheel_node slots[DOMI_WHEEL_LEVELS][DOMI_WHEEL_SLOTS]; /* list heads */
    domi_wheel_node past; /* armed for a tick already handed out: due at the next advance */
    domi_wheel_node due;  /* expired, not yet taken */
} domi_wheel;

void domi_wheel_init(domi_wheel *wheel, uint64_t now_ns);

static inline void domi_wheel_node_init(domi_wheel_node *node)
{
    node->next = NULL;
    node->previous = NULL;
    node->expires_ns = 0;
}

static inline bool domi_wheel_armed(const domi_wheel_node *node)
{
    return node->next != NULL;
}

/* Arm `node` (which is not armed) for `expires_ns`; a time in the past is due at the next advance.
 */
void domi_wheel_arm(domi_wheel *wheel, domi_wheel_node *node, uint64_t expires_ns);

/* Take `node` back; one that is not armed is left alone. Also a node that is due but not yet taken.
 */
void domi_wheel_cancel(domi_wheel *wheel, domi_wheel_node *node);

/* Turn to `now_ns` and move what expired to the due list. */
void domi_wheel_advance(domi_wheel *wheel, uint64_t now_ns);

/* The next due node, disarmed, or NULL. The caller may arm and cancel any node in between. */
domi_wheel_node *domi_wheel_take(domi_wheel *wheel);

/* When advance() has something to do next: an exact expiry or an earlier cascade, UINT64_MAX when
 * nothing is armed; 0 when a due node waits to be taken, or one was armed for a time in the past.
 * Constant time. After an advance to `now_ns` and with nothing left to take, later than `now_ns`.
 */
uint64_t domi_wheel_next_ns(const domi_wheel *wheel);

#endif
