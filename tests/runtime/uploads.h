/* Actors that send requests in pieces (domus_request_begin()), by the stage of
 * tests/runtime/streams.h, for tests of uploads. */
#ifndef DOMT_UPLOADS_H
#define DOMT_UPLOADS_H

#include "tests/runtime/streams.h"

#define DOMT_UPLOAD_PIECE 1000u /* number of bytes in a piece of a request */

/* Parameters and counts of the actors that send requests in pieces. */
typedef struct domt_uploads {
    domus_address to;         /* address to which the actors send their requests */
    const char *head;         /* text of a request's head; NULL: "put" */
    domus_address lender;     /* another uploading actor, which lends its stream */
    _Atomic uint64_t written; /* number of bytes of requests that were written */
    _Atomic int error;        /* error of the last write of a piece that failed */
    _Atomic uint32_t begun;   /* number of requests that the actors have begun */
} domt_uploads;

extern domt_uploads domt_uploads_now;

/* An actor that sends requests. The ask domt_line_type with the text "HOW BYTES MS" lets it send a
 * request of BYTES bytes in pieces, with a sleep of MS before each piece. HOW is one of:
 *
 *   put     sends the request as it is meant
 *   tail    sends a trailer behind the last piece
 *   leave   ends the conversation when all pieces are written, without ending the request
 *   stop    cuts the request when all pieces are written
 *   on      goes on writing after the answer has come
 *   within  gives the request 100 ms in all
 *   bad     ends with a trailer whose type the stage does not know
 *   read    reads the body of the answer
 *
 * The actor answers with the line of the peer, or after `read` with the number of bytes read. The
 * ask domt_misuse_type lets it misuse the calls for requests, and answer "ok". */
extern const domus_behaviour domt_uploader;
extern const domus_type domt_misuse_type;

/* Types and stages for a client of the protocol in tests/runtime/streams.h; domt_upload_cutless is
 * the stage without `cut`. */
extern const domus_type *const domt_upload_encodes[];
extern const domus_pipeline_stage domt_upload_stages[], domt_upload_cutless[];

#endif
