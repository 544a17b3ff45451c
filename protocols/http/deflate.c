/* Compresses bodies by zlib, with streams that are reused for later answers.
 *
 * Idle streams are kept in the slots of a pool, and a thread takes one out or puts one in by
 * exchanging a slot: so no lock is held, and a stream belongs to one thread at a time. Any
 * thread. */
#include "protocols/http/coding.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#define WINDOW_BITS 13 /* zlib's window of 8 KiB, for which it allocates 4 times as much */
#define GZIP_HEAD   16 /* added to zlib's window bits: selects the head and checksum of gzip */
#define MEMORY      6  /* zlib's memLevel, for 32 KiB of tables */

#define STREAMS_DEFAULT 64u
#define LEAST_DEFAULT   512u
#define WHOLE_DEFAULT   65536u
#define LEVEL_DEFAULT   1

struct domi_http_deflater {
    z_stream zlib;
    domus_http_gzip *pool;
    domi_http_deflater *next; /* the next stream in the list of a channel's streams */
    domi_http_deflater **place;
    uint64_t left;   /* bytes of the answer's body that are still expected */
    bool is_counted; /* `left` is valid, because the length of the answer's body is known */
    int level;
    int flush; /* zlib's flush mode for the bytes that were given last */
    bool is_stored;
    unsigned char room[DOMI_HTTP_DEFLATED_ROOM];
};

uint32_t domi_http_gzip_least_size(const domus_http_gzip *gzip)
{
    return gzip->least != 0 ? gzip->least : LEAST_DEFAULT;
}

uint32_t domi_http_gzip_max_whole_size(const domus_http_gzip *gzip)
{
    return gzip->whole_max != 0 ? gzip->whole_max : WHOLE_DEFAULT;
}

/* --- the pool --------------------------------------------------------------------------------- */

static void free_stream_of_zlib(domi_http_deflater *deflater)
{
    /* Relaxed, as all accesses of the pool's count of streams: it guards nothing else. */
    (void)__atomic_sub_fetch(&deflater->pool->streams, 1, __ATOMIC_RELAXED);
    (void)deflateEnd(&deflater->zlib);
    free(deflater);
}

static domi_http_deflater *make_stream_of_zlib(domus_http_gzip *gzip)
{
    uint32_t streams_max = gzip->streams_max != 0 ? gzip->streams_max : STREAMS_DEFAULT;
    domi_http_deflater *deflater = NULL;

    if (__atomic_add_fetch(&gzip->streams, 1, __ATOMIC_RELAXED) <= streams_max)
        deflater = calloc(1, sizeof *deflater);
    if (deflater != NULL) {
        deflater->pool = gzip;
        deflater->level = gzip->level != 0 ? gzip->level : LEVEL_DEFAULT;
        if (deflateInit2(&deflater->zlib, deflater->level, Z_DEFLATED, WINDOW_BITS + GZIP_HEAD,
                         MEMORY, Z_DEFAULT_STRATEGY) == Z_OK)
            return deflater;
        free(deflater);
    }
    (void)__atomic_sub_fetch(&gzip->streams, 1, __ATOMIC_RELAXED);
    return NULL;
}

/* Take an idle stream from the pool. Acquire and release: a thread sees what the stream's last user
 * has done with it. */
static domi_http_deflater *take_idle_stream_from_pool(domus_http_gzip *gzip)
{
    for (uint32_t i = 0; i < DOMUS_HTTP_GZIP_IDLE; i++) {
        if (__atomic_load_n(&gzip->idle[i], __ATOMIC_RELAXED) == NULL)
            continue;
        domi_http_deflater *idle = __atomic_exchange_n(&gzip->idle[i], NULL, __ATOMIC_ACQUIRE);
        if (idle != NULL)
            return idle;
    }
    return NULL;
}

domi_http_deflater *domi_http_deflater_take_from_pool(domus_http_gzip *gzip)
{
    domi_http_deflater *deflater = take_idle_stream_from_pool(gzip);

    if (deflater == NULL)
        return make_stream_of_zlib(gzip);
    if (deflater->is_stored)
        (void)deflateParams(&deflater->zlib, deflater->level, Z_DEFAULT_STRATEGY);
    deflater->is_stored = deflater->is_counted = false;
    return deflater;
}

