/* A guest: a connection whose lines are requests, each answered by a line.
 *
 * A room is a group over the cluster, so a line that a guest says is published, and reaches the
 * guests of the room on all nodes. (Groups stay for ever, so the rooms are fixed.) A guest who does
 * not read misses lines while channel.sendHigh bytes wait for him, and is disconnected after
 * channel.sendTimeout. */
#include "node.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NODES_SHOWN 16u

/* the names of the rooms; new guests enter the first room */
static const char *const rooms[] = {"lobby", "garden", "kitchen"};
#define ROOMS (sizeof rooms / sizeof rooms[0])

const domus_type guest_said_type = {.name = "guest.said", .size = sizeof(struct guest_said)};
static const domus_pickle_field fields[] = {
    {DOMUS_PICKLE(1, struct guest_said, text, TEXT(""))},
};
const domus_pickle_table guest_said_table = DOMUS_PICKLE_TABLE(struct guest_said, fields);

struct guest {
    domus_group room;
    const char *room_name;
};

static int answer_with_line(domus_stack *stack, const char *text)
{
    domus_packet line;
    int error = domus_slice_copy(text, strlen(text), &line.bytes);

    return error != 0 ? error : domus_reply(stack, &domus_packet_type, &line);
}

/* --- rooms ------------------------------------------------------------------------------------ */

static int enter_room(domus_stack *stack, struct guest *guest, const char *name)
{
    domus_group room;
    size_t i = 0;

    while (i < ROOMS && strcmp(rooms[i], name) != 0)
        i++;
    if (i == ROOMS)
        return -ENOENT;
    int error = domus_cluster_group_open(stack, node_cluster, name, &room);
    if (error != 0)
        return error;
    /* leaving does nothing if the guest is in no room */
    (void)domus_group_leave(stack, guest->room);
    guest->room = room;
    guest->room_name = rooms[i];
    return domus_group_join(stack, room);
}

static int enter_first_room(domus_stack *stack, void *self, const void *payload)
{
    (void)payload;
    return enter_room(stack, self, rooms[0]);
}

static int join_room_and_answer(domus_stack *stack, struct guest *guest, const char *name)
{
    int error = enter_room(stack, guest, name);

    return error != 0 ? error : answer_with_line(stack, guest->room_name);
}

static int say_to_room(domus_stack *stack, struct guest *guest, const char *text)
{
    struct guest_said said = {.text = ""};
    domus_node_info here;

    /* the first node of the list of nodes is this one */
    (void)domus_cluster_nodes(node_cluster, &here, 1);
    snprintf(said.text, sizeof said.text, "%s, %s: %s", guest->room_name, here.name, text);
    int error = domus_publish(stack, guest->room, &guest_said_type, &said);
    return error != 0 ? error : answer_with_line(stack, said.text);
}

static int send_line_of_other_guest(domus_stack *stack, void *self, const void *payload)
{
    const struct guest_said *said = payload;
    domus_channel *channel = domus_channel_running(stack);
    domus_packet line;

    (void)self;
    if (channel == NULL || domus_address_equals(domus_sender(stack), domus_self(stack)))
        return 0;
    int error = domus_slice_copy(said->text, strlen(said->text), &line.bytes);
    if (error != 0)
        return error;
    error = domus_channel_send(stack, channel, &domus_packet_type, &line);
    domus_slice_free(line.bytes);
    return error; /* this negative errno resets the guest's connection */
}

/* --- counters and nodes ----------------------------------------------------------------------- */

static int answer_with_new_count(domus_stack *stack, void *self, const domus_answer *answer)
{
    const struct counter_count *count = answer->payload;
    char text[32 + sizeof count->node];

    (void)self;
    if (answer->error != 0)
        /* -EHOSTDOWN: the node that had this counter has died, and the next ask will find the
         * counter on another node */
        return answer->error;
    snprintf(text, sizeof text, "%" PRIu64 " on %s", count->value, count->node);
    return answer_with_line(stack, text);
}

static int ask_counter_grain_to_count(domus_stack *stack, struct guest *guest, const char *name)
{
    (void)guest;
    return domus_grain_ask_within(stack, node_counters, name, &counter_add_type, NULL, 5 * SECOND,
                                  answer_with_new_count);
}

static int list_nodes(domus_stack *stack, struct guest *guest, const char *rest)
{
    /* words for the states of a node, in the order of domus_node_state */
    static const char *const states[] = {"heard", "up", "down", "ended"};
    domus_node_info nodes[NODES_SHOWN];
    uint32_t count = domus_cluster_nodes(node_cluster, nodes, NODES_SHOWN);
    char text[NODES_SHOWN * (sizeof nodes[0].name + 24)];
    int used = 0;

    (void)guest, (void)rest;
    for (uint32_t i = 0; i < count && i < NODES_SHOWN; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%s %s%s", i > 0 ? ", " : "",
                         nodes[i].name, states[nodes[i].state], nodes[i].is_here ? " (here)" : "");
    return answer_with_line(stack, text);
}

static int answer_with_help(domus_stack *stack, struct guest *guest, const char *rest)
{
    (void)guest, (void)rest;
    return answer_with_line(stack, "join ROOM (lobby, garden, kitchen); say TEXT; add NAME; nodes");
}

/* --- lines ------------------------------------------------------------------------------------ */

static int run_verb_of_guest_line(domus_stack *stack, void *self, const void *payload)
{
    static const struct verb {
        const char *word;
        int (*handle)(domus_stack *stack, struct guest *guest, const char *rest);
    } verbs[] = {{"join ", join_room_and_answer},
                 {"say ", say_to_room},
                 {"add ", ask_counter_grain_to_count},
                 {"nodes", list_nodes},
                 {"help", answer_with_help}};
    domus_slice line = ((const domus_packet *)payload)->bytes;
    char text[GUEST_LINE_MAX + 1];

    memcpy(text, domus_slice_data(line), line.size);
    text[line.size] = '\0';
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        size_t size = strlen(verbs[i].word);
        if (strncmp(text, verbs[i].word, size) == 0)
            return verbs[i].handle(stack, self, text + size);
    }
    return answer_with_line(stack, "what? try help");
}

static const domus_line_options line_options = {.size_max = GUEST_LINE_MAX};
static const domus_pipeline by_lines = {
    .stages = (const domus_pipeline_stage[]){{&domus_line_stage, &line_options}, {NULL, NULL}}};

static const domus_behaviour guest = {
    .name = "guest",
    .kind = DOMUS_CHANNELS,
    .state_size = sizeof(struct guest),
    .on_open = {enter_first_room, 0},
    .on = (const domus_on[]){{&guest_said_type, send_line_of_other_guest, 0}, {NULL, NULL, 0}},
    .pipeline = &by_lines,
    .on_peer = (const domus_on_peer[]){
        {.type = &domus_packet_type, .handle = run_verb_of_guest_line}, {.type = NULL}}};
const domus_behaviour guests = {.name = "guests", .kind = DOMUS_CHANNELS, .channel = &guest};
