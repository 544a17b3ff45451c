/* Marks memory that must not be touched, for AddressSanitizer; without that sanitizer these
 * functions do nothing. The memory is part of a block of the heap or of pages, and is unpoisoned
 * before that is freed. */
#ifndef DOMI_BASE_POISON_H
#define DOMI_BASE_POISON_H

#if defined(__SANITIZE_ADDRESS__)
#define DOMI_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DOMI_ASAN 1
#endif
#endif

#ifdef DOMI_ASAN
#include <sanitizer/asan_interface.h>
#define DOMI_POISON(memory, bytes)   ASAN_POISON_MEMORY_REGION((memory), (bytes))
#define DOMI_UNPOISON(memory, bytes) ASAN_UNPOISON_MEMORY_REGION((memory), (bytes))
#else
#define DOMI_POISON(memory, bytes)   ((void)(memory), (void)(bytes))
#define DOMI_UNPOISON(memory, bytes) ((void)(memory), (void)(bytes))
#endif

#endif