void domi_http_deflater_give_back(domi_http_deflater *deflater)
{
    domus_http_gzip *gzip = deflater->pool;

    if (deflater->place != NULL) {
        *deflater->place = deflater->next;
        if (deflater->next != NULL)
            deflater->next->place = deflater->place;
        deflater->place = NULL;
    }
    (void)deflateReset(&deflater->zlib);
    for (uint32_t i = 0; i < DOMUS_HTTP_GZIP_IDLE; i++) {
        void *empty = NULL;
        if (__atomic_compare_exchange_n(&gzip->idle[i], &empty, deflater, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
            return;
    }
    free_stream_of_zlib(deflater);
}

void domus_http_gzip_trim(domus_http_gzip *gzip)
{
    domi_http_deflater *idle;

    while ((idle = take_idle_stream_from_pool(gzip)) != NULL)
        free_stream_of_zlib(idle);
}

void domi_http_deflater_add_to_list(domi_http_deflater *deflater, domi_http_deflater **list)
{
    deflater->place = list;
    deflater->next = *list;
    if (deflater->next != NULL)
        deflater->next->place = &deflater->next;
    *list = deflater;
}

void domi_http_deflaters_give_all_back(domi_http_deflater **list)
{
    while (*list != NULL)
        domi_http_deflater_give_back(*list);
}

/* --- compressing bytes ------------------------------------------------------------------------ */

/* Switch the stream to storing bytes uncompressed, or back to compressing. Nothing may be pending,
 * so zlib has nothing to write. */
static void switch_between_storing_and_deflating(domi_http_deflater *deflater, bool is_stored)
{
    if (deflater->is_stored == is_stored)
        return;
    deflater->is_stored = is_stored;
    deflater->zlib.next_out = deflater->room;
    deflater->zlib.avail_out = sizeof deflater->room;
    (void)deflateParams(&deflater->zlib, is_stored ? 0 : deflater->level, Z_DEFAULT_STRATEGY);
}

void domi_http_deflate_set_input(domi_http_deflater *deflater, const char *bytes, uint32_t size,
                                 bool is_last)
{
    switch_between_storing_and_deflating(deflater,
                                         size > domi_http_gzip_max_whole_size(deflater->pool));
    deflater->zlib.next_in = (Bytef *)(uintptr_t)bytes;
    deflater->zlib.avail_in = size;
    deflater->flush = is_last ? Z_FINISH : Z_SYNC_FLUSH;
}

uint32_t domi_http_deflate_next_output(domi_http_deflater *deflater, const char **ret_bytes)
{
    z_stream *zlib = &deflater->zlib;

    if (deflater->flush == Z_NO_FLUSH)
        return 0;
    zlib->next_out = deflater->room;
    zlib->avail_out = sizeof deflater->room;
    (void)deflate(zlib, deflater->flush);
    if (zlib->avail_out != 0) /* the output still has room, so zlib has nothing more to write */
        deflater->flush = Z_NO_FLUSH;
    *ret_bytes = (const char *)deflater->room;
    return (uint32_t)sizeof deflater->room - zlib->avail_out;
}

int domi_http_deflate_whole_body(domi_http_deflater *deflater, const char *bytes, uint32_t size,
                                 domus_slice *ret_slice)
{
    domus_appender packed = {.size_max = size != 0 ? size - 1 : 1};
    const char *some;
    uint32_t count;

    domi_http_deflate_set_input(deflater, bytes, size, true);
    while ((count = domi_http_deflate_next_output(deflater, &some)) != 0) {
        if (domus_append(&packed, some, count) != 0)
            break;
    }
    return domus_append_end(&packed, ret_slice);
}

void domi_http_deflater_expect_length(domi_http_deflater *deflater, uint64_t length)
{
    deflater->is_counted = true;
    deflater->left = length;
}

bool domi_http_deflater_count_body_bytes(domi_http_deflater *deflater, uint32_t size)
{
    if (!deflater->is_counted)
        return true;
    if (size > deflater->left)
        return false;
    deflater->left -= size;
    return true;
}

bool domi_http_deflater_is_announced_length_reached(const domi_http_deflater *deflater)
{
    return !deflater->is_counted || deflater->left == 0;
}
