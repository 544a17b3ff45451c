/* Parts that streams, consumers and buckets of JetStream have in common: names, the JSON of its
 * API, its errors, and an actor's way to the server.
 *
 * JetStream is spoken over requests of the client (domus/nats.h) to subjects that begin with
 * "$JS.API.". All that comes back is of a stranger, so each answer is bounded before it is read,
 * and a field of a wrong type makes the whole answer wrong. */
#ifndef DOMI_PROTOCOLS_NATS_JS_H
#define DOMI_PROTOCOLS_NATS_JS_H

#include <domus/nats_stream.h>

#include <jansson.h>

/* --- names (js_names.c) ----------------------------------------------------------------------- */

/* Returns whether this is the name of a stream or consumer: one token of a subject, without the
 * characters that mean something in paths. */
bool domi_js_is_name(const char *text);

/* Returns whether this is a subject: tokens of printing characters with "." between them. With
 * `wildcards` a token may be "*", and the last one ">". */
bool domi_js_is_subject(const char *text, size_t size, bool wildcards);

/* --- texts (js_texts.c) ----------------------------------------------------------------------- */

/* Read digits, all of the text. Returns 0; -EPROTO. */
int domi_js_read_number(const char *text, size_t size, uint64_t *ret_number);

/* Read a time as RFC 3339 writes it in UTC, with up to 9 digits behind the second. Returns ns since
 * 1970; 0 for any other text, and for times that do not fit. */
uint64_t domi_js_read_time(const char *text, size_t size);

/* The bytes that base64 of `size` characters becomes, at most. */
#define DOMI_JS_BASE64_MAX(size) ((size) / 4 * 3)

/* Decode base64 with its padding to `to`. Returns how many bytes that are; -EPROTO. */
int64_t domi_js_read_base64(const char *text, size_t size, char *to);

#define DOMI_JS_INBOX_SIZE 32u

/* The random numbers of an actor; of seed 0 the kernel gives the first one. */
uint64_t domi_js_seed(uint64_t seed);

/* The next one of the numbers. An actor that is made gets one as its first: then the two have
 * different ones from there on. */
uint64_t domi_js_draw(uint64_t *random);

/* Make the name of an inbox that nobody else has. */
void domi_js_make_inbox(uint64_t *random, char inbox[DOMI_JS_INBOX_SIZE]);

/* --- the JSON of the API (js_json.c) ---------------------------------------------------------- */

/* Read an object. `size_max` bounds its bytes. Returns 0; -EPROTO; -ENOMEM.
 * Ownership: json_decref() of `ret_json`. */
int domi_js_parse(const char *text, size_t size, size_t size_max, json_t **ret_json);

/* Read the answer to a request of the API, of up to `size_max` bytes. Returns 0; the error of the
 * answer, or that which the server tells in it; as domi_js_parse(). */
int domi_js_read(const domus_answer *answer, size_t size_max, json_t **ret_json);

/* The object that is a member; NULL if there is none. */
const json_t *domi_js_object(const json_t *json, const char *name);

/* Get a member of this name. One that is missing is 0, false or "", and so is a number below 0,
 * which is how the server says "no bound". Return 0; -EPROTO for another type. */
int domi_js_get_number(const json_t *json, const char *name, uint64_t *ret_number);
int domi_js_get_flag(const json_t *json, const char *name, bool *ret_flag);
int domi_js_get_text(const json_t *json, const char *name, const char **ret_text, size_t *ret_size);

/* Write JSON, which is made of the arguments as json_pack(3) does.
 * Ownership: the slice is the caller's. Returns 0; -EINVAL for a text that is no UTF-8; -ENOMEM. */
int domi_js_pack(domus_slice *ret_text, const char *format, ...);

/* --- errors (js_error.c) ---------------------------------------------------------------------- */

/* The errno of an error of the API: its number, or if that is not known, the status beside it. */
int domi_js_error(uint64_t number, uint64_t status);

/* --- streams (js_config.c) -------------------------------------------------------------------- */

/* Make the JSON of a configuration. Returns 0; -EINVAL; -E2BIG; -ENOMEM. */
int domi_js_write_config(const char *name, const domus_nats_stream_config *config,
                         domus_slice *ret_json);

