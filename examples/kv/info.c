/* The command INFO: it writes sections of lines, in the form that monitors of Redis read. */
#include "desk.h"
#include "nodes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int64_t begun_ms;

void kv_record_when_program_began(void)
{
    begun_ms = kv_wall_clock_ms();
}

int64_t kv_time_when_program_began_s(void)
{
    return begun_ms / 1000;
}

typedef void section(domus_appender *text, const struct kv_figures *sum);

static void add_server_section(domus_appender *text, const struct kv_figures *sum)
{
    int64_t now_ms = kv_wall_clock_ms();
    int64_t up_s = (now_ms - begun_ms) / 1000;

    (void)sum;
    (void)domus_append_text(text,
                            "redis_version:" KV_VERSION "\r\nredis_mode:standalone\r\n"
                            "server_name:kv\r\narch_bits:64\r\nprocess_id:%d\r\n"
                            "server_time_usec:%" PRId64 "000\r\nuptime_in_seconds:%" PRId64
                            "\r\nuptime_in_days:%" PRId64 "\r\n",
                            (int)getpid(), now_ms, up_s, up_s / 86400);
}

static void add_clients_section(domus_appender *text, const struct kv_figures *sum)
{
    (void)domus_append_text(text,
                            "connected_clients:%" PRIu64 "\r\ncluster_connections:0\r\n"
                            "maxclients:%s\r\nblocked_clients:%" PRIu64 "\r\n"
                            "tracking_clients:0\r\n",
                            sum->clients, kv_text_of_most_clients(), sum->waiting);
}

static uint64_t resident_bytes_of_process(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    if (file != NULL) {
        if (fscanf(file, "%*u %lu", &pages) != 1)
            pages = 0;
        fclose(file);
    }
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void add_memory_section(domus_appender *text, const struct kv_figures *sum)
{
    char used[32], most[32];

    kv_print_bytes_with_unit(used, sum->used_bytes);
    kv_print_bytes_with_unit(most, kv_memory_max());
    (void)domus_append_text(text,
                            "used_memory:%" PRIu64 "\r\nused_memory_human:%s\r\n"
                            "used_memory_rss:%" PRIu64 "\r\nmaxmemory:%" PRIu64
                            "\r\nmaxmemory_human:%s\r\nmaxmemory_policy:noeviction\r\n"
                            "mem_allocator:libc\r\n",
                            sum->used_bytes, used, resident_bytes_of_process(), kv_memory_max(),
                            most);
}

static void add_persistence_section(domus_appender *text, const struct kv_figures *sum)
{
    (void)sum;
    (void)domus_append_text(text, "loading:0\r\nrdb_bgsave_in_progress:0\r\naof_enabled:0\r\n");
}

static void add_stats_section(domus_appender *text, const struct kv_figures *sum)
{
    (void)domus_append_text(text,
                            "total_connections_received:%" PRIu64
                            "\r\ntotal_commands_processed:%" PRIu64 "\r\nexpired_keys:%" PRIu64
                            "\r\nevicted_keys:0\r\nkeyspace_hits:%" PRIu64
                            "\r\nkeyspace_misses:%" PRIu64 "\r\n",
                            sum->accepted, sum->commands, sum->expired, sum->hits, sum->misses);
}

static void add_replication_section(domus_appender *text, const struct kv_figures *sum)
{
    (void)sum;
    (void)domus_append_text(text, "role:master\r\nconnected_slaves:0\r\n");
}

static void add_cpu_section(domus_appender *text, const struct kv_figures *sum)
{
    struct rusage usage;

    (void)sum;
    (void)getrusage(RUSAGE_SELF, &usage);
    (void)domus_append_text(text, "used_cpu_sys:%ld.%06ld\r\nused_cpu_user:%ld.%06ld\r\n",
                            (long)usage.ru_stime.tv_sec, (long)usage.ru_stime.tv_usec,
                            (long)usage.ru_utime.tv_sec, (long)usage.ru_utime.tv_usec);
}

static void add_cluster_section(domus_appender *text, const struct kv_figures *sum)
{
    (void)sum;
    kv_write_cluster_section(text);
}

static void add_keyspace_section(domus_appender *text, const struct kv_figures *sum)
{
    if (kv_cluster != NULL)
        (void)domus_append_text(text, "kv_shards_silent:%" PRIu64 "\r\n", sum->silent);
    if (sum->keys != 0)
        (void)domus_append_text(text, "db0:keys=%" PRIu64 ",expires=%" PRIu64 ",avg_ttl=0\r\n",
                                sum->keys, sum->expiring);
}

static const struct {
    const char *title;
    const char *name; /* name of the section of INFO, in capitals */
    section *add;
    /* whether the section needs figures of shards and desks, which must be asked for */
    bool has_figures;
} sections[] = {
    {"Server", "SERVER", add_server_section, false},
    {"Clients", "CLIENTS", add_clients_section, true},
    {"Memory", "MEMORY", add_memory_section, true},
    {"Persistence", "PERSISTENCE", add_persistence_section, false},
    {"Stats", "STATS", add_stats_section, true},
    {"Replication", "REPLICATION", add_replication_section, false},
    {"CPU", "CPU", add_cpu_section, false},
    {"Cluster", "CLUSTER", add_cluster_section, false},
    {"Keyspace", "KEYSPACE", add_keyspace_section, true},
};

static bool is_section_of_info_asked_for(const domus_resp_command *command, const char *name)
{
    for (uint32_t i = 1; i < command->count; i++) {
        domus_slice word = domus_resp_argument(command, i);
        if (domus_resp_is(word, name) || domus_resp_is(word, "ALL") ||
            domus_resp_is(word, "DEFAULT") || domus_resp_is(word, "EVERYTHING"))
            return true;
    }
    return command->count == 1;
}

static int answer_with_info_and_added_figures(domus_stack *stack, void *self,
                                              const domus_answer *answers)
{
    const struct kv_scatter *frame = domus_frame(stack);
    domus_resp_builder builder = {.version = frame->command->version};
    domus_appender text = {0};
    struct kv_figures sum;
    domus_slice slice;
    int error = kv_add_up_answered_figures(answers, &sum);

    (void)self;
    if (error != 0)
        return error;
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        if (!is_section_of_info_asked_for(frame->command, sections[i].name))
            continue;
        (void)domus_append_text(&text, "%s# %s\r\n", text.size != 0 ? "\r\n" : "",
                                sections[i].title);
        sections[i].add(&text, &sum);
    }
    error = domus_append_end(&text, &slice);
    if (error != 0)
        return error;
    (void)domus_resp_add_verbatim(&builder, "txt", domus_slice_data(slice), slice.size);
    domus_slice_free(slice);
    return kv_answer_what_builder_has_made(stack, &builder);
}

int kv_serve_info(domus_stack *stack, void *self, const void *payload)
{
    struct kv_scatter *frame = domus_frame(stack);
    struct kv_question question = {.kind = KV_ASK_FIGURES};

    frame->command = payload;
    bool has_figures = false;
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
        has_figures = has_figures || (sections[i].has_figures &&
                                      is_section_of_info_asked_for(payload, sections[i].name));
    /* Answer at once if no shard has to be asked: a node is asked by INFO whether it is up, before
     * its shards live anywhere. */
    if (!has_figures)
        return answer_with_info_and_added_figures(stack, self, NULL);
    return kv_ask_shards_and_clerks_and_wait(stack, &question, answer_with_info_and_added_figures);
}
