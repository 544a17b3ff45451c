/* Parcels, which are the messages that a probe has received, and the end of a probe.
 * domus/testkit.h has the calls of users. */
#ifndef DOMI_RUNTIME_TESTKIT_PROBE_H
#define DOMI_RUNTIME_TESTKIT_PROBE_H

#include "runtime/testkit/kit.h"

static inline void domi_parcel_release(domi_parcel *parcel)
{
    if (parcel->owns && parcel->type->release != NULL)
        parcel->type->release(parcel->payload);
}

/* Free a probe and everything that it received and the test did not expect. */
void domi_probe_free(domus_probe *probe);

#endif
