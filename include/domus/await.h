/* Sequences: a handler that reads top to bottom, with its asks, sleeps and receives in it.
 *
 *     struct visit { uint32_t tries; };          what lives across an await
 *
 *     DOMUS_SEQUENCE(visit, struct visit)
 *     {
 *         struct guest *guest = self;            runs again after each await
 *
 *         DOMUS_BEGIN;
 *         for (frame->tries = 0; frame->tries < 3; frame->tries++) {
 *             DOMUS_ASK_WITHIN(guest->host, &knock_type, NULL, 1000000000);
 *             if (answer->error == 0)
 *                 return domus_reply(stack, answer->type, answer->payload);
 *             DOMUS_SLEEP(50000000);
 *         }
 *         DOMUS_END;
 *     }
 *
 *     .on = (const domus_on[]){DOMUS_ON(&visit_type, visit), {0}},
 *
 * A sequence is a conversation like any other (domus/conversation.h). At an await the function
 * returns; when the answer is there, it is called again and goes on behind the await. In a sequence
 * these variables are defined:
 *
 *     stack     domus_stack *           for all verbs; another one after each await
 *     self      void *                  the actor's state
 *     frame     frame type *            zeroed at first; kept, at the same address
 *     message   const void *            the payload it began with; NULL after the first await
 *     answer    const domus_answer *    what the last await brought: error, type, payload, tag,
 *                                       next; all zero before the first one
 *     then      domus_resumed *         goes on here; for DOMUS_AWAIT()
 *
 * The payload at `message` is gone at the first await (that of an ask stays until it is answered,
 * and domus_asked() finds it again), and the payload at `answer` is gone at the next await. If it
 * is needed longer, copy it into the frame, and take what it owns with domus_take(), which concerns
 * the message before the first await and the answer after it.
 *
 * Local variables do not live across an await. Locals that stand before DOMUS_BEGIN are initialised
 * again each time the function is called. Between DOMUS_BEGIN and DOMUS_END a local that is in
 * scope at an await does not compile when it has an initialiser (also in `for (int i = 0; ...)`) or
 * is used after the await; put it into the frame, or into a block of its own that has no await. The
 * payload or the options of an await may be written into its call: DOMUS_ASK(to, &type, &(struct
 * visitor){.age = 7}). An await outside of DOMUS_BEGIN and DOMUS_END, two awaits on one line, and
 * an await inside of another switch do not compile either. (The compiler does not catch these: in
 * clang a local with an initialiser whose value is not read behind the await, for instance when
 * only its address is passed on; in g++ a local without initialiser; an await in a switch over a
 * 64-bit value, where the sequence ends with -EINVAL when it should go on.)
 *
 * `return` ends the sequence with any value that a handler may return; DOMUS_END ends it with 0. An
 * await that cannot begin (-ENOMEM, -EMSGSIZE) ends the sequence with that error, and releases what
 * the payload of its ask owns: DOMUS_ASK() and DOMUS_ASK_WITHIN() consume the payload in every
 * case. A sequence that has something to give back then uses DOMUS_TRY_AWAIT(). When the
 * conversation is cancelled, the await in which it waits brings the error -ECANCELED, and the next
 * await ends the sequence.
 *
 * The macros are standard C17, and C++. */
#ifndef DOMUS_AWAIT_H
#define DOMUS_AWAIT_H

#include <domus/receive.h>

#include <assert.h>
#include <errno.h>

/* Define the sequence `name`, a static function whose body follows the macro. `frame_type` is the
 * type of its frame (`char` if nothing is kept). A frame takes sizeof(frame_type) + 8 bytes,
 * rounded up, and must not exceed DOMUS_FRAME_MAX. */
