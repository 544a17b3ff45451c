/* The access log: one line for each request, as a part of a chain.
 *
 *     static domus_http_access access = {.path = "/var/log/site.log",
 *                                        .format = DOMUS_HTTP_ACCESS_JSON};
 *     ... {&domus_http_access_log, &access} in the chain, near its top, so that it also sees what
 *         the parts behind it answer
 *     domus_http_access_open(stack, &access); (once, by any actor that stays)
 *     ... domus_http_access_close(&access); (when the system has stopped)
 *
 * A line is made when the answer is over: the whole of it was handed to the connection, or cut. It
 * goes to a queue of fixed size, and an actor takes the lines out every `flush_ns` and appends them
 * to the file on a helper thread (domus/blocking.h). So no connection ever waits for the disk or
 * for whoever reads the log: when the queue is full, lines are dropped, and counted. The file is
 * opened anew for each flush, so it may be renamed or removed at any time (logrotate).
 *
 * **Formats.** COMBINED is that of Apache and nginx; EXTENDED has the duration in seconds and the
 * request's id behind it; JSON has a line of these members, of which the optional ones are left
 * away when they are not known:
 *
 *     {"time":"2026-11-29T21:46:02Z","client":"192.0.2.1","user":"ann","method":"GET",
 *      "target":"/a?b=c","protocol":"HTTP/1.1","status":200,"bytes":12,"duration":0.000250,
 *      "referer":"...","agent":"...","id":"...","trace":"...","cut":true}
 *
 * A request that has failed has the name of its error behind the status ("error":"ENOENT"), which
 * the client is not told.
 *
 * The status is 499 if the client has gone before an answer was there, as nginx has it. Text
 * of strangers (target, user, Referer, User-Agent) is written in printable ASCII, with
 * all else, quotes and backslashes escaped, so nobody can end a line or forge one; and it is cut:
 * the target at `target_max` bytes, the others at DOMUS_HTTP_ACCESS_TEXT_MAX, counted as they are
 * written. No other fields are logged: neither Authorization nor cookies. The query may have
 * secrets, too: `hides_query` leaves it away. The time of a request begins when it enters the chain
 * and has the resolution of domus_now_ns(), which stands still within a turn.
 *
 * Thread-safety: any thread. Lines of one connection are in order; those of several threads are in
 * order within one flush for each thread. */
#ifndef DOMUS_HTTP_ACCESS_H
#define DOMUS_HTTP_ACCESS_H

#include <domus/http_chain.h>
#include <domus/system.h>

#ifdef __cplusplus
extern "C" {
#endif

/* most bytes in a line of each of user, Referer and User-Agent */
#define DOMUS_HTTP_ACCESS_TEXT_MAX 256u
/* greatest value of target_max, the most bytes of a target in a line */
#define DOMUS_HTTP_ACCESS_TARGET_MAX 4096u

/* Number of parts of the queue of lines, of which each thread uses one. */
#define DOMUS_HTTP_ACCESS_QUEUES 16u

/* The formats of a line of the log. */
typedef enum domus_http_access_format {
    DOMUS_HTTP_ACCESS_COMBINED,
    DOMUS_HTTP_ACCESS_EXTENDED,
    DOMUS_HTTP_ACCESS_JSON,
} domus_http_access_format;

/* Options of the part domus_http_access_log, and its queue. It is the caller's, and valid as long
 * as the chain is used; its fields but the last are not changed then. */
typedef struct domus_http_access {
    const char *path; /* the file that lines are appended to, made with mode 0640; NULL: `write` */
    /* A function that writes lines elsewhere than to a file, on a helper thread, so it may block.
     * Returns 0; a negative errno: the lines are lost, and counted. If `path` is NULL, too,
     * somebody calls domus_http_access_take(). */
    int (*write)(void *context, const char *lines, size_t size);
    void *context; /* argument that `write` gets */
    domus_http_access_format format;
    /* bytes of each part of the queue, 16 KiB..16 MiB, rounded up to a power of 2; 0 means 256 KiB.
     * They are taken when a thread logs its first line */
    uint32_t queue_bytes;
    /* most bytes of a target in a line, 16..DOMUS_HTTP_ACCESS_TARGET_MAX; 0 means 1,024 */
    uint32_t target_max;
    /* number of trusted proxies that have added to X-Forwarded-For, 0..8, as in domus_http_limit */
    uint32_t proxies;
    bool hides_query;
    /* time between two flushes of lines to the file, 10 ms..60 s; 0 means 200 ms */
    uint64_t flush_ns;
    void *queue; /* the queue of lines, for the library alone; NULL at first */
} domus_http_access;

DOMUS_API extern const domus_http_part domus_http_access_log;

/* Make the actor that writes the lines, on the thread of the caller's actor. Lines that were logged
 * before are written, too. It ends with the actor that has made it.
 *
 * Returns 0; -EINVAL without `path` and `write`; -EALREADY when it was opened; -ENOMEM; or as
 * domus_spawn(). */
DOMUS_API int domus_http_access_open(domus_stack *stack, domus_http_access *access);

/* Make the actor that writes the lines, from a foreign thread, at the start of a program: it ends
 * with the system. Returns as domus_http_access_open(), and as domus_outside_spawn().
 * Thread-safety: any foreign thread. */
DOMUS_API int domus_outside_http_access_open(domus_system *system, domus_http_access *access);

/* Write the lines that are left in the queue, and free the queue, when no system uses it any more;
 * it may block. The log can be used again then. */
DOMUS_API void domus_http_access_close(domus_http_access *access);

/* Take lines out of the queue, as many whole ones as fit into `room` bytes, of which 8 KiB are
 * enough for any. For tests, and for logs without `path` and `write`. Returns the bytes; 0: there
 * is no line. Thread-safety: any thread, but one at a time, and not beside
 * domus_http_access_open(). */
DOMUS_API size_t domus_http_access_take(domus_http_access *access, char *to, size_t room);

/* Returns the number of lines that were dropped so far, because the queue was full, there was no
 * memory, or they could not be written. */
DOMUS_API uint64_t domus_http_access_dropped(const domus_http_access *access);

#ifdef __cplusplus
}
#endif

#endif
