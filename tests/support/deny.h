/* Denies one system call to a thread, as the filter of a container does. */
#ifndef DOMT_DENY_H
#define DOMT_DENY_H

/* Let `call` (a SYS_ number) of the calling thread, and of the threads and processes that it makes,
 * fail with `error` (an errno) for ever. Returns 0; a negative errno. */
int domt_deny_call(long call, int error);

#endif
