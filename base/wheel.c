/* The timer wheel: five levels of 64 slots, each level 64 times as coarse as the one below.
 *
 * The place of a node follows from the highest bit in which its tick differs from that of the
 * wheel. The six-bit digit that holds this bit names the level, and the digit of the node's tick on
 * that level names the slot.
 *
 *     level 4   2^24 ticks per slot   circular; the last slot also holds times beyond reach
 *     level 1   64 ticks per slot     the rest of this round of level 2
 *     level 0   1 tick per slot       the rest of this round of level 1
 *
 * Invariants between calls:
 *
 * - On levels 1 to 4 the slot of the wheel's own tick is empty: turn_wheel_to_tick() spread its
 * nodes over the levels below when the wheel came there.
 * - So every slot of a level comes before every slot of the level above, and the next thing to do
 *   is in the first occupied slot of the lowest occupied level: one look at the bitmaps finds it.
 * - Nodes of one tick share a slot, in the order in which they were armed (those that were armed
 *   from beyond the reach of the wheel may stand later).
 *
 * Only the owner thread uses a wheel. */
#include "base/wheel.h"

#include "base/check.h"
#include "base/prefetch.h"

#include <assert.h>
#include <limits.h>

#define LEVEL_TOP (DOMI_WHEEL_LEVELS - 1) /* index of the wheel's coarsest level */
#define SLOT_MASK (DOMI_WHEEL_SLOTS - 1)  /* bits of a tick that choose a slot of a level */
#define TICK_NONE UINT64_MAX /* tick that stands for no tick, because the wheel is empty */

static_assert(DOMI_WHEEL_SLOTS == sizeof(uint64_t) * CHAR_BIT, "one word of `occupied` per level");

static void init_list_of_nodes(domi_wheel_node *head)
{
    head->next = head;
    head->previous = head;
    head->expires_ns = 0;
}

static bool is_list_empty(const domi_wheel_node *head)
{
    return head->next == head;
}

static void append_node_to_list(domi_wheel_node *head, domi_wheel_node *node)
{
    node->next = head;
    node->previous = head->previous;
    head->previous->next = node;
    head->previous = node;
}

/* Move all nodes of the list `from` behind those of the list `to`; `from` is empty afterwards. */
static void move_nodes_of_list(domi_wheel_node *to, domi_wheel_node *from)
{
    if (is_list_empty(from))
        return;
    from->next->previous = to->previous;
    to->previous->next = from->next;
    from->previous->next = to;
    to->previous = from->previous;
    init_list_of_nodes(from);
}

/* Returns the first tick that begins at or after `expires_ns`. */
static uint64_t round_up_to_tick(uint64_t expires_ns)
{
    return expires_ns / DOMI_WHEEL_TICK_NS + (expires_ns % DOMI_WHEEL_TICK_NS != 0);
}

static unsigned get_slot_index(uint64_t tick, unsigned level)
{
    return (unsigned)(tick >> (level * DOMI_WHEEL_BITS)) & SLOT_MASK;
}

static void place_node_in_slot(domi_wheel *wheel, domi_wheel_node *node)
{
    uint64_t tick = round_up_to_tick(node->expires_ns);
    uint64_t differing = tick ^ wheel->tick;
    unsigned level = 0;

    DOMI_CHECK(tick >= wheel->tick);
    if (differing != 0)
        level = (63u - (unsigned)__builtin_clzll(differing)) / DOMI_WHEEL_BITS;
    if (level > LEVEL_TOP)
        level = LEVEL_TOP;

    unsigned slot = get_slot_index(tick, level);
    unsigned shift = level * DOMI_WHEEL_BITS;

    /* The time is beyond the reach of the wheel: the node waits in the slot that comes last, and is
     * placed anew when the wheel comes there. */
    if (level == LEVEL_TOP && (tick >> shift) - (wheel->tick >> shift) >= DOMI_WHEEL_SLOTS)
        slot = (get_slot_index(wheel->tick, level) + SLOT_MASK) & SLOT_MASK;

    append_node_to_list(&wheel->slots[level][slot], node);
    wheel->occupied[level] |= UINT64_C(1) << slot;
}

/* Returns the tick at which the wheel's first occupied slot begins. On level 0 the nodes of the
 * slot expire then, on other levels they move down. */
static uint64_t get_tick_of_first_occupied_slot(const domi_wheel *wheel)
{
    for (unsigned level = 0; level < LEVEL_TOP; level++) {
        if (wheel->occupied[level] == 0)
            continue;

        unsigned shift = level * DOMI_WHEEL_BITS;
        uint64_t round = wheel->tick >> shift >> DOMI_WHEEL_BITS;
        unsigned slot = (unsigned)__builtin_ctzll(wheel->occupied[level]);
        return ((round << DOMI_WHEEL_BITS) + slot) << shift;
    }

    uint64_t occupied = wheel->occupied[LEVEL_TOP];
    if (occupied == 0)
        return TICK_NONE;

    /* Rotate the bitmap so that bit 0 is the slot of the present tick. (That slot is empty, so a
     * rotation by 0 does no harm.) */
    unsigned shift = LEVEL_TOP * DOMI_WHEEL_BITS;
    unsigned turn = get_slot_index(wheel->tick, LEVEL_TOP);
    uint64_t turned = occupied >> turn | occupied << ((DOMI_WHEEL_SLOTS - turn) & SLOT_MASK);
    return ((wheel->tick >> shift) + (unsigned)__builtin_ctzll(turned)) << shift;
}

