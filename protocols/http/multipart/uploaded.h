/* The inside of an upload (domus/http_upload.h): upload.c reads the body, parts.c holds what has
 * come. */
#ifndef DOMI_PROTOCOLS_HTTP_MULTIPART_UPLOADED_H
#define DOMI_PROTOCOLS_HTTP_MULTIPART_UPLOADED_H

#include <domus/http_upload.h>

/* The wait of an upload. */
typedef enum domi_upload_wait {
    DOMI_UPLOAD_FOR_NOTHING,
    DOMI_UPLOAD_FOR_PIECE,
    DOMI_UPLOAD_FOR_FILE,  /* to be opened */
    DOMI_UPLOAD_FOR_WRITE, /* of `pending` */
    DOMI_UPLOAD_FOR_TAKER,
} domi_upload_wait;

/* A part, with its texts behind it. */
typedef struct domi_upload_part {
    domus_http_upload_part seen; /* by users */
    domus_appender value;        /* of a field that comes */
    char texts[];
} domi_upload_part;

struct domus_http_upload {
    domus_http_upload_options options; /* no limit is 0 */
    domus_http_multipart *form;
    domus_body body;   /* of number 0: it came whole, as the first piece */
    domus_slice piece; /* the piece that is being read; owned */
    uint32_t at;       /* bytes of it that were used */
    bool is_last;      /* no piece comes behind it */
    domi_upload_wait wait;
    domus_slice pending; /* bytes for a file that is being opened; owned */
    uint32_t writing;    /* bytes of the write under way */
    int error;
    const char *wrong; /* the words for it; "": none */
    uint32_t count;    /* of parts */
    uint32_t room;     /* of `parts` */
    uint32_t files;    /* with bytes */
    uint64_t fields;   /* bytes of fields, with the texts of all parts */
    uint64_t written;  /* bytes of files on disk */
    uint64_t charged_memory;
    uint64_t charged_disk;
    domi_upload_part **parts;
};

/* Fail. Returns the error. */
static inline int domi_upload_fail(domus_http_upload *upload, int error, const char *wrong)
{
    upload->error = error;
    upload->wrong = wrong;
    return error;
}

/* The part that came last. */
static inline domi_upload_part *domi_upload_last(const domus_http_upload *upload)
{
    return upload->parts[upload->count - 1];
}

/* Add the part that an event begins; add bytes to a field, and end it; count bytes of a file.
 * Return 0, or the error of the upload. */
int domi_upload_add_part(domus_http_upload *upload, const domus_http_multipart_event *event);
int domi_upload_add_to_field(domus_http_upload *upload, const char *bytes, size_t size);
int domi_upload_end_field(domus_http_upload *upload);
int domi_upload_count_file(domus_http_upload *upload, size_t size);

/* Free all parts. */
void domi_upload_free_parts(domus_http_upload *upload);

#endif
