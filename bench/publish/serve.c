/* The program around both servers of `bench publish` on domus, and the group of all members. */
#include "bench/publish/serve.h"

#include <domus/main.h>

int publish_open_and_join_group(domus_stack *stack, domus_group *ret_group)
{
    int error = domus_group_open(stack, "everybody", ret_group);

    return error != 0 ? error : domus_group_join(stack, *ret_group);
}

static int start_listener(domus_system *system, void *owner)
{
    return domus_main_serve(system, "echo", *(const domus_behaviour **)owner, NULL);
}

int publish_run_server_with_owner(int argc, char **argv, const domus_behaviour *owner)
{
    const domus_program program = {.name = "publish", .start = start_listener, .argument = &owner};

    return domus_main(argc, argv, &program);
}
