/* Draws random secrets. They come from the kernel and not from the seeded source of base/random.h,
 * which could be predicted, so a run that is replayed by its seed has other ids. Any thread. */
#ifndef DOMI_PROTOCOLS_HTTP_SESSION_DRAW_H
#define DOMI_PROTOCOLS_HTTP_SESSION_DRAW_H

#include <errno.h>
#include <stddef.h>
#include <sys/random.h>

/* Fill up to 256 bytes with random ones, which the kernel gives at once. Returns 0; the error of
 * getrandom(2). */
static inline int domi_http_draw(void *to, size_t size)
{
    ssize_t drawn = getrandom(to, size, 0);

    if (drawn == (ssize_t)size)
        return 0;
    return drawn < 0 ? -errno : -EAGAIN;
}

#endif
