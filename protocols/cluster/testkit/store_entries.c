/* Entries of a bucket: a list in the order of their sequence numbers. */
#include "protocols/cluster/testkit/store_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

uint32_t domi_sim_hash_text(const char *text)
{
    uint32_t hash = 2166136261u; /* the hash of an entry's subject is FNV-1a */

    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

domi_sim_entry *domi_sim_last_entry_of_subject(const domi_sim_bucket *bucket, const char *subject)
{
    uint32_t hash = domi_sim_hash_text(subject);

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

uint64_t domi_sim_size_of_entry(const domi_sim_message *message)
{
    return strlen(message->subject) + domi_sim_message_size(message);
}

/* Remove the entry to which a link of the bucket's list leads. */
static void remove_entry_of_bucket(domi_sim_bucket *bucket, domi_sim_entry **link,
                                   domi_sim_entry *before)
{
    domi_sim_entry *entry = *link;

    *link = entry->next;
    if (bucket->last_entry == entry)
        bucket->last_entry = before;
    bucket->count--;
    bucket->bytes -= domi_sim_size_of_entry(entry->message);
    domi_sim_message_drop(entry->message);
    free(entry);
}

void domi_sim_remove_expired_entries(domi_sim *sim, domi_sim_bucket *bucket)
{
    domi_sim_entry *before = NULL;

    for (domi_sim_entry **link = &bucket->entries; *link != NULL;) {
        if ((*link)->expire_ns > sim->now_ns) {
            before = *link;
            link = &before->next;
            continue;
        }
        sim->counts.expired++;
        domi_sim_add_line_to_trace(sim, "the time of %.64s is over, revision %" PRIu64,
                                   (*link)->message->subject, (*link)->sequence);
        remove_entry_of_bucket(bucket, link, before);
    }
}

void domi_sim_trim_entries_of_subject(domi_sim_bucket *bucket, const char *subject, uint64_t keep)
{
    uint32_t hash = domi_sim_hash_text(subject);
    domi_sim_entry *before = NULL;
    uint64_t count = 0;

    for (const domi_sim_entry *at = bucket->entries; at != NULL; at = at->next)
        count += at->hash == hash && strcmp(at->message->subject, subject) == 0;
    for (domi_sim_entry **link = &bucket->entries; count > keep && *link != NULL;) {
        if ((*link)->hash == hash && strcmp((*link)->message->subject, subject) == 0) {
            remove_entry_of_bucket(bucket, link, before);
            count--;
            continue;
        }
        before = *link;
        link = &before->next;
    }
}

domi_sim_entry *domi_sim_append_entry_to_bucket(domi_sim *sim, domi_sim_bucket *bucket,
                                                domi_sim_message *message)
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
    entry->hash = domi_sim_hash_text(message->subject);
    entry->is_last = true;
    if (bucket->age_ns != 0) {
        uint64_t late_ns = sim->store.faults.late_max_ns;
        entry->expire_ns = sim->now_ns + bucket->age_ns +
                           (late_ns != 0 ? domi_sim_draw_number_below(sim, late_ns + 1) : 0);
        /* Entries are removed in order, so a new entry must not expire before the last one. */
        if (bucket->last_entry != NULL && bucket->last_entry->expire_ns > entry->expire_ns)
            entry->expire_ns = bucket->last_entry->expire_ns;
    }
    if (bucket->last_entry != NULL)
        bucket->last_entry->next = entry;
    else
        bucket->entries = entry;
    bucket->last_entry = entry;
    bucket->count++;
    bucket->bytes += domi_sim_size_of_entry(message);
    return entry;
}

void domi_sim_consumer_free(domi_sim_consumer *consumer)
{
    free(consumer->deliver);
    free(consumer->filter);
    free(consumer);
}

void domi_sim_bucket_free(domi_sim_bucket *bucket)
{
    while (bucket->entries != NULL)
        remove_entry_of_bucket(bucket, &bucket->entries, NULL);
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
