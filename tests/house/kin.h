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

/* The state of a kin (an actor of this header). */
typedef struct domt_kin {
    uint32_t number;
    uint32_t worth; /* a number that begins as DOMT_WORTH; a test may change it */
} domt_kin;

#define DOMT_WORTH 7u

typedef struct domt_kin_record {
    domus_address address;
    unsigned mounts; /* mounts of the actor that succeeded */
    unsigned stops;
    unsigned restarts;
    unsigned notes;
    unsigned ticks;
    unsigned downs;
    unsigned rooms;
    domus_down down;     /* the last event that told of the end of another actor */
    int cause;           /* the error that the actor's last on_restart was given */
    int answer;          /* the error of the last answer that the actor got; 1: none came */
    uint32_t worth;      /* `worth` of the actor's state when it handled its last note */
    unsigned fails;      /* number of the actor's next mounts and restarts that will fail */
    int error;           /* the error that these mounts and restarts return */
    unsigned bad_mounts; /* mounts of the actor that have failed */
    /* if not NULL: called in on_mount, with the state */
    int (*mounting)(domus_stack *stack, void *context);
    /* if not NULL: called in on_stop, with the state */
    int (*stopping)(domus_stack *stack, void *context);
    /* if not NULL: called with the state when an answer has come */
    int (*resuming)(domus_stack *stack, void *context);
} domt_kin_record;

extern domt_world domt_kin_world;
extern domt_kin_record domt_kin_of[DOMT_KIN_MAX];

extern const domus_type domt_kin_note; /* the type of a note, which has 8 bytes and a release */
/* the type of orders to fail: an int, which the handler returns */
extern const domus_type domt_kin_fail;
extern const domus_type domt_kin_tick; /* the type of ticks of a timer: no payload */
extern unsigned domt_kin_releases;     /* number of notes that the library has released */

/* Kin with the behaviour domt_kin_deaf have no row for domus_down_type. */
extern const domus_behaviour domt_kin_hearing;
extern const domus_behaviour domt_kin_deaf;

/* Behaviours of kin that have a row for domus_down_type and supervise by `supervision`. A boss
 * restarts by a new on_mount, a restarting actor by on_restart. */
domus_behaviour domt_kin_behaviour_of_boss(const domus_supervision *supervision);
domus_behaviour domt_kin_behaviour_with_restart(const domus_supervision *supervision);

void domt_kin_open_world(uint32_t homes);

/* Open a world with one actor: number 1 on home 0, a boss that supervises by `supervision`. */
void domt_kin_open_world_with_boss(uint32_t homes, const domus_supervision *supervision);

/* End the world, and check that each mount had its stop and nothing is left.
 * domt_kin_close_clean_world() first checks that nothing is in use any more. */
void domt_kin_close_world(void);
void domt_kin_close_clean_world(void);

/* Spawn the actor with this number, from outside or as a child of another one, and settle the
 * world, which mounts it. The function with options does not settle the world, and uses a behaviour
 * with a row for domus_down_type. */
domus_address domt_kin_spawn_root(uint32_t number, uint32_t home, const domus_behaviour *behaviour);
void domt_kin_spawn_root_with_options(uint32_t number, uint32_t home,
                                      const domus_spawn_options *options);
domus_address domt_kin_spawn_child(uint32_t parent, uint32_t number, uint32_t home,
                                   const domus_behaviour *behaviour);

/* Spawn the child `number` in a handler of its parent, without a settle. Returns the result of
 * domus_spawn_with(). */
int domt_kin_spawn_in_handler(domus_stack *stack, uint32_t number, const domus_behaviour *behaviour,
                              const domus_spawn_options *options);

/* Let `parent` spawn `number`, and settle. Returns the result of the spawn. */
int domt_kin_let_parent_spawn(uint32_t parent, uint32_t number, const domus_behaviour *behaviour,
                              const domus_spawn_options *options);

/* Let actor `number` run `function` in a handler. domt_kin_run_in_handler() settles the world, too.
 */
void domt_kin_send_function_to_run(domi_manager *from, uint32_t number,
                                   int (*function)(domus_stack *, void *), void *context);
void domt_kin_run_in_handler(uint32_t number, int (*function)(domus_stack *, void *),
                             void *context);

/* Send a notice from the outside, without a settle; a refusal fails the test. */
void domt_kin_send_notice(uint32_t number, const domus_type *type, int value);

/* Send a note to an actor, stop it, or let it fail with `error`, from the outside or by the thread
 * of `from`, and settle the world. */
void domt_kin_send_note(uint32_t number);
void domt_kin_stop_actor(uint32_t number);
void domt_kin_stop_actor_by_manager(domi_manager *from, uint32_t number);
void domt_kin_fail_actor(uint32_t number, int error);

/* Let the next `times` mounts and restarts of an actor fail with `error`. */
void domt_kin_let_mounts_fail(uint32_t number, unsigned times, int error);

/* Functions for domt_kin_run_in_handler(): each calls a verb; those with an address call it for the
 * address to which `context` points. */
int domt_kin_stop_given_address(domus_stack *stack, void *address);
/* asks an actor that keeps the ask for ever */
int domt_kin_ask_address_for_ever(domus_stack *stack, void *address);
int domt_kin_watch_given_address(domus_stack *stack, void *address);
int domt_kin_sleep_for_a_day(domus_stack *stack, void *unused); /* begins a sleep of a day */
int domt_kin_arm_ticks_of_1_ms(domus_stack *stack,
                               void *unused); /* arms a timer that fires each ms */
int domt_kin_escalate_with_eperm(domus_stack *stack, void *unused); /* escalates with -EPERM */

/* Let one home take one turn; or let it take its arrivals only and then run once each ready
 * house. */
void domt_kin_run_iteration_of_home(uint32_t home);
void domt_kin_run_houses_of_home(uint32_t home);

/* Returns whether the actor with this number lives now. */
bool domt_kin_is_alive(uint32_t number);
uint32_t domt_kin_count_houses(void);

/* Returns what kin have written to the trail since the last call of this function. */
const char *domt_kin_read_and_clear_trail(void);

#endif
