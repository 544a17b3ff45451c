/* Kin: actors with a number that have children, fail when told to, and write down what befalls
 * them.
 *
 * Each number has a record, which outlives all lives of its actor: how often what happened, and
 * what its next mounts and restarts are to return. All of them write one trail, so that the order
 * between actors can be held: "m1 m2 s2 s1 " is a child (2) that ended before its parent (1).
 *
 *     m mount   s stop   r restart   n note   e tick   d down   o room   x a failed answer */
#ifndef DOMT_HOUSE_KIN_H
#define DOMT_HOUSE_KIN_H

#include "tests/support/house_world.h"

#include <domus/spawn.h>
#include <domus/supervise.h>

#define DOMT_KIN_MAX   32
#define DOMT_TRAIL_MAX 4096

/* The state of a kin. */
typedef struct domt_kin {
    uint32_t number;
    uint32_t worth; /* begins as DOMT_WORTH; a test may change it */
} domt_kin;

#define DOMT_WORTH 7u

typedef struct domt_kin_record {
    domus_address address;
    unsigned mounts; /* mounts that succeeded */
    unsigned stops;
    unsigned restarts;
    unsigned notes;
    unsigned ticks;
    unsigned downs;
    unsigned rooms;
    domus_down down;     /* the last event of the end of an actor */
    int cause;           /* the error that the last on_restart was given */
    int answer;          /* the error of the last answer; 1: none came */
    uint32_t worth;      /* `worth` of the state at the last note */
    unsigned fails;      /* number of the next mounts and restarts that will fail */
    int error;           /* the error that these mounts and restarts return */
    unsigned bad_mounts; /* mounts that have failed */
    /* called in on_mount, with the record itself */
    int (*mounting)(domus_stack *stack, void *context);
    int (*stopping)(domus_stack *stack, void *context); /* called in on_stop */
    int (*resuming)(domus_stack *stack, void *context); /* called when an answer has come */
} domt_kin_record;

extern domt_world domt_kin_world;
extern domt_kin_record domt_kin_of[DOMT_KIN_MAX];

extern const domus_type domt_kin_note; /* payload: 8 bytes, with a release */
extern const domus_type domt_kin_fail; /* payload: an int, which the handler returns */
extern const domus_type domt_kin_tick; /* without a payload */
extern unsigned domt_kin_releases;     /* number of notes that were released */

/* Kin whose behaviour is called deaf have no row for domus_down_type. */
extern const domus_behaviour domt_kin_hearing;
extern const domus_behaviour domt_kin_deaf;

/* Behaviours of kin that have this row and supervise by `supervision`. A boss restarts by on_mount,
 * the other one by on_restart. */
domus_behaviour domt_kin_boss(const domus_supervision *supervision);
domus_behaviour domt_kin_restarting(const domus_supervision *supervision);

void domt_kin_open(uint32_t homes);

/* Open a world with a boss that supervises by `supervision` as number 1 on home 0. */
void domt_kin_open_boss(uint32_t homes, const domus_supervision *supervision);

/* End the world, and check that each mount had its stop and nothing is left. domt_kin_close_clean()
 * first checks that nothing is in use any more. */
void domt_kin_close(void);
void domt_kin_close_clean(void);

/* Spawn the actor with this number, from outside or as a child of another; it is mounted on return.
 * An actor with options has the row for ends, and the world does not settle. */
domus_address domt_kin_root(uint32_t number, uint32_t home, const domus_behaviour *behaviour);
void domt_kin_root_with(uint32_t number, uint32_t home, const domus_spawn_options *options);
domus_address domt_kin_child(uint32_t parent, uint32_t number, uint32_t home,
                             const domus_behaviour *behaviour);

/* Spawn a child from within a handler of its parent, and do not settle. Returns the result of
 * domus_spawn_with(). */
int domt_kin_spawn(domus_stack *stack, uint32_t number, const domus_behaviour *behaviour,
                   const domus_spawn_options *options);

/* Let `parent` spawn `number`, and settle. Returns the result of the spawn. */
int domt_kin_spawn_by(uint32_t parent, uint32_t number, const domus_behaviour *behaviour,
                      const domus_spawn_options *options);

/* Let a handler of `number` run `function`. domt_kin_do() also settles. */
void domt_kin_send(domi_manager *from, uint32_t number, int (*function)(domus_stack *, void *),
                   void *context);
void domt_kin_do(uint32_t number, int (*function)(domus_stack *, void *), void *context);

/* Send a notice from the outside, and do not settle; a refusal fails the test. */
void domt_kin_tell(uint32_t number, const domus_type *type, int value);

/* Send a note, stop an actor, or let it fail with `error`, from the outside or by the thread of
 * `from`, and settle. */
void domt_kin_note_to(uint32_t number);
void domt_kin_stop(uint32_t number);
void domt_kin_stop_by(domi_manager *from, uint32_t number);
void domt_kin_err(uint32_t number, int error);

/* Let the next `times` mounts and restarts of an actor fail with `error`. */
void domt_kin_let_fail(uint32_t number, unsigned times, int error);

/* Verbs that handlers call for an address, to which `context` points. */
int domt_kin_do_stop(domus_stack *stack, void *address);
/* asks an actor that keeps the ask for ever */
int domt_kin_do_ask(domus_stack *stack, void *address);
int domt_kin_do_watch(domus_stack *stack, void *address);
int domt_kin_do_sleep(domus_stack *stack, void *unused);    /* sleeps for a day */
int domt_kin_do_tick(domus_stack *stack, void *unused);     /* arms a timer that fires each ms */
int domt_kin_do_escalate(domus_stack *stack, void *unused); /* escalates with -EPERM */

/* Take one turn of one home; or take only its arrivals, and then run once each house that is
 * ready. */
void domt_kin_turn(uint32_t home);
void domt_kin_run(uint32_t home);

/* Whether the actor with this number lives now. */
bool domt_kin_lives(uint32_t number);
uint32_t domt_kin_houses(void);

/* Returns the trail that was written since the last call. */
const char *domt_kin_trail(void);

#endif
