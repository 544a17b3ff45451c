/* Encodes the answers of an HTTP server as HTTP/1.1. */
#include "protocols/http/chain.h"
#include "protocols/http/chars.h"
#include "protocols/http/outgoing.h"
#include "protocols/http/write.h"

#include <errno.h>

/* How the head of an answer tells the peer where the body ends. */
typedef enum ending {
    NOTHING, /* the answer has no body, and must not have one */
    LENGTH,
    CHUNKS,
    PLAIN, /* the body of the answer ends where the connection ends */
} ending;

int domi_http_send_100_continue(domus_wire *wire, domi_http_state *state)
{
    state->waits_for_100 = state->owes_100 = false;
    return domus_wire_append(wire, "HTTP/1.1 100 Continue\r\n\r\n", 25);
}

/* Finish the encoding of an answer. Answers are encoded in any order but leave in the order of
 * their requests, and a 100 Continue that is owed belongs behind the answer to the last request. If
 * that answer was encoded earlier than others, the peer gets the 100 between two answers, where it
 * ignores it. */
int domi_http_count_answer_and_send_owed_100(domus_wire *wire, domi_http_state *state, uint64_t id)
{
    bool is_last = (uint32_t)(id >> DOMI_HTTP_ID_NUMBER) == state->made;

    if (state->unanswered != 0)
        state->unanswered--;
    return state->owes_100 && (is_last || state->unanswered == 0)
               ? domi_http_send_100_continue(wire, state)
               : 0;
}

bool domi_http_may_refused_body_still_come(const domi_http_state *state, uint64_t id)
{
    bool is_last = (uint32_t)(id >> DOMI_HTTP_ID_NUMBER) == state->made;

    /* a tunnel was asked for, or is open, but its answer has failed */
    if (state->tunnel != DOMI_HTTP_NO_TUNNEL)
        return is_last;
    return is_last && state->phase == DOMI_HTTP_STREAMING && state->waits_for_100;
}

/* Check an answer of a handler. Returns 0; -EINVAL for an answer that HTTP cannot express. */
static int check_answer_of_handler(const domi_http_outgoing *answer, uint64_t id)
{
    if (answer->status != 101 && (answer->status < 200 || answer->status > 599))
        return -EINVAL;
    if (answer->status == 101 && (id & DOMI_HTTP_ID_UPGRADE) == 0)
        return -EINVAL;
    if (domi_http_is_status_without_body(answer->status) && answer->body_size != 0)
        return -EINVAL;
    if (answer->length > DOMI_HTTP_LENGTH_MAX || answer->media_size > DOMI_HTTP_COPIED_MAX ||
        domi_http_count_text_bytes(answer->media, answer->media_size) != answer->media_size)
        return -EINVAL;
    int has = domi_http_check_fields(answer->fields);
    if (has < 0 || domi_http_check_trailers(answer->trailers) != 0)
        return -EINVAL;
    if (answer->added.size == 0)
        return has;
    int more = domi_http_check_fields(answer->added);
    return more < 0 ? more : has | more;
}

/* Write the fields of an answer that tell where its body ends, and whether the connection ends
 * behind it. */
static char *put_framing_fields_of_answer(char *to, const domi_http_outgoing *answer, uint64_t id,
                                          ending framing, uint64_t length)
{
    if (framing == LENGTH) {
        to = DOMI_HTTP_PUT(to, "Content-Length: ");
        to = domi_http_put_decimal_number(to, length);
        to = DOMI_HTTP_PUT(to, "\r\n");
    } else if (framing == CHUNKS) {
        to = DOMI_HTTP_PUT(to, "Transfer-Encoding: chunked\r\n");
    }
    /* RFC 9110 demands Connection: upgrade beside the field Upgrade */
    if (answer->status == 101 || (answer->status == 426 && !answer->close))
        return DOMI_HTTP_PUT(to, "Connection: upgrade\r\n");
    if (answer->close)
        return DOMI_HTTP_PUT(to, "Connection: close\r\n");
    return (id & DOMI_HTTP_ID_NEW) != 0 ? to : DOMI_HTTP_PUT(to, "Connection: keep-alive\r\n");
}

