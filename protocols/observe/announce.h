/* The registry of running programs: each port writes a file by which the program `domus` of the
 * command line finds it.
 *
 * The file is named by the pid of the process and lies in a directory of its user: $DOMUS_REGISTRY
 * if that is set, else the first of $XDG_RUNTIME_DIR/domus, /run/domus (of root alone) and
 * /tmp/domus-UID that can be used. The
 * directory has the mode 0700 and belongs to the user; one that does not is not used, so nobody
 * else can lead a user to a program of theirs. The file has the mode 0600, and lines of a word and
 * a text:
 *
 *     domus-observe 1          the version of this form
 *     pid 4711
 *     start 123456             when the process began, as field 22 of /proc/PID/stat has it
 *     program shop
 *     endpoint unix:/run/shop.sock
 *
 * In a text a percent sign, and each byte that is no printable one of ASCII, is written as %XX. If
 * the process ends without removing its file, no process has this pid and this start, so readers
 * pass the file over. */
#ifndef DOMI_PROTOCOLS_OBSERVE_ANNOUNCE_H
#define DOMI_PROTOCOLS_OBSERVE_ANNOUNCE_H

#include <domus/endpoint.h>

#include <stdint.h>

/* Write the file of this process, whose port listens at `at`; `port` is that of TCP. If there is no
 * place for it, the port works all the same, and is found by its endpoint alone.
 * Thread-safety: one thread at a time. */
void domi_announce(const domus_endpoint *at, uint16_t port);

/* Remove the file, if it is still the one that this process wrote. Thread-safety: likewise. */
void domi_announce_end(void);

#endif
