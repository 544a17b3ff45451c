/* Processes: actors that are given as three functions, init, step and close, and are
 * driven by events.
 *
 * A process is a state machine. Each step is given the events that have come since the last one:
 * messages, and completions of its yields. A yield is a command with a tag (ask an actor, or
 * sleep, work that may block) that a step writes; its completion is an event with the same tag. A
 * process takes messages of any type.
 *
 * When the system stops, each process that lives gets one last event, DOMUS_PROCESS_CANCEL, before
 * anything of it is ended. It should come to its end, by domus_process_done(), within
 * shutdown.actorTimeout; until then everything that it uses is there, and it may go on to ask. A
 * process that has not ended by then is stopped like any other actor. One whose turn to begin comes
 * only then, as in a pool whose runners are busy, never begins: none of its functions is called.
 *
 * init, step and close get a `domus_stack *`, as all handlers do, and may use it with all verbs
 * that do not wait: domus_notice(), domus_spawn(), domus_self() and so on. Events of timers and
 * watches do not reach a process: they become dead letters.
 *
 * Thread-safety of all functions here: only from within a handler, with the stack or output
 * it was given. */
#ifndef DOMUS_PROCESS_H
#define DOMUS_PROCESS_H

#include <domus/conversation.h>
#include <domus/spawn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* most events that one step is given; further events come in the next step */
#define DOMUS_PROCESS_EVENTS_MAX 16u
#define DOMUS_PROCESS_YIELDS_MAX 64u  /* most yields that one step may write */
#define DOMUS_PROCESS_METHOD_MAX 63u  /* most bytes of the name of a method of a process */
#define DOMUS_PROCESS_INPUT_MAX  256u /* most bytes of the input with which a process is spawned */
#define DOMUS_PROCESS_WORKS_MAX  64u  /* most pieces of work of one process that are under way */
#define DOMUS_PROCESS_TAG_MAX    (UINT64_MAX - 2)

/* The kinds of events that a process gets. */
typedef enum domus_process_event_type {
    DOMUS_PROCESS_MESSAGE,  /* the event is a notice or an ask of another actor */
    DOMUS_PROCESS_COMPLETE, /* the event is the completion of a yield */
    /* the event says that the system stops; its data is a domus_process_cancel */
    DOMUS_PROCESS_CANCEL,
} domus_process_event_type;

/* The data of the event DOMUS_PROCESS_CANCEL, the last one of a process. */
typedef struct domus_process_cancel {
    uint64_t deadline_ns; /* time at which the process is stopped, on the clock of domus_now_ns() */
    uint64_t left_ns;     /* time from the sending of the event to the deadline of the process */
} domus_process_cancel;

DOMUS_API extern const domus_type domus_process_cancel_type;

/* One event that a step is given. The payload at `data` is valid until the step returns. */
typedef struct domus_process_event {
    domus_process_event_type type;
    /* error of the yield that is complete: 0, or a negative errno, and then there is no data */
    int error;
    uint64_t tag; /* tag of the yield that is complete */
    /* type of the message or reply; NULL: there is no data (a sleep, an error) */
    const domus_type *data_type;
    const void *data;
    domus_address sender; /* sender of the message, or of the reply */
    /* whether the event is an ask, so that `ask` has to be answered, now or in a later step */
    bool is_ask;
    /* The ask, for domus_kept_reply() and its like. An ask that was not answered fails with -ESTALE
     * when the process ends. */
    domus_kept ask;
} domus_process_event;

/* The place into which a step writes its yields. */
typedef struct domus_process_output domus_process_output;

/* A process: its functions. They must stay constant for the life of the system. init and close may
 * be NULL. */
