/* A tally: the answer to each line is how often this line has come, from all clients together.
 *
 *   ./dev run lines --config examples/lines.yaml      and then: telnet 127.0.0.1 7003
 *
 * A channel turns bytes into lines and answers into lines, in their order (domus/pipeline.h). The
 * counts live in state actors over all threads, the shards, which have one address together. */
#include <domus/domus.h>
#include <domus/main.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SHARDS  8
#define ENTRIES 8192 /* most different lines that a shard can count */

static domus_address shards; /* address of all shards, constant once the program has started */

static uint64_t hash_of(const domus_type *type, const void *payload)
{
    domus_slice line = ((const domus_packet *)payload)->bytes;
    uint64_t hash = 14695981039346656037u;

    (void)type;
    for (uint32_t i = 0; i < line.size; i++)
        hash = (hash ^ (unsigned char)domus_slice_data(line)[i]) * 1099511628211u;
    return hash ^ hash >> 29;
}

/* The state of a shard: a table of lines and their counts, with linear probing. */
struct shard {
    struct entry {
        uint64_t count;
        uint32_t size;
        char line[52];
    } entries[ENTRIES];
};

static int count_line(domus_stack *stack, void *self, const void *payload)
{
    domus_slice line = ((const domus_packet *)payload)->bytes;
    uint64_t at = hash_of(&domus_packet_type, payload);
    struct entry *entry = NULL;
    domus_packet answer;
    char text[24];

    if (line.size > sizeof entry->line)
        return -EMSGSIZE; /* the table is full: the peer gets the line "error: EMSGSIZE" */
    for (uint32_t i = 0; i < ENTRIES; i++, at++) {
        entry = &((struct shard *)self)->entries[at % ENTRIES];
        if (entry->count == 0 || domus_slice_equals(line, entry->line, entry->size))
            break;
        entry = NULL;
    }
    if (entry == NULL)
        return -ENOSPC;
    memcpy(entry->line, domus_slice_data(line), line.size);
    entry->size = line.size;
    int size = snprintf(text, sizeof text, "%llu", (unsigned long long)++entry->count);
    int error = domus_slice_copy(text, (size_t)size, &answer.bytes);
    return error != 0 ? error : domus_reply(stack, &domus_packet_type, &answer);
}

static const domus_behaviour shard = {
    .name = "shard",
    .state_size = sizeof(struct shard),
    .on = (const domus_on[]){{&domus_packet_type, count_line, 0}, {NULL, NULL, 0}}};

static int forward_line_to_shard(domus_stack *stack, void *self, const void *payload)
{
    (void)self, (void)payload;
    /* the router chooses the shard of this line by hash_of() */
    return domus_forward(stack, shards);
}

static const domus_pipeline by_lines = {
    .stages = (const domus_pipeline_stage[]){{&domus_line_stage, NULL}, {NULL, NULL}}};
static const domus_behaviour lines = {
    .name = "lines",
    .kind = DOMUS_CHANNELS,
    .pipeline = &by_lines,
    .on_peer = (const domus_on_peer[]){
        {.type = &domus_packet_type, .handle = forward_line_to_shard}, {.type = NULL}}};

static int start_service(domus_system *system, void *argument)
{
    static const domus_routing by_line = {DOMUS_ROUTE_HASH, hash_of};
    int error = domus_outside_spawn_many(system, &shard, NULL, SHARDS, &by_line, NULL, &shards);

    return error != 0 ? error : domus_main_serve(system, argument, &lines, NULL);
}

int main(int argc, char **argv)
{
    static const domus_program program = {
        .name = "lines", .start = start_service, .argument = "lines"};
    return domus_main(argc, argv, &program);
}
