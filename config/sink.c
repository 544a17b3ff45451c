/* How a sink queues and writes lines.
 *
 * The queue is a ring of places, each with a `sequence`: 2L if the place is free for the L-th round
 * of the ring, 2L + 1 if it holds that round's line. A thread that leaves a line claims the next
 * position by a compare-exchange of `tail`, fills its place, and publishes it by the sequence. So a
 * thread that is interrupted in between delays the reader at that place, and never the threads that
 * leave lines. A place that was never used is all zero, and its pages are not touched before. */
#include "config/sink.h"

#include "config/kept_lines.h"

#include <domus/text.h>

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Most bytes of one write of the sink: a pipe that poll() calls writable takes so many without
 * making its writer wait. */
#define PIECE_BYTES PIPE_BUF
/* Milliseconds between two looks of the sink's thread, while it waits for a reader, whether it has
 * to give up. */
#define LOOK_MS 20
/* Nanoseconds that a write which is stuck gets beyond the time of domi_sink_close(). */
#define STUCK_NS  UINT64_C(100000000)
#define SECOND_NS UINT64_C(1000000000) /* nanoseconds of a second */
/* bytes of a line of the sink with the name, the level and the thread before it */
#define LINE_BYTES (DOMUS_LOG_TEXT_MAX + 256u)

typedef enum kind {
    KIND_LOG,  /* the place holds a line of the log, in `line`, with its level and thread */
    KIND_SAID, /* the place holds a line of the program's own, in `line` */
    KIND_TEXT, /* the place holds a text of several lines, in `text` */
} kind;

typedef struct place {
    /* number that says whether the place is free or filled, and for which round of the ring */
    _Atomic uint64_t sequence;
    uint64_t dropped_before; /* lines dropped between the place before this place and this place */
    char *text;              /* text of a place of KIND_TEXT, on the heap */
    kind kind;               /* kind of line that the place holds */
    domus_log_level level;   /* level of the log line in the place */
    uint32_t thread;         /* number of the thread that has left the log line */
    char line[DOMUS_LOG_TEXT_MAX + 1]; /* text of the place's line, NUL-terminated */
} place;

struct domi_sink {
    const char *name; /* name that stands before each line of the sink */
    int fd;           /* the descriptor to which the sink's lines are written */
    uint32_t count;   /* number of places for lines in the sink */
    place *places;    /* ring of `count` places for lines */
    pthread_t thread; /* the sink's thread, which writes the lines */
    pid_t process;    /* process that made the sink: a forked child has no such thread to end */
    sem_t left;       /* semaphore that is posted once for each line that was left in the sink */
    /* number of texts of several lines in the queue, at most DOMI_SINK_TEXTS_MAX */
    _Atomic uint32_t texts;
    /* whether domi_sink_close() was called: the sink's thread writes what is left, and ends */
    _Atomic bool closing;
    _Atomic bool give_up;  /* whether the time that domi_sink_close() gives for writing is over */
    bool stuck;            /* whether the sink's thread has not ended yet */
    domi_kept_lines *kept; /* the sink's last lines for viewers; NULL: they are not kept */

    /* Only the sink's thread uses these three fields. */
    uint64_t noted;  /* number of the next place whose line is kept for viewers; `head` or more */
    uint64_t head;   /* number of the next place whose line is written out; it wraps */
    uint64_t untold; /* number of dropped lines of which the log does not tell yet */

    /* number of the next place in the ring that a line is left in; any thread moves it */
    _Atomic uint64_t tail;
    /* number of lines that were dropped since the last place was filled */
    _Atomic uint64_t dropped_since;
    _Atomic uint64_t dropped; /* number of lines that the sink has dropped in all */
};

/* --- leaving lines ---------------------------------------------------------------------------- */

static uint64_t get_sequence_of_free_place(const domi_sink *sink, uint64_t position)
{
    return position / sink->count * 2;
}

static void add_to_counts_of_dropped_lines(domi_sink *sink, uint64_t lines)
{
    /* Relaxed: both counts of dropped lines are plain numbers and publish nothing. */
    atomic_fetch_add_explicit(&sink->dropped_since, lines, memory_order_relaxed);
    atomic_fetch_add_explicit(&sink->dropped, lines, memory_order_relaxed);
}

/* Claim the next place of the sink's ring, which is the caller's alone until
 * publish_filled_place(). Returns NULL if no place is free. */
