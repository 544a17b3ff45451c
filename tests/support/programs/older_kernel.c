/* A library for LD_PRELOAD that makes the kernel one of Linux 6.1, or with DOMT_KERNEL=5.10 an
 * older one, as far as a program can ask: what came later is refused by the error that such a
 * kernel has.
 *
 * System calls and their arguments are refused by a seccomp filter, which all threads and children
 * inherit. A filter does not see behind pointers, so functions of liburing are taken over, too:
 * those that get the flags of a set-up and hand out the features, and the enter, before which
 * queued operations are looked at. How an operation is done stays that of the kernel that is here.
 */
#include <dlfcn.h>
#include <errno.h>
#include <liburing.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The newest features that Linux 6.1 has. */
#define LAST_CALL   450u /* number of the last system call of Linux 6.1: set_mempolicy_home_node */
#define SETUP_FLAGS 0x3fffu /* flags of io_uring_setup(), up to IORING_SETUP_DEFER_TASKRUN */
#define FEATURES    0x1fffu /* features of a ring, up to IORING_FEAT_LINKED_FILE */
#define ENTER_FLAGS 0x1fu   /* flags of io_uring_enter(), up to IORING_ENTER_REGISTERED_RING */
/* last operation of io_uring_register(): IORING_REGISTER_FILE_ALLOC_RANGE */
#define LAST_REGISTER  25u
#define LAST_OPERATION 48u   /* last operation of a ring: IORING_OP_SENDMSG_ZC */
#define ENTRY_FLAGS    0x7fu /* flags of a queued operation, up to IOSQE_CQE_SKIP_SUCCESS */
#define NET_FLAGS      0x07u /* flags of sends and receives, up to IORING_RECVSEND_FIXED_BUF */
#define ACCEPT_FLAGS   0x01u /* flags of accepts, up to IORING_ACCEPT_MULTISHOT */
#define RW_FLAGS       0x1fu /* flags of reads and writes, up to RWF_APPEND */
#define LAST_SOCKET    75u   /* last option of SOL_SOCKET: SO_RCVMARK */
#define LAST_TCP       37u   /* last option of IPPROTO_TCP: TCP_TX_DELAY */
/* last option of IPPROTO_IP: IP_UNICAST_IF, or one of the multicast options */
#define LAST_IP 50u
/* flags of io_uring_setup() in Linux 5.10, up to IORING_SETUP_R_DISABLED */
#define SETUP_FLAGS_5_10 0x7fu
/* number of an operation that no kernel has, so the kernel answers it with -EINVAL */
#define NO_OPERATION 0xffu
#define RINGS_MAX    1024

static unsigned setup_flags = SETUP_FLAGS;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct ring {
    struct io_uring *uring; /* the ring that is recorded in this row; NULL: the row is free */
    pthread_t owner;        /* thread that made or enabled the ring */
} rings[RINGS_MAX];

/* --- the filter ------------------------------------------------------------------------------- */

#define LOAD(field)     BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define REFUSE(error)   BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))
#define ALLOW           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define UNLESS(k, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (k), 0, (skip))
/* Steps of the seccomp filter: refuse the system call if the word that was loaded is greater than
 * `last`, or has bits that are not in `known`. */
#define ABOVE(last, error) BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, (last), 0, 1), REFUSE(error)
#define BEYOND(known, error)                                                                       \
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, ~(unsigned)(known), 0, 1), REFUSE(error)

static void load_seccomp_filter_of_kernel(void)
{
    struct sock_filter steps[] = {
        LOAD(nr),
        ABOVE(LAST_CALL, ENOSYS),
        UNLESS(SYS_io_uring_enter, 4),
        LOAD(args[3]),
        BEYOND(ENTER_FLAGS, EINVAL),
        ALLOW,
        UNLESS(SYS_io_uring_register, 4),
        LOAD(args[1]),
        ABOVE(LAST_REGISTER, EINVAL),
        ALLOW,
        UNLESS(SYS_preadv2, 4),
        LOAD(args[5]),
        BEYOND(RW_FLAGS, EOPNOTSUPP),
        ALLOW,
        UNLESS(SYS_pwritev2, 4),
        LOAD(args[5]),
        BEYOND(RW_FLAGS, EOPNOTSUPP),
        ALLOW,
        UNLESS(SYS_setsockopt, 15),
        LOAD(args[1]),
        UNLESS(SOL_SOCKET, 4),
        LOAD(args[2]),
        ABOVE(LAST_SOCKET, ENOPROTOOPT),
        ALLOW,
        UNLESS(IPPROTO_TCP, 4),
        LOAD(args[2]),
        ABOVE(LAST_TCP, ENOPROTOOPT),
        ALLOW,
        UNLESS(IPPROTO_IP, 3),
        LOAD(args[2]),
        ABOVE(LAST_IP, ENOPROTOOPT),
        ALLOW,
    };
    struct sock_fprog filter = {.len = sizeof steps / sizeof steps[0], .filter = steps};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
        perror("older_kernel: seccomp");
        _exit(126);
    }
}

