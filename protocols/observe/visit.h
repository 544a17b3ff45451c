/* /doctor: tells in sentences, after some seconds of observation, what is wrong with the
 * program. */
#ifndef DOMI_PROTOCOLS_OBSERVE_VISIT_H
#define DOMI_PROTOCOLS_OBSERVE_VISIT_H

#include <domus/domus.h>

struct domi_visit;

/* Handle GET /doctor for a viewer. */
int domi_observe_serve_doctor(domus_stack *stack, void *self, const void *payload);

/* Free the place of a visit, if it has one. Thread-safety: the port's thread. */
void domi_visit_leave(struct domi_visit *visit);

#endif
