/* The part of a chain that logs requests. It keeps its note of the request in the word of the
 * exchange. Runs on the thread of the connection. */
#include "protocols/http/access.h"
#include "protocols/http/client_address.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define QUEUE_LEAST  16384u
#define QUEUE_MOST   (16u << 20)
#define FLUSH_LEAST  UINT64_C(10000000)
#define FLUSH_MOST   UINT64_C(60000000000)
#define TARGET_LEAST 16u
#define PROXIES_MAX  8u

static int check_options_of_access_log(const void *options)
{
    const domus_http_access *access = options;

    if (access == NULL || access->format > DOMUS_HTTP_ACCESS_JSON ||
        access->proxies > PROXIES_MAX || access->target_max > DOMUS_HTTP_ACCESS_TARGET_MAX ||
        (access->target_max != 0 && access->target_max < TARGET_LEAST))
        return -EINVAL;
    if (access->queue_bytes != 0 &&
        (access->queue_bytes < QUEUE_LEAST || access->queue_bytes > QUEUE_MOST))
        return -EINVAL;
    return access->flush_ns == 0 ||
                   (access->flush_ns >= FLUSH_LEAST && access->flush_ns <= FLUSH_MOST)
               ? 0
               : -EINVAL;
}

/* Returns how many bytes of a target the log shows: at most `most`, and with `hides_query` only
 * those before '?'. */
static uint32_t size_of_target_in_log(domus_slice text, uint32_t most, bool hides_query)
{
    const char *data = domus_slice_data(text);
    const char *mark = hides_query && text.size != 0 ? memchr(data, '?', text.size) : NULL;
    uint32_t size = mark != NULL ? (uint32_t)(mark - data) : text.size;

    return size < most ? size : most;
}

static int copy_request_facts_for_access_log(domus_stack *stack, domus_http_exchange *exchange,
                                             domus_http_request *request, const void *options)
{
    const domus_http_access *access = options;
    domus_slice referer = {NULL, 0, 0};
    domus_slice agent = {NULL, 0, 0};

    (void)stack;
    (void)domus_http_field(request->fields, "referer", &referer);
    (void)domus_http_field(request->fields, "user-agent", &agent);
    uint32_t target_size = size_of_target_in_log(
        request->target, domi_http_access_max_target_shown(access), access->hides_query);
    uint32_t referer_size =
        size_of_target_in_log(referer, DOMUS_HTTP_ACCESS_TEXT_MAX, access->hides_query);
    uint32_t agent_size = size_of_target_in_log(agent, DOMUS_HTTP_ACCESS_TEXT_MAX, false);
    domi_http_access_note *note = malloc(sizeof *note + target_size + referer_size + agent_size);
    if (note == NULL)
        /* Without memory for the note the request is refused, because a request that cannot be
         * logged must not be handled. */
        return -ENOMEM;
    domi_http_find_client_address(exchange, request->fields, access->proxies, &note->client);
    note->target_size = target_size;
    note->referer_size = referer_size;
    note->agent_size = agent_size;
    memcpy(note->texts, domus_slice_data(request->target), target_size);
    memcpy(note->texts + target_size, domus_slice_data(referer), referer_size);
    memcpy(note->texts + target_size + referer_size, domus_slice_data(agent), agent_size);
    *exchange->word = (uintptr_t)note;
    return 0;
}

/* Write the line of an exchange into the log. If the peer has sent bytes that were no request, the
 * line shows the peer of the connection and nothing else. */
static void write_line_and_free_note_of_exchange(domus_http_exchange *exchange, const void *options)
{
    /* const is cast away, because only the queue changes, which is no option of the user */
    domus_http_access *access = (domus_http_access *)(uintptr_t)options;
    domi_http_access_note *note = (domi_http_access_note *)(uintptr_t)*exchange->word;
    domi_http_access_queue *queue = domi_http_access_get_queue(access);
    char line[DOMI_HTTP_ACCESS_LINE_MAX];
    struct timespec now;

    if (queue != NULL) {
        (void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
        domi_http_access_put_line(
            queue, line, domi_http_access_write_line(access, exchange, note, now.tv_sec, line));
    }
    free(note);
}

const domus_http_part domus_http_access_log = {.name = "access log",
                                               .check = check_options_of_access_log,
                                               .enter = copy_request_facts_for_access_log,
                                               .end = write_line_and_free_note_of_exchange};
