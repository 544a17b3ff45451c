/* base/siphash.c against the published vectors. */
#include "base/siphash.h"
#include "tests/support/suite.h"

static const uint64_t key[2] = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};

/* The published vectors: the bytes 0, 1, 2, ... under the key 0, 1, ..., 15. */
DOMT_TEST(siphash_gives_the_published_hashes)
{
    static const struct {
        size_t length;
        uint64_t hash;
    } vectors[] = {
        {0, UINT64_C(0x726fdb47dd0e0e31)},  {1, UINT64_C(0x74f839c593dc67fd)},
        {7, UINT64_C(0xab0200f58b01d137)},  {8, UINT64_C(0x93f5f5799a932462)},
        {15, UINT64_C(0xa129ca6149be45e5)}, {63, UINT64_C(0x958a324ceb064572)},
    };
    unsigned char bytes[64];

    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++)
        ck_assert_uint_eq(domi_siphash(key, bytes, vectors[i].length), vectors[i].hash);
}

DOMT_SUITE(10)
