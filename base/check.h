/* Checks that stay in release builds. A failed check means a bug in domus, so it ends the process.
 *
 * A check prints the expression that failed, its place and a backtrace, and aborts. A condition
 * that a user, a peer or the kernel can cause is an error value and never a check. DOMI_CHECK_SLOW
 * is for walks and other costly properties: it is active only in builds with DOMI_SLOW_CHECKS (dev
 * and the sanitizer presets). */
#ifndef DOMI_BASE_CHECK_H
#define DOMI_BASE_CHECK_H

_Noreturn void domi_check_failed(const char *expression, const char *file, int line,
                                 const char *function);

/* hint to the compiler: the condition is true nearly always */
#define DOMI_LIKELY(x) __builtin_expect(!!(x), 1)
/* hint to the compiler: the condition is false nearly always */
#define DOMI_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Force the inlining of a function, for the few functions on the path of every message that must
 * not become calls. */
#define DOMI_INLINE __attribute__((always_inline)) static inline

/* The stack protector puts a canary into each function that hands out the address of a local. This
 * macro takes the canary out of a function that runs once per message. It is only for functions
 * without an array among their locals, because only an array can be written past its end. In builds
 * with DOMUS_HARDENED these functions keep their canary. */
#ifdef DOMI_HARDENED
#define DOMI_NO_CANARY
#else
#define DOMI_NO_CANARY __attribute__((no_stack_protector))
#endif

/* End the process if `expression` is false, in every build: only a bug can make it false. */
#define DOMI_CHECK(expression)                                                                     \
    (DOMI_LIKELY(expression) ? (void)0                                                             \
                             : domi_check_failed(#expression, __FILE__, __LINE__, __func__))

/* End the process at a place that only a bug in domus can reach; `what` is the text that says what
 * happened. */
#define DOMI_NEVER(what) domi_check_failed(what, __FILE__, __LINE__, __func__)

/* Check `expression` as DOMI_CHECK() does, but only in dev, asan and tsan builds: for what costs
 * more than a comparison. */
#ifdef DOMI_SLOW_CHECKS
#define DOMI_CHECK_SLOW(expression) DOMI_CHECK(expression)
#else
#define DOMI_CHECK_SLOW(expression) ((void)sizeof(expression))
#endif

#endif
