/* Handles the requests of JetStream's API that buckets need, and answers in the JSON of
 * nats-server. */
#include "protocols/cluster/testkit/store_parts.h"

#include <jansson.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BAD_REQUEST      10003u /* error numbers of nats-server, as in its errors.json */
#define NO_CONSUMER      10014u
#define CONSUMERS_MOST   10026u
#define STREAMS_MOST     10027u
#define NO_MESSAGE       10037u
#define STREAM_DIFFERENT 10058u
#define NO_STREAM        10059u

#define PREFIX_SIZE 8u /* bytes of the text "$JS.API." */
#define NS_PER_S    UINT64_C(1000000000)
#define TIME_SIZE   64u /* bytes of the text of a time, as in RFC 3339 */

/* --- writing texts ---------------------------------------------------------------------------- */

/* Write a time in the form of RFC 3339. */
static void write_time_of_rfc3339(uint64_t cluster_ns, char text[TIME_SIZE])
{
    uint64_t ns = DOMI_SIM_EPOCH_NS + cluster_ns;
    time_t seconds = (time_t)(ns / NS_PER_S);
    struct tm parts;
    char date[32];

    (void)gmtime_r(&seconds, &parts);
    (void)strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
    (void)snprintf(text, TIME_SIZE, "%s.%09" PRIu64 "Z", date, ns % NS_PER_S);
}

/* Encode bytes as base64. Returns NULL without memory. */
static char *encode_base64(const char *bytes, uint32_t size)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = malloc((size_t)size / 3 * 4 + 5);
    char *at = text;

    if (text == NULL)
        return NULL;
    for (uint32_t i = 0; i < size; i += 3) {
        uint32_t left = size - i;
        uint32_t group = (uint32_t)(unsigned char)bytes[i] << 16;
        if (left > 1)
            group |= (uint32_t)(unsigned char)bytes[i + 1] << 8;
        if (left > 2)
            group |= (unsigned char)bytes[i + 2];
        *at++ = letters[group >> 18];
        *at++ = letters[group >> 12 & 63];
        *at++ = left > 1 ? letters[group >> 6 & 63] : '=';
        *at++ = left > 2 ? letters[group & 63] : '=';
    }
    *at = '\0';
    return text;
}

/* Answer a request with JSON. `json` is consumed. */
static void reply_with_json(domi_sim *sim, const domi_sim_message *request, json_t *json)
{
    char *text = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;

    if (text != NULL)
        domi_sim_reply_to_request_with_text(sim, request, text);
    else
        sim->failed = -ENOMEM;
    free(text);
    json_decref(json);
}

static void refuse_request_of_api(domi_sim *sim, const domi_sim_message *request, uint32_t number)
{
    static const struct {
        uint32_t number;
        uint32_t status;
        const char *text;
    } rows[] = {
        {NO_CONSUMER, 404, "consumer not found"},
        {CONSUMERS_MOST, 400, "maximum consumers limit reached"},
        {STREAMS_MOST, 400, "maximum number of streams reached"},
        {NO_MESSAGE, 404, "no message found"},
        {STREAM_DIFFERENT, 400, "stream name already in use with a different configuration"},
        {NO_STREAM, 404, "stream not found"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].number == number) {
            domi_sim_reply_to_request_with_error(sim, request, rows[i].status, number,
                                                 rows[i].text);
            return;
        }
    }
    domi_sim_reply_to_request_with_error(sim, request, 400, BAD_REQUEST, "bad request");
}

static uint64_t get_number_in_json(const json_t *json, const char *name)
{
    json_int_t number = json_integer_value(json_object_get(json, name));

    return number > 0 ? (uint64_t)number : 0;
}

static const char *get_text_in_json(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));

    return text != NULL ? text : "";
}

/* --- buckets ---------------------------------------------------------------------------------- */

