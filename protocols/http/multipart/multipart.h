/* The inside of a parser of multipart/form-data (domus/http_multipart.h).
 *
 *     BEFORE --delimiter--> BEHIND --line end--> IN_HEAD --empty line--> IN_BODY --delimiter--+
 *                             ^  |                                                           |
 *                             |  +--"--"--> AFTER                                            |
 *                             +--------------------------------------------------------------+
 *
 * The delimiter is CR LF "--" and the boundary. CR stands in it only once, at its start. So if
 * bytes begin like the delimiter and then differ, no delimiter begins within them, and the parser
 * only has to remember how many bytes of the delimiter have come. */
#ifndef DOMI_PROTOCOLS_HTTP_MULTIPART_MULTIPART_H
#define DOMI_PROTOCOLS_HTTP_MULTIPART_MULTIPART_H

#include <domus/http_multipart.h>

#define DOMI_MULTIPART_DELIMITER_MAX (4u + DOMUS_HTTP_BOUNDARY_MAX)

typedef enum domi_multipart_phase {
    DOMI_MULTIPART_BEFORE, /* the parser waits for the first boundary */
    DOMI_MULTIPART_BEHIND, /* a boundary has come, and the end of its line has not */
    DOMI_MULTIPART_IN_HEAD,
    DOMI_MULTIPART_IN_BODY,
    DOMI_MULTIPART_AFTER, /* the last boundary of the form has come */
} domi_multipart_phase;

/* How much of the end of a boundary's line has come. */
typedef enum domi_multipart_line {
    DOMI_MULTIPART_LINE_NEW, /* no byte behind the boundary has come */
    DOMI_MULTIPART_LINE_DASH,
    DOMI_MULTIPART_LINE_PAD, /* only spaces have come behind the boundary */
    DOMI_MULTIPART_LINE_CR,
} domi_multipart_line;

struct domus_http_multipart {
    domus_http_multipart_limits limits; /* the limits of the form, none of which is 0 */
    domi_multipart_phase phase;
    domi_multipart_line line;
    uint32_t matched; /* bytes of the delimiter that have matched so far */
    /* number of the matched bytes that never came: the CR LF at the start of the delimiter, which
     * is assumed where a line begins anyway (at the start of the form, or of a part's body) */
    uint32_t assumed;
    uint32_t pad;       /* number of spaces that have come behind the boundary */
    uint32_t edge;      /* bytes that have come before the first boundary, or behind the last one */
    uint32_t parts;     /* number of parts of the form that have begun */
    uint32_t head_size; /* bytes of the current part's head that are in `head` */
    uint32_t line_at;   /* offset in `head` at which the last line of the part's head begins */
    uint64_t part;      /* bytes of the current part's body that the user has got */
    uint64_t whole;     /* bytes of the whole body that were parsed */
    int error;
    const char *wrong; /* text that tells the reason of `error` */
    uint32_t delimiter_size;
    char delimiter[DOMI_MULTIPART_DELIMITER_MAX];
    char head[]; /* the head of the current part, at most limits.head_max bytes */
};

/* Fail the parser, with a constant text that tells the reason. Returns the error. */
static inline int domi_multipart_fail_parser(domus_http_multipart *form, int error,
                                             const char *wrong)
{
    form->error = error;
    form->wrong = wrong;
    return error;
}

/* Read the complete head of a part, and make an event PART of it. The head's bytes are changed, and
 * the event points into them. Returns 0, or a negative errno (head.c). */
int domi_multipart_read_head_of_part(domus_http_multipart *form,
                                     domus_http_multipart_event *ret_event);

/* --- parameters (parameters.c) ---------------------------------------------------------------- */

/* A parameter in the value of a field, which looks like "; name=value". */
typedef struct domi_multipart_parameter {
    const char *name;
    size_t name_size;
    const char *value; /* value of the parameter, without the quotes around it */
    size_t value_size;
    bool quoted;
} domi_multipart_parameter;

/* Read the parameter at `*at` of a field's value; `*at` begins where the parameters begin. Returns
 * 1; 0 when there is none any more; -EPROTO. */
int domi_multipart_next_parameter(const char *text, size_t size, size_t *at,
                                  domi_multipart_parameter *ret_parameter);

#endif