/* Read the answer to a create or an info. Returns as domi_js_read(). */
int domi_js_read_status(const domus_answer *answer, domus_nats_stream_status *ret_status);

/* --- the way to the server (js_open.c) -------------------------------------------------------- */

/* The part of the state that the actors of streams and of buckets have in common. */
typedef struct domi_js {
    domus_address client;
    domus_slice create; /* JSON of the configuration; empty: the stream has to be there */
    bool is_open;       /* the server has said that the stream is there */
    bool was_open;      /* the server has said once that the stream is there */
    bool is_direct;     /* gets go to any server that has the stream */
    bool reads_any;     /* gets may do so, if the stream allows it */
    char stream[DOMUS_NATS_STREAM_NAME_MAX + 1];
} domi_js;

/* Make a request to `subject`, which is made as printf(3) does, and ask the client. `body` is
 * consumed in every case. Returns as domus_ask(). */
int domi_js_ask(domus_stack *stack, domus_address client, domus_slice body, domus_resumed *then,
                const char *subject, ...) __attribute__((format(printf, 5, 6)));

/* Make the stream, or look whether it is there. The actor handles no other ask until the running
 * conversation ends. Returns as domus_ask(). */
int domi_js_open(domus_stack *stack, const domi_js *js, domus_resumed *then);

/* Take the answer. Returns 0 when it is open now. */
int domi_js_opened(domi_js *js, const domus_answer *answer);

/* In a conversation: go on once the stream is open. Returns from the handler if it cannot be. */
#define DOMI_JS_AWAIT_OPEN(stack, js, then, answer)                                                \
    do {                                                                                           \
        if (!(js)->is_open) {                                                                      \
            DOMUS_AWAIT(domi_js_open(stack, js, then));                                            \
            {                                                                                      \
                int error_ = domi_js_opened(js, answer);                                           \
                if (error_ != 0)                                                                   \
                    return error_;                                                                 \
            }                                                                                      \
        }                                                                                          \
    } while (0)

/* Reply that it is done, if the answer says so. Returns as a handler does. */
int domi_js_reply_done(domus_stack *stack, const domus_answer *answer);

/* Note that the server has answered with `error`: after -ENXIO the stream has to be opened again.
 * Returns `error`. */
int domi_js_note(domi_js *js, int error);

/* --- messages (js_message.c) ------------------------------------------------------------------ */

/* The place of a message in its stream, which the subject says to which it is acknowledged. */
typedef struct domi_js_place {
    uint64_t deliveries;
    uint64_t sequence;          /* in the stream */
    uint64_t consumer_sequence; /* of deliveries of the consumer, from 1 on */
    uint64_t stored_ns;
    uint64_t pending;
} domi_js_place;

/* Read it. Returns 0; -EPROTO. */
int domi_js_read_place(domus_slice subject, domi_js_place *ret_place);

/* Returns whether a message is one that a consumer delivers, and no word of the server. A status
 * does not tell that, because a publisher may have put one into the headers. */
bool domi_js_is_delivered(const domus_nats_message *message);

/* Take a message of a consumer apart. `ret_message` gets the bytes of `message`, which it does not
 * keep. Returns 0; -EPROTO. */
int domi_js_read_pushed(const domus_nats_message *message, domus_nats_stream_message *ret_message);

/* Ask for the message of this sequence, or if it is 0, for the last one with `subject`. Returns as
 * domus_ask(). */
int domi_js_ask_message(domus_stack *stack, const domi_js *js, uint64_t sequence,
                        const char *subject, domus_resumed *then);

/* Read the answer. Ownership: the bytes of `ret_message` are the caller's. Returns 0; -ENOENT when
 * there is no such message; as domi_js_read(). */
int domi_js_read_message(const domus_answer *answer, domus_nats_stream_message *ret_message);

/* --- publishing (js_publish.c) ---------------------------------------------------------------- */

/* Read the acknowledgement of a server. Returns as domi_js_read(). */
int domi_js_read_ack(const domus_answer *answer, domus_nats_stream_ack *ret_ack);

/* Add a header whose value is a number. Returns as domus_nats_headers_add(). */
int domi_js_add_number(domus_appender *headers, const char *name, uint64_t number);

#endif
