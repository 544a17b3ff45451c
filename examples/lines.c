/* A tally: the answer to each line is how often this line has come, from all clients together.
 *
 *   ./dev run lines --config examples/lines.yaml      and then: nc 127.0.0.1 7003
 *
 * A channel turns bytes into lines and answers into lines, in their order (domus/pipeline.h). The
 * counts live in state actors, the shards, over all threads: a channel forwards each line to the
 * shard that its bytes lead to, and forgets it. When `lines.max` lines are known to a shard, a new
 * one gets an error. */
#include <domus/domus.h>
#include <domus/main.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static struct settings {
    uint32_t shards, max;
} settings; /* constant once the program has started */
static domus_address shards[256];

static uint64_t hash_of(domus_slice line)
{
    const char *bytes = domus_slice_data(line);
    uint64_t hash = 14695981039346656037u;

    for (uint32_t i = 0; i < line.size; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 1099511628211u;
    return hash ^ hash >> 32;
}

/* --- a shard: a table of lines, with linear probing ---------------------------------------------
 */

struct shard {
    struct entry {
        domus_slice line;
        uint64_t count;
    } * entries; /* 2 * settings.max of them */
    uint32_t used;
};

static int shard_begin(domus_stack *stack, void *self)
{
    (void)stack;
    ((struct shard *)self)->entries = calloc(2 * (size_t)settings.max, sizeof(struct entry));
    return ((struct shard *)self)->entries != NULL ? 0 : -ENOMEM;
}

static void shard_end(domus_stack *stack, void *self)
{
    struct shard *shard = self;

    (void)stack;
    for (uint32_t i = 0; i < 2 * settings.max; i++)
        domus_slice_free(shard->entries[i].line);
    free(shard->entries);
}

static int count_line(domus_stack *stack, void *self, const void *payload)
{
    domus_slice line = ((const domus_packet *)payload)->bytes;
    struct shard *shard = self;
    struct entry *entry;
    char text[24];
    domus_packet answer;

    for (uint64_t at = hash_of(line);; at++) {
        entry = &shard->entries[at % (2 * settings.max)];
        if (entry->count == 0 || domus_slice_equals(entry->line, domus_slice_data(line), line.size))
            break;
    }
    if (entry->count == 0 && shard->used == settings.max)
        return -ENOSPC; /* the peer gets "error: ENOSPC" */
    if (entry->count == 0) {
        int error = domus_slice_keep(line, &entry->line);
        if (error != 0)
            return error;
        shard->used++;
    }
    entry->count++;
    int size = snprintf(text, sizeof text, "%lu", entry->count);
    int error = domus_slice_copy(text, (size_t)size, &answer.bytes);
    return error != 0 ? error : domus_reply(stack, &domus_packet_type, &answer);
}

static const domus_behaviour shard = {
    .name = "shard",
    .state_size = sizeof(struct shard),
    .on_mount = shard_begin,
    .on_stop = shard_end,
    .on = (const domus_on[]){{&domus_packet_type, count_line, 0}, {NULL, NULL, 0}}};

/* --- channels -----------------------------------------------------------------------------------
 */

static int take_line(domus_stack *stack, void *self, const void *payload)
{
    (void)self;
    domus_slice line = ((const domus_packet *)payload)->bytes;
    return domus_forward(stack, shards[(hash_of(line) >> 40) % settings.shards]);
}

static const domus_pipeline by_lines = {
    .stages = (const domus_pipeline_stage[]){{&domus_line_stage, NULL}, {NULL, NULL}}};
static const domus_behaviour lines = {
    .name = "lines",
    .kind = DOMUS_CHANNELS,
    .pipeline = &by_lines,
    .on_peer = (const domus_on_peer[]){{.type = &domus_packet_type, .handle = take_line}, {0}}};

static int start(domus_system *system, void *argument)
{
    for (uint32_t i = 0; i < settings.shards; i++) {
        int error = domus_outside_spawn(system, &shard, NULL, &shards[i]);
        if (error != 0)
            return error;
    }
    return domus_main_serve(system, argument, &lines, NULL);
}

static const domus_config_key keys[] = {
    {DOMUS_KEY("shards", COUNT, struct settings, shards, 1, 256, 4)},
    {DOMUS_KEY("max", COUNT, struct settings, max, 1, 16777216, 65536)},
    {0}};
static const domus_section section = {"lines", keys, sizeof settings, NULL};
static const domus_program program = {"lines", start, "lines", .section = &section,
                                      .settings = &settings};

int main(int argc, char **argv)
{
    return domus_main(argc, argv, &program);
}
