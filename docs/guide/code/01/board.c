/* Chapter 1: what is said to the board comes back. */
#include <domus/domus.h>
#include <domus/main.h>

/* Bytes have come on a connection: write them to the same one. */
static int answer(domus_stack *stack, void *self, const void *payload)
{
    const domus_channel_event *event = payload;

    (void)self;
    return domus_channel_write(stack, event->channel, event->bytes);
}

static const domus_behaviour board = {
    .name = "board",
    .kind = DOMUS_CHANNELS,
    .on_read = {answer, 0},
};

static int start(domus_system *system, void *argument)
{
    (void)argument;
    return domus_main_serve(system, "board", &board, NULL);
}

int main(int argc, char **argv)
{
    static const domus_program program = {.name = "board", .start = start};

    return domus_main(argc, argv, &program);
}
