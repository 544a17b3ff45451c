/* The property that all fuzzers of pipelines hold: bytes in any pieces give the same messages and
 * the same error, and messages that are encoded again are decoded to the same.
 *
 * A fuzzer is a file in tests/fuzz/ with LLVMFuzzerTestOneInput(), and a tar archive of inputs in
 * tests/fuzz/corpus/, which `./dev fuzz NAME 60 --keep` writes anew; `./dev fuzz NAME --add FILE
 * ...` puts single inputs into it, such as one that failed. The first bytes of an input choose
 * options, the others are those of the peer. `./dev test` runs each with driver.c, `./dev fuzz`
 * with libFuzzer. */
#ifndef DOMT_FUZZ_H
#define DOMT_FUZZ_H

#include <domus/pipeline.h>

#include <stdint.h>
#include <stdlib.h>

/* End the process if this does not hold: a fuzzer tells of a fault by its death. */
static inline void domt_fuzz_abort_unless(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Check for a pipeline whose messages are packets that pieces of any size give the same messages,
 * and that these are decoded from their own encoding again. */
void domt_fuzz_check_same_packets_in_pieces(const domus_pipeline *pipeline, const uint8_t *bytes,
                                            size_t size);

/* Returns a limit of size that a byte of an input chooses: the default, a small one, or the
 * largest. */
uint32_t domt_fuzz_limit_of_choice(uint8_t choice, uint32_t most);

#endif