static void reply_with_info_of_bucket(domi_sim *sim, const domi_sim_message *request,
                                      const domi_sim_bucket *bucket)
{
    uint64_t first = bucket->entries != NULL ? bucket->entries->sequence : bucket->last + 1;
    char made[TIME_SIZE];

    write_time_of_rfc3339(bucket->made_ns, made);
    reply_with_json(sim, request,
                    json_pack("{s:s, s:o, s:s, s:{s:I, s:I, s:I, s:I, s:i}}", "type",
                              "io.nats.jetstream.api.v1.stream_info_response", "config",
                              json_loads(bucket->config, 0, NULL), "created", made, "state",
                              "messages", (json_int_t)bucket->count, "bytes",
                              (json_int_t)bucket->bytes, "first_seq", (json_int_t)first, "last_seq",
                              (json_int_t)bucket->last, "consumer_count",
                              (int)bucket->consumer_count));
}

/* Returns whether a stream's configuration is that of a bucket: the stream KV_name with the
 * subjects $KV.name.> */
static bool is_configuration_of_bucket(const json_t *config, const char *stream)
{
    const json_t *subjects = json_object_get(config, "subjects");
    char wanted[DOMUS_NATS_SUBJECT_MAX];

    if (strncmp(stream, "KV_", 3) != 0 || stream[3] == '\0' || strlen(stream) > 128 ||
        strpbrk(stream, ".*> \"\\") != NULL ||
        strcmp(get_text_in_json(config, "name"), stream) != 0)
        return false;
    (void)snprintf(wanted, sizeof wanted, "$KV.%s.>", stream + 3);
    const char *subject = json_string_value(json_array_get(subjects, 0));
    return json_array_size(subjects) == 1 && subject != NULL && strcmp(subject, wanted) == 0;
}

static domi_sim_bucket *make_bucket_from_configuration(const domi_sim *sim, const json_t *config,
                                                       const char *stream)
{
    domi_sim_bucket *bucket = calloc(1, sizeof *bucket);
    size_t size = strlen(stream) + 4;

    if (bucket == NULL)
        return NULL;
    bucket->stream = strdup(stream);
    bucket->prefix = malloc(size);
    bucket->config = json_dumps(config, JSON_COMPACT);
    if (bucket->stream == NULL || bucket->prefix == NULL || bucket->config == NULL) {
        domi_sim_bucket_free(bucket);
        return NULL;
    }
    (void)snprintf(bucket->prefix, size, "$KV.%s.", stream + 3);
    bucket->made_ns = sim->now_ns;
    bucket->history = get_number_in_json(config, "max_msgs_per_subject");
    bucket->history = bucket->history != 0 ? bucket->history : 1;
    bucket->age_ns = get_number_in_json(config, "max_age");
    bucket->bytes_max = get_number_in_json(config, "max_bytes");
    bucket->value_max = get_number_in_json(config, "max_msg_size");
    return bucket;
}

static void create_bucket_as_requested(domi_sim *sim, const domi_sim_message *request,
                                       const char *stream, const json_t *body)
{
    domi_sim_bucket *bucket = domi_sim_find_bucket(sim, stream);
    uint32_t count = 0;

    if (!is_configuration_of_bucket(body, stream)) {
        refuse_request_of_api(sim, request, BAD_REQUEST);
        return;
    }
    for (domi_sim_bucket *at = sim->store.buckets; at != NULL; at = at->next)
        count++;
    if (bucket == NULL && count == DOMUS_TESTKIT_BUCKETS_MAX) {
        refuse_request_of_api(sim, request, STREAMS_MOST);
        return;
    }
    domi_sim_bucket *made = make_bucket_from_configuration(sim, body, stream);
    if (made == NULL) {
        sim->failed = -ENOMEM;
        return;
    }
    if (bucket != NULL && strcmp(bucket->config, made->config) != 0) {
        refuse_request_of_api(sim, request, STREAM_DIFFERENT);
    } else if (bucket != NULL) {
        reply_with_info_of_bucket(sim, request, bucket);
    } else {
        domi_sim_add_line_to_trace(sim, "%s is made", stream);
        made->next = sim->store.buckets;
        sim->store.buckets = made;
        reply_with_info_of_bucket(sim, request, made);
        return;
    }
    domi_sim_bucket_free(made);
}

