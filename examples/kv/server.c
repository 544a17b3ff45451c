/* Commands about the server: TIME, and those about saving, which this server does not do. */
#include "kv.h"

#include <stdio.h>
#include <time.h>

int kv_serve_time(domus_stack *stack, void *self, const void *payload)
{
    domus_resp_builder builder = {.version = ((const domus_resp_command *)payload)->version};
    struct timespec now;
    char text[24];

    (void)self;
    clock_gettime(CLOCK_REALTIME, &now);
    (void)domus_resp_add_array(&builder, 2);
    int size = snprintf(text, sizeof text, "%lld", (long long)now.tv_sec);
    (void)domus_resp_add_bulk(&builder, text, (size_t)size);
    size = snprintf(text, sizeof text, "%ld", now.tv_nsec / 1000);
    (void)domus_resp_add_bulk(&builder, text, (size_t)size);
    return kv_answer_what_builder_has_made(stack, &builder);
}

/* Answer LASTSAVE with the time when the program began: nothing is ever saved, and only then the
 * keys were as on disk. */
int kv_serve_lastsave(domus_stack *stack, void *self, const void *payload)
{
    (void)self, (void)payload;
    return kv_answer_integer(stack, kv_time_when_program_began_s());
}

int kv_serve_save(domus_stack *stack, void *self, const void *payload)
{
    (void)self, (void)payload;
    return kv_answer_error(stack, "ERR this server keeps its keys in memory alone");
}