static place *claim_place_for_line(domi_sink *sink, uint64_t *ret_position)
{
    uint64_t position = atomic_load_explicit(&sink->tail, memory_order_relaxed);

    for (;;) {
        place *next = &sink->places[position % sink->count];
        /* acquire: pairs with the release in release_written_place(). If the place is free, the
         * sink's thread has finished reading its old line. */
        uint64_t sequence = atomic_load_explicit(&next->sequence, memory_order_acquire);

        if (sequence < get_sequence_of_free_place(sink, position))
            return NULL; /* the ring is full: this place still holds a line of the round before */
        if (sequence > get_sequence_of_free_place(sink, position)) {
            position = atomic_load_explicit(&sink->tail, memory_order_relaxed);
            continue; /* another thread has claimed this position meanwhile */
        }
        /* Relaxed: the place's `sequence` hands its content over, not `tail`. */
        if (atomic_compare_exchange_weak_explicit(&sink->tail, &position, position + 1,
                                                  memory_order_relaxed, memory_order_relaxed)) {
            *ret_position = position;
            return next;
        }
    }
}

/* Publish a place of the sink's ring that was filled, and wake the sink's thread. */
static void publish_filled_place(domi_sink *sink, place *filled, uint64_t position)
{
    filled->dropped_before = 0;
    if (atomic_load_explicit(&sink->dropped_since, memory_order_relaxed) != 0)
        filled->dropped_before =
            atomic_exchange_explicit(&sink->dropped_since, 0, memory_order_relaxed);
    /* release: pairs with the acquire in get_place_at_position_if_filled(), so that the sink's
     * thread sees the whole line. */
    atomic_store_explicit(&filled->sequence, get_sequence_of_free_place(sink, position) + 1,
                          memory_order_release);
    /* sem_post() fails only at two billion waiting posts, and then the thread wakes anyway */
    (void)sem_post(&sink->left);
}

void domi_sink_add_log_line(void *sink_, domus_log_level level, uint32_t thread, const char *text)
{
    domi_sink *sink = sink_;
    uint64_t position;
    place *next = claim_place_for_line(sink, &position);

    if (next == NULL) {
        add_to_counts_of_dropped_lines(sink, 1);
        return;
    }
    next->kind = KIND_LOG;
    next->level = level;
    next->thread = thread;
    snprintf(next->line, sizeof next->line, "%s", text);
    publish_filled_place(sink, next, position);
}

void domi_sink_add_line(domi_sink *sink, const char *format, ...)
{
    char raw[DOMUS_LOG_TEXT_MAX + 1];
    uint64_t position;
    place *next = claim_place_for_line(sink, &position);
    va_list arguments;

    if (next == NULL) {
        add_to_counts_of_dropped_lines(sink, 1);
        return;
    }
    va_start(arguments, format);
    (void)vsnprintf(raw, sizeof raw, format, arguments);
    va_end(arguments);
    next->kind = KIND_SAID;
    (void)domus_text_escape(raw, strlen(raw), next->line, sizeof next->line);
    publish_filled_place(sink, next, position);
}

static uint64_t count_lines_of_text(const char *text)
{
    uint64_t lines = 0;

    for (; (text = strchr(text, '\n')) != NULL; text++)
        lines++;
    return lines;
}

void domi_sink_add_text(domi_sink *sink, char *text)
{
    uint64_t position;
    place *next = NULL;

    /* Relaxed: the number of texts is a bound and publishes nothing. */
    if (atomic_fetch_add_explicit(&sink->texts, 1, memory_order_relaxed) < DOMI_SINK_TEXTS_MAX)
        next = claim_place_for_line(sink, &position);
    if (next == NULL) {
        atomic_fetch_sub_explicit(&sink->texts, 1, memory_order_relaxed);
        add_to_counts_of_dropped_lines(sink, count_lines_of_text(text));
        free(text);
        return;
    }
    next->kind = KIND_TEXT;
    next->text = text;
    publish_filled_place(sink, next, position);
}

uint64_t domi_sink_count_dropped_lines(void *sink)
{
    return atomic_load_explicit(&((domi_sink *)sink)->dropped, memory_order_relaxed);
}

/* --- the thread: keeping ---------------------------------------------------------------------- */

/* Returns the place at this position of the sink's ring, if it is filled; NULL if it is not. */
static place *get_place_at_position_if_filled(domi_sink *sink, uint64_t position)
{
    place *at = &sink->places[position % sink->count];

    /* acquire: pairs with the release in publish_filled_place(). */
    return atomic_load_explicit(&at->sequence, memory_order_acquire) ==
                   get_sequence_of_free_place(sink, position) + 1
               ? at
               : NULL;
}

/* Keep a line for viewers that says how many lines were dropped. */
static void keep_line_about_dropped_lines(domi_sink *sink, uint64_t lines)
{
    char text[64];

    if (sink->kept == NULL || lines == 0)
        return;
    snprintf(text, sizeof text, "%llu log lines were dropped", (unsigned long long)lines);
    domi_kept_lines_add_line(sink->kept, DOMUS_LOG_WARNING, DOMUS_LOG_OUTSIDE, text);
}

