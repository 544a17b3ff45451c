/* A service whose requests go through a chain (domus/http_chain.h), in a test kit. Its parts are
 * chosen by the test, and its rows answer in each way that there is:
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
 *   /problem      with 403 and a problem
 *   /ask          by another actor, to which the request is forwarded: its X-Request-Id and
 *                 traceparent, and "state" if it has a tracestate
 *   /names        the same, by the handler itself
 *   /user         with the user of the exchange
 *   /kv/{key}     with the key
 *   /guarded      behind the parts `guards`, with "guarded" */
#ifndef DOMT_HTTP_CHAINED_H
#define DOMT_HTTP_CHAINED_H

#include "tests/http/served.h"

#include <domus/http_chain.h>

/* The parts of the chain, and of the row /guarded. A test sets them before it starts a kit. */
extern domus_http_step domt_chained_parts[4];
extern domus_http_step domt_chained_guards[4];

/* Channels whose handler is domus_http_dispatch(); that enter by domus_http_enter(); and whose
 * handler goes around the chain. */
extern const domus_behaviour domt_chained, domt_chained_own, domt_chained_around;

/* Start a kit with these parts of the chain (up to a NULL part; NULL: none). */
domus_testkit *domt_chained_start(const domus_behaviour *behaviour, const domus_http_step *parts);

/* Let a new peer send a request, whose fields are those of Host and `fields`, wait until nothing
 * more comes, and return all that it has got, valid until the next call. */
const char *domt_chained_ask(domus_testkit *kit, const char *line, const char *fields);

/* The same bytes as they are, from a peer at this address. */
const char *domt_chained_send(domus_testkit *kit, const char *from, const char *bytes);

/* --- a part that notes what happens to it ----------------------------------------------------- */

typedef struct domt_witness {
    char name;
    int result;  /* of `enter`: 0; DOMUS_HTTP_ANSWERED: it answers with 403; an error; DOMUS_PARKED:
                    it waits for 5 ms, and goes on */
    bool adds;   /* it adds "X-NAME: yes" */
    bool fills;  /* it makes the body "made by NAME" of errors */
    bool breaks; /* adds a field that no part may add, to answers that are no failures */
} domt_witness;

extern const domus_http_part domt_witness_part;

/* The notes so far: "+a" for enter, "-a" for leave with the status, ".a" for end with the status,
 * the bytes and "!" if the answer was cut. */
extern char domt_witness_notes[1024];

#endif
