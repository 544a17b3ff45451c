/* Actors that send requests in pieces (domus_request_begin()), with the stage of streams.h, for
 * tests of uploads. */
#ifndef DOMT_UPLOADS_H
#define DOMT_UPLOADS_H

#include "tests/runtime/streams.h"

#define DOMT_UPLOAD_PIECE 1000u /* bytes of a piece */

/* Counts and parameters of these actors. */
typedef struct domt_uploads {
    domus_address to;         /* the address that they ask */
    const char *head;         /* the text of the head; NULL: "put" */
    domus_address lender;     /* another one of these actors */
    _Atomic uint64_t written; /* bytes that were written */
    _Atomic int error;        /* error of the last write that failed */
    _Atomic uint32_t begun;   /* requests that were begun */
} domt_uploads;

extern domt_uploads domt_uploads_now;

/* An ask of domt_line_type "HOW BYTES MS" lets it send BYTES, and MS lie before each piece. HOW:
 *
 *   put     as it is meant
 *   tail    with a trailer
 *   leave   ends its conversation when all is written
 *   stop    cuts the request when all is written
 *   on      goes on when the answer has come
 *   within  has 100 ms in all
 *   bad     has a trailer that the stage does not know
 *   read    reads the body of the answer
 *
 * It answers with the line of the peer; after `read` with the number of bytes. An ask of
 * domt_misuse_type lets it misuse the calls, and answer "ok". */
extern const domus_behaviour domt_uploader;
extern const domus_type domt_misuse_type;

/* A client of the protocol of streams.h, with `cut` and without. */
extern const domus_type *const domt_upload_encodes[];
extern const domus_pipeline_stage domt_upload_stages[], domt_upload_cutless[];

#endif
