/* The store: who leads it, which requests reach the leader, and changes of keys. */
#include "protocols/cluster/testkit/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WRONG_SEQUENCE 10071u /* numbers of the server's errors.json */
#define TOO_LARGE      10054u
#define STORE_FAILED   10077u

static const char api_prefix[] = "$JS.API.";

/* --- the leader ------------------------------------------------------------------------------- */

/* Returns whether a server reaches more than half of all. */
static bool has_majority(const domi_sim *sim, uint32_t server)
{
    uint32_t reached = 0;

    for (uint32_t other = 0; other < sim->options.servers; other++)
        reached += sim->running[other] && domi_sim_is_routed(sim, server, other);
    return sim->running[server] && 2 * reached > sim->options.servers;
}

static void depose(domi_sim *sim)
{
    domi_sim_store *store = &sim->store;
    const domi_sim_loss loss = {DOMUS_FATE_LOST_REQUEST, DOMUS_EVERY, "the leader has ended"};

    domi_sim_note(sim, "server %u leads the buckets no more", store->leader);
    domi_sim_lose_all(sim, &store->leg, loss);
    domi_sim_end_consumers(sim);
    store->leader = DOMUS_EVERY;
    store->ready_ns =
        sim->now_ns + sim->options.election_ns + domi_sim_draw(sim, sim->options.election_ns + 1);
}

void domi_sim_elect(domi_sim *sim)
{
    domi_sim_store *store = &sim->store;
    uint32_t able = 0;

    if (store->leader != DOMUS_EVERY && has_majority(sim, store->leader))
        return;
    if (store->leader != DOMUS_EVERY)
        depose(sim);
    if (store->ready_ns > sim->now_ns)
        return;
    for (uint32_t server = 0; server < sim->options.servers; server++)
        able += has_majority(sim, server);
    store->ready_ns = sim->now_ns + sim->options.election_ns;
    if (able == 0)
        return;
    uint64_t drawn = domi_sim_draw(sim, able);
    for (uint32_t server = 0; store->leader == DOMUS_EVERY; server++) {
        if (has_majority(sim, server) && drawn-- == 0)
            store->leader = server;
    }
    sim->counts.elections++;
    domi_sim_note(sim, "server %u leads the buckets", store->leader);
}

/* --- requests --------------------------------------------------------------------------------- */

static domi_sim_bucket *bucket_of(const domi_sim *sim, const char *subject)
{
    for (domi_sim_bucket *at = sim->store.buckets; at != NULL; at = at->next) {
        if (strncmp(subject, at->prefix, strlen(at->prefix)) == 0)
            return at;
    }
    return NULL;
}

static bool is_api(const char *subject)
{
    return strncmp(subject, api_prefix, sizeof api_prefix - 1) == 0;
}

bool domi_sim_is_for_store(const domi_sim *sim, const char *subject)
{
    return is_api(subject) || bucket_of(sim, subject) != NULL;
}

static void lose_request(domi_sim *sim, const domi_sim_message *message, const char *why)
{
    domi_sim_lose(sim, message, (domi_sim_loss){DOMUS_FATE_LOST_REQUEST, DOMUS_EVERY, why});
}

bool domi_sim_store_take(domi_sim *sim, uint32_t server, domi_sim_message *message)
{
    uint32_t leader = sim->store.leader;

    if (message->node == DOMUS_EVERY)
        return false; /* an entry that the store itself sends */
    if (leader == server) {
        domi_sim_store_put(sim, server, message);
        return true;
    }
    if (leader != DOMUS_EVERY && !sim->routes[server][leader].broken) {
        domi_sim_send_over(sim, server, leader,
                           domi_sim_packet_new(sim, DOMI_SIM_REQUEST, message));
        return true;
    }
    if (!is_api(message->subject))
        return false; /* the leader has subscribed to keys, so nobody has */
    lose_request(sim, message, "there is no leader");
    return true;
}

void domi_sim_store_put(domi_sim *sim, uint32_t server, domi_sim_message *message)
{
    if (sim->store.leader != server)
        lose_request(sim, message, "the leader has ended");
    else if (domi_sim_chance(sim, sim->store.faults.request_loss_ppm))
        lose_request(sim, message, "by chance");
    else
        domi_sim_send(sim, &sim->store.leg, domi_sim_packet_new(sim, DOMI_SIM_REQUEST, message),
                      (domi_sim_loss){DOMUS_FATE_LOST_REQUEST, DOMUS_EVERY, "never"});
}

void domi_sim_store_arrive(domi_sim *sim)
{
    domi_sim_packet *packet = domi_sim_pop(&sim->store.leg);
    domi_sim_message *message = packet->message;
    domi_sim_bucket *bucket = bucket_of(sim, message->subject);

    if (bucket != NULL)
        domi_sim_change(sim, bucket, message);
    else if (is_api(message->subject))
        domi_sim_api(sim, message);
    else
        lose_request(sim, message, "its bucket is gone");
    domi_sim_packet_free(packet);
}

