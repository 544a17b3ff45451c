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
    void (*prepare)(void); /* called in the child before it becomes the program; may be NULL */
    pid_t pid;
    uint16_t port; /* port of the first listener */
    int output;
    int errors;
    int status;                        /* status as wait(2) gives it, once the service has ended */
    char said[DOMT_SERVICE_TEXT_MAX];  /* stdout, once the service has ended */
    char error[DOMT_SERVICE_TEXT_MAX]; /* stderr, as read by the last domt_service_read_error() */
} domt_service;

/* Start arguments[0], and wait until all listeners whose addresses are among the arguments are up;
 * until then the number of its descriptors grows. Only its member `prepare` is read before. */
void domt_service_start(domt_service *service, const char *const arguments[]);

/* Start arguments[0] without waiting; the service may end by itself. */
void domt_service_spawn(domt_service *service, const char *const arguments[]);

void domt_service_signal(const domt_service *service, int number);

/* Wait at most `ms` milliseconds until the service has ended; else kill it and fail. Returns its
 * exit status, or 128 plus the signal that ended it. */
int domt_service_wait(domt_service *service, uint32_t ms);

/* Send SIGTERM; the service must exit with 0 in time, and its profile must pass the checks. */
void domt_service_stop(domt_service *service);

/* Read all text that the service has written to stderr so far. */
void domt_service_read_error(domt_service *service);

/* Returns the sum over all threads in a row of the last profile that was read. */
uint64_t domt_service_count(const domt_service *service, const char *row);

/* Returns how many threads have a column in the last profile that was read. */
uint32_t domt_service_threads(const domt_service *service);

/* True if in the last profile that was read the phases sum to the wall time within 1 %. In a
 * profile of a running service they need not: a thread adds the time of a phase when the phase
 * ends. */
bool domt_service_phases_are_whole(const domt_service *service);

/* Check that the phases of the last profile are whole, and that no thread slept until the cap of
 * its sleep while it had work. */
void domt_service_check_profile(const domt_service *service);

uint64_t domt_service_cpu_ns(const domt_service *service);
uint64_t domt_service_rss_bytes(const domt_service *service);

uint64_t domt_monotonic_ns(void);
void domt_sleep_ms(uint32_t ms);

/* The arguments that start the echo service on a port that the kernel chooses, with more arguments
 * if given. Only for tests in whose build the two folders are defined. */
#define DOMT_ECHO_ARGUMENTS(...)                                                                   \
    ((const char *const[]){DOMT_BIN_DIR "/echo", "--config", DOMT_SOURCE_DIR "/config/domus.yaml", \
                           "--set", "listeners.echo.address=127.0.0.1:0", __VA_ARGS__ NULL})

#endif
