/* The inside of an upload (domus/http_upload.h): upload.c reads the body, parts.c stores the
 * parts. */
#ifndef DOMI_PROTOCOLS_HTTP_MULTIPART_UPLOADED_H
#define DOMI_PROTOCOLS_HTTP_MULTIPART_UPLOADED_H

#include <domus/http_upload.h>

/* The answer for which an upload waits now. */
typedef enum domi_upload_wait {
    DOMI_UPLOAD_FOR_NOTHING,
    DOMI_UPLOAD_FOR_PIECE,
    DOMI_UPLOAD_FOR_FILE,  /* the upload waits until a file on disk is opened */
    DOMI_UPLOAD_FOR_WRITE, /* the upload waits until `pending` is written to the file */
    DOMI_UPLOAD_FOR_TAKER,
} domi_upload_wait;

/* A part of an upload, with its texts behind it in the same memory. */
typedef struct domi_upload_part {
    domus_http_upload_part seen; /* the part as users of the upload see it */
    domus_appender value; /* bytes of the part that have come, if it is a field and no file */
    char texts[];
} domi_upload_part;

struct domus_http_upload {
    domus_http_upload_options options; /* options of the upload, in which no limit is 0 */
    domus_http_multipart *form;
    domus_body body; /* the body of the request; with number 0 it came whole, as the first piece */
    domus_slice piece; /* the piece of the body that is being parsed; the upload owns it */
    uint32_t at;       /* bytes of the piece that were parsed */
    bool is_last;      /* the piece is the last one of the body */
    domi_upload_wait wait;
    domus_slice pending; /* bytes that wait until their file is opened; the upload owns them */
    uint32_t writing;    /* bytes of the write that is under way */
    int error;
    const char *wrong; /* text that tells the reason of `error`; "": there is no error */
    uint32_t count;    /* number of parts that have begun */
    uint32_t room;     /* number of parts for which `parts` has memory */
    uint32_t files;    /* number of parts that are files with at least one byte */
    uint64_t fields;   /* bytes of form fields in memory, with the texts of all parts */
    uint64_t written;  /* bytes of the upload's files that were written to disk */
    uint64_t charged_memory;
    uint64_t charged_disk;
    domi_upload_part **parts;
};

/* Fail the upload, with a text that tells the reason. Returns the error. */
static inline int domi_upload_set_error(domus_http_upload *upload, int error, const char *wrong)
{
    upload->error = error;
    upload->wrong = wrong;
    return error;
}

/* Returns the part of the upload that has begun last. */
static inline domi_upload_part *domi_upload_newest_part(const domus_http_upload *upload)
{
    return upload->parts[upload->count - 1];
}

/* Store the part that an event begins; append bytes to a form field; end a form field; count bytes
 * of a file. Return 0, or the error of the upload. */
int domi_upload_add_part(domus_http_upload *upload, const domus_http_multipart_event *event);
int domi_upload_append_to_field(domus_http_upload *upload, const char *bytes, size_t size);
int domi_upload_end_field(domus_http_upload *upload);
int domi_upload_count_file_bytes(domus_http_upload *upload, size_t size);

/* Free all parts of the upload. */
void domi_upload_free_parts(domus_http_upload *upload);

#endif