/* Append the head of an answer, and its body if that is complete. */
static int append_head_and_complete_body(domus_wire *wire, const domi_http_state *state,
                                         const domi_http_outgoing *answer, uint64_t id,
                                         ending framing, uint64_t length, int has)
{
    bool with_fields = answer->fields.size <= DOMI_HTTP_COPIED_MAX;
    bool with_body = with_fields && answer->body_size <= DOMI_HTTP_COPIED_MAX;
    size_t copied = with_body ? answer->fields.size + answer->body_size
                              : (with_fields ? answer->fields.size : 0);
    char *begin = domus_wire_room(wire, DOMI_HTTP_HEAD_ROOM + answer->media_size +
                                            answer->added.size + copied);

    if (begin == NULL)
        return -ENOMEM;
    char *to = domi_http_put_status_line(begin, answer->status);
    if (!state->options.no_date && (has & DOMI_HTTP_FIELD_DATE) == 0)
        to = domi_http_put_date_field(to);
    to = put_framing_fields_of_answer(to, answer, id, framing, length);
    if (answer->media_size != 0) {
        to = DOMI_HTTP_PUT(to, "Content-Type: ");
        to = domi_http_put_bytes(to, answer->media, answer->media_size);
        to = DOMI_HTTP_PUT(to, "\r\n");
    }
    if (answer->added.size != 0)
        to = domi_http_put_bytes(to, domus_slice_data(answer->added), answer->added.size);
    if (with_fields) {
        to = domi_http_put_bytes(to, domus_slice_data(answer->fields), answer->fields.size);
        to = DOMI_HTTP_PUT(to, "\r\n");
    }
    const char *body = answer->text != NULL ? answer->text : domus_slice_data(answer->body);
    if (with_body)
        to = domi_http_put_bytes(to, body, answer->body_size);
    domus_wire_written(wire, (size_t)(to - begin));
    int error = 0;
    if (!with_fields) {
        error = domus_wire_append_slice(wire, answer->fields);
        if (error == 0)
            error = domus_wire_append(wire, "\r\n", 2);
    }
    if (with_body || error != 0)
        return error;
    return answer->text != NULL ? domus_wire_append(wire, answer->text, answer->body_size)
                                : domus_wire_append_slice(wire, answer->body);
}

/* Choose how the head of an answer in pieces marks the body's end, and set the word of its stream
 * accordingly. */
static ending choose_ending_of_body(const domi_http_outgoing *answer, uint64_t id,
                                    uint64_t *ret_stream)
{
    ending framing = answer->length != 0 ? LENGTH : (id & DOMI_HTTP_ID_NEW) != 0 ? CHUNKS : PLAIN;

    *ret_stream = framing == LENGTH   ? DOMI_HTTP_STREAM_COUNTED | answer->length
                  : framing == CHUNKS ? DOMI_HTTP_STREAM_CHUNKS
                                      : DOMI_HTTP_STREAM_PLAIN;
    if (answer->deflater != NULL)
        *ret_stream = DOMI_HTTP_STREAM_GZIP | (uintptr_t)answer->deflater;
    if ((id & DOMI_HTTP_ID_HEAD) != 0)
        *ret_stream = DOMI_HTTP_STREAM_NONE;
    return framing;
}

/* Encode the begin of an answer in pieces. If its status allows no body, the stream gets no pieces,
 * and may end at once. */
static int encode_begin_of_answer_in_pieces(domus_wire *wire, domi_http_state *state, uint64_t id,
                                            domi_http_outgoing *answer, uint64_t *stream)
{
    bool is_tunnel = answer->status == 101 && state->tunnel == DOMI_HTTP_TUNNEL_OPEN;
    uint64_t word = is_tunnel ? DOMI_HTTP_STREAM_TUNNEL : DOMI_HTTP_STREAM_COUNTED;
    int has = check_answer_of_handler(answer, id);

    if (*stream != 0)
        return -EOPNOTSUPP; /* the answer has a head already, so it cannot begin again */
    if (has < 0 || answer->body_size != 0)
        return -EINVAL;
    ending framing = domi_http_is_status_without_body(answer->status)
                         ? NOTHING
                         : choose_ending_of_body(answer, id, &word);
    answer->close |= framing == PLAIN;
    int error =
        append_head_and_complete_body(wire, state, answer, id, framing, answer->length, has);
    if (error != 0)
        return error;
    if (answer->deflater != NULL)
        domi_http_deflater_add_to_list(answer->deflater, &state->deflaters);
    answer->deflater = NULL;
    /* no further request can follow on a connection that has become a tunnel */
    answer->close |= is_tunnel;
    *stream = word;
    return 0;
}