/* Turn the wheel to `tick`, which is not past get_tick_of_first_occupied_slot(), and spread the
 * slots that begin there over the levels below. The coarsest level comes first, because a node that
 * falls out of it may have to move down again. */
static void turn_wheel_to_tick(domi_wheel *wheel, uint64_t tick)
{
    wheel->tick = tick;
    for (unsigned level = LEVEL_TOP; level > 0; level--) {
        unsigned slot = get_slot_index(tick, level);
        uint64_t bit = UINT64_C(1) << slot;

        if ((wheel->occupied[level] & bit) == 0)
            continue;

        domi_wheel_node moving;
        init_list_of_nodes(&moving);
        move_nodes_of_list(&moving, &wheel->slots[level][slot]);
        wheel->occupied[level] &= ~bit;
        while (!is_list_empty(&moving)) {
            domi_wheel_node *node = moving.next;
            domi_prefetch_write(node->next->next);
            moving.next = node->next;
            node->next->previous = &moving;
            place_node_in_slot(wheel, node);
        }
    }
}

void domi_wheel_init(domi_wheel *wheel, uint64_t now_ns)
{
    wheel->tick = now_ns / DOMI_WHEEL_TICK_NS + 1;
    wheel->count = 0;
    wheel->knows_next = false;
    for (unsigned level = 0; level < DOMI_WHEEL_LEVELS; level++) {
        wheel->occupied[level] = 0;
        for (unsigned slot = 0; slot < DOMI_WHEEL_SLOTS; slot++)
            init_list_of_nodes(&wheel->slots[level][slot]);
    }
    init_list_of_nodes(&wheel->past);
    init_list_of_nodes(&wheel->due);
}

void domi_wheel_arm_node(domi_wheel *wheel, domi_wheel_node *node, uint64_t expires_ns)
{
    DOMI_CHECK(!domi_wheel_is_armed(node));
    DOMI_CHECK(wheel->count < UINT32_MAX);

    node->expires_ns = expires_ns;
    /* A node that is due at `next_ns` or later comes into the slot that is next, or into a later
     * one, so `next_ns` stays right. */
    if (expires_ns < wheel->next_ns)
        wheel->knows_next = false;
    if (round_up_to_tick(expires_ns) < wheel->tick)
        append_node_to_list(&wheel->past, node);
    else
        place_node_in_slot(wheel, node);
    wheel->count++;
}

/* Take `node` out of the list of its slot, and clear the slot's bit if the slot is empty then. */
static void unlink_node_from_slot(domi_wheel *wheel, domi_wheel_node *node)
{
    domi_wheel_node *next = node->next;

    next->previous = node->previous;
    node->previous->next = next;
    node->next = NULL;
    node->previous = NULL;
    if (next->next != next)
        return;

    wheel->knows_next = false;
    /* `next` is the head of a list that is empty now. Its offset in `slots` tells which slot it is;
     * `past` and `due` lie outside of `slots` and have no bit. */
    size_t offset = (uintptr_t)next - (uintptr_t)wheel->slots;
    if (offset >= sizeof wheel->slots)
        return;

    size_t index = offset / sizeof wheel->slots[0][0];
    wheel->occupied[index / DOMI_WHEEL_SLOTS] &= ~(UINT64_C(1) << index % DOMI_WHEEL_SLOTS);
}

void domi_wheel_disarm_node(domi_wheel *wheel, domi_wheel_node *node)
{
    if (!domi_wheel_is_armed(node))
        return;
    DOMI_CHECK(wheel->count > 0);
    unlink_node_from_slot(wheel, node);
    wheel->count--;
}

void domi_wheel_advance_to_time(domi_wheel *wheel, uint64_t now_ns)
{
    uint64_t end = now_ns / DOMI_WHEEL_TICK_NS + 1;

    wheel->knows_next = false;
    move_nodes_of_list(&wheel->due, &wheel->past);
    while (wheel->tick < end) {
        uint64_t tick = get_tick_of_first_occupied_slot(wheel);

        if (tick >= end) {
            turn_wheel_to_tick(wheel, end);
            break;
        }
        turn_wheel_to_tick(wheel, tick);

        unsigned slot = get_slot_index(tick, 0);
        move_nodes_of_list(&wheel->due, &wheel->slots[0][slot]);
        wheel->occupied[0] &= ~(UINT64_C(1) << slot);
        turn_wheel_to_tick(wheel, tick + 1);
    }
}

domi_wheel_node *domi_wheel_take_due_node(domi_wheel *wheel)
{
    domi_wheel_node *node = wheel->due.next;

    if (node == &wheel->due)
        return NULL;
    /* Timers of one tick lie anywhere in memory, so the node after the next is fetched while
     * this one is handled. (With a million timers at once, half of the time was waiting for
     * these lines.) */
    domi_prefetch_write(node->next->next);
    domi_wheel_disarm_node(wheel, node);
    return node;
}

static uint64_t find_next_due_time(const domi_wheel *wheel)
{
    if (!is_list_empty(&wheel->due) || !is_list_empty(&wheel->past))
        return 0;

    uint64_t tick = get_tick_of_first_occupied_slot(wheel);
    return tick > UINT64_MAX / DOMI_WHEEL_TICK_NS ? UINT64_MAX : tick * DOMI_WHEEL_TICK_NS;
}

uint64_t domi_wheel_find_next_time(domi_wheel *wheel)
{
    wheel->next_ns = find_next_due_time(wheel);
    wheel->knows_next = true;
    return wheel->next_ns;
}
