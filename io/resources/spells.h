/* The spells of shortage of a thread: they are counted, logged, and looked at once a second by a
 * timer while one goes on. Owner thread. */
#ifndef DOMI_IO_RESOURCES_SPELLS_H
#define DOMI_IO_RESOURCES_SPELLS_H

#include "io/resources/io.h"
#include "io/resources/shortage.h"

/* Note that something has run out, and arm the timer. Returns whether a spell begins by that, which
 * `spells` counts; it may be NULL. */
bool domi_spell_note(domi_io *io, domi_shortage *shortage, domi_counter *spells);

/* Log a line about the listener of this name; NULL: about the thread. */
__attribute__((format(printf, 4, 5))) void
domi_spell_log(domi_io *io, domus_log_level level, const char *listener, const char *format, ...);

/* Log that a spell is over, if it is, with the words of `what_is_over`. Returns whether it still
 * goes on. */
bool domi_spell_goes_on(domi_io *io, const char *listener, domi_shortage *shortage,
                        const char *what_is_over);

/* Arm the timer if it is not armed, because a spell goes on. */
void domi_spells_look_later(domi_io *io);

/* Count a connection at a listener that proxies use, and which is reset; `from` is the address that
 * the line in the log names. */
void domi_spell_of_proxies(domi_io *io, domi_proxy_refusal why, const char *listener,
                           const struct sockaddr_storage *from);

/* Called by the timer: whether one of these spells goes on. */
bool domi_spells_of_proxies_go_on(domi_io *io);

/* Called when an actor of this thread has come to scheduler.conversationsMax. Returns whether a
 * spell begins by that, and is to be told. */
bool domi_spell_of_conversations(domi_io *io);

/* Called by the timer: whether that spell goes on. */
bool domi_spell_of_conversations_goes_on(domi_io *io);

/* Called when a request of a peer has failed by a fault of this side (domus_wire_tell_failure()):
 * `what` of the actors `behaviour`. */
void domi_spell_of_failures(domi_io *io, const char *behaviour, const char *what, int error);

/* Called by the timer: whether that spell goes on. */
bool domi_spell_of_failures_goes_on(domi_io *io);

/* Called when a receive has found no buffer. */
void domi_shortage_of_buffers(domi_io *io);

/* Called by the timer of the spell in which receives find no buffer. Returns whether receive
 * buffers are still short, so that the spell, and its timer, go on. */
bool domi_shortage_of_buffers_goes_on(domi_io *io);

#endif