static void delete_bucket_as_requested(domi_sim *sim, const domi_sim_message *request,
                                       domi_sim_bucket *bucket)
{
    domi_sim_bucket **link = &sim->store.buckets;

    while (*link != bucket)
        link = &(*link)->next;
    *link = bucket->next;
    domi_sim_add_line_to_trace(sim, "%s is removed", bucket->stream);
    domi_sim_bucket_free(bucket);
    domi_sim_reply_to_request_with_text(sim, request, "{\"success\":true}");
}

/* --- getting entries -------------------------------------------------------------------------- */

/* Find the entry of a bucket that a request names by subject or number; NULL if there is none. */
static const domi_sim_entry *find_entry_named_in_request(const domi_sim_bucket *bucket,
                                                         const json_t *body)
{
    uint64_t sequence = get_number_in_json(body, "seq");

    if (sequence == 0)
        return domi_sim_last_entry_of_subject(bucket, get_text_in_json(body, "last_by_subj"));
    for (const domi_sim_entry *at = bucket->entries; at != NULL; at = at->next) {
        if (at->sequence == sequence)
            return at;
    }
    return NULL;
}

static void reply_with_entry_as_json(domi_sim *sim, const domi_sim_message *request,
                                     const domi_sim_bucket *bucket, const json_t *body)
{
    const domi_sim_entry *entry = find_entry_named_in_request(bucket, body);
    char time[TIME_SIZE];

    if (entry == NULL) {
        refuse_request_of_api(sim, request, NO_MESSAGE);
        return;
    }
    const domi_sim_message *stored = entry->message;
    char *headers = encode_base64(stored->headers, stored->headers_size);
    char *payload = encode_base64(stored->payload, stored->payload_size);
    write_time_of_rfc3339(entry->written_ns, time);
    if (headers == NULL || payload == NULL)
        sim->failed = -ENOMEM;
    else
        reply_with_json(sim, request,
                        json_pack("{s:{s:s, s:I, s:s*, s:s*, s:s}}", "message", "subject",
                                  stored->subject, "seq", (json_int_t)entry->sequence, "hdrs",
                                  stored->headers_size != 0 ? headers : NULL, "data",
                                  stored->payload_size != 0 ? payload : NULL, "time", time));
    free(headers);
    free(payload);
}

/* Answer with an entry as it is stored; headers that tell its position stand behind its own
 * headers. */
static void reply_with_entry_as_stored(domi_sim *sim, const domi_sim_message *request,
                                       const domi_sim_bucket *bucket, const domi_sim_entry *entry)
{
    static const char none[] = "NATS/1.0 404 Message Not Found\r\n\r\n";
    char time[TIME_SIZE];

    if (entry == NULL) {
        const domi_sim_parts parts = {
            .headers = none, .headers_size = sizeof none - 1, .status = 404};
        domi_sim_reply_to_request_with_parts(sim, request, &parts);
        return;
    }
    const domi_sim_message *stored = entry->message;
    size_t room = stored->headers_size + strlen(stored->subject) + strlen(bucket->stream) + 192;
    char *headers = malloc(room);
    if (headers == NULL) {
        sim->failed = -ENOMEM;
        return;
    }
    write_time_of_rfc3339(entry->written_ns, time);
    int own = stored->headers_size > 2 ? (int)stored->headers_size - 2 : 0;
    int size = snprintf(headers, room,
                        "%.*s%sNats-Stream: %s\r\nNats-Subject: %s\r\nNats-Sequence: %" PRIu64
                        "\r\nNats-Time-Stamp: %s\r\n\r\n",
                        own, stored->headers, own != 0 ? "" : "NATS/1.0\r\n", bucket->stream,
                        stored->subject, entry->sequence, time);
    const domi_sim_parts parts = {.headers = headers,
                                  .headers_size = (uint32_t)size,
                                  .payload = stored->payload,
                                  .payload_size = stored->payload_size};
    domi_sim_reply_to_request_with_parts(sim, request, &parts);
    free(headers);
}

/* --- consumers -------------------------------------------------------------------------------- */

