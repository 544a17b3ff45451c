/* Types of messages that the library itself puts and handles. They are constant, and only their
 * addresses are compared. */
#include "house/message/types.h"

#include "house/message/remote.h"

#include "house/message/envelope.h"

const domus_type domi_cancel_type = {.name = "cancel", .size = sizeof(domi_return)};
const domus_type domi_held_type = {.name = "held", .size = sizeof(domi_return)};
const domus_type domi_last_type = {.name = "last"};
const domus_type domi_mount_type = {.name = "on_mount"};

const domus_behaviour domi_remote_behaviour = {.name = "remote"};
