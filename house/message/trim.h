/* The trims of a manager's slabs (base/slab.h), which give memory back: which slabs, and when.
 *
 * The slabs of envelopes give their chunks back, because no thread reads a free envelope. Stacks,
 * promises, timers and watches have serials that must stay readable (M10), so their chunks stay,
 * and a pass only counts the bytes of them that are free.
 *
 * A pass goes over the slabs, one bounded step at a time. The first one begins when the slabs have
 * not grown for a second. After a pass that gave nothing back, and if memory that was given back is
 * needed again, the wait for the next pass doubles, up to a minute. While memory is short there is
 * a pass every 100 ms, and for a minute after that every second, because the rest of a flood may be
 * handled slowly. A pass holds up no message: if a slab runs dry while it is trimmed, its trim is
 * stopped, and the slab gets all of its free objects back. */
#ifndef DOMI_HOUSE_MESSAGE_TRIM_H
#define DOMI_HOUSE_MESSAGE_TRIM_H

#include "house/message/manager.h"

/* Free objects that one step of a trim sorts: many on a thread that has nothing else to do, few on
 * a busy thread, whose messages wait meanwhile. */
#define DOMI_TRIM_IDLE 4096u /* most objects that one step of a thread about to sleep sorts */
#define DOMI_TRIM_BUSY 512u  /* most objects that one step of a busy thread sorts */

/* Take one step of the trims, of at most `objects` free objects, if a step is due at `now_ns`.
 * Returns true if one was due; then the next may be due at once. Owner. */
bool domi_pool_take_trim_step(domi_manager *manager, uint64_t now_ns, uint32_t objects);

/* Check that the pass, the trims of the slabs and the published bytes agree, as they do between two
 * steps. Always returns true, so that it can stand in DOMI_CHECK_SLOW. Owner. */
bool domi_trim_is_sound(const domi_manager *manager);

#endif
