/* Processes: actors given as init, step and close, driven by events.
 *
 * A process is a state machine. Each step is given the events that have come since the last one:
 * messages, and what became of its yields. A yield is a command with a tag (ask somebody, sleep)
 * that a step writes; its completion carries the tag. The adapter is one conversation that waits
 * for the first of all these, and any type of message is taken.
 *
 * init, step and close get a `domus_stack *`, as all handlers do, for all verbs that do not wait:
 * domus_notice(), domus_spawn(), domus_self() and so on. Events of timers and watches do not reach
 * a process: they are dead letters.
 *
 * Thread-safety of all functions here: only from within a handler, with the stack or output it was
 * given. */
#ifndef DOMUS_PROCESS_H
#define DOMUS_PROCESS_H

#include <domus/conversation.h>
#include <domus/spawn.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOMUS_PROCESS_EVENTS_MAX 16u  /* in one step; the others come in the next */
#define DOMUS_PROCESS_YIELDS_MAX 64u  /* that one step may write */
#define DOMUS_PROCESS_METHOD_MAX 63u  /* bytes in a method's name */
#define DOMUS_PROCESS_INPUT_MAX  256u /* bytes of input */
#define DOMUS_PROCESS_TAG_MAX    (UINT64_MAX - 2)

typedef enum domus_process_event_type {
    DOMUS_PROCESS_MESSAGE,  /* somebody's notice or ask */
    DOMUS_PROCESS_COMPLETE, /* a yield is done */
} domus_process_event_type;

/* What a step is given. What `data` points to is valid until the step returns. */
typedef struct domus_process_event {
    domus_process_event_type type;
    int error;                   /* of a yield: 0, or a negative errno, and no data then */
    uint64_t tag;                /* of the yield */
    const domus_type *data_type; /* of the message or reply; NULL: none (a sleep, an error) */
    const void *data;
    domus_address sender; /* of the message or reply */
    bool is_ask;          /* answer `ask`, now or in a later step, by domus_kept_reply() and its */
    domus_kept ask;       /* like; what is not answered fails with -ESTALE when the process ends */
} domus_process_event;

/* Where a step writes what it wants. */
typedef struct domus_process_output domus_process_output;

/* What a process is. Constant for the life of the system. init and close may be NULL. */
typedef struct domus_process {
    const char *name;
    uint32_t state_size; /* bytes of private state, zeroed; 0..1 MiB */

    /* Runs once, on the actor's own first turn, with the entry point and the input it was spawned
     * with; -ENOENT for a method that it does not know. A negative errno is a failure of the actor
     * (as of on_mount; domus/supervise.h). After a restart it runs again, with the same. */
    int (*init)(domus_stack *stack, void *self, const char *method, const domus_type *type,
                const void *input);

    /* Runs after init with what has come by then, perhaps nothing; then whenever there are events:
     * all that came in the same turn, the oldest first.
     *
     * Returns 0; a negative errno is a failure of the actor as by domus_escalate(): it ends, unless
     * its parent restarts it. */
    int (*step)(domus_stack *stack, void *self, const domus_process_event *events, uint32_t count,
                domus_process_output *out);

    /* Runs once for each init, also for one that failed: give back what the state owns. A process
     * that is stopped makes no further step. */
    void (*close)(domus_stack *stack, void *self);
} domus_process;

/* Spawn an actor that is this process. `method` is copied (NULL: ""), and so is the input
 * (type->size bytes of `input`; type NULL: none). A type with `release` cannot be input, because
 * init may see it more than once. `options` NULL: none.
 *
 * Returns as domus_spawn_with(); -EINVAL also for such a type, a process without step, or too large
 * a state; -EMSGSIZE for too long a method or too large an input. */
DOMUS_API int domus_process_spawn(domus_stack *stack, const domus_process *process,
                                  const char *method, const domus_type *type, const void *input,
                                  const domus_spawn_options *options, domus_address *ret_address);

/* Yield an ask, as domus_ask_add(): its reply or error completes it. `tag` is 0 to
 * DOMUS_PROCESS_TAG_MAX; two with one tag are told apart by nobody.
 *
 * Returns 0; -ENOBUFS beyond DOMUS_PROCESS_YIELDS_MAX in this step; -EINVAL for the tag; -ENOMEM;
 * -EMSGSIZE; -ECANCELED when the process is stopped. */
DOMUS_API int domus_process_ask(domus_process_output *out, domus_address to, const domus_type *type,
                                const void *payload, uint64_t timeout_ns, uint64_t tag);

/* Yield a sleep (ticks of 1 ms; never early). Returns as domus_process_ask(). */
DOMUS_API int domus_process_sleep(domus_process_output *out, uint64_t time_ns, uint64_t tag);

/* Take what the payload of an event of this step owns; otherwise the library releases it when the
 * step returns. The payload stays valid until then.
 *
 * Returns 0; -EPERM when it is shared (a publication); -EALREADY; -EINVAL when the event has no
 * payload, or is not of this step. */
DOMUS_API int domus_process_take(domus_process_output *out, const domus_process_event *event);

/* The process is done: this was its last step. Its value goes to who spawned it, as a notice (the
 * sender is the process); `type` NULL: it has none. Yields that are under way are dropped.
 *
 * Returns 0; -EALREADY; what domus_notice() says: then the value is still the process's, and it is
 * not done. */
DOMUS_API int domus_process_done(domus_process_output *out, const domus_type *type,
                                 const void *value);

#ifdef __cplusplus
}
#endif

#endif
