/* Tells whether this build has sanitizers. They make everything slow, so tests do less work under
 * them. */
#ifndef DOMT_SANITIZER_H
#define DOMT_SANITIZER_H

#if defined(__SANITIZE_ADDRESS__)
#define DOMT_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define DOMT_TSAN 1
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DOMT_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define DOMT_TSAN 1
#endif
#endif

#ifndef DOMT_ASAN
#define DOMT_ASAN 0
#endif
#ifndef DOMT_TSAN
#define DOMT_TSAN 0
#endif
#define DOMT_SANITIZED (DOMT_ASAN || DOMT_TSAN)

/* A number of rounds or a length of time for a test: `count` in a plain build, `fewer` in a build
 * with a sanitizer. */
#define DOMT_SCALE(count, fewer) (DOMT_SANITIZED ? (fewer) : (count))

#endif
