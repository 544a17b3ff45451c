/* SipHash-2-4 by Aumasson and Bernstein: a keyed hash for tables whose keys strangers choose. */
#ifndef DOMI_BASE_SIPHASH_H
#define DOMI_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t domi_siphash(const uint64_t key[2], const void *bytes, size_t length);

#endif
