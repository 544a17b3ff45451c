/* Messages that the stage of HTTP and llhttp have read, in one common form. llhttp (compiled
 * strict) has to accept every message that the stage accepts, and to read the same; llhttp accepts
 * more than the stage does. */
#ifndef DOMT_JUDGE_H
#define DOMT_JUDGE_H

#include <domus/http.h>
#include <domus/stage_kit.h>

#define DOMT_HTTP_MESSAGES_MAX 32u

/* The messages that one parser has read, as text: start line, fields, body, and, if the caller
 * wants them, trailers. */
typedef struct domt_http_read {
    bool is_client;
    bool with_trailers;
    uint64_t heads; /* bit i is set if request number i of a client is a HEAD */
    int error;
    bool excused;                        /* whether llhttp has refused a message that is correct */
    uint32_t count;                      /* number of whole messages that were read */
    size_t ends[DOMT_HTTP_MESSAGES_MAX]; /* for each message, the end of its text in `text` */
    char *text;
    size_t url; /* position in `text` of the target that llhttp is reading */
    size_t size;
    size_t room;
} domt_http_read;

/* Handles a message that the stage has read, for domt_http_read_by_stage(). */
typedef void domt_http_take(void *context, domus_stage_kit *kit,
                            const domus_stage_message *message);

/* Read bytes by a stage of HTTP, in pieces of `step` bytes, and then the end. `take` is called for
 * each request and response; NULL: for none. */
void domt_http_read_by_stage(domt_http_read *read, const domus_http_options *options,
                             const uint8_t *bytes, size_t size, size_t step, domt_http_take *take,
                             void *context);

/* Read bytes by llhttp. Does nothing if the program was built without llhttp. */
void domt_http_read_by_llhttp(domt_http_read *read, const uint8_t *bytes, size_t size);

/* Check that two readings have the same messages and the same error. */
void domt_http_check_readings_are_same(const domt_http_read *one, const domt_http_read *other);

/* Check that llhttp has read the same as the stage. */
void domt_http_check_llhttp_has_read_same(const domt_http_read *read, const domt_http_read *judged);

void domt_http_free_reading(domt_http_read *read);

#endif
