/* The verbs of domus/grain.h that foreign threads call. */
#include "house/directory/grain.h"

#include "runtime/outside/outside_ask.h"
#include "runtime/outside/visit.h"

#include <errno.h>

int domus_outside_grain_open(domus_system *system, const domus_grain_kind *kind,
                             domus_grains *ret_grains)
{
    domi_visit visit;
    int result = domi_outside_enter(system, DOMI_LAST_TO_SEND, &visit);

    if (result != 0)
        return result;
    result = domi_grain_open_kind(&system->outside, kind, &ret_grains->kind);
    domi_outside_leave(system, &visit);
    return result;
}

int domus_outside_grain_notice(domus_system *system, domus_grains grains, const char *key,
                               const domus_type *type, const void *payload)
{
    domi_visit visit;
    int result = domi_outside_enter_to_send(system, &visit);

    if (result != 0)
        return result;
    result = domi_grain_send_notice(&system->outside, NULL, grains.kind, key, type, payload);
    domi_outside_leave(system, &visit);
    return result;
}

int domus_outside_grain_ask(domus_system *system, domus_grains grains, const char *key,
                            const domus_type *type, const void *payload, uint64_t timeout_ns,
                            domus_outside_reply *reply)
{
    const domi_asked asked = {.is_grain = true, .grains = grains, .key = key};

    return domi_outside_ask_actor_or_grain(system, &asked, type, payload, timeout_ns, reply);
}
