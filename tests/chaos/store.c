/* The client and the bucket of a node of the bank, which all its accounts use; and the file in
 * which changes are logged. */
#include "tests/chaos/store.h"

#include "tests/chaos/tally.h"

#include <domus/nats_kv.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define STORE_NS (500 * CHAOS_MS) /* time-out of a read or a write of an entry */

static domus_address bucket;
static int audit = -1;

int chaos_store_open_bucket(domus_stack *stack)
{
    const domus_nats_options options = {.servers = chaos_options.servers,
                                        .name = "bank",
                                        .ignores_others = true,
                                        .request_timeout_ns = STORE_NS,
                                        .connect_timeout_ns = 1000 * CHAOS_MS,
                                        .backoff_max_ns = 200 * CHAOS_MS,
                                        .ping_interval_ns = 500 * CHAOS_MS};
    const domus_nats_kv_config config = {.replicas = 3};
    domus_nats_kv_options kv = {.bucket = CHAOS_BUCKET, .create = &config};
    int error = domus_nats_open(stack, &options, &kv.client);

    return error != 0 ? error : domus_nats_kv_open(stack, &kv, &bucket);
}

int chaos_store_read_entry(domus_stack *stack, uint32_t account, domus_resumed *then)
{
    char key[CHAOS_KEY_SIZE];

    chaos_account_make_key(account, key);
    return domus_nats_kv_read(stack, bucket, key, STORE_NS, then);
}

int chaos_store_write_entry(domus_stack *stack, uint32_t account, const struct chaos_entry *entry,
                            uint64_t revision, domus_resumed *then)
{
    char key[CHAOS_KEY_SIZE], text[CHAOS_ENTRY_BYTES];
    size_t size = chaos_entry_write_text(entry, chaos_options.accounts, text);

    chaos_account_make_key(account, key);
    return domus_nats_kv_update(stack, bucket, key, text, size, revision, STORE_NS, then);
}

int chaos_audit_open_file(void)
{
    char path[256];

    snprintf(path, sizeof path, "%s/audit.%u", chaos_options.folder, chaos_options.node);
    audit = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    return audit < 0 ? -errno : 0;
}

void chaos_audit_log_change(uint32_t account, const struct chaos_entry *entry, uint64_t revision)
{
    char line[160];
    int size =
        snprintf(line, sizeof line, "%u %" PRIu64 " %" PRIu64 " %" PRIu64 " %u %" PRIu64 "\n",
                 account, revision, entry->fence, entry->version, entry->node, entry->life);

    if (write(audit, line, (size_t)size) != size)
        fprintf(stderr, "the file of changes is full\n");
    chaos_count_one_more(&chaos_tally->events[CHAOS_WRITES]);
}
