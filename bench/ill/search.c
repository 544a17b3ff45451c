/* A search gateway. A client sends "find WORD" and gets a line with the number of hits at once, and
 * the line with the hits as soon as the index, which looks them up on its disk, has them. */
#include <domus/main.h>
#include <domus/observe.h>

#include <stdio.h>
#include <string.h>

struct settings {
    uint64_t lookup_ns;
};

static struct settings settings;

struct find {
    char word[40];
};

struct hits {
    uint32_t count;
    uint32_t documents[8];
};

struct front {
    domus_address index;
};

static const domus_type find_type = {.name = "find", .size = sizeof(struct find)};
static const domus_type hits_type = {.name = "hits", .size = sizeof(struct hits)};

static uint32_t hash_of_word(const char *word)
{
    uint32_t hash = 2166136261u;

    for (; *word != 0; word++)
        hash = (hash ^ (uint8_t)*word) * 16777619u;
    return hash;
}

/* --- the index -------------------------------------------------------------------------------- */

DOMUS_SEQUENCE(find, struct hits)
{
    DOMUS_BEGIN;
    frame->count = 8;
    for (uint32_t i = 0, hash = hash_of_word(((const struct find *)message)->word);
         i < frame->count; i++)
        frame->documents[i] = (hash = hash * 1664525 + 1013904223) >> 8;
    DOMUS_SLEEP(settings.lookup_ns);
    return domus_reply(stack, &hits_type, frame);
    DOMUS_END;
}

static const domus_behaviour index_behaviour = {
    .name = "index",
    .kind = DOMUS_STATE,
    .on = (const domus_on[]){DOMUS_ON(&find_type, find), {0}}};

/* --- clients ---------------------------------------------------------------------------------- */

DOMUS_SEQUENCE(serve, struct find)
{
    struct front *front = self;
    const domus_packet *line = message;
    const char *bytes;
    char text[256];
    int size;

    DOMUS_BEGIN;
    bytes = domus_slice_data(line->bytes);
    if (line->bytes.size < 6 || line->bytes.size - 5 >= sizeof(frame->word) ||
        strncmp(bytes, "find ", 5) != 0)
        return -EINVAL;
    memcpy(frame->word, bytes + 5, line->bytes.size - 5);
    if (front->index.house == NULL && domus_name_find(stack, "index", &front->index) < 0)
        return -EAGAIN;

    /* the number of hits is sent at once, and the hits follow when the index has found them */
    size = snprintf(text, sizeof(text), "found %u\n", hash_of_word(frame->word) % 10000);
    domus_channel_append(stack, domus_channel_running(stack), text, (size_t)size);

    DOMUS_ASK_WITHIN(front->index, &find_type, frame, 2000000000);
    if (answer->error < 0)
        return answer->error;
    {
        const struct hits *hits = answer->payload;
        domus_packet reply = {0};

        size = snprintf(text, sizeof(text), "hits");
        for (uint32_t i = 0; i < hits->count; i++)
            size += snprintf(text + size, sizeof(text) - (size_t)size, " %u", hits->documents[i]);
        if (domus_slice_copy(text, (size_t)size, &reply.bytes) < 0)
            return -ENOMEM;
        return domus_reply(stack, &domus_packet_type, &reply);
    }
    DOMUS_END;
}

static const domus_pipeline lines = {
    .stages = (const domus_pipeline_stage[]){{&domus_line_stage, NULL}, {0}}};
static const domus_behaviour client_behaviour = {
    .name = "client",
    .kind = DOMUS_CHANNELS,
    .shares_state = true,
    .pipeline = &lines,
    .on_peer = (const domus_on_peer[]){DOMUS_ON_PEER(&domus_packet_type, serve, DOMUS_ALONE), {0}}};
static const domus_behaviour front_behaviour = {.name = "front",
                                                .kind = DOMUS_CHANNELS,
                                                .state_size = sizeof(struct front),
                                                .channel = &client_behaviour};

static int start_service(domus_system *system, void *argument)
{
    domus_address index;
    int result = domus_outside_spawn_with(system, &index_behaviour, NULL,
                                          &(domus_spawn_options){.name = "index"}, &index);

    (void)argument;
    return result < 0 ? result : domus_main_serve(system, "search", &front_behaviour, NULL);
}

int main(int argc, char **argv)
{
    static const domus_config_key keys[] = {
        {DOMUS_KEY("lookupTime", DURATION, struct settings, lookup_ns, 1000000, 1000000000,
                   2000000)},
        {.path = NULL},
    };
    static const domus_section section = {.name = "search", .keys = keys, .size = sizeof(settings)};

    return domus_main(argc, argv,
                      &(domus_program){.name = "search",
                                       .start = start_service,
                                       .section = &section,
                                       .settings = &settings,
                                       .observe = &domus_observe_front});
}
