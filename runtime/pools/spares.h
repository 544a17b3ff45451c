/* Spares: runners that begin while all runners of a pool are blocked, and end when they are not
 * needed any more.
 *
 * A runner gives life-beats (Haller and Odersky, section on blocking): it begins a turn, handles a
 * message, spawns, or sends to an actor of the pool that had nothing to do. The monitor counts a
 * runner as blocked that is in a turn and has given none for `lifeBeat`, so a handler that computes
 * for so long without the library is blocked, too. If all runners of a pool are blocked, and an
 * actor or a timer waits, the monitor begins a spare. While more runners than the usual number are
 * at work for twenty life-beats, spares end. */
#ifndef DOMI_RUNTIME_POOLS_SPARES_H
#define DOMI_RUNTIME_POOLS_SPARES_H

#include "runtime/system/system.h"

/* The watch of all pools, which the monitor calls. */
extern const domi_monitor_watch domi_spares_watch;

#endif
