/* /stalls of the observation port: the last stalls of the program (domus/stall.h) as one JSON
 * object, the oldest first.
 *
 * The names of functions are read from files, so a helper thread makes the text, for one viewer at
 * a time. */
#include "protocols/observe/pages.h"

#include "protocols/observe/answer.h"
#include "protocols/observe/observe.h"
#include "protocols/observe/texts.h"
#include "protocols/observe/viewer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

static void write_name_as_json(domus_appender *json, const char *before, const char *name)
{
    (void)domus_append_text(json, "%s", before);
    domi_json_append_string(json, name);
}

static void write_stall_as_json(domus_appender *json, const domus_stall *stall)
{
    char when[DOMI_UTC_SIZE];

    domi_observe_write_utc(stall->began_utc_ns, when);
    (void)domus_append_text(json, "{\"when_ns\":%" PRIu64 ",\"when\":\"%s\"", stall->began_ns,
                            when);
    if (stall->pool[0] == '\0') {
        (void)domus_append_text(json, ",\"thread\":%" PRIu32, stall->index);
    } else {
        write_name_as_json(json, ",\"pool\":", stall->pool);
        (void)domus_append_text(json, ",\"runner\":%" PRIu32, stall->index);
    }
    (void)domus_append_text(json, ",\"length_ns\":%" PRIu64 ",\"is_over\":%s", stall->length_ns,
                            stall->is_over ? "true" : "false");
    write_name_as_json(json, ",\"behaviour\":", stall->behaviour);
    write_name_as_json(json, ",\"type\":", stall->type);
    (void)domus_append_text(json, ",\"backtrace\":[");
    for (uint32_t i = 0; i < stall->frame_count; i++)
        write_name_as_json(json, i == 0 ? "" : ",", stall->frames[i]);
    (void)domus_append_text(json, "]}");
}

int domi_observe_write_stalls_json(domus_system *system, domus_slice *ret_text)
{
    domus_stall *stalls = calloc(DOMUS_STALLS_KEPT, sizeof *stalls);
    domus_appender json = {0};
    uint32_t count = 0;
    int error =
        stalls != NULL ? domus_stalls_read(system, stalls, DOMUS_STALLS_KEPT, &count) : -ENOMEM;

    if (error == 0) {
        (void)domus_append_text(&json, "{\"stalls\":[");
        for (uint32_t i = 0; i < count; i++) {
            (void)domus_append_text(&json, "%s", i == 0 ? "" : ",");
            write_stall_as_json(&json, &stalls[i]);
        }
        (void)domus_append_text(&json, "]}\n");
        error = domus_append_end(&json, ret_text);
    }
    free(stalls);
    return error;
}

/* Make the text of the last stalls, on a helper thread. */
static int make_text_of_stalls(void *viewer)
{
    return domi_observe_write_stalls_json(domi_observed.observed, &((domi_viewer *)viewer)->stalls);
}

static int answer_with_stalls(domus_stack *stack, void *self, const domus_answer *made)
{
    domi_viewer *viewer = self;
    domus_slice text = viewer->stalls;

    viewer->stalls = (domus_slice){0};
    if (made->error == 0)
        return domi_observe_answer_with_bytes(stack, "application/json", text);
    if (made->error == -ESHUTDOWN)
        return domi_observe_answer_with_line(stack, 503, "the program stops\n");
    if (made->error == -EAGAIN)
        return domi_observe_answer_with_line(stack, 503, "too many viewers wait for such texts\n");
    return made->error;
}

int domi_observe_serve_stalls(domus_stack *stack, void *self, const void *payload)
{
    (void)payload;
    return domus_blocking(stack, make_text_of_stalls, self, answer_with_stalls);
}
