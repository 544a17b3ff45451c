/* A store of sessions. Clients send "put ID VALUE" and "get ID"; a session that was not used for a
 * while expires. The sessions are in a hash table with open places. */
#include <domus/main.h>
#include <domus/observe.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct settings {
    uint64_t expiry_ns;
    uint32_t places, preload;
    bool fixed;
} settings;
struct session {
    uint64_t id, used_ns; /* id of the session, and time of its last use; id 0: the place is free */
    char value[16];
};
struct store {
    struct session *places;
    uint32_t mask, swept;
};
struct front {
    domus_address store;
};
static const domus_type sweep_type = {.name = "sweep", .size = 0};

static struct session *find_session_or_free_place(struct store *store, uint64_t id)
{
    uint32_t place = (uint32_t)((id * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & store->mask;

    for (uint32_t i = 0; i < 64; i++, place = (place + 1) & store->mask) {
        if (store->places[place].id == id || store->places[place].id == 0)
            return &store->places[place];
    }
    return NULL;
}

/* Forget sessions that nobody uses any more. (A few sessions behind them in the table may be lost:
 * their users log in again.) */
static void forget_unused_sessions(struct store *store, uint64_t now_ns, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct session *session = &store->places[store->swept++ & store->mask];

        if (session->id != 0 && now_ns > session->used_ns + settings.expiry_ns)
            session->id = 0;
    }
}

static int make_session_table_at_mount(domus_stack *stack, void *self)
{
    struct store *store = self;

    store->places = calloc(settings.places, sizeof(*store->places));
    if (store->places == NULL)
        return -ENOMEM;
    store->mask = settings.places - 1;
    for (uint64_t id = 1; id <= settings.preload; id++) {
        struct session *session = find_session_or_free_place(store, id);

        if (session != NULL)
            *session = (struct session){.id = id, .used_ns = domus_now_ns(stack), .value = "user"};
    }
    return settings.fixed ? domus_every(stack, 10000000, &sweep_type, NULL, NULL) : 0;
}

static int forget_some_unused_sessions_at_timer(domus_stack *stack, void *self, const void *payload)
{
    (void)payload;
    forget_unused_sessions(self, domus_now_ns(stack), 1024);
    return 0;
}

static int answer_session_get_or_put(domus_stack *stack, void *self, const void *payload)
{
    const domus_packet *line = payload;
    struct store *store = self;
    struct session *session;
    char text[64], value[16] = "";
    unsigned long long id;
    domus_packet reply = {0};
    size_t size = line->bytes.size < sizeof(text) ? line->bytes.size : sizeof(text) - 1;

    memcpy(text, domus_slice_data(line->bytes), size);
    text[size] = 0;
    if (sscanf(text + (size < 3 ? size : 3), " %llu %15s", &id, value) < 1 || id == 0)
        return -EINVAL;

    /* sessions that have expired are forgotten first, so that they are not found */
    if (!settings.fixed)
        forget_unused_sessions(store, domus_now_ns(stack), settings.places);
    session = find_session_or_free_place(store, id);
    if (session == NULL)
        return -ENOSPC;
    if (strncmp(text, "put", 3) == 0) {
        session->id = id;
        memcpy(session->value, value, sizeof(value));
    } else if (session->id == 0 || domus_now_ns(stack) > session->used_ns + settings.expiry_ns) {
        return -ENOENT;
    }
    session->used_ns = domus_now_ns(stack);
    size = (size_t)snprintf(text, sizeof(text), "value %s", session->value);
    return domus_slice_copy(text, size, &reply.bytes) < 0
               ? -ENOMEM
               : domus_reply(stack, &domus_packet_type, &reply);
}

static const domus_behaviour store_behaviour = {
    .name = "store",
    .kind = DOMUS_STATE,
    .state_size = sizeof(struct store),
    .on_mount = make_session_table_at_mount,
    .on = (const domus_on[]){{.type = &domus_packet_type, .handle = answer_session_get_or_put},
                             {.type = &sweep_type, .handle = forget_some_unused_sessions_at_timer},
                             {0}}};

static int serve_request(domus_stack *stack, void *self, const void *payload)
{
    struct front *front = self;

    (void)payload;
    if (front->store.house == NULL && domus_name_find(stack, "store", &front->store) < 0)
        return -EAGAIN;
    return domus_forward(stack, front->store);
}

static const domus_pipeline lines = {
    .stages = (const domus_pipeline_stage[]){{&domus_line_stage, NULL}, {0}}};
static const domus_behaviour client_behaviour = {
    .name = "client",
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
    int result = domus_outside_spawn_with(system, &store_behaviour, NULL,
                                          &(domus_spawn_options){.name = "store"}, &store);

    (void)argument;
    return result < 0 ? result : domus_main_serve(system, "sessions", &front_behaviour, NULL);
}

int main(int argc, char **argv)
{
    static const domus_config_key keys[] = {
        {DOMUS_KEY("expiry", DURATION, struct settings, expiry_ns, 1000000000, 86400000000000,
                   1800000000000)},
        {DOMUS_KEY("places", COUNT, struct settings, places, 1024, 16777216, 524288),
         .power_of_two = true},
        {DOMUS_KEY("preload", COUNT, struct settings, preload, 0, 8388608, 250000)},
        {DOMUS_KEY_SWITCH("fixed", struct settings, fixed, false)},
        {.path = NULL},
    };
    static const domus_section section = {
        .name = "sessions", .keys = keys, .size = sizeof(settings)};

    return domus_main(argc, argv,
                      &(domus_program){.name = "sessions",
                                       .start = start_service,
                                       .section = &section,
                                       .settings = &settings,
                                       .observe = &domus_observe_front});
}
