/* Runs a pipeline over the same bytes in several pieces, and over the bytes that it has encoded
 * itself. */
#include "base/check.h"

#include "tests/fuzz/support/fuzz.h"
#include "tests/support/stages.h"

#define DRIP_MAX                                                                                   \
    256u /* largest input in bytes that is always decoded byte by byte, beside other pieces */

/* Decode the input in pieces whose random sizes depend on the bytes alone, and in pieces of one
 * small size. A longer input is decoded byte by byte only now and then, because that takes long. */
static void check_decoding_in_pieces(const domus_pipeline *pipeline, const uint8_t *bytes,
                                     size_t size, const domt_decoded *whole)
{
    uint64_t seed = UINT64_C(0x9e3779b97f4a7c15) ^ size;
    domt_decoded decoded;

    for (size_t i = 0; i < size; i += size / 64 + 1)
        seed = (seed ^ bytes[i]) * UINT64_C(0x100000001b3);
    seed |= 1;
    size_t step = size <= DRIP_MAX ? 1 : 1 + (size_t)(seed >> 40) % 16 * (size / 4096 + 1);
    domt_decode_in_pieces(pipeline, bytes, size, domt_size_of_next_random_piece, &seed, &decoded,
                          NULL);
    DOMI_CHECK(domt_decoded_equals(whole, &decoded));
    domt_decoded_clear(&decoded);
    domt_decode_in_pieces(pipeline, bytes, size, domt_size_of_next_equal_piece, &step, &decoded,
                          NULL);
    DOMI_CHECK(domt_decoded_equals(whole, &decoded));
    domt_decoded_clear(&decoded);
}

void domt_fuzz_check_same_packets_in_pieces(const domus_pipeline *pipeline, const uint8_t *bytes,
                                            size_t size)
{
    domt_decoded whole;
    domt_decoded encoded;
    domt_decoded again;
    domt_decoded encoded_again;

    domt_decode_in_pieces(pipeline, bytes, size, NULL, NULL, &whole, &encoded);
    check_decoding_in_pieces(pipeline, bytes, size, &whole);

    domt_decode_in_pieces(pipeline, encoded.text, encoded.size, NULL, NULL, &again, &encoded_again);
    whole.error = 0; /* the error that ended the first run is not a part of the encoded bytes */
    DOMI_CHECK(domt_decoded_equals(&whole, &again));
    DOMI_CHECK(domt_decoded_equals(&encoded, &encoded_again));
    domt_decoded_clear(&whole);
    domt_decoded_clear(&encoded);
    domt_decoded_clear(&again);
    domt_decoded_clear(&encoded_again);
}

uint32_t domt_fuzz_limit_of_choice(uint8_t choice, uint32_t most)
{
    switch (choice % 8) {
    case 0:
    case 1:
        return 0;
    case 2:
        return most;
    case 3:
        return most < 300 ? most : 300;
    default:
        return choice / 8 + 1u;
    }
}
