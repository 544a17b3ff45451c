/* A program of ours as a service under test: start it, read where it listens, send it signals, see
 * it end, and check its outputs and its profile.
 *
 * The service inherits only what it is given, and dies with the test. Its stdout is read for
 * `listening NAME ADDRESS:PORT`; its stderr goes to a file in memory, which can be read at any
 * time. */
#ifndef DOMT_SERVICE_H
#define DOMT_SERVICE_H

#include "tests/support/sanitizer.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define DOMT_SERVICE_TEXT_MAX 65536

typedef struct domt_service {
    /* called in the child process before it becomes the service's program; may be NULL */
    void (*prepare)(void);
    pid_t pid;
    uint16_t port; /* port of the service's first listener */
    int output;
    int errors;
    int status; /* the service's status as wait(2) gives it, once it has ended */
    /* text that the service has written to stdout, once it has ended */
    char said[DOMT_SERVICE_TEXT_MAX];
    /* text of the service's stderr, as read by the last domt_service_read_error() */
    char error[DOMT_SERVICE_TEXT_MAX];
} domt_service;

/* Start the program arguments[0], and wait until all its listeners are up whose addresses are among
 * the arguments; until then the service opens more descriptors. The only member of `service` that
 * is read before is `prepare`. */
void domt_service_start(domt_service *service, const char *const arguments[]);

/* Start the program arguments[0] without waiting for its listeners; the service may end by
 * itself. */
void domt_service_spawn(domt_service *service, const char *const arguments[]);

void domt_service_signal(const domt_service *service, int number);

/* Wait at most `ms` milliseconds until the service has ended; else kill it and fail the test.
 * Returns its exit status, or 128 plus the number of the signal that ended it. */
int domt_service_wait(domt_service *service, uint32_t ms);

/* Send SIGTERM to the service. The test fails if the service does not exit with 0 in time, or if
 * its profile fails domt_service_check_profile(). */
void domt_service_stop(domt_service *service);

/* Read all text that the service has written to stderr so far into service->error. */
void domt_service_read_error(domt_service *service);

/* Returns the count in a row of the service's profile, summed over all its threads, as of the last
 * domt_service_read_error(). */
uint64_t domt_service_count_in_profile(const domt_service *service, const char *row);

/* Returns how many threads have a column in the service's profile, as of the last
 * domt_service_read_error(). */
uint32_t domt_service_profile_threads(const domt_service *service);

/* Returns whether the phases in the service's profile add up to the time that has passed (the row
 * "wall") within 1 %. In the profile of a running service they need not, because a thread adds the
 * time of a phase when that phase ends. */
bool domt_service_phases_fill_wall_time(const domt_service *service);

/* Check in the service's profile that the phases add up to the time that has passed, and that no
 * thread slept until the cap of its sleep while it had work. */
void domt_service_check_profile(const domt_service *service);

uint64_t domt_service_cpu_ns(const domt_service *service);
uint64_t domt_service_rss_bytes(const domt_service *service);

uint64_t domt_monotonic_ns(void);
void domt_sleep_ms(uint32_t ms);

/* The arguments that start the echo service on a port which the kernel chooses, with more
 * arguments if given. Only tests can use this macro whose build defines DOMT_BIN_DIR and
 * DOMT_SOURCE_DIR. */
#define DOMT_ECHO_ARGUMENTS(...)                                                                   \
    ((const char *const[]){DOMT_BIN_DIR "/echo", "--config", DOMT_SOURCE_DIR "/config/domus.yaml", \
                           "--set", "listeners.echo.address=127.0.0.1:0", __VA_ARGS__ NULL})

#endif
