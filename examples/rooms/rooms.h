/* The parts of the chat that other programs use: examples/web lets browsers into the rooms. */
#ifndef ROOMS_H
#define ROOMS_H

#include <domus/domus.h>
#include <domus/section.h>

#define ROOMS_MAX      16u
#define ROOMS_LINE_MAX 508u /* most bytes of a guest's line with its end */

struct rooms_settings {
    uint64_t slow_bytes; /* bytes that may wait for a guest; a guest with more is dropped */
    uint32_t room_count;
    char rooms[ROOMS_MAX][32]; /* names of the rooms; guests come to the first one */
};

/* The settings of the chat, constant once the program has started. */
extern struct rooms_settings rooms_settings;
/* The keys of the configuration that fill rooms_settings. The last row has no path. */
extern const domus_config_key rooms_keys[];

/* A line that a guest has said, as it is published to the room. The bytes of the line are those of
 * a stranger, and end with '\n'. */
struct rooms_said {
    uint32_t size;
    char bytes[ROOMS_LINE_MAX];
};
extern const domus_type rooms_said_type;

/* Find the room of this name. Returns 0; -ENOENT; what domus_group_open() returned. */
int rooms_open_group_of_room(domus_stack *stack, const char *name, domus_group *ret_room);

/* The behaviour of the actors that serve the port for guests' lines. */
extern const domus_behaviour rooms_behaviour;

#endif