/* Keep the line of a place for viewers. A line of the program's own says by its beginning that it
 * is a warning. Texts of several lines are not kept, because one of them would take the place of
 * all lines. */
static void keep_line_of_place_for_viewers(domi_sink *sink, const place *from)
{
    static const char warning[] = "warning: ";
    bool warns = from->kind == KIND_SAID && strncmp(from->line, warning, sizeof warning - 1) == 0;

    keep_line_about_dropped_lines(sink, from->dropped_before);
    if (from->kind == KIND_LOG)
        domi_kept_lines_add_line(sink->kept, from->level, from->thread, from->line);
    else if (from->kind == KIND_SAID)
        domi_kept_lines_add_line(sink->kept, warns ? DOMUS_LOG_WARNING : DOMUS_LOG_INFO,
                                 DOMUS_LOG_OUTSIDE, from->line + (warns ? sizeof warning - 1 : 0));
}

/* Keep for viewers all lines that were left, also those that are not written yet: while nobody
 * reads the descriptor, viewers see them all the same. */
static void keep_new_lines_for_viewers(domi_sink *sink)
{
    const place *next;

    if (sink->kept == NULL)
        return;
    while ((next = get_place_at_position_if_filled(sink, sink->noted)) != NULL) {
        keep_line_of_place_for_viewers(sink, next);
        sink->noted++;
    }
}

/* --- the thread: writing ---------------------------------------------------------------------- */

/* Sleep for `ms` milliseconds, by a futex, because a filter of system calls may refuse poll(). */
static void sleep_for_ms(long ms)
{
    struct timespec until;
    sem_t never;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += ms * 1000000;
    until.tv_sec += until.tv_nsec / (long)SECOND_NS;
    until.tv_nsec %= (long)SECOND_NS;
    (void)sem_init(&never, 0, 0);
    (void)sem_timedwait(&never, &until);
    (void)sem_destroy(&never);
}

/* Wait until somebody reads the descriptor. Returns false if the time for writing is over. */
static bool wait_for_reader_of_log(domi_sink *sink)
{
    struct pollfd reader = {.fd = sink->fd, .events = POLLOUT};

    for (;;) {
        if (atomic_load_explicit((_Atomic bool *)(uintptr_t)&sink->give_up, memory_order_relaxed))
            return false;
        /* poll() also returns if no reader is left; then the write fails. If a filter of system
         * calls refuses poll(), the write has to wait. */
        int ready = poll(&reader, 1, LOOK_MS);
        if (ready > 0 || (ready < 0 && errno != EINTR))
            return true;
        keep_new_lines_for_viewers(sink);
    }
}

