/* A chat for those who have nc or telnet.
 *
 *   ./dev run rooms --config examples/rooms/rooms.yaml      and then: nc 127.0.0.1 7001
 *
 * rooms.c is all of it but main(). */
#include "rooms.h"

#include <domus/main.h>
#include <domus/tls.h>

static int start_service(domus_system *system, void *argument)
{
    return domus_main_serve(system, argument, &rooms_behaviour, NULL);
}

static const domus_section section = {"rooms", rooms_keys, sizeof rooms_settings, NULL};
static const domus_program program = {"rooms",
                                      start_service,
                                      "rooms",
                                      .section = &section,
                                      .settings = &rooms_settings,
                                      .front = &domus_tls_front};

int main(int argc, char **argv)
{
    return domus_main(argc, argv, &program);
}
