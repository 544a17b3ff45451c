/* The ring of a simulated thread, in which nothing is ever in flight. */
#ifndef DOMI_RUNTIME_TESTKIT_RING_H
#define DOMI_RUNTIME_TESTKIT_RING_H

#include "io/backend/backend.h"

extern const domi_backend domi_testkit_ring;

#endif
