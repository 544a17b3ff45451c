/* Parts that the streams, consumers and buckets of JetStream share: names, the JSON of its API, its
 * errors, and how an actor asks the server.
 *
 * JetStream is used by requests of the client (domus/nats.h) to subjects that begin with
 * "$JS.API.". All answers come from a stranger, so the size of each is checked before it is
 * read, and a field of a wrong type makes the whole answer invalid. */
#ifndef DOMI_PROTOCOLS_NATS_JS_H
#define DOMI_PROTOCOLS_NATS_JS_H

#include <domus/nats_stream.h>

#include <jansson.h>

/* --- names (js_names.c) ----------------------------------------------------------------------- */

/* Returns whether the text is a valid name of a stream or consumer: one token of a subject, without
 * characters that have a meaning in paths. */
bool domi_js_is_valid_stream_name(const char *text);

/* Returns whether the text is a valid subject: tokens of printable characters with "." between
 * them. With `wildcards` a token may be "*", and the last token ">". */
bool domi_js_is_valid_subject(const char *text, size_t size, bool wildcards);

/* --- texts (js_texts.c) ----------------------------------------------------------------------- */

/* Read a number from a text that must have digits only. Returns 0; -EPROTO. */
int domi_js_read_number(const char *text, size_t size, uint64_t *ret_number);

/* Read a time as RFC 3339 writes it in UTC, with up to 9 digits behind the second. Returns ns since
 * 1970; 0 for any other text, and for times that do not fit. */
uint64_t domi_js_read_time(const char *text, size_t size);

/* Bytes to which `size` characters of base64 decode, at most. */
#define DOMI_JS_BASE64_MAX(size) ((size) / 4 * 3)

/* Decode padded base64 to `to`. Returns the number of bytes; -EPROTO. */
int64_t domi_js_read_base64(const char *text, size_t size, char *to);

#define DOMI_JS_INBOX_SIZE 32u

/* Returns the first random number of an actor. This is `seed`, or a number from the kernel if
 * `seed` is 0. */
uint64_t domi_js_seed_or_random_number(uint64_t seed);

/* Returns the next random number. If an actor is spawned with such a number as its seed, its own
 * numbers and those of its maker differ from there on. */
uint64_t domi_js_next_random_number(uint64_t *random);

/* Make the name of an inbox, at random, so that no other actor or client has the same. */
void domi_js_make_inbox_name(uint64_t *random, char inbox[DOMI_JS_INBOX_SIZE]);

/* --- the JSON of the API (js_json.c) ---------------------------------------------------------- */

/* Parse a JSON object of at most `size_max` bytes. Returns 0; -EPROTO; -ENOMEM. Ownership:
 * json_decref() of `ret_json`. */
int domi_js_parse_json_object(const char *text, size_t size, size_t size_max, json_t **ret_json);

/* Read the answer to an API request, of up to `size_max` bytes. Returns 0; the errno of the ask if
 * that has failed; the errno for the error that the answer contains; or an error of
 * domi_js_parse_json_object(). */
int domi_js_read_api_answer(const domus_answer *answer, size_t size_max, json_t **ret_json);

/* Returns the member `name` of a JSON object if that member is an object itself, otherwise NULL. */
const json_t *domi_js_get_object(const json_t *json, const char *name);

/* Get a member of a JSON object by its name. A missing member gives 0, false or "". A number below
 * 0, by which the server means "no bound", gives 0, too. Return 0; -EPROTO for a member of another
 * type. */
int domi_js_get_number(const json_t *json, const char *name, uint64_t *ret_number);
int domi_js_get_flag(const json_t *json, const char *name, bool *ret_flag);
int domi_js_get_text(const json_t *json, const char *name, const char **ret_text, size_t *ret_size);

/* Write JSON as json_pack(3) does from a format and its arguments. Ownership: the slice is the
 * caller's. Returns 0; -EINVAL for a text that is no UTF-8; -ENOMEM. */
int domi_js_write_json_object(domus_slice *ret_text, const char *format, ...);

/* --- errors (js_error.c) ---------------------------------------------------------------------- */

/* Returns the errno for an error in an answer of the API: by its number, or by its HTTP status if
 * the number is unknown. */
int domi_js_errno_of_api_error(uint64_t number, uint64_t status);

/* --- streams (js_config.c) -------------------------------------------------------------------- */

/* Write the configuration of a stream as JSON. Returns 0; -EINVAL; -E2BIG; -ENOMEM. */
int domi_js_write_stream_config(const char *name, const domus_nats_stream_config *config,
                                domus_slice *ret_json);

/* Read the status of a stream from the answer to a create or an info request. Returns as
 * domi_js_read_api_answer(). */
int domi_js_read_stream_status(const domus_answer *answer, domus_nats_stream_status *ret_status);

