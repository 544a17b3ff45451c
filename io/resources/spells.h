/* The spells of shortage of a thread: they are counted and logged, and a timer checks them once a
 * second while one lasts. Owner thread. */
#ifndef DOMI_IO_RESOURCES_SPELLS_H
#define DOMI_IO_RESOURCES_SPELLS_H

#include "io/resources/io.h"
#include "io/resources/shortage.h"

/* Record that something has run out, and arm the timer that checks spells. Returns whether a spell
 * begins now; then `spells` is counted up, unless it is NULL. */
bool domi_spell_record_shortage(domi_io *io, domi_shortage *shortage, domi_counter *spells);

/* Log a line about the listener of this name; with a name of NULL about the thread. */
__attribute__((format(printf, 4, 5))) void domi_io_log_about_listener(domi_io *io,
                                                                      domus_log_level level,
                                                                      const char *listener,
                                                                      const char *format, ...);

/* Log, with the words of `what_is_over`, that a spell of shortage is over, if it is. Returns
 * whether it still lasts. */
bool domi_spell_end_shortage_if_quiet(domi_io *io, const char *listener, domi_shortage *shortage,
                                      const char *what_is_over);

/* Arm the timer that checks spells if it is not armed, because a spell lasts. */
void domi_spells_arm_timer_of_checks(domi_io *io);

/* Count a connection that is reset at a listener for proxies; `from` is the address that the line
 * in the log names. */
void domi_spell_record_proxy_reset(domi_io *io, domi_proxy_refusal why, const char *listener,
                                   const struct sockaddr_storage *from);

/* End the spells of reset connections of proxies that are over. The timer of spells calls this.
 * Returns whether one still lasts. */
bool domi_spells_end_proxy_resets_if_quiet(domi_io *io);

/* Record that an actor of this thread has scheduler.conversationsMax conversations. Returns whether
 * a spell begins now, so that the caller logs it. */
bool domi_spell_record_conversations_max(domi_io *io);

/* End the spell in which an actor has too many conversations, if it is over. The timer of spells
 * calls this. Returns whether it still lasts. */
bool domi_spell_end_conversations_if_quiet(domi_io *io);

/* Record that a request of a peer has failed by a fault of this side (domus_wire_tell_failure()):
 * the fault `what` of the actors with `behaviour`. */
void domi_spell_record_failed_request(domi_io *io, const char *behaviour, const char *what,
                                      int error);

/* End the spell in which requests of peers fail, if it is over. The timer of spells calls this.
 * Returns whether it still lasts. */
bool domi_spell_end_failures_if_quiet(domi_io *io);

/* Record that a receive has found no free receive buffer. */
void domi_spell_record_no_free_buffer(domi_io *io);

/* End the spell in which receives find no buffer, if it is over. The timer of spells calls this.
 * Returns whether receive buffers are still short, so that the spell lasts. */
bool domi_spell_end_buffer_shortage_if_quiet(domi_io *io);

#endif
