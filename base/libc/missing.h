/* Definitions of what this C library has not, by the probes of libc.cmake. Where something is
 * missing, this file comes before each source (-include); with glibc it is not used. */
#ifndef DOMI_BASE_LIBC_MISSING_H
#define DOMI_BASE_LIBC_MISSING_H

#ifdef DOMI_LIBC_WITHOUT_ERRNO_NAMES

#include <errno.h>
#include <string.h>

#define DOMI_ERRNO_NAME(name)                                                                      \
    case name:                                                                                     \
        return #name;

static inline const char *strerrorname_np(int error)
{
    switch (error) {
        /* clang-format off */
        DOMI_ERRNO_NAME(EPERM)
        DOMI_ERRNO_NAME(ENOENT)
        DOMI_ERRNO_NAME(ESRCH)
        DOMI_ERRNO_NAME(EINTR)
        DOMI_ERRNO_NAME(EIO)
        DOMI_ERRNO_NAME(ENXIO)
        DOMI_ERRNO_NAME(E2BIG)
        DOMI_ERRNO_NAME(ENOEXEC)
        DOMI_ERRNO_NAME(EBADF)
        DOMI_ERRNO_NAME(ECHILD)
        DOMI_ERRNO_NAME(EAGAIN)
        DOMI_ERRNO_NAME(ENOMEM)
        DOMI_ERRNO_NAME(EACCES)
        DOMI_ERRNO_NAME(EFAULT)
        DOMI_ERRNO_NAME(ENOTBLK)
        DOMI_ERRNO_NAME(EBUSY)
        DOMI_ERRNO_NAME(EEXIST)
        DOMI_ERRNO_NAME(EXDEV)
        DOMI_ERRNO_NAME(ENODEV)
        DOMI_ERRNO_NAME(ENOTDIR)
        DOMI_ERRNO_NAME(EISDIR)
        DOMI_ERRNO_NAME(EINVAL)
        DOMI_ERRNO_NAME(ENFILE)
        DOMI_ERRNO_NAME(EMFILE)
        DOMI_ERRNO_NAME(ENOTTY)
        DOMI_ERRNO_NAME(ETXTBSY)
        DOMI_ERRNO_NAME(EFBIG)
        DOMI_ERRNO_NAME(ENOSPC)
        DOMI_ERRNO_NAME(ESPIPE)
        DOMI_ERRNO_NAME(EROFS)
        DOMI_ERRNO_NAME(EMLINK)
        DOMI_ERRNO_NAME(EPIPE)
        DOMI_ERRNO_NAME(EDOM)
        DOMI_ERRNO_NAME(ERANGE)
        DOMI_ERRNO_NAME(ENAMETOOLONG)
        DOMI_ERRNO_NAME(ENOLCK)
        DOMI_ERRNO_NAME(ENOSYS)
        DOMI_ERRNO_NAME(ENOTEMPTY)
        DOMI_ERRNO_NAME(ELOOP)
        DOMI_ERRNO_NAME(ENOMSG)
        DOMI_ERRNO_NAME(EIDRM)
        DOMI_ERRNO_NAME(ECHRNG)
        DOMI_ERRNO_NAME(EL2NSYNC)
        DOMI_ERRNO_NAME(EL3HLT)
        DOMI_ERRNO_NAME(EL3RST)
        DOMI_ERRNO_NAME(ELNRNG)
        DOMI_ERRNO_NAME(EUNATCH)
        DOMI_ERRNO_NAME(ENOCSI)
        DOMI_ERRNO_NAME(EL2HLT)
        DOMI_ERRNO_NAME(EBADE)
        DOMI_ERRNO_NAME(EBADR)
        DOMI_ERRNO_NAME(EXFULL)
        DOMI_ERRNO_NAME(ENOANO)
        DOMI_ERRNO_NAME(EBADRQC)
        DOMI_ERRNO_NAME(EBADSLT)
        DOMI_ERRNO_NAME(EBFONT)
        DOMI_ERRNO_NAME(ENOSTR)
        DOMI_ERRNO_NAME(ENODATA)
        DOMI_ERRNO_NAME(ETIME)
        DOMI_ERRNO_NAME(ENOSR)
        DOMI_ERRNO_NAME(ENONET)
        DOMI_ERRNO_NAME(ENOPKG)
        DOMI_ERRNO_NAME(EREMOTE)
        DOMI_ERRNO_NAME(ENOLINK)
        DOMI_ERRNO_NAME(EADV)
        DOMI_ERRNO_NAME(ESRMNT)
        DOMI_ERRNO_NAME(ECOMM)
        DOMI_ERRNO_NAME(EPROTO)
        DOMI_ERRNO_NAME(EMULTIHOP)
        DOMI_ERRNO_NAME(EDOTDOT)
        DOMI_ERRNO_NAME(EBADMSG)
        DOMI_ERRNO_NAME(EOVERFLOW)
        DOMI_ERRNO_NAME(ENOTUNIQ)
        DOMI_ERRNO_NAME(EBADFD)
        DOMI_ERRNO_NAME(EREMCHG)
        DOMI_ERRNO_NAME(ELIBACC)
        DOMI_ERRNO_NAME(ELIBBAD)
        DOMI_ERRNO_NAME(ELIBSCN)
        DOMI_ERRNO_NAME(ELIBMAX)
        DOMI_ERRNO_NAME(ELIBEXEC)
        DOMI_ERRNO_NAME(EILSEQ)
        DOMI_ERRNO_NAME(ERESTART)
        DOMI_ERRNO_NAME(ESTRPIPE)
        DOMI_ERRNO_NAME(EUSERS)
        DOMI_ERRNO_NAME(ENOTSOCK)
        DOMI_ERRNO_NAME(EDESTADDRREQ)
        DOMI_ERRNO_NAME(EMSGSIZE)
        DOMI_ERRNO_NAME(EPROTOTYPE)
        DOMI_ERRNO_NAME(ENOPROTOOPT)
        DOMI_ERRNO_NAME(EPROTONOSUPPORT)
        DOMI_ERRNO_NAME(ESOCKTNOSUPPORT)
        DOMI_ERRNO_NAME(EPFNOSUPPORT)
        DOMI_ERRNO_NAME(EAFNOSUPPORT)
        DOMI_ERRNO_NAME(EADDRINUSE)
        DOMI_ERRNO_NAME(EADDRNOTAVAIL)
        DOMI_ERRNO_NAME(ENETDOWN)
        DOMI_ERRNO_NAME(ENETUNREACH)
        DOMI_ERRNO_NAME(ENETRESET)
        DOMI_ERRNO_NAME(ECONNABORTED)
        DOMI_ERRNO_NAME(ECONNRESET)
        DOMI_ERRNO_NAME(ENOBUFS)
        DOMI_ERRNO_NAME(EISCONN)
        DOMI_ERRNO_NAME(ENOTCONN)
        DOMI_ERRNO_NAME(ESHUTDOWN)
        DOMI_ERRNO_NAME(ETOOMANYREFS)
        DOMI_ERRNO_NAME(ETIMEDOUT)
        DOMI_ERRNO_NAME(ECONNREFUSED)
        DOMI_ERRNO_NAME(EHOSTDOWN)
        DOMI_ERRNO_NAME(EHOSTUNREACH)
        DOMI_ERRNO_NAME(EALREADY)
        DOMI_ERRNO_NAME(EINPROGRESS)
        DOMI_ERRNO_NAME(ESTALE)
        DOMI_ERRNO_NAME(EUCLEAN)
        DOMI_ERRNO_NAME(ENOTNAM)
        DOMI_ERRNO_NAME(ENAVAIL)
        DOMI_ERRNO_NAME(EISNAM)
        DOMI_ERRNO_NAME(EREMOTEIO)
        DOMI_ERRNO_NAME(EDQUOT)
        DOMI_ERRNO_NAME(ENOMEDIUM)
        DOMI_ERRNO_NAME(EMEDIUMTYPE)
        DOMI_ERRNO_NAME(ECANCELED)
        DOMI_ERRNO_NAME(ENOKEY)
        DOMI_ERRNO_NAME(EKEYEXPIRED)
        DOMI_ERRNO_NAME(EKEYREVOKED)
        DOMI_ERRNO_NAME(EKEYREJECTED)
        DOMI_ERRNO_NAME(EOWNERDEAD)
        DOMI_ERRNO_NAME(ENOTRECOVERABLE)
        DOMI_ERRNO_NAME(ERFKILL)
        /* clang-format on */
    case 0:
        return "0";
    default:
        return NULL;
    }
}

