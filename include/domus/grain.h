/* Grains: actors that are found by a kind and a key, and that live only while they are needed.
 *
 * A program sends to "the cart of customer 17" (the kind `cart` and the key `17`), and need not
 * know whether there is such an actor. A message to a kind and a key for which no actor lives makes
 * one. When the actor has had nothing to do for a while, it ends (passivation), and the next
 * message makes the next one: so a grain is one actor after another, its *lives*. (Other systems
 * call these virtual actors.) State that is to outlast a life is loaded by `make` or on_mount, and
 * saved by on_stop. An on_mount that asks for it raises a barrier first (domus_barrier()), since
 * otherwise messages are handled while it waits.
 *
 *     static const domus_grain_kind carts = {
 *         .name = "cart",
 *         .behaviour = &cart,
 *         .make = begin_cart,
 *         .options = {.passivate_after_ns = 60 * SECOND},
 *         .living_max = 100000,
 *     };
 *
 *     domus_outside_grain_open(system, &carts, &shop.carts);                  once
 *     return domus_grain_ask(stack, shop.carts, "17", &add_type, &item, on_added);
 *
 * The library promises:
 *
 * - At most one life of a kind and key exists at a time, over all threads, pools and foreign
 *   threads: `make` of the next one is called when on_stop of the last one has returned.
 * - A message that meets the end of a life (it waits there, was put aside, or comes while the actor
 *   stops) is not lost: it goes on to the next life, which it makes if it has to. This holds for
 *   every end: passivation, domus_stop(), a failure. The
 *   conversations that a life has begun end with it: they are cancelled, and asks that they would
 *   answer, or that the life has kept, fail with -ESTALE. An end moves all mail that waits, so a
 *   life that ends often should have a small mailbox_max.
 * - Order (domus/actor.h) holds for one sender and one grain, also over the change of lives. A
 *   message to the address of one life (domus_sender(), domus_self()) counts as one to the grain
 *   while that life takes it; but an address is that of one life, and answers -ESTALE afterwards.
 *
 * A life is a state actor like any other: it may ask, wait, spawn children, set timers, join groups
 * and watch others. It is a child of nobody, so the root decides about its failures
 * (domus/supervise.h): it goes on, or it ends if `ends_on_failure` is set. A grain does not
 * passivate while a conversation of it waits, or one of the asks that it has kept.
 *
 * A grain that cannot be made: if `make`, or on_mount, fails (on_mount also after it has waited),
 * the asks that wait for this life fail with that error, and the notices become dead letters. The
 * next message tries again.
 *
 * At the limit: when living_max grains of a kind live, a message that would make one more fails
 * with -EAGAIN, and messages to those that live are taken as ever. The library does not end the
 * grain that was idle for the longest time instead: `passivate_after_ns` is what the program has
 * decided, to find the longest idle one would cost each message a write that all threads share, and
 * the message would wait for the end of a stranger, which may take any time. */
#ifndef DOMUS_GRAIN_H
#define DOMUS_GRAIN_H

#include <domus/conversation.h>
#include <domus/spawn.h>

