/* /log of the observation port: the last lines of the program's log, as text; with follow=1 also
 * further lines as they come; and POST, which changes the level of the log.
 *
 * A viewer that follows reads the program's log source ten times a second, as far as the viewer has
 * received what was sent. So it costs the program nothing, and a viewer that reads slowly misses
 * lines: the source keeps only the last ones, and the text tells how many were skipped. */
#include "protocols/observe/pages.h"

#include "protocols/observe/answer.h"
#include "protocols/observe/observe.h"
#include "protocols/observe/texts.h"

#include <domus/http_query.h>
#include <domus/log.h>
#include <domus/observe.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ns between two reads of the program's log source for a viewer */
#define TICK_NS   UINT64_C(100000000)
#define PIECE_MAX 32u /* lines of the log that are sent to a viewer at a time, at most */
/* bytes that may wait for a viewer before it gets further lines */
#define WAITS_MAX  UINT64_C(16384)
#define TIMEOUT_NS UINT64_C(30000000000)
#define WORD_SIZE  16

/* The number of viewers that follow the log. Only the one thread of the port uses it. */
static uint32_t followers;

/* --- reading requests ------------------------------------------------------------------------- */

/* Find the log level that has this name. Returns false if there is none. */
static bool find_log_level_by_word(const char *word, size_t size, domus_log_level *ret_level)
{
    for (int level = DOMUS_LOG_ERROR; level <= (int)DOMUS_LOG_INFO; level++) {
        const char *name = domus_log_level_name((domus_log_level)level);
        if (strlen(name) != size || memcmp(name, word, size) != 0)
            continue;
        *ret_level = (domus_log_level)level;
        return true;
    }
    return false;
}

/* Read the log level from a query. Returns 0; -ENOENT if the query has none; -EINVAL for an unknown
 * word. */
static int read_log_level_of_query(domus_slice query, domus_log_level *ret_level)
{
    char word[WORD_SIZE];
    int64_t size = domus_http_query_value(query, "level", word, sizeof word);

    if (size == -ENOENT)
        return -ENOENT;
    return size > 0 && find_log_level_by_word(word, (size_t)size, ret_level) ? 0 : -EINVAL;
}

static int answer_400_with_valid_log_options(domus_stack *stack)
{
    return domi_observe_answer_with_line(stack, 400,
                                         "level is error, warning or info; follow is 0 or 1\n");
}

/* Read from a query whether the viewer wants to follow the log. Returns 0; -EINVAL. */
static int read_whether_query_follows_log(domus_slice query, bool *ret_follows)
{
    char digit = '0';
    int64_t size = domus_http_query_value(query, "follow", &digit, sizeof digit);

    if (size != -ENOENT && (size != 1 || (digit != '0' && digit != '1')))
        return -EINVAL;
    *ret_follows = digit == '1';
    return 0;
}

bool domi_observe_wants_to_follow_log(const domus_http_request *request)
{
    bool follows;

    return request->method == DOMUS_HTTP_GET &&
           read_whether_query_follows_log(domus_http_query(request), &follows) == 0 && follows;
}

/* --- lines ------------------------------------------------------------------------------------ */

static void write_log_line(domus_appender *text, const domus_log_line *line)
{
    char when[DOMI_UTC_SIZE], thread[32] = "";

    domi_observe_write_utc(line->utc_ns, when);
    if (line->thread != DOMUS_LOG_OUTSIDE)
        snprintf(thread, sizeof thread, "thread %" PRIu32 ": ", line->thread);
    (void)domus_append_text(text, "%s %s: %s%s\n", when, domus_log_level_name(line->level), thread,
                            line->text);
}

/* Write the next lines of the log for a viewer, at most `most` lines. Returns how many were
 * read. */
static uint32_t write_next_log_lines(domi_follow *follow, uint32_t most, domus_appender *text)
{
    const domus_log_source *source = &domi_observed.log;
    domus_log_line line;
    uint32_t count = 0;

    for (; count < most && source->read(source->context, follow->next, &line) == 0; count++) {
        if (line.number > follow->next && follow->next != 0)
            (void)domus_append_text(text, "%" PRIu64 " lines were dropped\n",
                                    line.number - follow->next);
        follow->next = line.number + 1;
        if (line.level <= follow->level)
            write_log_line(text, &line);
    }
    return count;
}

/* --- following -------------------------------------------------------------------------------- */

void domi_observe_free_place_in_log(domi_follow *follow)
{
    if (follow->follows)
        followers--;
    follow->follows = false;
}

/* Set the options of the viewer's connection; NULL sets those of all viewers. Returns 0; -EPIPE
 * when the connection is gone, which a conversation may notice before it is cancelled; another
 * negative errno. */
