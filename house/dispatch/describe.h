/* A house in words, for people who look for what an actor waits for. */
#ifndef DOMI_HOUSE_DISPATCH_DESCRIBE_H
#define DOMI_HOUSE_DISPATCH_DESCRIBE_H

#include "house/message/manager.h"

/* A text of a fixed size that fills up; `length` is what it would take, as snprintf says it. */
typedef struct domi_text {
    char *at;
    size_t size;
    size_t length;
} domi_text;

void domi_text_add(domi_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What people call an actor: its thread, the number of its slot there, and its lease, as in
 * "0/35.2", which no other actor of the system ever has. A router lives on no thread, so it is
 * "router.2", with its lease alone. With log.addresses the address of the house stands behind. Any
 * thread. */
void domi_text_add_actor(domi_text *text, const domus_config *config, domus_address address);

/* Of one house that lives here, not free. By its runner: home, between two runs. */
void domi_house_describe(const domi_manager *manager, const domi_house *house, domi_text *text);

#endif