/* Append a complete answer that has trailers, so its body is sent in chunks. */
static int append_answer_with_trailers(domus_wire *wire, const domi_http_state *state,
                                       const domi_http_outgoing *answer, uint64_t id, int has)
{
    const domus_piece body = {.bytes = answer->body};
    const domus_http_trailers trailers = {answer->trailers};
    uint64_t word = DOMI_HTTP_STREAM_CHUNKS;
    domi_http_outgoing head = *answer;

    head.body = (domus_slice){NULL, 0, 0};
    head.body_size = 0;
    int error = append_head_and_complete_body(wire, state, &head, id, CHUNKS, 0, has);
    if (error == 0)
        error = domi_http_append_piece_of_stream(wire, &word, &body);
    return error != 0 ? error : domi_http_append_trailers_of_stream(wire, &word, &trailers);
}

static int encode_complete_answer(domus_wire *wire, domi_http_state *state, uint64_t id,
                                  domi_http_outgoing *answer)
{
    bool is_head = (id & DOMI_HTTP_ID_HEAD) != 0;
    uint64_t length = answer->body_size;
    ending framing = domi_http_is_status_without_body(answer->status) ? NOTHING : LENGTH;
    int has = check_answer_of_handler(answer, id);

    if (has < 0)
        return has;
    if (answer->trailers.size != 0 && framing == LENGTH && !is_head && answer->text == NULL &&
        domi_http_does_peer_accept_trailers(id)) {
        int error = append_answer_with_trailers(wire, state, answer, id, has);
        return error != 0 ? error : domi_http_count_answer_and_send_owed_100(wire, state, id);
    }
    if ((is_head || answer->status == 304) && length == 0 && answer->length != 0) {
        length = answer->length;
        framing = answer->status == 204 ? NOTHING : LENGTH;
    }
    if (is_head)
        answer->body_size = 0;
    if (answer->has_no_length)
        framing = NOTHING;
    int error = append_head_and_complete_body(wire, state, answer, id, framing, length, has);
    return error != 0 ? error : domi_http_count_answer_and_send_owed_100(wire, state, id);
}

static int encode_uncompressed_answer(domus_wire *wire, domi_http_state *state, uint64_t id,
                                      domi_http_outgoing *answer)
{
    uint64_t *stream = domus_wire_stream(wire);

    answer->close |= (id & DOMI_HTTP_ID_CLOSE) != 0 ||
                     domi_http_may_refused_body_still_come(state, id) ||
                     domus_wire_is_closing(wire);
    answer->close &= answer->status != 101;
    int error = stream != NULL ? encode_begin_of_answer_in_pieces(wire, state, id, answer, stream)
                               : encode_complete_answer(wire, state, id, answer);
    if (error != 0)
        return error;
    if (domi_http_may_refused_body_still_come(state, id))
        /* an owed 100 Continue is not sent any more, because it would stand within the answer in
         * pieces */
        state->waits_for_100 = false;
    if (answer->close)
        domus_wire_last(wire);
    return 0;
}

static int encode_answer_maybe_compressed(domus_wire *wire, domi_http_state *state, uint64_t id,
                                          domi_http_outgoing *answer)
{
    domi_http_packed packed = {.fields = {NULL, 0, 0}};

    if (state->options.gzip == NULL)
        return encode_uncompressed_answer(wire, state, id, answer);
    int error = domi_http_compress_answer_if_allowed(state, id, domus_wire_stream(wire) != NULL,
                                                     answer, &packed);
    if (error != 0)
        return error;
    error = encode_uncompressed_answer(wire, state, id, answer);
    if (answer->deflater != NULL)
        domi_http_deflater_give_back(answer->deflater);
    domus_slice_free(packed.fields);
    domus_slice_free(packed.body);
    return error;
}

/* Pass an answer through the parts of the chain, from the last to the first, encode it, and end the
 * exchange if the answer is complete. */
