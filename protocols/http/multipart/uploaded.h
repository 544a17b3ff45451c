/* The inside of an upload (domus/http_upload.h): upload.c reads the body, parts.c stores the
 * parts. */
#ifndef DOMI_PROTOCOLS_HTTP_MULTIPART_UPLOADED_H
#define DOMI_PROTOCOLS_HTTP_MULTIPART_UPLOADED_H

#include <domus/http_upload.h>

/* The answer for which an upload waits. */
typedef enum domi_upload_wait {
    DOMI_UPLOAD_FOR_NOTHING,
    DOMI_UPLOAD_FOR_PIECE,
    DOMI_UPLOAD_FOR_FILE,  /* waits until a file is opened */
    DOMI_UPLOAD_FOR_WRITE, /* waits until `pending` is written */
    DOMI_UPLOAD_FOR_TAKER,
} domi_upload_wait;

/* A part, followed by its texts. */
typedef struct domi_upload_part {
    domus_http_upload_part seen; /* the part as users see it */
    domus_appender value;        /* bytes so far of a part that is a field */
    char texts[];
} domi_upload_part;

struct domus_http_upload {
    domus_http_upload_options options; /* the options, with no limit of 0 */
    domus_http_multipart *form;
    domus_body body;   /* the body; of number 0: it came whole, as the first piece */
    domus_slice piece; /* the piece that is being read; owned */
    uint32_t at;       /* bytes of the piece that were used */
    bool is_last;      /* the piece is the last one */
    domi_upload_wait wait;
    domus_slice pending; /* bytes for a file that is being opened; owned */
    uint32_t writing;    /* bytes of the write under way */
    int error;
    const char *wrong; /* text of `error`; "": there is none */
    uint32_t count;    /* number of parts */
    uint32_t room;     /* parts for which `parts` has memory */
    uint32_t files;    /* parts that are files with at least one byte */
    uint64_t fields;   /* bytes of fields, with the texts of all parts */
    uint64_t written;  /* bytes of files on disk */
    uint64_t charged_memory;
    uint64_t charged_disk;
    domi_upload_part **parts;
};

/* Fail the upload with a text. Returns the error. */
static inline int domi_upload_fail(domus_http_upload *upload, int error, const char *wrong)
{
    upload->error = error;
    upload->wrong = wrong;
    return error;
}

/* Returns the part that came last. */
static inline domi_upload_part *domi_upload_last(const domus_http_upload *upload)
{
    return upload->parts[upload->count - 1];
}

/* Store the part that an event begins; append bytes to a field; end a field; count bytes of a file.
 * Return 0, or the error of the upload. */
int domi_upload_add_part(domus_http_upload *upload, const domus_http_multipart_event *event);
int domi_upload_add_to_field(domus_http_upload *upload, const char *bytes, size_t size);
int domi_upload_end_field(domus_http_upload *upload);
int domi_upload_count_file(domus_http_upload *upload, size_t size);

/* Free all parts. */
void domi_upload_free_parts(domus_http_upload *upload);

#endif
