/* The registry of running programs: each port writes a file by which the command line program
 * `domus` finds it.
 *
 * The file is named by the pid of the process and lies in a directory of its user: $DOMUS_REGISTRY
 * if that is set, else the first usable one of $XDG_RUNTIME_DIR/domus, /run/domus (only for root)
 * and /tmp/domus-UID. The directory must have the mode 0700 and belong to the user, so that nobody
 * else can lead the user to another program. The file has the mode 0600, and lines of a word and a
 * text:
 *
 *   domus-observe 1          the version of this form
 *   pid 4711
 *   start 123456             time at which the process began, as field 22 of /proc/PID/stat
 *   program shop
 *   endpoint unix:/run/shop.sock
 *
 * In a text a percent sign, and each byte that is not printable ASCII, is written as %XX. If the
 * process ends without removing its file, no process has this pid and this start, so readers ignore
 * the file. */
#ifndef DOMI_PROTOCOLS_OBSERVE_ANNOUNCE_H
#define DOMI_PROTOCOLS_OBSERVE_ANNOUNCE_H

#include <domus/endpoint.h>

#include <stdint.h>

/* Write the file of this process, whose port listens at `at`; `port` is the number of a TCP port.
 * If there is no directory for the file, the port works nevertheless, and is found only by its
 * endpoint. Thread-safety: one thread at a time. */
void domi_announce_port_in_registry(const domus_endpoint *at, uint16_t port);

/* Remove this process's file from the registry, if it is still the one that this process has
 * written. Thread-safety: one thread at a time. */
void domi_remove_port_from_registry(void);

#endif
