/* A connection that is being made for an actor.
 *
 * The actor that asks spawns a house, which begins as a *connecting* actor on its home, and asks it
 * (verbs.c). The connecting actor is a channels actor, so everything here runs on the thread on
 * which the channel will live, also if a state actor was lent when it asked. Its conversation waits
 * with the time-out of the connect as its only promise (connecting.c). The race of attempts, one
 * for each address, runs beside it (race.c, attempt.c), in phase 1 and on io's wheel, and completes
 * that promise when it has a socket or has lost. Then the house becomes that of the channel, or it
 * stops. A cancel, a deadline, and the end of the asker reach the connecting actor as they reach
 * every actor that is asked. The race is taken back then: a descriptor is closed when no poll of it
 * is in flight any more (M13), and the record is freed with the last of them. Owner thread, except
 * the making of the record. */
#ifndef DOMI_IO_CONNECTORS_CONNECT_H
#define DOMI_IO_CONNECTORS_CONNECT_H

#include "house/conversation/promise.h"
#include "io/connectors/name.h"
#include "io/resources/io.h"
#include "io/resources/settings.h"

#include <domus/connect.h>

typedef struct domi_connect domi_connect;

/* Check a text that names a place to connect to, as domus_connect() does before it connects.
 * Returns its error. Any thread. */
int domi_connect_check_text_of_place(const char *text);

/* An attempt of a connect: one socket that connects to one address. */
typedef struct domi_attempt {
    domi_connect *of;
    domus_endpoint to;
    int fd;         /* descriptor of the attempt's socket; -1: none */
    bool is_polled; /* a poll of the attempt's socket is in flight */
    /* the attempt was given up: its poll is being cancelled, and `fd` is closed when the poll
     * comes back */
    bool is_dropped;
    bool waits; /* the attempt's Unix listener has no room, so the connect is tried again later */
} domi_attempt;

struct domi_connect {
    /* the io of the connecting actor's home; other threads read only its constant fields */
    const domi_io *home;
    /* the io of the connecting actor's home, once the race of attempts has begun; NULL before */
    domi_io *io;
    /* house of the connecting actor; NULL: no actor wants the connection any more */
    domi_house *house;
    /* house of the connecting actor, while it stops and waits for polls of attempts in flight; else
     * NULL */
    domi_house *stopping;
    domi_promise *promise; /* the promise that completes when the race of attempts has ended */
    domi_connect *next;    /* next connect in the list io->connects */
    domi_connect **place;  /* address of the pointer to this connect in the list io->connects */
    const domus_behaviour *behaviour; /* the behaviour of the channel that the connect makes */
    domi_channel_settings *settings;  /* the settings of the channel that the connect makes */
    /* time-out that the options of the connect name, in nanoseconds; 0: the one of the
     * configuration */
    uint64_t timeout_ns;
    domus_endpoint wanted; /* local address that the options of the connect name */
    domi_io_timer timer;   /* timer that begins the connect's next attempt */
    /* wait before the next try at a Unix listener without room, in nanoseconds */
    uint64_t pause_ns;
    bool has_ended; /* the race of attempts is over, with `fd` or `error` as its result */
    int fd;         /* the socket of the attempt that has won the race; -1: none */
    /* error of the race of attempts: of the first address, or else of the first attempt that
     * failed; 0: none has failed */
    int error;
    domus_endpoint peer; /* endpoint of the peer, and of this side (`local`), of the connection */
    domus_endpoint local;
    uint32_t polls;         /* number of polls of the connect's attempts in flight */
    uint32_t begun;         /* number of attempts of the connect that have begun */
    uint32_t count;         /* number of attempts for which `attempts` has entries */
    domi_attempt *attempts; /* array of the connect's attempts, in the order in which they begin */
    domi_attempt only;      /* the only attempt, if the connect has one address */
    domi_lookup lookup;     /* look-up of the host's name, if the connect has a name */
    uint16_t port;          /* port to which the connect goes at each address of the name */
    char name[];            /* name of the host to look up; "": there is none */
};

/* --- one attempt (attempt.c) ------------------------------------------------------------------ */

/* Make a socket for the attempt and let it connect. Returns 0 when it is connected; -EINPROGRESS
 * when a poll will tell the result; -EAGAIN when domi_attempt_try_connect() has to be called again
 * later; otherwise the error, and then the socket is closed. */
int domi_attempt_begin_connect(domi_attempt *attempt);
int domi_attempt_try_connect(domi_attempt *attempt);

/* Handle the result of the poll of the attempt's socket. Returns 0 when the socket is connected;
 * otherwise the error, and then it is closed. */
int domi_attempt_handle_poll_result(domi_attempt *attempt, int result);

/* Give an attempt up: close its socket, at once or when its poll has come back. */
void domi_attempt_give_up(domi_attempt *attempt);

/* --- the race (race.c) ------------------------------------------------------------------------ */

/* Begin the race of the connect's attempts, on the thread of `io`. `promise` completes when the
 * race has ended. */
void domi_connect_begin_race(domi_connect *connect, domi_io *io, domi_promise *promise);

/* Give the connect up, because no actor wants the connection any more or the channel has taken its
 * socket: close what is under way, and free the record as soon as no poll of it is in flight.
 * Returns whether polls are still in flight. */
bool domi_connect_give_up(domi_connect *connect);

/* Begin the attempts of the connect, or end its race, because the look-up of the name has ended. */
void domi_connect_handle_resolved_name(domi_connect *connect);

/* Handle the poll of the socket of `attempt`, which has come back. */
void domi_connect_handle_poll_of_attempt(domi_io *io, domi_attempt *attempt, int result);

/* Begin the next attempt of the connect, because its timer has fired. */
void domi_connect_begin_attempt_at_timer(domi_connect *connect);

/* End all connects of a thread whose ring has failed, because their polls will not come back. */
void domi_connects_end_on_failed_ring(domi_io *io);

/* Free the connects of a thread that were given up, and close their sockets, because the thread
 * reaps nothing more. */
void domi_connects_free_given_up(domi_io *io);

/* --- the connecting actor (connecting.c) ------------------------------------------------------ */

extern const domus_behaviour domi_connecting_behaviour;

/* The type of the ask that tells a connecting actor to begin its connect. */
extern const domus_type domi_connect_type;

/* Returns 0 if the thread of `io` may open one more connection; otherwise the error that says why
 * it may not. */
int domi_connect_check_may_open(const domi_io *io);

/* Take back the connect of the connecting actor in `house`, which stops. Returns 0 when no poll of
 * it is in flight any more; otherwise the house runs again when the last one has come back. */
uint32_t domi_connecting_take_back(domi_house *house);

#endif
