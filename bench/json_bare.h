/* RapidJSON by itself, with which `bench json` compares domus. */
#ifndef BENCH_JSON_BARE_H
#define BENCH_JSON_BARE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Parse a text in place, which ends with a zero byte. Returns a sum of all values found, so that
 * the compiler leaves no work out; 0: the text is wrong. */
uint64_t bench_json_bare(char *text);

#ifdef __cplusplus
}
#endif

#endif
