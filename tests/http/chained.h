/* A service whose requests go through a chain (domus/http_chain.h), in a test kit. The test chooses
 * the parts of the chain, and each row answers in another way:
 *
 *   /now          in the same turn with "now"
 *   /later        after 10 ms with "later"
 *   /pieces       in two pieces of 3 bytes
 *   /hang         never
 *   /fail         by the error -ENOENT
 *   /cut          one piece of 3 bytes, and then the error -EIO
 *   /again        by domus_http_go_on(), though no part waits
 *   /wrong        with a field that ends its line, which the stage refuses
 *   /bare         with 418 and no body
 *   /problem      with 403 and problem details
 *   /ask          by another actor, to which the request is forwarded: its X-Request-Id and
 *                 traceparent, and "state" if it has a tracestate
 *   /names        with the same content as /ask, by the handler itself
 *   /user         with the user of the exchange
 *   /kv/{key}     with the key
 *   /guarded      behind the parts `guards`, with "guarded" */
#ifndef DOMT_HTTP_CHAINED_H
#define DOMT_HTTP_CHAINED_H

#include "tests/http/served.h"

#include <domus/http_chain.h>

/* The parts of the chain, and those of the row /guarded. A test sets both before it starts a
 * kit. */
extern domus_http_step domt_chained_parts[4];
extern domus_http_step domt_chained_guards[4];

/* Behaviours of channels: `domt_chained` has domus_http_dispatch() as its handler, the handler of
 * `domt_chained_own` calls domus_http_enter(), and the handler of `domt_chained_around` answers
 * without entering the chain. */
extern const domus_behaviour domt_chained, domt_chained_own, domt_chained_around;

/* Start a kit with these parts of the chain (up to a NULL part; NULL: no parts). */
domus_testkit *domt_chained_start_kit(const domus_behaviour *behaviour,
                                      const domus_http_step *parts);

/* Let a new peer send a request with the fields Host and `fields`, run until nothing more comes,
 * and return all bytes that the peer has got. The text is valid until the next call. */
const char *domt_chained_answer_to_request(domus_testkit *kit, const char *line,
                                           const char *fields);

/* Let a new peer at this address send these bytes unchanged. Returns the bytes that it has got, as
 * domt_chained_answer_to_request() does. */
const char *domt_chained_answer_to_bytes(domus_testkit *kit, const char *from, const char *bytes);

/* --- a part that records its calls ---------------------------------------------------------- */

typedef struct domt_witness {
    char name;
    /* result of `enter`: 0; DOMUS_HTTP_ANSWERED: it answers with 403; an error; DOMUS_PARKED: it
     * waits for 5 ms, and goes on */
    int result;
    bool adds;   /* true: the part adds "X-NAME: yes" to answers */
    bool fills;  /* true: the part makes the body "made by NAME" for errors */
    bool breaks; /* true: the part adds a forbidden field to answers that are no failures */
} domt_witness;

extern const domus_http_part domt_witness_part;

/* The calls of the witness until now: "+a" for enter, "-a" for leave with the status, ".a" for end
 * with the status, the bytes and "!" if the answer was cut. */
extern char domt_witness_notes[1024];

#endif
