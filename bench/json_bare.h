/* RapidJSON by itself, beside which `bench json` is measured. */
#ifndef BENCH_JSON_BARE_H
#define BENCH_JSON_BARE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Take a text apart, which ends with a zero, in its place. Returns a sum of what was found, so that
 * nothing of it is left out; 0: it is wrong. */
uint64_t bench_json_bare(char *text);

#ifdef __cplusplus
}
#endif

#endif
