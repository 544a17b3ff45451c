/* Changes the keys of buckets: a change is made only if the condition in its headers holds. */
#include "protocols/cluster/testkit/store_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WRONG_SEQUENCE 10071u /* error numbers of nats-server, as in its errors.json */
#define TOO_LARGE      10054u
#define STORE_FAILED   10077u

/* Returns whether a key may be changed: the condition in the headers holds, and value and bucket
 * stay within their bounds. Otherwise the change is refused. */
static bool may_change_key_of_bucket(domi_sim *sim, const domi_sim_bucket *bucket,
                                     const domi_sim_message *message)
{
    const char *value;
    const domi_sim_entry *last = domi_sim_last_entry_of_subject(bucket, message->subject);
    uint64_t sequence = last != NULL ? last->sequence : 0;
    char text[64];

    if (domi_sim_find_header(message->headers, message->headers_size,
                             "Nats-Expected-Last-Subject-Sequence", &value) > 0 &&
        strtoull(value, NULL, 10) != sequence) {
        (void)snprintf(text, sizeof text, "wrong last sequence: %" PRIu64, sequence);
        domi_sim_reply_to_request_with_error(sim, message, 400, WRONG_SEQUENCE, text);
        return false;
    }
    if (bucket->value_max != 0 && domi_sim_message_size(message) > bucket->value_max) {
        domi_sim_reply_to_request_with_error(sim, message, 400, TOO_LARGE,
                                             "message size exceeds maximum allowed");
        return false;
    }
    if (bucket->count >= DOMUS_TESTKIT_ENTRIES_MAX ||
        (bucket->bytes_max != 0 &&
         bucket->bytes + domi_sim_size_of_entry(message) > bucket->bytes_max)) {
        domi_sim_reply_to_request_with_error(sim, message, 503, STORE_FAILED,
                                             "maximum bytes exceeded");
        return false;
    }
    return true;
}

void domi_sim_store_put_or_removal_of_key(domi_sim *sim, domi_sim_bucket *bucket,
                                          domi_sim_message *message)
{
    const char *value;
    char json[160];

    domi_sim_remove_expired_entries(sim, bucket);
    if (!may_change_key_of_bucket(sim, bucket, message))
        return;
    domi_sim_entry *last = domi_sim_last_entry_of_subject(bucket, message->subject);
    if (last != NULL)
        last->is_last = false;
    domi_sim_entry *entry = domi_sim_append_entry_to_bucket(sim, bucket, message);
    if (entry == NULL)
        return;
    bool rolls_up =
        domi_sim_find_header(message->headers, message->headers_size, "Nats-Rollup", &value) > 0;
    domi_sim_trim_entries_of_subject(bucket, message->subject, rolls_up ? 1 : bucket->history);
    domi_sim_add_line_to_trace(sim, "%.64s is changed, revision %" PRIu64, message->subject,
                               entry->sequence);
    (void)snprintf(json, sizeof json, "{\"stream\":\"%s\",\"seq\":%" PRIu64 "}", bucket->stream,
                   entry->sequence);
    domi_sim_reply_to_request_with_text(sim, message, json);
    for (domi_sim_consumer *at = bucket->consumers; at != NULL; at = at->next)
        domi_sim_send_entries_of_consumer(sim, bucket, at);
}