__attribute__((constructor)) static void begin_older_kernel(void)
{
    const char *kernel = getenv("DOMT_KERNEL");

    if (kernel != NULL && strcmp(kernel, "5.10") == 0)
        setup_flags = SETUP_FLAGS_5_10;
    load_seccomp_filter_of_kernel();
}

/* --- liburing --------------------------------------------------------------------------------- */

/* Returns the function of liburing that the function `name` of this file replaces. */
static void *find_replaced_function(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);

    if (function == NULL) {
        fprintf(stderr, "older_kernel: no %s in liburing\n", name);
        _exit(126);
    }
    return function;
}

/* Record `uring` as a ring of the calling thread, in the row of the ring `was` (NULL: in a free
 * row). */
static void record_ring(const struct io_uring *was, struct io_uring *uring)
{
    size_t i = 0;

    pthread_mutex_lock(&mutex);
    while (i < RINGS_MAX && rings[i].uring != was)
        i++;
    if (i < RINGS_MAX)
        rings[i] = (struct ring){uring, pthread_self()};
    pthread_mutex_unlock(&mutex);
}

int io_uring_queue_init_params(unsigned entries, struct io_uring *ring,
                               struct io_uring_params *params)
{
    int (*init)(unsigned, struct io_uring *, struct io_uring_params *);

    if ((params->flags & ~setup_flags) != 0)
        return -EINVAL;
    *(void **)&init = find_replaced_function("io_uring_queue_init_params");
    int result = init(entries, ring, params);
    if (result == 0) {
        params->features &= FEATURES;
        ring->features &= FEATURES;
        record_ring(NULL, ring);
    }
    return result;
}

void io_uring_queue_exit(struct io_uring *ring)
{
    void (*leave)(struct io_uring *);

    *(void **)&leave = find_replaced_function("io_uring_queue_exit");
    record_ring(ring, NULL);
    leave(ring);
}

int io_uring_register(unsigned fd, unsigned operation, const void *argument, unsigned count)
{
    int (*call)(unsigned, unsigned, const void *, unsigned);
    struct io_uring *enabled = NULL;

    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < RINGS_MAX && operation == IORING_REGISTER_ENABLE_RINGS; i++) {
        if (rings[i].uring != NULL && rings[i].uring->ring_fd == (int)fd)
            enabled = rings[i].uring;
    }
    pthread_mutex_unlock(&mutex);
    if (enabled != NULL)
        record_ring(enabled, enabled); /* the thread that enables a ring is its owner from now on */
    *(void **)&call = find_replaced_function("io_uring_register");
    return call(fd, operation, argument, count);
}

static bool is_operation_known(const struct io_uring_sqe *entry)
{
    if (entry->opcode > LAST_OPERATION || (entry->flags & ~ENTRY_FLAGS) != 0)
        return false;
    switch (entry->opcode) {
    case IORING_OP_ACCEPT:
        return (entry->ioprio & ~ACCEPT_FLAGS) == 0;
    case IORING_OP_SEND:
    case IORING_OP_SENDMSG:
    case IORING_OP_RECV:
    case IORING_OP_RECVMSG:
        return (entry->ioprio & ~NET_FLAGS) == 0;
    case IORING_OP_READ:
    case IORING_OP_WRITE:
        return ((unsigned)entry->rw_flags & ~RW_FLAGS) == 0;
    default:
        return true;
    }
}

/* Replace each queued operation that the older kernel does not know by one that no kernel knows. */
static void refuse_newer_operations(struct io_uring *uring)
{
    struct io_uring_sq *queue = &uring->sq;
    unsigned tail = *queue->ktail;

    for (unsigned i = __atomic_load_n(queue->khead, __ATOMIC_ACQUIRE); i != tail; i++) {
        struct io_uring_sqe *entry = &queue->sqes[queue->array[i & queue->ring_mask]];
        if (!is_operation_known(entry))
            entry->opcode = NO_OPERATION;
    }
}

/* This function replaces io_uring_enter2(). It has another name in C, because later versions of
 * liburing declare `set` as a pointer to void. */
int enter_as_older_kernel(unsigned fd, unsigned submit, unsigned least, unsigned flags, void *set,
                          size_t size) __asm__("io_uring_enter2");

int enter_as_older_kernel(unsigned fd, unsigned submit, unsigned least, unsigned flags, void *set,
                          size_t size)
{
    static int (*_Atomic known)(unsigned, unsigned, unsigned, unsigned, void *, size_t);
    int (*call)(unsigned, unsigned, unsigned, unsigned, void *, size_t) = known;

    if (call == NULL) {
        *(void **)&call = find_replaced_function("io_uring_enter2");
        known = call;
    }
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < RINGS_MAX; i++) {
        if (rings[i].uring != NULL && rings[i].uring->enter_ring_fd == (int)fd &&
            pthread_equal(rings[i].owner, pthread_self()))
            refuse_newer_operations(rings[i].uring);
    }
    pthread_mutex_unlock(&mutex);
    return call(fd, submit, least, flags, set, size);
}
