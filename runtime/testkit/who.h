/* Numbers for actors, which the trace shows in place of their addresses. */
#ifndef DOMI_RUNTIME_TESTKIT_WHO_H
#define DOMI_RUNTIME_TESTKIT_WHO_H

#include "house/message/house.h"

typedef struct domi_who domi_who;

/* The table has at most this many places, and at most half of them are used. */
#define DOMI_WHO_MAX (1u << 20)
/* the actor has no number, because memory or the table is full */
#define DOMI_WHO_UNKNOWN UINT32_MAX

/* The number of the actor that lives in `house`. An actor gets its number when it is first seen.
 * The table is made and grows as needed; the caller frees it with domi_memory_free(). */
uint32_t domi_who_number(domi_who **who, const domi_house *house);

#endif
