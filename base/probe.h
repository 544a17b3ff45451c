/* Probes: places at which a tracer of the kernel (bpftrace, perf, SystemTap) may stop a program and
 * read some values, as user-level statically defined tracing (USDT). A program that nobody traces
 * runs one nop instruction at each probe, and a note in its executable file says where the probe's
 * values lie. Nothing is computed for a probe, so its values may only be ones that are there
 * anyway.
 *
 * The names and values are listed in examples/trace/README.md. Without sys/sdt.h, or with the
 * option DOMUS_USDT off, there are no probes. */
#ifndef DOMI_BASE_PROBE_H
#define DOMI_BASE_PROBE_H

#ifdef DOMI_USDT

#include <sys/sdt.h>

/* Clang warns wherever the macros of sys/sdt.h are used, because of the way in which they end lists
 * of arguments; so the warning is off from here on. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments"
#endif

#define DOMI_PROBE_1(name, a)          STAP_PROBE1(domus, name, a)
#define DOMI_PROBE_2(name, a, b)       STAP_PROBE2(domus, name, a, b)
#define DOMI_PROBE_3(name, a, b, c)    STAP_PROBE3(domus, name, a, b, c)
#define DOMI_PROBE_4(name, a, b, c, d) STAP_PROBE4(domus, name, a, b, c, d)

#else

#define DOMI_PROBE_1(name, a)       ((void)sizeof(a))
#define DOMI_PROBE_2(name, a, b)    ((void)sizeof(a), (void)sizeof(b))
#define DOMI_PROBE_3(name, a, b, c) ((void)sizeof(a), (void)sizeof(b), (void)sizeof(c))
#define DOMI_PROBE_4(name, a, b, c, d)                                                             \
    ((void)sizeof(a), (void)sizeof(b), (void)sizeof(c), (void)sizeof(d))

#endif

#endif
