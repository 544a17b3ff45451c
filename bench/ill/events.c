/* A collector of events. Producers send lines of up to 900 bytes, and get "ok" when an event was
 * taken. Writers gather events and commit them in groups, twice a second, as disks like it. */
#include <domus/main.h>
#include <domus/observe.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GROUP_MAX 16384

struct settings {
    uint64_t commit_ns;
};

static struct settings settings;

struct event {
    uint32_t size;
    char text[900];
};

struct writer {
    domus_message *group[GROUP_MAX]; /* events of this writer that wait for the next commit */
    uint32_t count;
    uint64_t committed, bytes;
};

struct front {
    domus_address writer;
};

static const domus_type event_type = {.name = "event", .size = sizeof(struct event)};
static const domus_type commit_type = {.name = "commit", .size = 0};

/* --- the writers ------------------------------------------------------------------------------ */

static int arm_commit_timer_at_mount(domus_stack *stack, void *self)
{
    (void)self;
    return domus_every(stack, settings.commit_ns, &commit_type, NULL, NULL);
}

static int keep_event_in_group(domus_stack *stack, void *self, const void *payload)
{
    struct writer *writer = self;

    (void)payload;
    if (writer->count == GROUP_MAX) {
        fprintf(stderr, "events: the group is full\n");
        return 0;
    }
    if (domus_message_take(stack, &writer->group[writer->count]) == 0)
        writer->count++;
    return 0;
}

static int commit_group_of_events(domus_stack *stack, void *self, const void *payload)
{
    struct writer *writer = self;

    (void)payload;
    /* this loop stands for one large write to the disk */
    for (uint32_t i = 0; i < writer->count; i++) {
        writer->bytes += ((const struct event *)domus_message_payload(writer->group[i]))->size;
        domus_message_free(stack, writer->group[i]);
    }
    writer->committed += writer->count;
    writer->count = 0;
    return 0;
}

static void commit_rest_of_group_at_stop(domus_stack *stack, void *self)
{
    commit_group_of_events(stack, self, NULL);
}

static const domus_behaviour writer_behaviour = {
    .name = "writer",
    .kind = DOMUS_STATE,
    .state_size = sizeof(struct writer),
    .on_mount = arm_commit_timer_at_mount,
    .on_stop = commit_rest_of_group_at_stop,
    .on = (const domus_on[]){{.type = &event_type, .handle = keep_event_in_group},
                             {.type = &commit_type, .handle = commit_group_of_events},
                             {0}}};

static int spawn_four_writers_at_mount(domus_stack *stack, void *self)
{
    (void)self;
    return domus_spawn_many(stack, &writer_behaviour, NULL, 4, NULL,
                            &(domus_spawn_options){.name = "writers"}, &(domus_address){0});
}

static const domus_behaviour store_behaviour = {
    .name = "store", .kind = DOMUS_STATE, .on_mount = spawn_four_writers_at_mount};

/* --- producers -------------------------------------------------------------------------------- */

static int serve_request(domus_stack *stack, void *self, const void *payload)
{
    const domus_packet *line = payload;
    struct front *front = self;
    domus_packet reply = {0};
    struct event event = {.size = line->bytes.size};
    int result;

    if (event.size > sizeof(event.text))
        return -EMSGSIZE;
    if (front->writer.house == NULL && domus_name_find(stack, "writers", &front->writer) < 0)
        return -EAGAIN;
    memcpy(event.text, domus_slice_data(line->bytes), event.size);
    result = domus_notice(stack, front->writer, &event_type, &event);
    if (result == 0)
        result = domus_slice_copy("ok", 2, &reply.bytes);
    return result < 0 ? result : domus_reply(stack, &domus_packet_type, &reply);
}

static const domus_pipeline lines = {
    .stages = (const domus_pipeline_stage[]){{&domus_line_stage, NULL}, {0}}};
static const domus_behaviour client_behaviour = {
    .name = "producer",
    .kind = DOMUS_CHANNELS,
    .shares_state = true,
    .pipeline = &lines,
    .on_peer = (const domus_on_peer[]){{.type = &domus_packet_type, .handle = serve_request}, {0}}};
static const domus_behaviour front_behaviour = {.name = "front",
                                                .kind = DOMUS_CHANNELS,
                                                .state_size = sizeof(struct front),
                                                .channel = &client_behaviour};

static int start_service(domus_system *system, void *argument)
{
    domus_address store;
    int result = domus_outside_spawn(system, &store_behaviour, NULL, &store);

    (void)argument;
    return result < 0 ? result : domus_main_serve(system, "events", &front_behaviour, NULL);
}

int main(int argc, char **argv)
{
    static const domus_config_key keys[] = {
        {DOMUS_KEY("commit", DURATION, struct settings, commit_ns, 1000000, 10000000000,
                   500000000)},
        {.path = NULL},
    };
    static const domus_section section = {.name = "events", .keys = keys, .size = sizeof(settings)};

    return domus_main(argc, argv,
                      &(domus_program){.name = "events",
                                       .start = start_service,
                                       .section = &section,
                                       .settings = &settings,
                                       .observe = &domus_observe_front});
}
