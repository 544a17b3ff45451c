/* Uploads: the body of a request that is multipart/form-data, read to its end. Fields come into
 * memory, and files go to disk or to a function, piece by piece.
 *
 *     DOMUS_SEQUENCE(receive, struct receive)
 *     {
 *         DOMUS_BEGIN;
 *         error = domus_http_upload_open(message, &options, &frame->upload);
 *         if (error != 0)
 *             return error;
 *         while (domus_http_upload_goes_on(stack, frame->upload, answer, then))
 *             DOMUS_AWAIT(DOMUS_PARKED);
 *         if (domus_http_upload_error(frame->upload) == 0)
 *             ... domus_http_upload_find(frame->upload, "title", 0)->value ...
 *         domus_http_upload_close(frame->upload);
 *
 * Further awaits before the upload is closed are DOMUS_TRY_AWAIT() (domus/await.h): another one
 * that cannot begin would end the sequence, and nobody could close the upload any more.
 *
 * The sequence lives in the channel of the request, or in any actor that the request was forwarded
 * to. Each call takes what the last wait has brought, works until it has to wait again, and begins
 * that wait: for the next piece of the body (`streams` of domus/http.h; a body that came whole is
 * read from its slice), for the disk, or for the function. The next piece is asked for when the one
 * before it has gone, so an upload of any size takes the memory of one piece, of its fields, and of
 * one allocation of about 3 KiB; and a slow disk slows the client down.
 *
 * **Files on disk** have no name while they come (DOMUS_FILE_UNNAMED), so one of a request that
 * fails is gone in every case, also when its conversation is cancelled or the program crashes. A
 * file that is to stay gets a name by domus_file_link(), which the program chooses: never the name
 * that the client has sent. The file may also be read by its handle, and vanishes with that. A part
 * without bytes, as browsers send it for a file that nobody chose, has no file.
 *
 * Thread-safety: all functions only from within a handler of the actor that has opened it. */
#ifndef DOMUS_HTTP_UPLOAD_H
#define DOMUS_HTTP_UPLOAD_H

#include <domus/budget.h>
#include <domus/file.h>
#include <domus/http.h>
#include <domus/http_multipart.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A part of an upload that has come, or comes. Everything is the upload's, and valid until it is
 * closed. */
typedef struct domus_http_upload_part {
    const char *name; /* name of the part; it ends with a NUL, and so do the next two texts */
    uint32_t name_size;
    /* name of the file, as the client has sent it; NULL: the part is a field */
    const char *filename;
    uint32_t filename_size;
    const char *type;  /* Content-Type of the part; "": none */
    domus_slice value; /* bytes of the part, if it is a field that has ended */
    /* handle of the file with the bytes; NULL: the part has no file, or a function takes its bytes.
     * domus_file_keep() makes another owner */
    domus_file *file;
    uint64_t size; /* bytes of the part that have come so far */
} domus_http_upload_part;

/* Take some bytes of an uploaded file. The last call for a part has no bytes, and `is_last`.
 * `context` is that of the options. To let the client wait, begin something with `then`, as `return
 * domus_ask(stack, ..., then)` does: the upload goes on when its answer comes, and fails with the
 * error of the answer. A statement that a database has refused is an answer without an error
 * (domus/sql.h), so let an actor ask the database, and answer by an error.
 *
 * Ownership: the function owns the slice in every case.
 * Returns 0 to go on at once; DOMUS_PARKED; a negative errno, with which the upload fails. */
typedef int domus_http_upload_take(domus_stack *stack, void *context,
                                   const domus_http_upload_part *part, domus_slice bytes,
                                   bool is_last, domus_resumed *then);

/* Options of an upload. A limit of 0 is its default; more than a limit is refused with -EMSGSIZE
 * (413). They are copied, but for what they point to, which stays valid until the upload is
 * closed. */
typedef struct domus_http_upload_options {
    domus_http_multipart_limits limits;
    uint32_t files_max; /* most uploaded files that have bytes, 1..1000; 0 means 8 */
    uint32_t field_max; /* most bytes of one field, up to 16 MiB; 0 means 64 KiB */
    /* most bytes of all fields with their names, up to 64 MiB; 0 means 256 KiB */
    uint32_t fields_max;
    uint32_t mode; /* permissions of the files that are made, less the umask; 0 means 0600 */
    /* directory on whose disk uploaded files come, open for reading; NULL: no file is kept on
     * disk */
    domus_file *directory;
    /* function that takes the bytes of files, in place of `directory`; NULL: none. Without both
     * a part with a file name is refused (-EPROTO) */
    domus_http_upload_take *take;
    void *context;
    /* budget for the bytes of fields, over all uploads that have it. Beyond it: -ENOMEM (503).
     * NULL: each upload may have its limits */
    domus_budget *memory;
    /* budget for the bytes of files on disk, over all uploads that have it, until the upload is
     * closed; otherwise as `memory` */
    domus_budget *disk;
} domus_http_upload_options;

/* An upload that is being read. */
typedef struct domus_http_upload domus_http_upload;

/* Begin with a request, which is valid as long as it is not answered. Nothing is read yet.
 *
 * Returns 0; -EMEDIUMTYPE (415), -EPROTO (400), -EINVAL and -ENOMEM as domus_http_multipart_open();
 * -EMSGSIZE (413) when the length of the body is known and too large; -EINVAL for options out of
 * their ranges. */
DOMUS_API int domus_http_upload_open(const domus_http_request *request,
                                     const domus_http_upload_options *options,
                                     domus_http_upload **ret_upload);

/* Go on with an upload, in the loop that the head of this file shows. `answer` is what the last
 * wait has brought; in the first call it is not looked at. Returns true when a wait has begun;
 * false when the upload has ended, as it should or not. */
DOMUS_API bool domus_http_upload_goes_on(domus_stack *stack, domus_http_upload *upload,
                                         const domus_answer *answer, domus_resumed *then);

/* Returns 0 if the upload has come whole, or if it has not ended; otherwise why not: -EPROTO (400)
 * for a wrong body; -EMSGSIZE (413) beyond a limit; -EBUSY (503) when no more files may be open;
 * -ENOMEM (503); what domus_body_read(), domus_file_open() and domus_file_write() have brought,
 * such as -ECANCELED and -ENOSPC; or the error of `take`. A handler that returns it answers with
 * the status. */
DOMUS_API int domus_http_upload_error(const domus_http_upload *upload);

/* Returns words for an error of the body, a constant; "" for all other errors. */
DOMUS_API const char *domus_http_upload_wrong(const domus_http_upload *upload);

/* Return the number of parts, and the part `index`, in the order in which they came; NULL: there is
 * no such part. */
DOMUS_API uint32_t domus_http_upload_count(const domus_http_upload *upload);
DOMUS_API const domus_http_upload_part *domus_http_upload_part_at(const domus_http_upload *upload,
                                                                  uint32_t index);

/* Returns the part of this name, after `skip` others of the same name; NULL: there is none. */
DOMUS_API const domus_http_upload_part *domus_http_upload_find(const domus_http_upload *upload,
                                                               const char *name, uint32_t skip);

/* Free an upload, with its fields, and give its files back. Returns NULL. NULL is allowed. */
DOMUS_API domus_http_upload *domus_http_upload_close(domus_http_upload *upload);

#ifdef __cplusplus
}
#endif

#endif
