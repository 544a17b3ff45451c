/* The header <execinfo.h> for a C library without it: backtrace() by the unwinder of gcc.
 * Without that, too, a backtrace has one frame, the place that asked for it.
 *
 * The unwinder asks the C library for the modules. musl takes a lock there, so a signal that comes
 * while the same thread loads a library could wait for ever; domus loads none. */
#ifndef DOMI_BASE_LIBC_WITHOUT_EXECINFO_H
#define DOMI_BASE_LIBC_WITHOUT_EXECINFO_H

#ifdef DOMI_LIBC_WITHOUT_UNWINDER

static inline int backtrace(void **frames, int size)
{
    if (size < 1)
        return 0;
    frames[0] = __builtin_return_address(0);
    return 1;
}

#else

#include <unwind.h>

struct domi_unwound {
    void **frames;
    int count;
    int size;
};

static inline _Unwind_Reason_Code domi_unwind_one_frame(struct _Unwind_Context *context, void *to)
{
    struct domi_unwound *unwound = (struct domi_unwound *)to;

    if (unwound->count == unwound->size)
        return _URC_END_OF_STACK;
    unwound->frames[unwound->count++] = (void *)_Unwind_GetIP(context);
    return _URC_NO_REASON;
}

static inline int backtrace(void **frames, int size)
{
    struct domi_unwound unwound = {frames, 0, size};

    (void)_Unwind_Backtrace(domi_unwind_one_frame, &unwound);
    return unwound.count;
}

#endif

#endif