/* strerror() of musl is as safe between threads as this is elsewhere. */
static inline const char *strerrordesc_np(int error)
{
    return strerror(error);
}

#endif

#ifdef DOMI_LIBC_WITHOUT_MALLOC_TRIM

#include <stddef.h>

/* The heap has nothing to give back that it did not give back by itself. */
static inline int malloc_trim(size_t pad)
{
    (void)pad;
    return 0;
}

#endif

#ifdef DOMI_LIBC_WITHOUT_DLADDR1

#include <dlfcn.h>
#include <link.h>

#define RTLD_DL_LINKMAP 2

/* The module is the one in the list whose name is the very same text. */
static inline int dladdr1(const void *at, Dl_info *info, void **ret_map, int flags)
{
    void *self = dlopen(NULL, RTLD_LAZY);
    struct link_map *map = NULL;

    (void)flags;
    if (dladdr(at, info) == 0 || self == NULL || dlinfo(self, RTLD_DI_LINKMAP, &map) != 0)
        return 0;
    while (map != NULL && map->l_name != info->dli_fname)
        map = map->l_next;
    *ret_map = map;
    return map != NULL;
}

#endif

/* What follows are calls of the kernel, which musl has since 1.2.5. */

#ifdef DOMI_LIBC_WITHOUT_STATX

#include <linux/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int statx(int directory, const char *path, int flags, unsigned mask,
                        struct statx *ret_status)
{
    return (int)syscall(SYS_statx, directory, path, flags, mask, ret_status);
}

#endif

#ifdef DOMI_LIBC_WITHOUT_RENAMEAT2

#include <linux/fs.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
    return (int)syscall(SYS_renameat2, from, old, to, new, flags);
}

#endif

#ifdef DOMI_LIBC_WITHOUT_PREADV2

#include <linux/fs.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* The kernel takes the offset in two halves, of which 64-bit machines use the first. */
static inline ssize_t preadv2(int fd, const struct iovec *pieces, int count, off_t at, int flags)
{
    return syscall(SYS_preadv2, fd, pieces, count, at, 0, flags);
}

static inline ssize_t pwritev2(int fd, const struct iovec *pieces, int count, off_t at, int flags)
{
    return syscall(SYS_pwritev2, fd, pieces, count, at, 0, flags);
}

#endif

#endif
