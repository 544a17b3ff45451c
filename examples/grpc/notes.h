/* The service of notes.proto, and the behaviour of the channels that speak it. */
#ifndef NOTES_H
#define NOTES_H

#include <domus/grpc.h>

extern const domus_behaviour notes_behaviour; /* behaviour of an actor that owns such channels */

#endif
