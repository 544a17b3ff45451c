/* The public functions by which actors register, unregister and find names: each sends an ask to
 * the registrar of this node. */
#include "protocols/cluster/registry.h"

#include <errno.h>
#include <string.h>

const domus_type domus_cluster_done_type = {.name = "cluster done"};
const domus_type domus_cluster_found_type = {.name = "cluster found",
                                             .size = sizeof(domus_cluster_found)};
const domus_type domus_cluster_lost_type = {.name = "cluster lost",
                                            .size = sizeof(domus_cluster_lost)};

const domus_type domi_register_type = {.name = "cluster register",
                                       .size = sizeof(domi_name_request)};
const domus_type domi_unregister_type = {.name = "cluster unregister",
                                         .size = sizeof(domi_name_request)};
const domus_type domi_find_type = {.name = "cluster find", .size = sizeof(domi_name_request)};

static int ask_registrar_about_name(domus_stack *stack, domus_cluster *cluster,
                                    const domus_type *type, const char *name, uint64_t timeout_ns,
                                    domus_resumed *then)
{
    domi_name_request request = {{0}};
    size_t length = strnlen(name, sizeof request.name);

    if (length == 0 || length == sizeof request.name)
        return -EINVAL;
    for (size_t i = 0; i < length; i++) {
        if (name[i] <= ' ' || name[i] > '~')
            return -EINVAL;
    }
    memcpy(request.name, name, length);
    return domus_ask_within(stack, cluster->registrar, type, &request, timeout_ns, then);
}

int domus_cluster_register(domus_stack *stack, domus_cluster *cluster, const char *name,
                           uint64_t timeout_ns, domus_resumed *then)
{
    return ask_registrar_about_name(stack, cluster, &domi_register_type, name, timeout_ns, then);
}

int domus_cluster_unregister(domus_stack *stack, domus_cluster *cluster, const char *name,
                             uint64_t timeout_ns, domus_resumed *then)
{
    return ask_registrar_about_name(stack, cluster, &domi_unregister_type, name, timeout_ns, then);
}

int domus_cluster_find(domus_stack *stack, domus_cluster *cluster, const char *name,
                       uint64_t timeout_ns, domus_resumed *then)
{
    return ask_registrar_about_name(stack, cluster, &domi_find_type, name, timeout_ns, then);
}
