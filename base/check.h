/* Checks that stay in release builds: what only a bug in domus can cause ends the process.
 *
 * A check prints what failed and where, a backtrace, and aborts. What a user, a peer or the kernel
 * can cause is an error value, never a check. DOMI_CHECK_SLOW is for walks and costly properties:
 * only in builds with DOMI_SLOW_CHECKS (dev and the sanitizer presets). */
#ifndef DOMI_BASE_CHECK_H
#define DOMI_BASE_CHECK_H

_Noreturn void domi_check_failed(const char *expression, const char *file, int line,
                                 const char *function);

#define DOMI_LIKELY(x)   __builtin_expect(!!(x), 1)
#define DOMI_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* For the few functions of the message path that must not become calls. */
#define DOMI_INLINE __attribute__((always_inline)) static inline

/* The stack protector puts a canary into each function that hands out the address of a local. For a
 * function that runs per message, and whose locals hold no array, this takes the canary out again:
 * nobody can write past the end of what is not an array. DOMUS_HARDENED puts a canary into these
 * functions, too. */
#ifdef DOMI_HARDENED
#define DOMI_NO_CANARY
#else
#define DOMI_NO_CANARY __attribute__((no_stack_protector))
#endif

#define DOMI_CHECK(expression)                                                                     \
    (DOMI_LIKELY(expression) ? (void)0                                                             \
                             : domi_check_failed(#expression, __FILE__, __LINE__, __func__))

#ifdef DOMI_SLOW_CHECKS
#define DOMI_CHECK_SLOW(expression) DOMI_CHECK(expression)
#else
#define DOMI_CHECK_SLOW(expression) ((void)sizeof(expression))
#endif

#endif
