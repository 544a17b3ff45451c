/* Giving memory back: which slabs of a manager are trimmed (base/slab.h), and when.
 *
 * The envelopes': nobody looks at one that is free. Stacks, promises, timers and watches are known
 * by serials that have to stay readable (M10), so theirs stay; a pass counts what is free of them.
 *
 * A pass goes over the slabs, one bounded step at a time. It begins when the slabs have not grown
 * for a second; after each pass in vain, and when what was given back is needed again, the next
 * waits twice as long, up to a minute. While memory is short there is one every 100 ms, and for a
 * minute after that every second: what is left of a flood may be handled slowly. A pass never
 * stands in the way of a message: whoever needs an object takes all that the pass had sorted out.
 */
#ifndef DOMI_HOUSE_MESSAGE_TRIM_H
#define DOMI_HOUSE_MESSAGE_TRIM_H

#include "house/message/manager.h"

/* Free objects that a step sorts: of a thread that has nothing else to do, and of a busy one, whose
 * messages wait meanwhile. */
#define DOMI_TRIM_IDLE 4096u
#define DOMI_TRIM_BUSY 512u

/* Take one step if one is due at `now_ns`. True: it was, and more may be. Owner. */
bool domi_trim_step(domi_manager *manager, uint64_t now_ns, uint32_t objects);

#endif