static int encode_answer_through_chain(domus_wire *wire, domi_http_state *state, uint64_t id,
                                       domi_http_outgoing *answer)
{
    domi_http_exchange *exchange = domi_http_find_exchange_of_request(state->chained, id);
    bool is_whole = domus_wire_stream(wire) == NULL;
    domus_slice made = {NULL, 0, 0};

    if (exchange == NULL)
        /* the handler has answered although the chain still waits for one of its parts */
        return -EINVAL;
    int error = domi_http_pass_answer_through_parts(exchange, answer, is_whole, &made);
    if (error == 0)
        error = encode_answer_maybe_compressed(wire, state, id, answer);
    if (error == 0) {
        exchange->face.status = (uint16_t)answer->status;
        exchange->face.sent += answer->body_size;
        if (is_whole)
            domi_http_end_exchange(state->chained, exchange, domus_wire_now_ns(wire), false);
    }
    domus_slice_free(answer->added);
    domus_slice_free(made);
    return error;
}

static int encode_answer_of_handler(domus_wire *wire, domi_http_state *state, uint64_t id,
                                    domi_http_outgoing *answer)
{
    return state->options.chain == NULL ? encode_answer_maybe_compressed(wire, state, id, answer)
                                        : encode_answer_through_chain(wire, state, id, answer);
}

static int encode_response_of_handler(domus_wire *wire, domi_http_state *state, uint64_t id,
                                      const domus_http_response *response)
{
    domi_http_outgoing made = {
        .status = response->status,
        .media = response->media,
        .media_size = response->media != NULL ? strlen(response->media) : 0,
        .fields = response->fields,
        .body = response->body,
        .body_size = response->body.size,
        .length = response->length,
        .trailers = response->trailers,
        .close = response->close,
    };

    return encode_answer_of_handler(wire, state, id, &made);
}

static int encode_text_of_handler(domus_wire *wire, domi_http_state *state, uint64_t id,
                                  const domus_http_text *text)
{
    domi_http_outgoing made = {
        .status = text->status,
        .media = text->media,
        .media_size = text->media != NULL ? strlen(text->media) : 0,
        .text = text->text != NULL ? text->text : "",
        .body_size = text->text != NULL ? strlen(text->text) : 0,
    };

    return encode_answer_of_handler(wire, state, id, &made);
}

/* Append the end of an answer in pieces, with its trailers if the peer reads trailers. */
static int encode_trailers_of_answer(domus_wire *wire, uint64_t *stream, uint64_t id,
                                     const domus_http_trailers *trailers)
{
    const domus_http_trailers none = {{NULL, 0, 0}};

    if (domi_http_check_trailers(trailers->fields) != 0)
        return -EINVAL;
    return domi_http_append_trailers_of_stream(
        wire, stream, domi_http_does_peer_accept_trailers(id) ? trailers : &none);
}

/* Finish the encoding of an answer in pieces, whose last bytes were appended. */
static int end_encoding_of_answer_in_pieces(domus_wire *wire, domi_http_state *state, uint64_t id)
{
    if (state->chained != NULL)
        domi_http_end_exchange_of_request(state->chained, id, domus_wire_now_ns(wire), false);
    return domi_http_count_answer_and_send_owed_100(wire, state, id);
}

int domi_http_encode_answer_of_server(domus_wire *wire, domi_http_state *state, uint64_t id,
                                      const domus_type *type, const void *payload)
{
    uint64_t *stream = domus_wire_stream(wire);
    int error;

    if (id == DOMUS_NO_ID)
        return -EOPNOTSUPP; /* no request waits for an answer by this message */
    if (type == &domus_http_text_type)
        return encode_text_of_handler(wire, state, id, payload);
    if (type == &domus_http_response_type)
        return encode_response_of_handler(wire, state, id, payload);
    if (type == &domus_http_trailers_type) {
        error = encode_trailers_of_answer(wire, stream, id, payload);
        return error != 0 ? error : end_encoding_of_answer_in_pieces(wire, state, id);
    }
    if (type != &domus_piece_type)
        return -EOPNOTSUPP;
    error = domi_http_append_piece_of_stream(wire, stream, payload);
    if (error == 0 && state->chained != NULL)
        domi_http_count_sent_bytes_of_request(state->chained, id,
                                              ((const domus_piece *)payload)->bytes.size);
    if (error != 0 || !((const domus_piece *)payload)->last)
        return error;
    return end_encoding_of_answer_in_pieces(wire, state, id);
}
