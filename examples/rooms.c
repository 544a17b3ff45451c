/* Chat rooms: each line that a guest sends goes to everybody in the same room.
 *
 *   ./dev run rooms --config examples/rooms.yaml      and then: nc 127.0.0.1 7001
 *
 * "/join garden" goes to another room. Each connection is an actor. A room is a group, and a line
 * is a publication to it, so the guests of a room may be on any threads. A guest who does not read
 * is dropped when `rooms.slowBytes` wait. (A group stays for ever, so the rooms are fixed.) */
#include <domus/domus.h>
#include <domus/main.h>

#include <errno.h>
#include <string.h>

static struct settings {
    uint64_t slow_bytes;
    uint32_t room_count;
    char rooms[16][32];
} settings; /* constant once the program has started */

struct said {
    uint32_t size;
    char bytes[508];
};
static const domus_type said_type = {.name = "said", .size = sizeof(struct said)};

struct guest {
    domus_group room;
    struct said line; /* the part of a line that has come */
};

/* Go to the room of this name. */
static int enter(domus_stack *stack, struct guest *guest, const char *name)
{
    for (uint32_t i = 0; i < settings.room_count; i++) {
        if (strcmp(settings.rooms[i], name) != 0)
            continue;
        (void)domus_group_leave(stack, guest->room); /* if there is one */
        int error = domus_group_open(stack, name, &guest->room);
        return error != 0 ? error : domus_group_join(stack, guest->room);
    }
    return domus_channel_append(stack, domus_channel_running(stack), "no such room\n", 13);
}

static int guest_came(domus_stack *stack, void *self, const void *payload)
{
    (void)payload;
    return enter(stack, self, settings.rooms[0]);
}

static int handle_line(domus_stack *stack, struct guest *guest)
{
    struct said line = guest->line;

    guest->line.size = 0;
    if (strncmp(line.bytes, "/join ", 6) == 0) {
        line.bytes[line.size - 1] = '\0';
        return enter(stack, guest, line.bytes + 6);
    }
    (void)domus_publish(stack, guest->room, &said_type, &line); /* a full thread misses it */
    return 0;
}

static int guest_wrote(domus_stack *stack, void *self, const void *payload)
{
    domus_buffer *buffer = ((const domus_channel_event *)payload)->bytes;
    const char *bytes = domus_buffer_data(buffer);
    struct said *line = &((struct guest *)self)->line;
    int result = 0;

    for (size_t i = 0; i < domus_buffer_size(buffer) && result == 0; i++) {
        line->bytes[line->size++] = bytes[i];
        if (bytes[i] == '\n')
            result = handle_line(stack, self);
        else if (line->size == sizeof line->bytes)
            result = -EMSGSIZE; /* resets the connection */
    }
    domus_buffer_free(buffer);
    return result;
}

static int somebody_said(domus_stack *stack, void *self, const void *payload)
{
    domus_channel *channel = domus_channel_running(stack);
    const struct said *said = payload;

    (void)self;
    if (channel != NULL && domus_channel_queued(channel) > settings.slow_bytes)
        return -ENOBUFS; /* resets the connection */
    if (channel != NULL)
        (void)domus_channel_append(stack, channel, said->bytes, said->size);
    return 0;
}

static const domus_behaviour guest = {
    .name = "guest",
    .kind = DOMUS_CHANNELS,
    .state_size = sizeof(struct guest),
    .on = (const domus_on[]){{&said_type, somebody_said, 0}, {NULL, NULL, 0}},
    .on_open = {guest_came, 0},
    .on_read = {guest_wrote, 0}};
static const domus_behaviour rooms = {.name = "rooms", .kind = DOMUS_CHANNELS, .channel = &guest};

static int start(domus_system *system, void *argument)
{
    return domus_main_serve(system, argument, &rooms, NULL);
}

static const domus_config_key keys[] = {
    {DOMUS_KEY("slowBytes", SIZE, struct settings, slow_bytes, 1024, 1048576, 32768)},
    {DOMUS_KEY_TEXTS("names", NAME, struct settings, rooms, room_count, "lobby,garden")},
    {0}};
static const domus_section section = {"rooms", keys, sizeof settings, NULL};
static const domus_program program = {"rooms", start, "rooms", .section = &section,
                                      .settings = &settings};

int main(int argc, char **argv)
{
    return domus_main(argc, argv, &program);
}
