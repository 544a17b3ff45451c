/* Keeps the last lines of a sink for viewers, in a ring under a mutex (kept_lines.h). */
#include "config/kept_lines.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct domi_kept_lines {
    pthread_mutex_t mutex;
    uint64_t count; /* number of the newest kept line, and so of lines so far */
    /* ring of the kept lines, in which line N lies at index N modulo the size */
    domus_log_line lines[DOMUS_LOG_KEPT];
};

domi_kept_lines *domi_kept_lines_new(void)
{
    domi_kept_lines *kept = calloc(1, sizeof *kept);

    if (kept != NULL)
        (void)pthread_mutex_init(&kept->mutex, NULL);
    return kept;
}

void domi_kept_lines_free(domi_kept_lines *kept)
{
    if (kept != NULL)
        (void)pthread_mutex_destroy(&kept->mutex);
    free(kept);
}

void domi_kept_lines_add_line(domi_kept_lines *kept, domus_log_level level, uint32_t thread,
                              const char *text)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    pthread_mutex_lock(&kept->mutex);
    domus_log_line *line = &kept->lines[++kept->count % DOMUS_LOG_KEPT];
    line->number = kept->count;
    line->utc_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    line->level = level;
    line->thread = thread;
    snprintf(line->text, sizeof line->text, "%s", text);
    pthread_mutex_unlock(&kept->mutex);
}

int domi_kept_lines_read_line(void *kept_, uint64_t from, domus_log_line *ret_line)
{
    domi_kept_lines *kept = kept_;
    int result = -ENOENT;

    pthread_mutex_lock(&kept->mutex);
    uint64_t oldest = kept->count > DOMUS_LOG_KEPT ? kept->count - DOMUS_LOG_KEPT + 1 : 1;
    uint64_t number = from > oldest ? from : oldest;
    if (number <= kept->count) {
        *ret_line = kept->lines[number % DOMUS_LOG_KEPT];
        result = 0;
    }
    pthread_mutex_unlock(&kept->mutex);
    return result;
}
