/* A TCP echo service: every byte goes back, in the buffer it came in.
 *
 *   ./dev run echo --config config/domus.yaml
 *   printf 'hello\n' | nc -N 127.0.0.1 7000
 *
 * One channels actor runs on each thread; each connection is a channel of the actor on the
 * thread that had the fewest. SIGUSR1 prints the profile, SIGTERM drains and ends. This file is
 * C17 and C++20. */
#include <domus/domus.h>
#include <domus/main.h>

static int echo_read(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = (const domus_channel_event *)payload;

    (void)stack;
    (void)self;
    /* domus_channel_write() consumes the buffer in every case */
    return domus_channel_write(stack, event->channel, event->bytes);
}

static const domus_behaviour echo = {
    .name = "echo",
    .kind = DOMUS_CHANNELS,
    .on_read = {echo_read, 0},
};

static int start_service(domus_system *system, void *argument)
{
    (void)argument;
    return domus_main_serve(system, "echo", &echo, NULL);
}

static const domus_program program = {.name = "echo", .start = start_service};

int main(int argc, char **argv)
{
    return domus_main(argc, argv, &program);
}