/* --- answers ---------------------------------------------------------------------------------- */

void domi_sim_serve(domi_sim *sim, domi_sim_message *message)
{
    message->number = ++sim->numbers;
    sim->counts.served++;
    if (message->is_answer && domi_sim_chance(sim, sim->store.faults.answer_loss_ppm))
        domi_sim_lose(sim, message,
                      (domi_sim_loss){DOMUS_FATE_LOST_ANSWER, DOMUS_EVERY, "an answer"});
    else
        domi_sim_arrived(sim, sim->store.leader, message, NULL);
    domi_sim_message_drop(message);
}

void domi_sim_reply(domi_sim *sim, const domi_sim_message *request, const domi_sim_parts *parts)
{
    domi_sim_parts whole = *parts;

    if (request->reply[0] == '\0')
        return;
    whole.subject = request->reply;
    whole.subject_size = (uint32_t)strlen(request->reply);
    domi_sim_message *message = domi_sim_message_new(&whole);
    if (message == NULL) {
        sim->failed = -ENOMEM;
        return;
    }
    message->is_answer = true;
    domi_sim_serve(sim, message);
}

void domi_sim_reply_text(domi_sim *sim, const domi_sim_message *request, const char *text)
{
    const domi_sim_parts parts = {.payload = text, .payload_size = (uint32_t)strlen(text)};

    domi_sim_reply(sim, request, &parts);
}

void domi_sim_reply_error(domi_sim *sim, const domi_sim_message *request, uint32_t status,
                          uint32_t number, const char *text)
{
    char json[256];

    (void)snprintf(json, sizeof json,
                   "{\"error\":{\"code\":%u,\"err_code\":%u,\"description\":\"%s\"}}", status,
                   number, text);
    domi_sim_note(sim, "the buckets refuse %" PRIu64 ": %s", request->number, text);
    domi_sim_reply_text(sim, request, json);
}

/* --- entries ---------------------------------------------------------------------------------- */

