/* A program of ours as a service under test: start it, read where it listens, signal it, see it
 * end, and hold what it says against what a profile must say.
 *
 * It inherits nothing but what it is given and dies with the test. stdout is read for `listening
 * NAME ADDRESS:PORT`; stderr goes to a file in memory, which can be read at any time. */
#ifndef DOMT_SERVICE_H
#define DOMT_SERVICE_H

#include "tests/support/sanitizer.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define DOMT_SERVICE_TEXT_MAX 65536

typedef struct domt_service {
    void (*prepare)(void); /* in the child, before it becomes the program; may be NULL */
    pid_t pid;
    uint16_t port; /* of the first listener */
    int output;
    int errors;
    int status;                        /* as wait(2) gives it, once it has ended */
    char said[DOMT_SERVICE_TEXT_MAX];  /* stdout, once it has ended */
    char error[DOMT_SERVICE_TEXT_MAX]; /* stderr, as of the last domt_service_read_error() */
} domt_service;

/* Start arguments[0] and wait until all listeners whose addresses are among the arguments are up:
 * until then its descriptors grow in number. Only `prepare` is read before. */
void domt_service_start(domt_service *service, const char *const arguments[]);

/* Start arguments[0] without waiting; it may end by itself. */
void domt_service_spawn(domt_service *service, const char *const arguments[]);

void domt_service_signal(const domt_service *service, int number);

/* Wait until the service has ended, at most `ms`; else kill it and fail. Returns its exit status,
 * or 128 plus the signal that ended it. */
int domt_service_wait(domt_service *service, uint32_t ms);

/* Send SIGTERM; the service must exit with 0 in time, and its profile must be sound. */
void domt_service_stop(domt_service *service);

/* Read all that the service has said on stderr so far. */
void domt_service_read_error(domt_service *service);

/* The sum over all threads in a row of the last profile that was read. */
uint64_t domt_service_count(const domt_service *service, const char *row);

/* How many threads the last profile that was read has columns for. */
uint32_t domt_service_threads(const domt_service *service);

/* True if in the last profile that was read the phases sum to the wall time within 1 %. In that of
 * a service that runs they need not: a thread adds the time of a phase at its end. */
bool domt_service_phases_are_whole(const domt_service *service);

/* Hold this, and that in the last profile that was read no thread woke by the cap with work. */
void domt_service_check_profile(const domt_service *service);

uint64_t domt_service_cpu_ns(const domt_service *service);
uint64_t domt_service_rss_bytes(const domt_service *service);

uint64_t domt_monotonic_ns(void);
void domt_sleep_ms(uint32_t ms);

/* The echo service on a port that the kernel chooses, with more arguments if any. Only in tests,
 * where the two folders are defined. */
#define DOMT_ECHO_ARGUMENTS(...)                                                                   \
    ((const char *const[]){DOMT_BIN_DIR "/echo", "--config", DOMT_SOURCE_DIR "/config/domus.yaml", \
                           "--set", "listeners.echo.address=127.0.0.1:0", __VA_ARGS__ NULL})

#endif
