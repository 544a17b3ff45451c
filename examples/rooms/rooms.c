/* Chat rooms: each line that a guest sends goes to everybody in the same room.
 *
 * "/join garden" goes to another room. Each connection is an actor. A room is a group, and a line
 * is a publication to it, so the guests of a room may be on any threads. A guest who does not read
 * is dropped when `rooms.slowBytes` wait. (A group stays for ever, so the rooms are fixed.) */
#include "rooms.h"

#include <errno.h>
#include <string.h>

struct rooms_settings rooms_settings;

const domus_type rooms_said_type = {.name = "said", .size = sizeof(struct rooms_said)};

struct guest {
    domus_group room;
    struct rooms_said line; /* the part of a line of the guest that has come so far */
};

int rooms_open_group_of_room(domus_stack *stack, const char *name, domus_group *ret_room)
{
    for (uint32_t i = 0; i < rooms_settings.room_count; i++) {
        if (strcmp(rooms_settings.rooms[i], name) == 0)
            return domus_group_open(stack, name, ret_room);
    }
    return -ENOENT;
}

/* Let a guest go to the room of this name. */
static int enter_room(domus_stack *stack, struct guest *guest, const char *name)
{
    domus_group room;
    int error = rooms_open_group_of_room(stack, name, &room);

    if (error == -ENOENT)
        return domus_channel_append(stack, domus_channel_running(stack), "no such room\n", 13);
    if (error != 0)
        return error;
    (void)domus_group_leave(stack, guest->room); /* leave the old room, if the guest is in one */
    guest->room = room;
    return domus_group_join(stack, room);
}

static int welcome_guest(domus_stack *stack, void *self, const void *payload)
{
    (void)payload;
    return enter_room(stack, self, rooms_settings.rooms[0]);
}

static int join_or_say_line_of_guest(domus_stack *stack, struct guest *guest)
{
    struct rooms_said line = guest->line;

    guest->line.size = 0;
    if (strncmp(line.bytes, "/join ", 6) == 0) {
        line.bytes[line.size - 1] = '\0';
        return enter_room(stack, guest, line.bytes + 6);
    }
    /* if a thread has no room for the publication, its guests miss the line */
    (void)domus_publish(stack, guest->room, &rooms_said_type, &line);
    return 0;
}

static int use_each_whole_line_of_guest(domus_stack *stack, void *self, const void *payload)
{
    domus_slice text = ((const domus_packet *)payload)->bytes;
    const char *bytes = domus_slice_data(text);
    struct rooms_said *line = &((struct guest *)self)->line;
    int result = 0;

    for (size_t i = 0; i < text.size && result == 0; i++) {
        line->bytes[line->size++] = bytes[i];
        if (bytes[i] == '\n')
            result = join_or_say_line_of_guest(stack, self);
        else if (line->size == sizeof line->bytes)
            result = -EMSGSIZE; /* the line is too long: this error resets the connection */
    }
    return result;
}

static int send_line_to_guest(domus_stack *stack, void *self, const void *payload)
{
    domus_channel *channel = domus_channel_running(stack);
    const struct rooms_said *said = payload;

    (void)self;
    if (channel != NULL && domus_channel_queued(channel) > rooms_settings.slow_bytes)
        return -ENOBUFS; /* the guest reads too slowly: this error resets the connection */
    if (channel != NULL)
        (void)domus_channel_append(stack, channel, said->bytes, said->size);
    return 0;
}

/* The pipeline of a guest's connection, which gives bytes as they come. An on_read would do the
 * same, but could not stand behind TLS. */
static const domus_pipeline bytes_of_guest = {
    .stages = (const domus_pipeline_stage[]){{&domus_bytes_stage, NULL}, {NULL, NULL}}};

static const domus_behaviour guest = {
    .name = "guest",
    .kind = DOMUS_CHANNELS,
    .state_size = sizeof(struct guest),
    .on = (const domus_on[]){{&rooms_said_type, send_line_to_guest, 0}, {NULL, NULL, 0}},
    .on_open = {welcome_guest, 0},
    .pipeline = &bytes_of_guest,
    .on_peer = (const domus_on_peer[]){
        {.type = &domus_packet_type, .handle = use_each_whole_line_of_guest}, {.type = NULL}}};
const domus_behaviour rooms_behaviour = {
    .name = "rooms", .kind = DOMUS_CHANNELS, .channel = &guest};

const domus_config_key rooms_keys[] = {
    {DOMUS_KEY("slowBytes", SIZE, struct rooms_settings, slow_bytes, 1024, 1048576, 32768)},
    {DOMUS_KEY_TEXTS("names", NAME, struct rooms_settings, rooms, room_count, "lobby,garden")},
    {0}};
