/* Numbers of actors, which a trace shows in place of their addresses. */
#ifndef DOMI_RUNTIME_TESTKIT_WHO_H
#define DOMI_RUNTIME_TESTKIT_WHO_H

#include "house/message/house.h"

typedef struct domi_who domi_who;

/* Most entries of the table with the numbers of actors; at most half of them are used. */
#define DOMI_WHO_MAX (1u << 20)
/* returned for an actor that gets no number, because memory or the table is full */
#define DOMI_WHO_UNKNOWN UINT32_MAX

/* Returns the number of the actor that lives in `house`. The actor gets its number at the first
 * call for it. The table is made and grows as needed; the caller frees it with
 * domi_memory_free(). */
uint32_t domi_who_find_or_give_number_of_actor(domi_who **who, const domi_house *house);

#endif
