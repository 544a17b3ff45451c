/* The service of notes.proto, and the behaviour of the channels that speak it. */
#ifndef NOTES_H
#define NOTES_H

#include <domus/grpc.h>

/* behaviour of the actors that listen, and own the channels of gRPC */
extern const domus_behaviour notes_behaviour;

#endif