/* --- opening a stream (js_open.c) ------------------------------------------------------------- */

/* State that the actor of a stream and the actor of a bucket have in common. */
typedef struct domi_js {
    domus_address client;
    /* JSON of the configuration with which the stream is created; empty: the stream must exist */
    domus_slice create;
    /* the server has confirmed that the stream exists, and no error has told otherwise since */
    bool is_open;
    bool was_open;  /* the server has confirmed at least once that the stream exists */
    bool is_direct; /* messages of the stream are got from any server that has the stream */
    /* messages may be got from any server that has the stream, if the stream allows this */
    bool reads_any;
    char stream[DOMUS_NATS_STREAM_NAME_MAX + 1];
} domi_js;

/* Ask the client to send a request with `body` to the subject that `subject` and its arguments
 * make, as for printf(3). `body` is consumed in every case. Returns as domus_ask(). */
int domi_js_ask_server(domus_stack *stack, domus_address client, domus_slice body,
                       domus_resumed *then, const char *subject, ...)
    __attribute__((format(printf, 5, 6)));

/* Create the stream, or check that it exists. The actor handles no other ask until the running
 * conversation ends. Returns as domus_ask(). */
int domi_js_ask_server_to_open_stream(domus_stack *stack, const domi_js *js, domus_resumed *then);

/* Handle the answer to domi_js_ask_server_to_open_stream(). Returns 0 if the stream is open now,
 * otherwise a negative errno. */
int domi_js_mark_stream_open_by_answer(domi_js *js, const domus_answer *answer);

/* Within a handler of a DOMUS_SEQUENCE: open the stream if it is not open, and continue once it is.
 * If it cannot be opened, the handler returns the error. */
#define DOMI_JS_AWAIT_OPEN(stack, js, then, answer)                                                \
    do {                                                                                           \
        if (!(js)->is_open) {                                                                      \
            DOMUS_AWAIT(domi_js_ask_server_to_open_stream(stack, js, then));                       \
            {                                                                                      \
                int error_ = domi_js_mark_stream_open_by_answer(js, answer);                       \
                if (error_ != 0)                                                                   \
                    return error_;                                                                 \
            }                                                                                      \
        }                                                                                          \
    } while (0)

/* Reply to the current ask that it is done, if the server's answer is no error. Returns as a
 * handler does. */
int domi_js_reply_done_or_error(domus_stack *stack, const domus_answer *answer);

/* Record that the server has answered a request with `error`: after -ENXIO the stream must be
 * opened again before the next one. Returns `error`. */
int domi_js_mark_unopened_if_stream_is_gone(domi_js *js, int error);

/* --- messages (js_message.c) ------------------------------------------------------------------ */

/* The position of a message in its stream, and in its deliveries, as the subject for its
 * acknowledgement tells them. */
typedef struct domi_js_place {
    uint64_t deliveries;
    uint64_t sequence; /* number of the message in its stream */
    /* number of the delivery among the consumer's deliveries, from 1 on */
    uint64_t consumer_sequence;
    uint64_t stored_ns;
    uint64_t pending;
} domi_js_place;

/* Read the position of a message from the subject for its acknowledgement. Returns 0; -EPROTO. */
int domi_js_read_place_in_ack_subject(domus_slice subject, domi_js_place *ret_place);

/* Returns whether a message was delivered by a consumer, and is no status of the server. The
 * subject for its acknowledgement tells that; a status header does not, because a publisher may
 * have set one. */
bool domi_js_is_delivery_of_consumer(const domus_nats_message *message);

/* Read a message that a consumer has delivered. On success the bytes move from `message` to
 * `ret_message`. Returns 0; -EPROTO. */
int domi_js_read_delivered_message(const domus_nats_message *message,
                                   domus_nats_stream_message *ret_message);

/* Ask the server for the message with this number in the stream, or, if `sequence` is 0, for the
 * last message with `subject`. Returns as domus_ask(). */
int domi_js_ask_for_message(domus_stack *stack, const domi_js *js, uint64_t sequence,
                            const char *subject, domus_resumed *then);

/* Read the answer to domi_js_ask_for_message(). Ownership: the bytes of `ret_message` are the
 * caller's. Returns 0; -ENOENT when there is no such message; or as domi_js_read_api_answer(). */
int domi_js_read_message_of_answer(const domus_answer *answer,
                                   domus_nats_stream_message *ret_message);

/* --- publishing (js_publish.c) ---------------------------------------------------------------- */

/* Read the server's acknowledgement of a published message. Returns as domi_js_read_api_answer().
 */
int domi_js_read_publish_ack(const domus_answer *answer, domus_nats_stream_ack *ret_ack);

/* Add a header with a number as its value to a block of headers. Returns as
 * domus_nats_headers_add(). */
int domi_js_add_header_with_number(domus_appender *headers, const char *name, uint64_t number);

#endif
