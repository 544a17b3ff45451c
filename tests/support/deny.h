/* Lets one system call of a thread fail, as the seccomp filter of a container does. */
#ifndef DOMT_DENY_H
#define DOMT_DENY_H

/* Let the system call `call` (a SYS_ number) fail for ever with the errno `error`: in the calling
 * thread, and in the threads and processes that it makes from now on. Returns 0, or a negative
 * errno. */
int domt_deny_system_call(long call, int error);

#endif