static int set_options_of_viewer_channel(domus_stack *stack, const domus_channel_options *options)
{
    domus_channel *channel = domus_channel_running(stack);

    return channel != NULL ? domus_channel_set_options(stack, channel, options) : -EPIPE;
}

/* End the answer to a viewer that follows the log, and free its place. Returns as a handler
 * does. */
static int end_answer_that_follows_log(domus_stack *stack, domi_viewer *viewer)
{
    domi_observe_free_place_in_log(&viewer->follow);
    (void)set_options_of_viewer_channel(stack, NULL);
    return domus_reply_end(stack, NULL, NULL);
}

static domus_resumed send_next_log_lines;

/* Send a viewer the lines of the log that are new, or wait for some. When the port closes, the
 * viewer gets the last lines and then the end of its answer, because it must not keep the program
 * from ending. */
static int send_log_lines_or_wait(domus_stack *stack, domi_viewer *viewer)
{
    bool is_closing = atomic_load_explicit(&domi_observed.is_closing, memory_order_relaxed);
    domus_appender text = {0};
    domus_slice piece;
    uint32_t count = write_next_log_lines(&viewer->follow, PIECE_MAX, &text);
    int error = domus_append_end(&text, &piece);

    if (error != 0)
        return error;
    if (piece.size != 0)
        return domus_reply_write(stack, piece, send_next_log_lines);
    domus_slice_free(piece);
    if (count == 0 && is_closing)
        return end_answer_that_follows_log(stack, viewer);
    return domus_sleep(stack, count == 0 ? TICK_NS : 0, send_next_log_lines);
}

static int send_next_log_lines(domus_stack *stack, void *self, const domus_answer *answer)
{
    domi_viewer *viewer = self;

    if (answer->error == 0)
        return send_log_lines_or_wait(stack, viewer);
    domi_observe_free_place_in_log(&viewer->follow);
    return answer->error;
}

/* Begin an answer with lines of the log that does not end by itself. Such a viewer may be silent
 * for any time; only the end of its connection tells that it is gone. */
static int begin_stream_of_log(domus_stack *stack, domi_viewer *viewer)
{
    static const domus_channel_options patient = {.send_high_bytes = WAITS_MAX,
                                                  .send_low_bytes = WAITS_MAX / 4,
                                                  .send_timeout_ns = TIMEOUT_NS,
                                                  .idle_timeout_ns = DOMUS_NONE};

    if (followers >= DOMUS_OBSERVE_FOLLOWERS_MAX)
        return domi_observe_answer_with_line(stack, 503, "too many viewers follow the log\n");
    int error = set_options_of_viewer_channel(stack, &patient);
    if (error != 0)
        return error;
    int result =
        domi_observe_begin_body_in_pieces(stack, DOMI_OBSERVE_PLAIN, NULL, send_next_log_lines);
    if (result < 0)
        return result;
    viewer->follow.follows = true;
    followers++;
    return result;
}

/* --- handlers --------------------------------------------------------------------------------- */

int domi_observe_serve_log(domus_stack *stack, void *self, const void *payload)
{
    domi_viewer *viewer = self;
    domus_slice query = domus_http_query(payload), text;
    domus_appender lines = {0};
    bool follows;

    viewer->follow = (domi_follow){.level = DOMUS_LOG_INFO};
    int error = read_log_level_of_query(query, &viewer->follow.level);
    if ((error != 0 && error != -ENOENT) || read_whether_query_follows_log(query, &follows) != 0)
        return answer_400_with_valid_log_options(stack);
    /* acquire: pairs with the release of set_log_source(), so that the log source is seen complete
     */
    if (!atomic_load_explicit(&domi_observed.has_log, memory_order_acquire))
        return domi_observe_answer_with_line(stack, 404,
                                             "this program keeps no lines of its log\n");
    if (domi_observe_wants_to_follow_log(payload))
        return begin_stream_of_log(stack, viewer);
    (void)write_next_log_lines(&viewer->follow, DOMUS_LOG_KEPT, &lines);
    error = domus_append_end(&lines, &text);
    return error != 0 ? error : domi_observe_answer_with_bytes(stack, DOMI_OBSERVE_PLAIN, text);
}

int domi_observe_serve_log_level_change(domus_stack *stack, void *self, const void *payload)
{
    static const char *const lines[] = {"error\n", "warning\n", "info\n"};
    domus_log_level level;

    (void)self;
    if (!domi_observe_may_request_change(payload))
        return domi_observe_answer_with_line(stack, 403,
                                             "a page of another site may not change anything\n");
    if (read_log_level_of_query(domus_http_query(payload), &level) != 0)
        return answer_400_with_valid_log_options(stack);
    (void)domus_system_set_log_level(domi_observed.observed, level);
    return domi_observe_answer_with_line(stack, 200, lines[level]);
}