#ifdef __cplusplus
extern "C" {
#endif

struct domus_system;
struct domus_outside_reply;

/* The most bytes of a grain's key, without the zero at its end. A key is 1..63 printable ASCII
 * bytes without space, as a name is (domus/name.h). */
#define DOMUS_GRAIN_KEY_MAX 63u

/* A kind of grains. The table is copied when it is opened; what it points to stays the program's,
 * and has to be valid until the system is freed. */
typedef struct domus_grain_kind {
    const char *name; /* name of the kind: 1..63 printable ASCII bytes without space; copied */
    /* the behaviour of each life, that of a state actor (DOMUS_STATE) */
    const domus_behaviour *behaviour;

    /* Fill the state of a new life. `self` has behaviour->state_size bytes, which are zeros, and
     * `key` is valid until the function returns. It is called before on_mount, on the thread whose
     * message makes the life, or on that of the last life; it must neither block nor call domus_*.
     * A negative errno means that there is no such grain now; then `make` has given back what it
     * had taken. NULL: the state begins with zeros. (on_mount can do all that a handler can, and
     * domus_grain_key() tells the key there.) */
    int (*make)(void *context, const char *key, void *self);

    /* A function that gives back what `make` has given to a life whose on_stop is not called,
     * because its on_mount has failed at once, or it was stopped before on_mount. It is called once
     * for each such life, by the same rules as `make`, on any thread. NULL: there is nothing to
     * give back. */
    void (*unmake)(void *context, const char *key, void *self);
    void *context; /* argument that `make` and `unmake` get */

    /* Where a life is placed, and its limits: placement (DOMUS_NEAR: on the thread, or in the pool,
     * of the actor whose message makes it, and of the last life), thread, pinned, pool, and
     *
     *   passivate_after_ns  the idle time after which a life ends; 0: it does not end by itself
     *   mailbox_max         messages that wait; it bounds those that wait for the next life, too
     *
     * `name` and `detached` are not for grains. */
    domus_spawn_options options;

    /* most grains of this kind that live at a time, 1..grains.max; 0 means grains.max */
    uint32_t living_max;

    /* Whether a life ends when a handler of a notice or event fails; the messages that wait go to
     * the next life. False: it goes on with the next message, as if nothing had failed. */
    bool ends_on_failure;
} domus_grain_kind;

/* A handle of the grains of a kind. It is used by value, and valid until the system is freed. */
typedef struct domus_grains {
    struct domi_grain_kind *kind;
} domus_grains;

/* Make a kind known, or find it: the second call with the same name and the same behaviour gives
 * the same handle, whatever else it says. A kind stays until the system is freed. It takes memory
 * for each grain that has ever lived at the same time as others (some 250 bytes), beside the actors
 * themselves.
 *
 * Returns 0; -EINVAL for a wrong table; -EEXIST when the name belongs to a kind with another
 * behaviour; -ENOSPC when grains.kindsMax kinds are known; -ENOMEM.
 * Thread-safety: as all functions here that take a stack, only from within a handler, with the
 * stack it was given. */
DOMUS_API int domus_grain_open(domus_stack *stack, const domus_grain_kind *kind,
                               domus_grains *ret_grains);

/* Do for foreign threads what domus_grain_open() does, after domus_system_start(). Also returns
 * -ESHUTDOWN when the system does not run, and -ECHILD. Thread-safety: any thread. */
DOMUS_API int domus_outside_grain_open(struct domus_system *system, const domus_grain_kind *kind,
                                       domus_grains *ret_grains);

/* Ask the grain `key`, as domus_ask(), domus_ask_within() and domus_ask_add() ask an actor; a grain
 * that does not live is made. Rules, ownership and results are as there. The ask also fails with
 *
 *   -EINVAL     `key` cannot be a key, or the handle is zeroed
 *   -EAGAIN     living_max grains of the kind live, and this one does not
 *   -ESHUTDOWN  the system stops
 *   -ENOMEM     there is no memory for the new life, or what `make` or on_mount returned
 *
 * and never with -ESTALE because a life ends before it handles the ask. */
DOMUS_API int domus_grain_ask(domus_stack *stack, domus_grains grains, const char *key,
                              const domus_type *type, const void *payload, domus_resumed *then);
DOMUS_API int domus_grain_ask_within(domus_stack *stack, domus_grains grains, const char *key,
                                     const domus_type *type, const void *payload,
                                     uint64_t timeout_ns, domus_resumed *then);
DOMUS_API int domus_grain_ask_add(domus_stack *stack, domus_grains grains, const char *key,
                                  const domus_type *type, const void *payload, uint64_t timeout_ns,
                                  uint64_t tag);

/* Send a notice to the grain `key`, as domus_notice() sends one to an actor; a grain that does not
 * live is made.
 *
 * Returns as domus_notice(), but for -ESTALE, and the errors of domus_grain_ask(): then nothing was
 * sent. An on_mount that fails later makes the notice a dead letter. */
DOMUS_API int domus_grain_notice(domus_stack *stack, domus_grains grains, const char *key,
                                 const domus_type *type, const void *payload);

/* Do for foreign threads what domus_grain_notice() does, and what domus_grain_ask_within() does as
 * domus_outside_ask() does it (domus/system.h): it blocks, and consumes the payload in every case.
 *
 * Returns as these do; also -ESHUTDOWN, -ECHILD, and -EBUSY while memory is short.
 * Thread-safety: any foreign thread, many at once. */
DOMUS_API int domus_outside_grain_notice(struct domus_system *system, domus_grains grains,
                                         const char *key, const domus_type *type,
                                         const void *payload);
DOMUS_API int domus_outside_grain_ask(struct domus_system *system, domus_grains grains,
                                      const char *key, const domus_type *type, const void *payload,
                                      uint64_t timeout_ns, struct domus_outside_reply *reply);

/* Returns the key of the grain that is running, which is valid while the actor lives, also in
 * on_mount and on_stop. Returns NULL if the actor is no grain. */
DOMUS_API const char *domus_grain_key(const domus_stack *stack);

/* The fence of the actor that is running, if it is a life of a kind that is spread over a cluster
 * (domus/cluster.h): greater than that of every life of this grain on another node before it, so
 * that a store behind grains can refuse the writes of a predecessor that does not know yet that it
 * is one. Lives that follow each other on one node may have the same. Also in on_mount and on_stop.
 * Returns 0 if the actor is no such life. */
DOMUS_API uint64_t domus_grain_fence(const domus_stack *stack);

/* The number of grains of this kind that live, or are being made, or end: each counts from the
 * message that makes it until its last life has ended and no message waits for the next. 0 for a
 * zeroed handle. Thread-safety: any thread. */
DOMUS_API uint32_t domus_grain_count(domus_grains grains);

#ifdef __cplusplus
}
#endif

#endif
