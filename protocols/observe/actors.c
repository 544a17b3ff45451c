/* /actors of the observation port: pages of the dump that shows what the program's actors do.
 *
 * A dump waits for threads that may be stuck, so a helper thread makes it, for one viewer at a
 * time, while the port serves the others. */
#include "protocols/observe/viewer.h"

#include "protocols/observe/answer.h"
#include "protocols/observe/observe.h"
#include "protocols/observe/texts.h"

#include <domus/http_query.h>
#include <domus/observe.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SHARE_BYTES 4096u /* bytes of a page of the dump for each thread and pool, at least */

/* Read from a query which actors a page of the dump is to show. Returns 0; -EINVAL. */
static int read_filter_of_dump(domus_slice query, domi_actors_page *wanted)
{
    int64_t size =
        domus_http_query_value(query, "behaviour", wanted->behaviour, sizeof wanted->behaviour - 1);

    wanted->filter = (domus_dump_filter){.count = DOMUS_OBSERVE_ACTORS_COUNT};
    if (size < 0 && size != -ENOENT)
        return -EINVAL;
    wanted->behaviour[size > 0 ? size : 0] = '\0';
    if (size > 0)
        wanted->filter.behaviour = wanted->behaviour;
    if (domi_query_read_number(query, "from", NULL, UINT32_MAX - 1, &wanted->filter.from) != 0 ||
        domi_query_read_number(query, "count", NULL, DOMUS_OBSERVE_ACTORS_MAX,
                               &wanted->filter.count) != 0 ||
        wanted->filter.count == 0)
        return -EINVAL;
    return 0;
}

/* Make a page of the dump of actors, on a helper thread. */
static int make_page_of_dump_on_helper_thread(void *page_)
{
    domi_actors_page *wanted = page_;
    domus_system *system = domi_observed.observed;
    size_t parts = domus_system_threads(system) + domus_system_config(system)->pool_count;
    size_t size = DOMUS_OBSERVE_ACTORS_BYTES;

    if (size < parts * SHARE_BYTES)
        size = parts * SHARE_BYTES;
    wanted->text = malloc(size);
    return wanted->text != NULL ? domus_dump_some(system, &wanted->filter, wanted->text, size)
                                : -ENOMEM;
}

void domi_free_text_of_actors_page(domi_actors_page *made)
{
    free(made->text);
    made->text = NULL;
}

static int answer_with_page_of_dump(domus_stack *stack, void *self, const domus_answer *made)
{
    domi_actors_page *done = &((domi_viewer *)self)->page;
    domus_slice text = {0};
    int error = made->error;

    if (error == 0)
        error = domus_slice_copy(done->text, strlen(done->text), &text);
    domi_free_text_of_actors_page(done);
    if (error == -ESHUTDOWN)
        return domi_observe_answer_with_line(stack, 503, "the program stops\n");
    if (error == -EAGAIN)
        return domi_observe_answer_with_line(stack, 503, "too many viewers wait for actors\n");
    return error != 0 ? error : domi_observe_answer_with_bytes(stack, DOMI_OBSERVE_PLAIN, text);
}

int domi_observe_serve_actors(domus_stack *stack, void *self, const void *payload)
{
    domi_actors_page *wanted = &((domi_viewer *)self)->page;

    if (read_filter_of_dump(domus_http_query(payload), wanted) != 0)
        return domi_observe_answer_with_line(
            stack, 400,
            "from and count are numbers, count is 1..1000, and the name of a "
            "behaviour has at most 63 bytes\n");
    return domus_blocking(stack, make_page_of_dump_on_helper_thread, wanted,
                          answer_with_page_of_dump);
}
