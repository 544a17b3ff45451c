/* A table of sessions, each of which is found by its id (domus/http_session.h) and has a value, any
 * bytes; as a table for whoever has a place for it, and as an actor that is asked.
 *
 *     domus_http_sessions_spawn(stack, NULL, &store);                              once
 *     ...
 *     domus_http_session ask = {.id = id};                                         a request
 *     DOMUS_ASK_WITHIN(store, &domus_http_session_find_type, &ask, 1000000000);
 *     if (answer->error == -ENOENT)
 *         ... nobody is logged in ...
 *
 * **Lifetime.** A session that nobody has used for `idle_ns` is gone, and so is each one that is
 * older than `lifetime_ns`, however much it is used. To find, to change and to renew it is to use
 * it.
 *
 * **Bounds.** The table has at most `count_max` sessions and `bytes_max` bytes. At a bound, the
 * sessions that were not used for longest go; or, with `refuses`, a new one is refused. So begin a
 * session for who has logged in, not for everybody who asks: otherwise strangers decide whose
 * session goes.
 *
 * **A new id after a login.** Whoever logs in gets a session with a new id (begin, or renew), or
 * somebody who has made him use an id that he knows would be logged in with him (session fixation).
 * A renewed session keeps its value and its age, and its old id names nothing.
 *
 * Ids are random, 128 bits of getrandom(2). The table has hashes of them, so neither its memory nor
 * the time of a look tells an id.
 *
 * All sessions of a program are in one table and one actor, because the requests of a browser come
 * to any thread. A database is the place for all that has to live through a restart, or is shared
 * with others. */
#ifndef DOMUS_HTTP_SESSIONS_H
#define DOMUS_HTTP_SESSIONS_H

#include <domus/http_session.h>
#include <domus/system.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Options of a table of sessions. NULL: all defaults. A limit of 0 is its default. */
typedef struct domus_http_sessions_options {
    /* most sessions of a table, 1..1,000,000; 0 means 10,000. Each takes 8 to 16 bytes
     * beforehand */
    uint32_t count_max;
    uint32_t value_max; /* most bytes of the value of a session, up to 1 MiB; 0 means 4 KiB */
    /* most bytes of all values, with DOMUS_HTTP_SESSION_COST for each session; 0 means 16 MiB. At
     * least value_max and one cost */
    uint64_t bytes_max;
    /* time after which a session that nobody has used is gone; 0 means 30 min */
    uint64_t idle_ns;
    uint64_t lifetime_ns; /* greatest age of a session, however much it is used; 0 means 12 h */
    /* whether at a bound new sessions and larger values are refused with -ENOBUFS */
    bool refuses;
    uint8_t reserved[7]; /* 0 */
    /* A function that draws the bytes of ids, for tests that have to know them. Returns 0 or a
     * negative errno. NULL: getrandom(2). */
    int (*draw)(void *to, size_t size);
} domus_http_sessions_options;

/* bytes that a session counts for in bytes_max, beside those of its value */
#define DOMUS_HTTP_SESSION_COST 192u

/* --- the table -------------------------------------------------------------------------------- */

/* Thread-safety of all functions here: one thread at a time. `now_ns` is any clock that does not go
 * back, such as domus_now_ns(). */
typedef struct domus_http_sessions domus_http_sessions;

/* Make a table. Returns 0; -EINVAL for a wrong option; -ENOMEM. */
DOMUS_API int domus_http_sessions_open(const domus_http_sessions_options *options,
                                       domus_http_sessions **ret_sessions);

/* Free a table. Returns NULL. NULL is allowed. */
DOMUS_API domus_http_sessions *domus_http_sessions_close(domus_http_sessions *sessions);

/* Begin a session.
 *
 * Ownership: the table owns `value` if this returns 0.
 * Returns 0; -EMSGSIZE for a value above value_max; -ENOBUFS at a bound with `refuses`; -ENOMEM;
 * the error of getrandom(2). */
DOMUS_API int domus_http_sessions_begin(domus_http_sessions *sessions, uint64_t now_ns,
                                        domus_slice value, domus_http_session_id *ret_id);

/* Find the session of an id. The slice is the table's, and valid until the next call with it.
 * Returns 0; -ENOENT. */
DOMUS_API int domus_http_sessions_find(domus_http_sessions *sessions, uint64_t now_ns,
                                       const domus_http_session_id *id, domus_slice *ret_value);

/* Give the session of an id another value. Ownership and results as of domus_http_sessions_begin();
 * -ENOENT. */
DOMUS_API int domus_http_sessions_put(domus_http_sessions *sessions, uint64_t now_ns,
                                      const domus_http_session_id *id, domus_slice value);

/* Give the session of an id another id, which is drawn. Returns 0; -ENOENT; the error of
 * getrandom(2), and the session is as it was. */
DOMUS_API int domus_http_sessions_renew(domus_http_sessions *sessions, uint64_t now_ns,
                                        const domus_http_session_id *id,
                                        domus_http_session_id *ret_id);

/* End a session, at a logout. Returns 0; -ENOENT. */
DOMUS_API int domus_http_sessions_end(domus_http_sessions *sessions, uint64_t now_ns,
                                      const domus_http_session_id *id);

/* Forget up to `most` sessions that were idle for too long. Returns the time at which the next
 * session will have been idle for too long; UINT64_MAX: there is none. */
DOMUS_API uint64_t domus_http_sessions_sweep(domus_http_sessions *sessions, uint64_t now_ns,
                                             uint32_t most);

/* Return the number of sessions, and the bytes that they count for. */
DOMUS_API uint32_t domus_http_sessions_count(const domus_http_sessions *sessions);
DOMUS_API uint64_t domus_http_sessions_bytes(const domus_http_sessions *sessions);

/* --- the actor -------------------------------------------------------------------------------- */

/* The payload of an ask to the actor, and of its answer. An ask names its session by `id`, which
 * begin does not look at, and has the new value for begin and put. The answer has the id of the
 * session, which is the new one after begin and renew, and the value after find and renew. */
typedef struct domus_http_session {
    domus_http_session_id id;
    domus_slice value;
} domus_http_session;

/* The types of asks, which do what the functions above do, and fail with their errors. The answer
 * is of domus_http_session_type. The `release` of each type frees the value. */
DOMUS_API extern const domus_type domus_http_session_begin_type;
DOMUS_API extern const domus_type domus_http_session_find_type;
DOMUS_API extern const domus_type domus_http_session_put_type;
DOMUS_API extern const domus_type domus_http_session_renew_type;
DOMUS_API extern const domus_type domus_http_session_end_type;
DOMUS_API extern const domus_type domus_http_session_type;

/* Make an actor with a table, a child of the running one, on its thread. The options are copied. It
 * ends with its parent, and its sessions with it. domus_outside_http_sessions_spawn() does the same
 * for a foreign thread: the actor is on the next thread, round robin, and the root is its parent.
 *
 * Thread-safety: the first only from within a handler, with its stack; the second any foreign
 * thread. Returns 0; as domus_http_sessions_open(); and as domus_spawn() or domus_outside_spawn().
 */
DOMUS_API int domus_http_sessions_spawn(domus_stack *stack,
                                        const domus_http_sessions_options *options,
                                        domus_address *ret_store);
DOMUS_API int domus_outside_http_sessions_spawn(domus_system *system,
                                                const domus_http_sessions_options *options,
                                                domus_address *ret_store);

#ifdef __cplusplus
}
#endif

#endif