static domi_sim_consumer *make_consumer_of_bucket(domi_sim *sim, const domi_sim_bucket *bucket,
                                                  const json_t *config)
{
    const char *policy = get_text_in_json(config, "deliver_policy");
    const char *filter = get_text_in_json(config, "filter_subject");
    domi_sim_consumer *consumer = calloc(1, sizeof *consumer);

    if (consumer == NULL)
        return NULL;
    consumer->deliver = strdup(get_text_in_json(config, "deliver_subject"));
    consumer->filter = strdup(filter[0] != '\0' ? filter : ">");
    if (consumer->deliver == NULL || consumer->filter == NULL) {
        domi_sim_consumer_free(consumer);
        return NULL;
    }
    (void)snprintf(consumer->name, sizeof consumer->name, "w%" PRIu64, ++sim->store.consumers);
    consumer->next_sequence = 1;
    if (strcmp(policy, "new") == 0)
        consumer->next_sequence = bucket->last + 1;
    if (strcmp(policy, "by_start_sequence") == 0)
        consumer->next_sequence = get_number_in_json(config, "opt_start_seq");
    if (consumer->next_sequence > bucket->last + 1)
        consumer->next_sequence = bucket->last + 1;
    if (strcmp(policy, "last_per_subject") == 0)
        consumer->snapshot = bucket->last;
    consumer->headers_only = json_is_true(json_object_get(config, "headers_only"));
    consumer->heartbeat_ns = get_number_in_json(config, "idle_heartbeat");
    consumer->inactive_ns = get_number_in_json(config, "inactive_threshold");
    consumer->heard_ns = sim->now_ns;
    consumer->beat_ns = sim->now_ns + consumer->heartbeat_ns;
    return consumer;
}

static void reply_with_info_of_consumer(domi_sim *sim, const domi_sim_message *request,
                                        const domi_sim_bucket *bucket,
                                        const domi_sim_consumer *consumer)
{
    reply_with_json(sim, request,
                    json_pack("{s:s, s:s, s:{s:I, s:I}, s:{s:I, s:I}, s:i, s:i, s:I}",
                              "stream_name", bucket->stream, "name", consumer->name, "delivered",
                              "consumer_seq", (json_int_t)consumer->sent, "stream_seq",
                              (json_int_t)(consumer->next_sequence - 1), "ack_floor",
                              "consumer_seq", (json_int_t)0, "stream_seq", (json_int_t)0,
                              "num_ack_pending", 0, "num_redelivered", 0, "num_pending",
                              (json_int_t)domi_sim_count_pending_entries(bucket, consumer)));
}

static void create_consumer_as_requested(domi_sim *sim, const domi_sim_message *request,
                                         domi_sim_bucket *bucket, const json_t *body)
{
    const json_t *config = json_object_get(body, "config");
    const char *deliver = get_text_in_json(config, "deliver_subject");

    if (!domi_sim_is_valid_subject(deliver, strlen(deliver), false) ||
        json_object_get(config, "durable_name") != NULL) {
        /* consumers that pull, and consumers with names, are not supported */
        refuse_request_of_api(sim, request, BAD_REQUEST);
        return;
    }
    if (bucket->consumer_count == DOMUS_TESTKIT_CONSUMERS_MAX) {
        refuse_request_of_api(sim, request, CONSUMERS_MOST);
        return;
    }
    domi_sim_consumer *consumer = make_consumer_of_bucket(sim, bucket, config);
    if (consumer == NULL) {
        sim->failed = -ENOMEM;
        return;
    }
    consumer->next = bucket->consumers;
    bucket->consumers = consumer;
    bucket->consumer_count++;
    domi_sim_add_line_to_trace(sim, "%s has the consumer %s", bucket->stream, consumer->name);
    reply_with_info_of_consumer(sim, request, bucket, consumer);
    domi_sim_send_entries_of_consumer(sim, bucket, consumer);
}