#define DOMUS_SEQUENCE(name, frame_type)                                                           \
    struct domi_##name##_frame {                                                                   \
        frame_type frame;                                                                          \
        int64_t place;                                                                             \
    };                                                                                             \
    static_assert(sizeof(struct domi_##name##_frame) <= DOMUS_FRAME_MAX, "too large a frame");     \
    DOMI_SEQUENCE_HEAD(name, frame_type);                                                          \
    static int domi_##name##_resume(domus_stack *stack, void *self, const domus_answer *answer)    \
    {                                                                                              \
        struct domi_##name##_frame *kept = (struct domi_##name##_frame *)domus_frame(stack);       \
        return name(stack, self, &kept->frame, NULL, answer, domi_##name##_resume, &kept->place);  \
    }                                                                                              \
    __attribute__((unused)) static int domi_##name##_begin(domus_stack *stack, void *self,         \
                                                           const void *message)                    \
    {                                                                                              \
        static const domus_answer none = DOMI_NOTHING;                                             \
        struct domi_##name##_frame *kept = (struct domi_##name##_frame *)domus_frame(stack);       \
        kept->place = 0;                                                                           \
        return name(stack, self, &kept->frame, message, &none, domi_##name##_resume,               \
                    &kept->place);                                                                 \
    }                                                                                              \
    __attribute__((unused)) static int domi_##name##_mount(domus_stack *stack, void *self)         \
    {                                                                                              \
        return domi_##name##_begin(stack, self, NULL);                                             \
    }                                                                                              \
    DOMI_STRICT                                                                                    \
    DOMI_SEQUENCE_HEAD(name, frame_type)

/* DOMUS_ON(type, name) is a row of `on`: each message of `type` begins the sequence `name`. For
 * rows of `on_peer` there is DOMUS_ON_PEER() in domus/pipeline.h. DOMUS_BY(name) is a function of a
 * behaviour that is the sequence `name`: `.on_read = DOMUS_BY(name)`. Each of the three compiles in
 * its own place alone. */
#ifdef __cplusplus
#define DOMUS_ON(type, name)                                                                       \
    domus_on                                                                                       \
    {                                                                                              \
        type, domi_##name##_begin, sizeof(struct domi_##name##_frame)                              \
    }
#define DOMUS_BY(name)                                                                             \
    domus_call                                                                                     \
    {                                                                                              \
        domi_##name##_begin, sizeof(struct domi_##name##_frame)                                    \
    }
#else
#define DOMUS_ON(type_, name)                                                                      \
    {                                                                                              \
        .type = (type_), .handle = domi_##name##_begin,                                            \
        .frame_size = sizeof(struct domi_##name##_frame)                                           \
    }
#define DOMUS_BY(name)                                                                             \
    {                                                                                              \
        .handle = domi_##name##_begin, .call_frame_size = sizeof(struct domi_##name##_frame)       \
    }
#endif

/* For the initialiser of a behaviour: the sequence `name` is the actor's on_mount. (C++ before
 * C++20 has no designated initialisers, so this needs C or C++20.) */
#define DOMUS_ON_MOUNT(name)                                                                       \
    .on_mount = domi_##name##_mount, .mount_frame_size = sizeof(struct domi_##name##_frame)

/* Begin the sequence `name` from a handler of one's own, as its last act: `return
 * DOMUS_BEGIN_SEQUENCE(name, FRAME_MAX, stack, self, message)`. `frame_size` is that of the row of
 * the handler, a constant; it does not compile if the frame of the sequence is larger. The handler
 * may write to that frame before: `struct visit *frame = domus_frame(stack)`. */
#define DOMUS_BEGIN_SEQUENCE(name, frame_size, stack, self, message)                               \
    ((void)sizeof(char[sizeof(struct domi_##name##_frame) <= (frame_size) ? 1 : -1]),              \
     domi_##name##_begin((stack), (self), (message)))

/* The part of the sequence that may wait stands between DOMUS_BEGIN and DOMUS_END. */
#define DOMUS_BEGIN                                                                                \
    (void)stack, (void)self, (void)frame, (void)message, (void)answer, (void)then;                 \
    switch (*domi_place) {                                                                         \
    default:                                                                                       \
        return -EINVAL;                                                                            \
    case 0:

#define DOMUS_END                                                                                  \
    }                                                                                              \
    DOMI_LENIENT                                                                                   \
    return 0

/* Call the verb that is the argument, and wait for what it begins. Any verb that takes a
 * domus_resumed will do; pass `then` to it. */
#define DOMUS_AWAIT(...)                                                                           \
    do {                                                                                           \
        *domi_place = DOMI_PLACE;                                                                  \
        return __VA_ARGS__;                                                                        \
    case DOMI_PLACE:;                                                                              \
    } while (0)

/* Suspend as DOMUS_AWAIT() does, in sequences that hold something which they have to give back:
 * when the verb cannot begin, the sequence does not end but goes on at once, and `answer` has the
 * error. The payload of an ask is the caller's then. */
#define DOMUS_TRY_AWAIT(...)                                                                       \
    do {                                                                                           \
        *domi_place = DOMI_PLACE;                                                                  \
        {                                                                                          \
            int domi_result = __VA_ARGS__;                                                         \
            if (domi_result >= 0)                                                                  \
                return domi_result;                                                                \
            answer = domi_await_make_failed_answer(domi_result);                                   \
        }                                                                                          \
        __attribute__((fallthrough));                                                              \
    case DOMI_PLACE:;                                                                              \
    } while (0)

/* Call the verb of the same name with these arguments, wait for what it begins, and go on behind
 * the await, as DOMUS_AWAIT() does. `stack` and `then` are added. */
#define DOMUS_ASK(...)            DOMUS_AWAIT(domi_await_send_ask(stack, __VA_ARGS__, 0, then))
#define DOMUS_ASK_WITHIN(...)     DOMUS_AWAIT(domi_await_send_ask(stack, __VA_ARGS__, then))
#define DOMUS_SLEEP(...)          DOMUS_AWAIT(domus_sleep(stack, __VA_ARGS__, then))
#define DOMUS_RECEIVE(...)        DOMUS_AWAIT(domus_receive(stack, __VA_ARGS__, then))
#define DOMUS_RECEIVE_WITHIN(...) DOMUS_AWAIT(domus_receive_within(stack, __VA_ARGS__, then))

/* Wait for all asks, sleeps and receives that domus_ask_add() and its like have begun, or for the
 * first of them to end. */
#define DOMUS_WAIT_ALL()   DOMUS_AWAIT(domus_wait_all(stack, then))
#define DOMUS_WAIT_FIRST() DOMUS_AWAIT(domus_wait_first(stack, then))

/* --- inside of the macros, not for programs ------------------------------------------------- */

/* Returns an answer that has an error and nothing else. It is valid until the next call on this
 * thread. */
static inline const domus_answer *domi_await_make_failed_answer(int error)
{
    static __thread domus_answer failed;

    failed.error = error;
    return &failed;
}

/* Make the ask of DOMUS_ASK() and its like. If nothing was sent, the sequence ends, and could not
 * release what the payload owns, so this function releases it. */
static inline int domi_await_send_ask(domus_stack *stack, domus_address to, const domus_type *type,
                                      const void *payload, uint64_t timeout_ns, domus_resumed *then)
{
    int result = domus_ask_within(stack, to, type, payload, timeout_ns, then);

    if (result < 0 && payload != NULL && type->release != NULL)
        type->release((void *)(uintptr_t)payload);
    return result;
}

/* The place where a sequence goes on, made of the number of the line. It lies below the range of
 * an int, so an await inside of a user's switch over an int is a case out of range, which the
 * compiler reports. */
#define DOMI_PLACE (-(INT64_C(1) << 40) - __LINE__)

#define DOMI_SEQUENCE_HEAD(name, frame_type)                                                       \
    static int name(domus_stack *stack, void *self,                                                \
                    frame_type *frame, /* NOLINT(bugprone-macro-parentheses): a type */            \
                    const void *message, const domus_answer *answer, domus_resumed *then,          \
                    int64_t *domi_place)

#ifdef __cplusplus
#define DOMI_NOTHING                                                                               \
    {                                                                                              \
    }
#else
#define DOMI_NOTHING                                                                               \
    {                                                                                              \
        0                                                                                          \
    }
#endif

/* Between DOMUS_SEQUENCE and DOMUS_END two kinds of compiler warnings are errors: a jump over a
 * declaration that is initialised, and a case that its switch cannot meet. In C++ such a jump is an
 * error by itself. */
#if defined(__clang__)
#define DOMI_STRICT                                                                                \
    _Pragma("clang diagnostic push") _Pragma("clang diagnostic error \"-Wswitch\"")                \
        _Pragma("clang diagnostic error \"-Wuninitialized\"")                                      \
            _Pragma("clang diagnostic error \"-Wconditional-uninitialized\"")
#define DOMI_LENIENT _Pragma("clang diagnostic pop")
#elif defined(__GNUC__) && !defined(__cplusplus)
#define DOMI_STRICT                                                                                \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic error \"-Wjump-misses-init\"")          \
        _Pragma("GCC diagnostic error \"-Woverflow\"")                                             \
            _Pragma("GCC diagnostic error \"-Wswitch-outside-range\"")                             \
                _Pragma("GCC diagnostic error \"-Wuninitialized\"")                                \
                    _Pragma("GCC diagnostic error \"-Wmaybe-uninitialized\"")
#define DOMI_LENIENT _Pragma("GCC diagnostic pop")
#else
#define DOMI_STRICT
#define DOMI_LENIENT
#endif

#endif
