/* Masks of the payloads of WebSocket frames: draws their keys, and applies them by XOR.
 *
 * A key must not be predictable for those who choose the bytes of a message, or they could make a
 * client send bytes of their choice through proxies that do not know WebSocket (RFC 6455, 10.3). So
 * keys come from the kernel. A system call for each frame would cost more than the frame, so each
 * thread draws many keys at once, and uses each once. */
#include "protocols/http/websocket/websocket.h"

#include <string.h>
#include <sys/random.h>

/* bytes of keys that a thread draws at once; getrandom() never gives fewer of so few */
#define POOL 256u

int domi_websocket_draw_random_bytes(void *to, size_t size)
{
    static _Thread_local unsigned char pool[POOL];
    static _Thread_local size_t left;

    if (left < size) {
        ssize_t drawn = getrandom(pool, POOL, 0);
        if (drawn != POOL)
            return drawn < 0 ? -errno : -EAGAIN;
        left = POOL;
    }
    left -= size;
    memcpy(to, pool + left, size);
    memset(pool + left, 0, size);
    return 0;
}

void domi_websocket_mask_payload(char *to, const char *from, size_t size, const unsigned char *key,
                                 size_t at)
{
    unsigned char turned[8];
    uint64_t word;
    size_t i = 0;

    for (size_t j = 0; j < sizeof turned; j++)
        turned[j] = key[(at + j) % DOMI_WEBSOCKET_KEY];
    memcpy(&word, turned, 8);
    for (; i + 8 <= size; i += 8) {
        uint64_t some;
        memcpy(&some, from + i, 8);
        some ^= word;
        memcpy(to + i, &some, 8);
    }
    for (; i < size; i++)
        to[i] = (char)((unsigned char)from[i] ^ turned[i % 8]);
}
