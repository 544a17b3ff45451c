/* Programs that each have one fault, for tests of the doctor: real systems in this process. */
#ifndef DOMT_ILLS_H
#define DOMT_ILLS_H

#include <domus/domus.h>

#include <stdatomic.h>

#define DOMT_ILL_CLIENTS 64

typedef struct domt_ill domt_ill;

/* A program with a fault that is running. */
typedef struct domt_ill_run {
    domus_system *system;
    domus_address actor; /* an actor that `begin` has made */
    uint32_t turn;       /* counter for the program's own use, 0 at first */
    uint16_t port;       /* port of its listener; 0: no listener */
    const domt_ill *ill;
    int fds[DOMT_ILL_CLIENTS];      /* sockets of clients; -1: none */
    struct domt_ill_client *client; /* a thread that sends on all sockets; NULL: none */
} domt_ill_run;

struct domt_ill {
    const char *rule;               /* rule that has to find the fault */
    const domus_behaviour *channel; /* behaviour of its listener; NULL: no listener */
    /* connections to the listener, on which a thread sends bytes */
    uint32_t clients;
    /* changes the configuration of two threads; NULL: no change */
    void (*configure)(domus_config *config);
    void (*prepare)(domus_system *system); /* runs before the system starts; NULL: none */
    void (*begin)(domt_ill_run *run);      /* runs after the system has started; NULL: none */
    void (*again)(domt_ill_run *run);      /* runs each 10 ms; NULL: none */
    void (*end)(void);                     /* runs after the system has ended; NULL: none */
};

/* Lists that end with a row without a rule. Programs of the first list take the CPU, and run one
 * after the other; those of the second list do not take it. Programs of the third list have files
 * in place of the kernel's, and also run one after the other. Programs of the fourth list change
 * limits of this process. */
extern const domt_ill domt_ills_of_time[];
extern const domt_ill domt_ills_of_limits[];
extern const domt_ill domt_ills_of_machine[];
extern const domt_ill domt_ills_of_process[];

/* Programs that work all the time and have no fault; each has a name in place of a rule. */
extern const domt_ill domt_wells[];

void domt_ill_start_program(const domt_ill *ill, domt_ill_run *ret_run);
void domt_ill_end_program(domt_ill_run *run);

/* Use CPU time in the calling thread. */
void domt_use_cpu_for_ns(uint64_t time_ns);

/* Open a further connection to the listener of a program. Returns the descriptor, which the caller
 * closes. */
int domt_ill_connect_to_listener(const domt_ill_run *run);

extern const domus_type domt_work_type; /* a notice with a uint64_t: nanoseconds of work */

/* Spawn actors on a thread, each of which sends itself one message of work after another. */
void domt_ill_spawn_workers(domus_system *system, uint32_t thread, uint32_t count,
                            uint64_t work_ns);

#endif
