/* A gRPC service, with a method of each kind (notes.proto).
 *
 *   ./dev run grpc --config examples/grpc/grpc.yaml
 *   grpcurl -plaintext -import-path examples/grpc -proto notes.proto \
 *     -d '{"text": "hello"}' 127.0.0.1:7013 notes.Notes/Say
 *
 * notes.c has the service; this file starts it. */
#include "notes.h"

#include <domus/main.h>
#include <domus/tls.h>

static int start_service(domus_system *system, void *argument)
{
    return domus_main_serve(system, argument, &notes_behaviour, NULL);
}

static const domus_program program = {"grpc", start_service, "grpc", .front = &domus_tls_front};

int main(int argc, char **argv)
{
    return domus_main(argc, argv, &program);
}