uint32_t domi_sim_hash(const char *text)
{
    uint32_t hash = 2166136261u; /* FNV-1a */

    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

domi_sim_entry *domi_sim_last_of(const domi_sim_bucket *bucket, const char *subject)
{
    uint32_t hash = domi_sim_hash(subject);

    for (domi_sim_entry *at = bucket->entries; at != NULL; at = at->next) {
        if (at->is_last && at->hash == hash && strcmp(at->message->subject, subject) == 0)
            return at;
    }
    return NULL;
}

domi_sim_bucket *domi_sim_find_bucket(const domi_sim *sim, const char *stream)
{
    domi_sim_bucket *at = sim->store.buckets;

    while (at != NULL && strcmp(at->stream, stream) != 0)
        at = at->next;
    return at;
}

static uint64_t size_of(const domi_sim_message *message)
{
    return strlen(message->subject) + domi_sim_message_size(message);
}

/* Remove the entry that a link names. */
static void remove_entry(domi_sim_bucket *bucket, domi_sim_entry **link, domi_sim_entry *before)
{
    domi_sim_entry *entry = *link;

    *link = entry->next;
    if (bucket->last_entry == entry)
        bucket->last_entry = before;
    bucket->count--;
    bucket->bytes -= size_of(entry->message);
    domi_sim_message_drop(entry->message);
    free(entry);
}

void domi_sim_sweep(domi_sim *sim, domi_sim_bucket *bucket)
{
    domi_sim_entry *before = NULL;

    for (domi_sim_entry **link = &bucket->entries; *link != NULL;) {
        if ((*link)->expire_ns > sim->now_ns) {
            before = *link;
            link = &before->next;
            continue;
        }
        sim->counts.expired++;
        domi_sim_note(sim, "the time of %.64s is over, revision %" PRIu64,
                      (*link)->message->subject, (*link)->sequence);
        remove_entry(bucket, link, before);
    }
}

/* Remove the oldest entries of a subject, so that `keep` are left. */
static void trim(domi_sim_bucket *bucket, const char *subject, uint64_t keep)
{
    uint32_t hash = domi_sim_hash(subject);
    domi_sim_entry *before = NULL;
    uint64_t count = 0;

    for (const domi_sim_entry *at = bucket->entries; at != NULL; at = at->next)
        count += at->hash == hash && strcmp(at->message->subject, subject) == 0;
    for (domi_sim_entry **link = &bucket->entries; count > keep && *link != NULL;) {
        if ((*link)->hash == hash && strcmp((*link)->message->subject, subject) == 0) {
            remove_entry(bucket, link, before);
            count--;
            continue;
        }
        before = *link;
        link = &before->next;
    }
}

static domi_sim_entry *add_entry(domi_sim *sim, domi_sim_bucket *bucket, domi_sim_message *message)
{
    domi_sim_entry *entry = calloc(1, sizeof *entry);

    if (entry == NULL) {
        sim->failed = -ENOMEM;
        return NULL;
    }
    entry->message = domi_sim_message_keep(message);
    entry->sequence = ++bucket->last;
    entry->written_ns = sim->now_ns;
    entry->expire_ns = DOMI_SIM_NEVER;
    entry->hash = domi_sim_hash(message->subject);
    entry->is_last = true;
    if (bucket->age_ns != 0) {
        uint64_t late_ns = sim->store.faults.late_max_ns;
        entry->expire_ns =
            sim->now_ns + bucket->age_ns + (late_ns != 0 ? domi_sim_draw(sim, late_ns + 1) : 0);
        /* Entries go in their order, so an older one never shows up again. */
        if (bucket->last_entry != NULL && bucket->last_entry->expire_ns > entry->expire_ns)
            entry->expire_ns = bucket->last_entry->expire_ns;
    }
    if (bucket->last_entry != NULL)
        bucket->last_entry->next = entry;
    else
        bucket->entries = entry;
    bucket->last_entry = entry;
    bucket->count++;
    bucket->bytes += size_of(message);
    return entry;
}

void domi_sim_bucket_free(domi_sim_bucket *bucket)
{
    while (bucket->entries != NULL)
        remove_entry(bucket, &bucket->entries, NULL);
    while (bucket->consumers != NULL) {
        domi_sim_consumer *consumer = bucket->consumers;
        bucket->consumers = consumer->next;
        domi_sim_consumer_free(consumer);
    }
    free(bucket->stream);
    free(bucket->prefix);
    free(bucket->config);
    free(bucket);
}

void domi_sim_store_free(domi_sim *sim)
{
    while (sim->store.buckets != NULL) {
        domi_sim_bucket *bucket = sim->store.buckets;
        sim->store.buckets = bucket->next;
        domi_sim_bucket_free(bucket);
    }
    for (domi_sim_packet *packet; (packet = domi_sim_pop(&sim->store.leg)) != NULL;)
        domi_sim_packet_free(packet);
}

/* --- changes ---------------------------------------------------------------------------------- */

/* Returns whether the condition of a change holds, and refuses it otherwise. */
static bool may_change(domi_sim *sim, const domi_sim_bucket *bucket,
                       const domi_sim_message *message)
{
    const char *value;
    const domi_sim_entry *last = domi_sim_last_of(bucket, message->subject);
    uint64_t sequence = last != NULL ? last->sequence : 0;
    char text[64];

    if (domi_sim_find_header(message->headers, message->headers_size,
                             "Nats-Expected-Last-Subject-Sequence", &value) > 0 &&
        strtoull(value, NULL, 10) != sequence) {
        (void)snprintf(text, sizeof text, "wrong last sequence: %" PRIu64, sequence);
        domi_sim_reply_error(sim, message, 400, WRONG_SEQUENCE, text);
        return false;
    }
    if (bucket->value_max != 0 && domi_sim_message_size(message) > bucket->value_max) {
        domi_sim_reply_error(sim, message, 400, TOO_LARGE, "message size exceeds maximum allowed");
        return false;
    }
    if (bucket->count >= DOMUS_TESTKIT_ENTRIES_MAX ||
        (bucket->bytes_max != 0 && bucket->bytes + size_of(message) > bucket->bytes_max)) {
        domi_sim_reply_error(sim, message, 503, STORE_FAILED, "maximum bytes exceeded");
        return false;
    }
    return true;
}

void domi_sim_change(domi_sim *sim, domi_sim_bucket *bucket, domi_sim_message *message)
{
    const char *value;
    char json[160];

    domi_sim_sweep(sim, bucket);
    if (!may_change(sim, bucket, message))
        return;
    domi_sim_entry *last = domi_sim_last_of(bucket, message->subject);
    if (last != NULL)
        last->is_last = false;
    domi_sim_entry *entry = add_entry(sim, bucket, message);
    if (entry == NULL)
        return;
    bool rolls_up =
        domi_sim_find_header(message->headers, message->headers_size, "Nats-Rollup", &value) > 0;
    trim(bucket, message->subject, rolls_up ? 1 : bucket->history);
    domi_sim_note(sim, "%.64s is changed, revision %" PRIu64, message->subject, entry->sequence);
    (void)snprintf(json, sizeof json, "{\"stream\":\"%s\",\"seq\":%" PRIu64 "}", bucket->stream,
                   entry->sequence);
    domi_sim_reply_text(sim, message, json);
    for (domi_sim_consumer *at = bucket->consumers; at != NULL; at = at->next)
        domi_sim_consume(sim, bucket, at);
}
