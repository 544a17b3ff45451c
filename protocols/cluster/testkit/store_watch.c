/* Consumers of buckets that push, as watches use them: each sends the entries of its filter to a
 * subject, in order and numbered, and a heartbeat when it has sent nothing for a time. While nobody
 * has subscribed to the subject it waits, and after some time it ends. */
#include "protocols/cluster/testkit/store_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Returns whether a consumer has to send an entry of the bucket that it has not considered yet. */
static bool must_consumer_send_entry(const domi_sim_consumer *consumer, const domi_sim_entry *entry)
{
    return entry->sequence >= consumer->next_sequence &&
           (entry->is_last || entry->sequence > consumer->snapshot) &&
           domus_testkit_cluster_matches(consumer->filter, entry->message->subject);
}

uint64_t domi_sim_count_pending_entries(const domi_sim_bucket *bucket,
                                        const domi_sim_consumer *consumer)
{
    uint64_t count = 0;

    for (const domi_sim_entry *at = bucket->entries; at != NULL; at = at->next)
        count += must_consumer_send_entry(consumer, at);
    return count;
}

static void push_entry_to_subscriber(domi_sim *sim, const domi_sim_bucket *bucket,
                                     domi_sim_consumer *consumer, const domi_sim_entry *entry)
{
    const domi_sim_message *stored = entry->message;
    char reply[256];

    consumer->next_sequence = entry->sequence + 1;
    consumer->sent++;
    consumer->last_sent = entry->sequence;
    int size = snprintf(
        reply, sizeof reply, "$JS.ACK.%s.%s.1.%" PRIu64 ".%" PRIu64 ".%" PRIu64 ".%" PRIu64,
        bucket->stream, consumer->name, entry->sequence, consumer->sent,
        DOMI_SIM_EPOCH_NS + entry->written_ns, domi_sim_count_pending_entries(bucket, consumer));
    const domi_sim_parts parts = {.subject = stored->subject,
                                  .subject_size = (uint32_t)strlen(stored->subject),
                                  .reply = reply,
                                  .reply_size = (uint32_t)size,
                                  .match = consumer->deliver,
                                  .headers = stored->headers,
                                  .headers_size = stored->headers_size,
                                  .payload = stored->payload,
                                  .payload_size =
                                      consumer->headers_only ? 0 : stored->payload_size};
    domi_sim_message *message = domi_sim_message_new(&parts);
    if (message == NULL)
        sim->failed = -ENOMEM;
    else
        domi_sim_send_or_lose_message_of_leader(sim, message);
}

/* Returns whether anybody has subscribed to a consumer's subject. */
static bool has_consumer_a_subscriber(const domi_sim *sim, domi_sim_consumer *consumer)
{
    if (sim->store.leader == DOMUS_EVERY)
        return false;
    if (consumer->known_changes != sim->known_changes + 1 ||
        consumer->leader != sim->store.leader) {
        consumer->is_heard =
            domi_sim_has_server_subscription(sim, sim->store.leader, consumer->deliver);
        consumer->known_changes = sim->known_changes + 1;
        consumer->leader = sim->store.leader;
    }
    return consumer->is_heard;
}

void domi_sim_send_entries_of_consumer(domi_sim *sim, domi_sim_bucket *bucket,
                                       domi_sim_consumer *consumer)
{
    if (!has_consumer_a_subscriber(sim, consumer))
        return;
    consumer->heard_ns = sim->now_ns;
    if (consumer->next_sequence > bucket->last)
        return;
    for (const domi_sim_entry *at = bucket->entries; at != NULL; at = at->next) {
        if (!must_consumer_send_entry(consumer, at))
            continue;
        push_entry_to_subscriber(sim, bucket, consumer, at);
        consumer->beat_ns = sim->now_ns + consumer->heartbeat_ns;
    }
    consumer->next_sequence = bucket->last + 1;
}

static void send_heartbeat_of_consumer(domi_sim *sim, domi_sim_consumer *consumer)
{
    char headers[160];
    int size = snprintf(headers, sizeof headers,
                        "NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: %" PRIu64
                        "\r\nNats-Last-Stream: %" PRIu64 "\r\n\r\n",
                        consumer->sent, consumer->last_sent);
    const domi_sim_parts parts = {.subject = consumer->deliver,
                                  .subject_size = (uint32_t)strlen(consumer->deliver),
                                  .headers = headers,
                                  .headers_size = (uint32_t)size,
                                  .status = 100};
    domi_sim_message *message = domi_sim_message_new(&parts);

    if (message == NULL)
        sim->failed = -ENOMEM;
    else
        domi_sim_send_or_lose_message_of_leader(sim, message);
}

/* Do everything that is due for a consumer. Returns false if the consumer ends. */
static bool send_due_entries_and_heartbeat(domi_sim *sim, domi_sim_bucket *bucket,
                                           domi_sim_consumer *consumer)
{
    domi_sim_send_entries_of_consumer(sim, bucket, consumer);
    if (!has_consumer_a_subscriber(sim, consumer))
        return consumer->inactive_ns == 0 ||
               sim->now_ns - consumer->heard_ns < consumer->inactive_ns;
    if (consumer->heartbeat_ns != 0 && consumer->beat_ns <= sim->now_ns) {
        send_heartbeat_of_consumer(sim, consumer);
        consumer->beat_ns = sim->now_ns + consumer->heartbeat_ns;
    }
    return true;
}

/* Returns the time at which a consumer next has something to do. */
static uint64_t find_due_time_of_consumer(const domi_sim *sim, domi_sim_consumer *consumer)
{
    if (has_consumer_a_subscriber(sim, consumer))
        return consumer->heartbeat_ns != 0 ? consumer->beat_ns : DOMI_SIM_NEVER;
    return consumer->inactive_ns != 0 ? consumer->heard_ns + consumer->inactive_ns : DOMI_SIM_NEVER;
}

void domi_sim_store_send_due_of_consumers(domi_sim *sim)
{
    for (domi_sim_bucket *bucket = sim->store.buckets; bucket != NULL; bucket = bucket->next) {
        for (domi_sim_consumer **link = &bucket->consumers; *link != NULL;) {
            domi_sim_consumer *at = *link;
            if (send_due_entries_and_heartbeat(sim, bucket, at)) {
                link = &at->next;
                continue;
            }
            *link = at->next;
            bucket->consumer_count--;
            domi_sim_consumer_free(at);
        }
    }
}

uint64_t domi_sim_store_next_due_time(const domi_sim *sim)
{
    const domi_sim_store *store = &sim->store;
    uint64_t due_ns =
        store->leader != DOMUS_EVERY ? domi_sim_due_time_of_leg(&store->leg) : store->ready_ns;

    for (const domi_sim_bucket *bucket = store->buckets; bucket != NULL; bucket = bucket->next) {
        for (domi_sim_consumer *at = bucket->consumers; at != NULL; at = at->next) {
            uint64_t at_ns = find_due_time_of_consumer(sim, at);
            due_ns = at_ns < due_ns ? at_ns : due_ns;
        }
    }
    return due_ns;
}

void domi_sim_end_all_consumers(domi_sim *sim)
{
    for (domi_sim_bucket *bucket = sim->store.buckets; bucket != NULL; bucket = bucket->next) {
        while (bucket->consumers != NULL) {
            domi_sim_consumer *consumer = bucket->consumers;
            bucket->consumers = consumer->next;
            domi_sim_consumer_free(consumer);
        }
        bucket->consumer_count = 0;
    }
}
