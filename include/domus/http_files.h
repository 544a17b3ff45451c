/* Static files: requests are answered with the files beneath a directory.
 *
 *     typedef struct web { domus_http_files files; } web;
 *
 *     DOMUS_SEQUENCE(mount, char)                   the directory is opened once
 *     {
 *         web *own = self;
 *         DOMUS_BEGIN;
 *         DOMUS_AWAIT(domus_file_open(stack, NULL, "public",
 *                                     DOMUS_FILE_READ | DOMUS_FILE_DIRECTORY, 0, then));
 *         if (answer->error != 0 || domus_take_answer(stack, answer) != 0)
 *             return -EIO;
 *         own->files = (domus_http_files){.root = *(domus_file *const *)answer->payload};
 *         DOMUS_END;
 *     }
 *
 *     static int on_request(domus_stack *stack, void *self, const void *payload)
 *     {
 *         return domus_http_serve(stack, &((web *)self)->files, domus_http_path(payload));
 *     }
 *
 * **Which file.** The path is decoded, and its "." and ".." are taken out (domus/http_query.h). It
 * is opened beneath the root in one step that the kernel guards (openat2(2), RESOLVE_BENEATH), so
 * neither a path nor a symbolic link leads out of the root; links that stay inside are followed. A
 * path that ends in '/' means the index of that folder. A folder that is named without '/' gets 301
 * to the same path with it. Folders are never listed. 404 for everything that is no regular file
 * (devices, FIFOs and sockets are not waited for), for names that begin with a dot unless `hidden`
 * is set, for a '\', a byte 0 or an escaped '/' in a path, and for names that are too long.
 *
 * **The answer** has Content-Type by the end of the name (domus/http_media.h), Last-Modified, ETag,
 * "Accept-Ranges: bytes", and Cache-Control if that is set. The tag is strong and made of the time
 * of the last change in nanoseconds, the size and the inode. A file that is written in place twice
 * within a tick of the kernel's clock (1 to 10 ms), to the same size, may keep its tag: replace
 * files by rename(2). Conditions are heeded (304, 412; domus/http_condition.h), and so are ranges,
 * if If-Range allows it (206; 416 if none is in the file). Several ranges come as
 * multipart/byteranges, in the order of the request. A request for more than `ranges_max` of them,
 * and for some that overlap, gets the whole file with 200, as RFC 9110 (14.2) allows: so a stranger
 * cannot order more bytes than the file has, but for the heads of a few parts. A 304 has the tag
 * that 200 would have: the weak one (W/) if the client knows the file by that, because the stage
 * has compressed it, and still accepts gzip. HEAD gets the head of the whole file. All other
 * methods get 405.
 *
 * **Bytes.** A file of up to `whole_max` bytes is read at once, and leaves as one message. A larger
 * one leaves in pieces of 128 KiB, so each download takes the memory of one piece, and what waits
 * for its peer. The head says the length that the file had when it was opened. If the file becomes
 * shorter meanwhile, the connection is reset, and never filled up; what is added to it is not sent.
 * The time of a request (`request_timeout_ns` of the pipeline) goes on until its last byte was
 * handed to the kernel, so it bounds a download, too.
 *
 * **Kept files.** The bytes of files of up to `whole_max` bytes are kept for further requests
 * (DOMUS_FILE_KEPT of domus/file.h), up to files.keptMax bytes for each thread. Each request still
 * looks at its file, so that a change is seen at once. With files.keptTime, which is 0 by default,
 * an answer may be as old as that.
 *
 * **Files that are compressed already.** With `compressed`, and if the client accepts gzip, NAME.gz
 * is sent in place of NAME, if there is such a file; it has the media type of NAME, and a tag of
 * its own. Answers then have "Vary: Accept-Encoding".
 *
 * **Bounds.** A connection holds one open file at most: that of the answer whose turn it is. A
 * large file, and one that has to be waited for, is loaded in its turn. At files.openMax open
 * files, while memory is critical, and when no helper thread takes work any more
 * (blocking.queueMax), the answer is 503.
 *
 * Thread-safety: only from within a handler, with the stack that the handler was given. Any number
 * of threads may use one domus_http_files, which does not change meanwhile. */
#ifndef DOMUS_HTTP_FILES_H
#define DOMUS_HTTP_FILES_H

#include <domus/file.h>
#include <domus/http.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A directory that is served, and how. It is the caller's, and stays valid and as it is while
 * requests are answered from it. */
typedef struct domus_http_files {
    /* handle of the directory that is served, open for reading; NULL: all requests get 503 */
    domus_file *root;
    /* name of the file that is sent for a folder; NULL: "index.html"; "": requests for folders get
     * 404 */
    const char *index;
    /* value of the field Cache-Control, up to 255 bytes; NULL: no such field */
    const char *cache_control;
    /* most bytes of a file that leaves as one message, up to files.readMax; 0 means 64 KiB */
    uint32_t whole_max;
    bool hidden;     /* whether files whose names begin with a dot are served, too */
    bool compressed; /* whether NAME.gz is sent in place of NAME, if there is one */
    /* most ranges of one request, 1..64; 0 means 16. A request for more gets the whole file */
    uint8_t ranges_max;
    uint8_t reserved[1]; /* 0 */
} domus_http_files;

/* Answer the request that is handled, which is a domus_http_request of a peer, with the file at
 * `path`, and end the conversation. `path` is a slice of the request: domus_http_path(), or what a
 * route leaves of it ("/static/{path*}"), with or without a '/' before it; it is not decoded. Write
 * `return domus_http_serve(...)`, in a handler or behind a wait; nothing else should be under way.
 *
 * Returns DOMUS_PARKED; 0 when the request was answered at once; an error, with which the request
 * fails: -ENOENT (404), -EACCES (403), -EBUSY (503), -EIO (500), and -EINVAL for wrong options, and
 * when this conversation answers no domus_http_request. */
DOMUS_API int domus_http_serve(domus_stack *stack, const domus_http_files *files, domus_slice path);

#ifdef __cplusplus
}
#endif

#endif
