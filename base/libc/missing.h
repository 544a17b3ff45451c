/* Definitions of functions that the C library of this build lacks, as the probes of libc.cmake have
 * found. Where one is missing, the compiler includes this file before each source (-include); with
 * glibc it is not used. */
#ifndef DOMI_BASE_LIBC_MISSING_H
#define DOMI_BASE_LIBC_MISSING_H

#ifdef DOMI_LIBC_WITHOUT_ERRNO_NAMES

#include <errno.h>
#include <string.h>

/* clang-format off */
__attribute__((unused)) static const char *const domi_errno_names[] = {
    [0] = "0",
    [EPERM] = "EPERM",
    [ENOENT] = "ENOENT",
    [ESRCH] = "ESRCH",
    [EINTR] = "EINTR",
    [EIO] = "EIO",
    [ENXIO] = "ENXIO",
    [E2BIG] = "E2BIG",
    [ENOEXEC] = "ENOEXEC",
    [EBADF] = "EBADF",
    [ECHILD] = "ECHILD",
    [EAGAIN] = "EAGAIN",
    [ENOMEM] = "ENOMEM",
    [EACCES] = "EACCES",
    [EFAULT] = "EFAULT",
    [ENOTBLK] = "ENOTBLK",
    [EBUSY] = "EBUSY",
    [EEXIST] = "EEXIST",
    [EXDEV] = "EXDEV",
    [ENODEV] = "ENODEV",
    [ENOTDIR] = "ENOTDIR",
    [EISDIR] = "EISDIR",
    [EINVAL] = "EINVAL",
    [ENFILE] = "ENFILE",
    [EMFILE] = "EMFILE",
    [ENOTTY] = "ENOTTY",
    [ETXTBSY] = "ETXTBSY",
    [EFBIG] = "EFBIG",
    [ENOSPC] = "ENOSPC",
    [ESPIPE] = "ESPIPE",
    [EROFS] = "EROFS",
    [EMLINK] = "EMLINK",
    [EPIPE] = "EPIPE",
    [EDOM] = "EDOM",
    [ERANGE] = "ERANGE",
    [ENAMETOOLONG] = "ENAMETOOLONG",
    [ENOLCK] = "ENOLCK",
    [ENOSYS] = "ENOSYS",
    [ENOTEMPTY] = "ENOTEMPTY",
    [ELOOP] = "ELOOP",
    [ENOMSG] = "ENOMSG",
    [EIDRM] = "EIDRM",
    [ECHRNG] = "ECHRNG",
    [EL2NSYNC] = "EL2NSYNC",
    [EL3HLT] = "EL3HLT",
    [EL3RST] = "EL3RST",
    [ELNRNG] = "ELNRNG",
    [EUNATCH] = "EUNATCH",
    [ENOCSI] = "ENOCSI",
    [EL2HLT] = "EL2HLT",
    [EBADE] = "EBADE",
    [EBADR] = "EBADR",
    [EXFULL] = "EXFULL",
    [ENOANO] = "ENOANO",
    [EBADRQC] = "EBADRQC",
    [EBADSLT] = "EBADSLT",
    [EBFONT] = "EBFONT",
    [ENOSTR] = "ENOSTR",
    [ENODATA] = "ENODATA",
    [ETIME] = "ETIME",
    [ENOSR] = "ENOSR",
    [ENONET] = "ENONET",
    [ENOPKG] = "ENOPKG",
    [EREMOTE] = "EREMOTE",
    [ENOLINK] = "ENOLINK",
    [EADV] = "EADV",
    [ESRMNT] = "ESRMNT",
    [ECOMM] = "ECOMM",
    [EPROTO] = "EPROTO",
    [EMULTIHOP] = "EMULTIHOP",
    [EDOTDOT] = "EDOTDOT",
    [EBADMSG] = "EBADMSG",
    [EOVERFLOW] = "EOVERFLOW",
    [ENOTUNIQ] = "ENOTUNIQ",
    [EBADFD] = "EBADFD",
    [EREMCHG] = "EREMCHG",
    [ELIBACC] = "ELIBACC",
    [ELIBBAD] = "ELIBBAD",
    [ELIBSCN] = "ELIBSCN",
    [ELIBMAX] = "ELIBMAX",
    [ELIBEXEC] = "ELIBEXEC",
    [EILSEQ] = "EILSEQ",
    [ERESTART] = "ERESTART",
    [ESTRPIPE] = "ESTRPIPE",
    [EUSERS] = "EUSERS",
    [ENOTSOCK] = "ENOTSOCK",
    [EDESTADDRREQ] = "EDESTADDRREQ",
    [EMSGSIZE] = "EMSGSIZE",
    [EPROTOTYPE] = "EPROTOTYPE",
    [ENOPROTOOPT] = "ENOPROTOOPT",
    [EPROTONOSUPPORT] = "EPROTONOSUPPORT",
    [ESOCKTNOSUPPORT] = "ESOCKTNOSUPPORT",
    [EPFNOSUPPORT] = "EPFNOSUPPORT",
    [EAFNOSUPPORT] = "EAFNOSUPPORT",
    [EADDRINUSE] = "EADDRINUSE",
    [EADDRNOTAVAIL] = "EADDRNOTAVAIL",
    [ENETDOWN] = "ENETDOWN",
    [ENETUNREACH] = "ENETUNREACH",
    [ENETRESET] = "ENETRESET",
    [ECONNABORTED] = "ECONNABORTED",
    [ECONNRESET] = "ECONNRESET",
    [ENOBUFS] = "ENOBUFS",
    [EISCONN] = "EISCONN",
    [ENOTCONN] = "ENOTCONN",
    [ESHUTDOWN] = "ESHUTDOWN",
    [ETOOMANYREFS] = "ETOOMANYREFS",
    [ETIMEDOUT] = "ETIMEDOUT",
    [ECONNREFUSED] = "ECONNREFUSED",
    [EHOSTDOWN] = "EHOSTDOWN",
    [EHOSTUNREACH] = "EHOSTUNREACH",
    [EALREADY] = "EALREADY",
    [EINPROGRESS] = "EINPROGRESS",
    [ESTALE] = "ESTALE",
    [EUCLEAN] = "EUCLEAN",
    [ENOTNAM] = "ENOTNAM",
    [ENAVAIL] = "ENAVAIL",
    [EISNAM] = "EISNAM",
    [EREMOTEIO] = "EREMOTEIO",
    [EDQUOT] = "EDQUOT",
    [ENOMEDIUM] = "ENOMEDIUM",
    [EMEDIUMTYPE] = "EMEDIUMTYPE",
    [ECANCELED] = "ECANCELED",
    [ENOKEY] = "ENOKEY",
    [EKEYEXPIRED] = "EKEYEXPIRED",
    [EKEYREVOKED] = "EKEYREVOKED",
    [EKEYREJECTED] = "EKEYREJECTED",
    [EOWNERDEAD] = "EOWNERDEAD",
    [ENOTRECOVERABLE] = "ENOTRECOVERABLE",
    [ERFKILL] = "ERFKILL",
};
/* clang-format on */

static inline const char *strerrorname_np(int error)
{
    const int count = (int)(sizeof domi_errno_names / sizeof domi_errno_names[0]);

    return error >= 0 && error < count ? domi_errno_names[error] : NULL;
}

/* musl has no strerrordesc_np(). Its strerror() may be called by several threads at once, too. */
static inline const char *strerrordesc_np(int error)
{
    return strerror(error);
}

#endif

#ifdef DOMI_LIBC_WITHOUT_MALLOC_TRIM

#include <stddef.h>

/* malloc_trim() does nothing here: a heap without that function gives its free memory back by
 * itself. */
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

/* dladdr1() without the help of the C library: the module of an address is the one in the list of
 * modules whose name is the very same text that dladdr() gives. */
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

/* The rest of this file wraps system calls for which musl has functions only since 1.2.5. */

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

/* The system calls preadv2 and pwritev2 take the offset in two halves; on 64-bit machines the first
 * one holds all of it. */
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