static bool write_all_bytes(domi_sink *sink, const char *bytes, size_t size)
{
    while (size != 0) {
        if (!wait_for_reader_of_log(sink))
            return false;
        ssize_t written = write(sink->fd, bytes, size < PIECE_BYTES ? size : PIECE_BYTES);
        if (written >= 0) {
            bytes += written;
            size -= (size_t)written;
        } else if (errno == EAGAIN) {
            keep_new_lines_for_viewers(sink);
            sleep_for_ms(LOOK_MS); /* another process has filled the pipe, or poll() was refused */
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

/* Write `lines` lines of the sink. If they could not all be written, they all count as dropped. */
static void write_or_drop_lines(domi_sink *sink, const char *bytes, size_t size, uint64_t lines)
{
    if (write_all_bytes(sink, bytes, size))
        return;
    sink->untold += lines;
    atomic_fetch_add_explicit(&sink->dropped, lines, memory_order_relaxed);
}

static void write_count_of_dropped(domi_sink *sink)
{
    char line[LINE_BYTES];

    if (sink->untold == 0)
        return;
    int length = snprintf(line, sizeof line, "%.128s: warning: %llu log lines were dropped\n",
                          sink->name, (unsigned long long)sink->untold);
    if (write_all_bytes(sink, line, (size_t)length))
        sink->untold = 0;
}

static void write_line_of_place(domi_sink *sink, const place *from)
{
    static const char *const levels[] = {"error: ", "warning: ", "info: "};
    const char *level = from->kind == KIND_LOG ? levels[from->level] : "";
    char thread[32] = "";
    char line[LINE_BYTES];

    if (from->kind == KIND_LOG && from->thread != DOMUS_LOG_OUTSIDE)
        snprintf(thread, sizeof thread, "thread %u: ", from->thread);
    int length =
        snprintf(line, sizeof line, "%.128s: %s%s%s\n", sink->name, level, thread, from->line);
    write_or_drop_lines(sink, line, (size_t)length, 1);
}

static void write_line_or_text_of_place(domi_sink *sink, place *from)
{
    sink->untold += from->dropped_before;
    write_count_of_dropped(sink);
    if (from->kind != KIND_TEXT) {
        write_line_of_place(sink, from);
        return;
    }
    write_or_drop_lines(sink, from->text, strlen(from->text), count_lines_of_text(from->text));
    free(from->text);
    from->text = NULL;
    atomic_fetch_sub_explicit(&sink->texts, 1, memory_order_relaxed);
}

/* --- the thread ------------------------------------------------------------------------------- */

static void release_written_place(domi_sink *sink, place *done)
{
    /* release: pairs with the acquire in claim_place_for_line(), one round later. */
    atomic_store_explicit(&done->sequence, get_sequence_of_free_place(sink, sink->head) + 2,
                          memory_order_release);
    sink->head++;
}

static void *run_thread_of_sink(void *sink_)
{
    domi_sink *sink = sink_;
    place *next;

    for (;;) {
        /* acquire: pairs with the release in domi_sink_close(), so that lines left before it are
         * seen below. */
        bool last = atomic_load_explicit(&sink->closing, memory_order_acquire);

        while ((next = get_place_at_position_if_filled(sink, sink->head)) != NULL) {
            keep_new_lines_for_viewers(sink);
            write_line_or_text_of_place(sink, next);
            release_written_place(sink, next);
        }
        /* No line follows the lines that were dropped last, so their number is written now. */
        uint64_t dropped = atomic_exchange_explicit(&sink->dropped_since, 0, memory_order_relaxed);
        keep_line_about_dropped_lines(sink, dropped);
        sink->untold += dropped;
        write_count_of_dropped(sink);
        if (last)
            return NULL;
        while (sem_wait(&sink->left) != 0)
            continue; /* EINTR comes from a debugger only: the thread blocks all signals */
    }
}

static int begin_thread_of_sink(domi_sink *sink)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&sink->thread, NULL, run_thread_of_sink, sink);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        (void)pthread_setname_np(sink->thread, "domus-log");
    return -error;
}

int domi_sink_open(const char *name, int fd, uint32_t lines_max, domus_log_source *ret_source,
                   domi_sink **ret_sink)
{
    domi_sink *sink = calloc(1, sizeof *sink);
    /* calloc() of so many bytes maps pages that the kernel clears when they are first used. */
    place *places = sink != NULL ? calloc(lines_max, sizeof *places) : NULL;
    int result = -ENOMEM;

    if (places == NULL)
        goto fail;
    if (ret_source != NULL && (sink->kept = domi_kept_lines_new()) == NULL)
        goto fail;
    sink->name = name;
    sink->fd = fd;
    sink->count = lines_max;
    sink->places = places;
    sink->process = getpid();
    (void)sem_init(&sink->left, 0, 0);
    result = begin_thread_of_sink(sink);
    if (result != 0)
        goto fail;
    if (ret_source != NULL)
        *ret_source = (domus_log_source){.read = domi_kept_lines_read_line, .context = sink->kept};
    *ret_sink = sink;
    return 0;

fail:
    if (sink != NULL)
        domi_kept_lines_free(sink->kept);
    free(places);
    free(sink);
    return result;
}

static uint64_t read_monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

/* Join the sink's thread within `ns`. Returns false if it has not ended by then. This polls,
 * because ThreadSanitizer does not know pthread_clockjoin_np(). */
static bool join_thread_of_sink_within(pthread_t thread, uint64_t ns)
{
    uint64_t until_ns = read_monotonic_ns() + ns;

    while (pthread_tryjoin_np(thread, NULL) != 0) {
        if (read_monotonic_ns() >= until_ns)
            return false;
        sleep_for_ms(1);
    }
    return true;
}

void domi_sink_close(domi_sink *sink, uint64_t within_ns)
{
    if (sink->process != getpid())
        return;
    /* release: pairs with the acquire in run_thread_of_sink(). */
    atomic_store_explicit(&sink->closing, true, memory_order_release);
    (void)sem_post(&sink->left);
    if (join_thread_of_sink_within(sink->thread, within_ns))
        return;
    atomic_store_explicit(&sink->give_up, true, memory_order_relaxed);
    if (join_thread_of_sink_within(sink->thread, STUCK_NS))
        return;
    sink->stuck = true;
    (void)pthread_detach(sink->thread);
}

void domi_sink_free(domi_sink *sink)
{
    if (sink == NULL || sink->stuck || sink->process != getpid())
        return;
    for (uint32_t i = 0; i < sink->count; i++)
        free(sink->places[i].text); /* a text that was left after domi_sink_close() */
    (void)sem_destroy(&sink->left);
    domi_kept_lines_free(sink->kept);
    free(sink->places);
    free(sink);
}