static void tell_or_delete_consumer_as_requested(domi_sim *sim, const domi_sim_message *request,
                                                 domi_sim_bucket *bucket, const char *name,
                                                 bool removes)
{
    domi_sim_consumer **link = &bucket->consumers;

    while (*link != NULL && strcmp((*link)->name, name) != 0)
        link = &(*link)->next;
    if (*link == NULL) {
        refuse_request_of_api(sim, request, NO_CONSUMER);
        return;
    }
    if (!removes) {
        reply_with_info_of_consumer(sim, request, bucket, *link);
        return;
    }
    domi_sim_consumer *consumer = *link;
    *link = consumer->next;
    bucket->consumer_count--;
    domi_sim_consumer_free(consumer);
    domi_sim_reply_to_request_with_text(sim, request, "{\"success\":true}");
}

/* --- all requests ----------------------------------------------------------------------------- */

/* Returns the text behind a verb in the subject of a request; NULL if the subject has another
 * verb. */
static const char *text_behind_verb_in_subject(const domi_sim_message *request, const char *verb)
{
    const char *text = request->subject + PREFIX_SIZE;
    size_t size = strlen(verb);

    return strncmp(text, verb, size) == 0 && text[size] == '.' ? text + size + 1 : NULL;
}

/* Find the bucket that a request names in its subject, and the text behind the name. Returns NULL
 * if the request was refused. */
static domi_sim_bucket *bucket_named_in_request(domi_sim *sim, const domi_sim_message *request,
                                                const char *text, const char **ret_rest)
{
    char stream[160];
    size_t size = strcspn(text, ".");

    *ret_rest = text[size] == '.' ? text + size + 1 : "";
    (void)snprintf(stream, sizeof stream, "%.*s", (int)size, text);
    domi_sim_bucket *bucket = domi_sim_find_bucket(sim, stream);
    if (bucket == NULL)
        refuse_request_of_api(sim, request, NO_STREAM);
    else
        domi_sim_remove_expired_entries(sim, bucket);
    return bucket;
}

static void dispatch_request_about_bucket(domi_sim *sim, const domi_sim_message *request,
                                          const char *text, const json_t *body)
{
    const char *rest = "";
    domi_sim_bucket *bucket = bucket_named_in_request(sim, request, text, &rest);

    if (bucket == NULL)
        return;
    if (text_behind_verb_in_subject(request, "STREAM.INFO") != NULL)
        reply_with_info_of_bucket(sim, request, bucket);
    else if (text_behind_verb_in_subject(request, "STREAM.DELETE") != NULL)
        delete_bucket_as_requested(sim, request, bucket);
    else if (text_behind_verb_in_subject(request, "STREAM.MSG.GET") != NULL)
        reply_with_entry_as_json(sim, request, bucket, body);
    else if (text_behind_verb_in_subject(request, "DIRECT.GET") != NULL)
        reply_with_entry_as_stored(sim, request, bucket,
                                   *rest != '\0' ? domi_sim_last_entry_of_subject(bucket, rest)
                                                 : find_entry_named_in_request(bucket, body));
    else if (text_behind_verb_in_subject(request, "CONSUMER.CREATE") != NULL)
        create_consumer_as_requested(sim, request, bucket, body);
    else
        tell_or_delete_consumer_as_requested(
            sim, request, bucket, rest,
            text_behind_verb_in_subject(request, "CONSUMER.DELETE") != NULL);
}

void domi_sim_dispatch_request_of_api(domi_sim *sim, domi_sim_message *message)
{
    static const char *const verbs[] = {"STREAM.INFO",    "STREAM.DELETE",   "STREAM.MSG.GET",
                                        "DIRECT.GET",     "CONSUMER.CREATE", "CONSUMER.INFO",
                                        "CONSUMER.DELETE"};
    json_t *body = json_loadb(message->payload, message->payload_size, 0, NULL);
    const char *stream = text_behind_verb_in_subject(message, "STREAM.CREATE");
    const char *text = NULL;

    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0] && text == NULL; i++)
        text = text_behind_verb_in_subject(message, verbs[i]);
    if (stream != NULL)
        create_bucket_as_requested(sim, message, stream, body);
    else if (text != NULL)
        dispatch_request_about_bucket(sim, message, text, body);
    else
        refuse_request_of_api(sim, message, BAD_REQUEST);
    json_decref(body);
}
