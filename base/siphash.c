/* The reference code of SipHash reads words in little-endian order, as this machine has them. */
#include "base/siphash.h"

#include <string.h>

static uint64_t rotate_left(uint64_t word, unsigned by)
{
    return word << by | word >> (64 - by);
}

/* Do `count` rounds of SipHash on the state. */
static void run_sip_rounds(uint64_t state[4], unsigned count)
{
    for (; count > 0; count--) {
        state[0] += state[1];
        state[2] += state[3];
        state[1] = rotate_left(state[1], 13) ^ state[0];
        state[3] = rotate_left(state[3], 16) ^ state[2];
        state[0] = rotate_left(state[0], 32);
        state[2] += state[1];
        state[0] += state[3];
        state[1] = rotate_left(state[1], 17) ^ state[2];
        state[3] = rotate_left(state[3], 21) ^ state[0];
        state[2] = rotate_left(state[2], 32);
    }
}

/* Mix the next 8-byte word of the message into the state of SipHash. */
static void mix_word_into_state(uint64_t state[4], uint64_t word)
{
    state[3] ^= word;
    run_sip_rounds(state, 2);
    state[0] ^= word;
}

uint64_t domi_siphash(const uint64_t key[2], const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    uint64_t word;
    uint64_t state[4] = {
        key[0] ^ UINT64_C(0x736f6d6570736575),
        key[1] ^ UINT64_C(0x646f72616e646f6d),
        key[0] ^ UINT64_C(0x6c7967656e657261),
        key[1] ^ UINT64_C(0x7465646279746573),
    };

    for (size_t left = length; left >= sizeof word; left -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        mix_word_into_state(state, word);
    }
    /* last word of SipHash: the message's bytes that are left, and its length in the uppermost
     * byte */
    word = 0;
    memcpy(&word, at, length % sizeof word);
    mix_word_into_state(state, word | (uint64_t)length << 56);
    state[2] ^= 0xff;
    run_sip_rounds(state, 4);
    return state[0] ^ state[1] ^ state[2] ^ state[3];
}