typedef struct domus_process {
    const char *name;
    /* bytes of the private state of the process, which begins zeroed; 0..1 MiB */
    uint32_t state_size;

    /* A function that runs once, when the actor is mounted, with the method (the entry point) and
     * the input with which the process was spawned; it should return -ENOENT for a method that it
     * does not know. A negative errno is a failure of the actor (as of on_mount;
     * domus/supervise.h). After a restart init runs again, with the same arguments. */
    int (*init)(domus_stack *stack, void *self, const char *method, const domus_type *type,
                const void *input);

    /* A function that runs after init with the events that have come by then, perhaps none. Then
     * step runs whenever there are events, with all that came in the same run of the actor, the
     * oldest first.
     *
     * Returns 0; a negative errno is a failure of the actor as by domus_escalate(): the actor ends,
     * unless its parent restarts it. */
    int (*step)(domus_stack *stack, void *self, const domus_process_event *events, uint32_t count,
                domus_process_output *out);

    /* A function that runs once for each init, also for one that failed, and gives back what the
     * state owns. A process that is stopped makes no further step. */
    void (*close)(domus_stack *stack, void *self);
} domus_process;

/* Spawn an actor that is this process. `method` is copied (NULL: ""), and so is the input
 * (type->size bytes of `input`; type NULL: no input). The type of the input must not have a
 * `release`, because init may see the input more than once. `options` may be NULL.
 *
 * Returns as domus_spawn_with(); -EINVAL also for an input whose type has a `release`, a process
 * without step, or too large a state; -EMSGSIZE for too long a method or too large an input. */
DOMUS_API int domus_process_spawn(domus_stack *stack, const domus_process *process,
                                  const char *method, const domus_type *type, const void *input,
                                  const domus_spawn_options *options, domus_address *ret_address);

/* Yield an ask, as domus_ask_add(): its reply or error is the completion. `tag` is 0 to
 * DOMUS_PROCESS_TAG_MAX; the library does not check that tags differ.
 *
 * Returns 0; -ENOBUFS beyond DOMUS_PROCESS_YIELDS_MAX in this step; -EINVAL for the tag; -ENOMEM;
 * -EMSGSIZE; -ECANCELED when the process is stopped. */
DOMUS_API int domus_process_ask(domus_process_output *out, domus_address to, const domus_type *type,
                                const void *payload, uint64_t timeout_ns, uint64_t tag);

/* Yield a sleep of `time_ns` (rounded up to ticks of 1 ms; never early). Returns as
 * domus_process_ask(). */
DOMUS_API int domus_process_sleep(domus_process_output *out, uint64_t time_ns, uint64_t tag);

/* Yield work that may block: `function(argument)` runs on a helper thread (domus/blocking.h), and
 * what it returns is the completion: a negative result is its error; any other one is its data, an
 * int of domus_blocking_type. The limits of helper threads are errors of the completion: -EAGAIN
 * when blocking.queueMax jobs wait, -ESHUTDOWN, -EOPNOTSUPP in a test kit.
 *
 * Ownership: `argument` stays the process's, and may lie in its state: work that has begun is
 * waited for before the process is closed, also when it is done, stopped or restarted.
 *
 * Returns as domus_process_ask(); -ENOBUFS also beyond DOMUS_PROCESS_WORKS_MAX. */
DOMUS_API int domus_process_work(domus_process_output *out, int (*function)(void *argument),
                                 void *argument, uint64_t tag);

/* Take over what the payload of an event of this step owns; otherwise the library releases it when
 * the step returns. The payload itself stays valid until the step returns.
 *
 * Returns 0; -EPERM when the payload is shared (a publication); -EALREADY when it was taken;
 * -EINVAL when the event has no payload, or is not of this step. */
DOMUS_API int domus_process_take(domus_process_output *out, const domus_process_event *event);

/* End the process after this step. Its value is sent as a notice to the actor that spawned it, with
 * the process as the sender; with a NULL `type` it has no value. If nobody is to get it
 * (domus/entry.h), it is released. Yields that are under way are dropped; work is waited for.
 *
 * Returns 0; -EALREADY when this was called before; a negative errno of domus_notice(): then the
 * process goes on, and still owns what the value owns. */
DOMUS_API int domus_process_done(domus_process_output *out, const domus_type *type,
                                 const void *value);

#ifdef __cplusplus
}
#endif

#endif
