/* Messages as the stage of HTTP reads them, and as llhttp does, in one form. Every message
 * that the stage takes has to be one for llhttp (compiled strict), too, and the same one. llhttp
 * takes more than the stage does. */
#ifndef DOMT_JUDGE_H
#define DOMT_JUDGE_H

#include <domus/http.h>
#include <domus/stage_kit.h>

#define DOMT_HTTP_MESSAGES_MAX 32u

/* Messages as text: start line, fields, body, and trailers if they are asked for. */
typedef struct domt_http_read {
    bool is_client;
    bool with_trailers;
    uint64_t heads; /* bit i: the i-th request of a client is a HEAD */
    int error;
    bool excused;                        /* llhttp has refused what is right */
    uint32_t count;                      /* number of whole messages */
    size_t ends[DOMT_HTTP_MESSAGES_MAX]; /* where the text of each message ends */
    char *text;
    size_t url; /* where the target begins that llhttp reads */
    size_t size;
    size_t room;
} domt_http_read;

/* Do something with a message that the stage has made. */
typedef void domt_http_take(void *context, domus_stage_kit *kit,
                            const domus_stage_message *message);

/* Let a stage read, in pieces of `step` bytes, and then the end. `take` is called for each request
 * and response; NULL: it is not. */
void domt_http_read_by_stage(domt_http_read *read, const domus_http_options *options,
                             const uint8_t *bytes, size_t size, size_t step, domt_http_take *take,
                             void *context);

/* Let llhttp read. It does nothing if the program was built without llhttp. */
void domt_http_read_by_judge(domt_http_read *read, const uint8_t *bytes, size_t size);

/* Check that both have read the same, and have ended with the same error. */
void domt_http_hold_same(const domt_http_read *one, const domt_http_read *other);

/* Check that the judge has read what the stage has. */
void domt_http_hold_judged(const domt_http_read *read, const domt_http_read *judged);

void domt_http_read_clear(domt_http_read *read);

#endif
