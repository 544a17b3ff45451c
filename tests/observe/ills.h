/* Programs with one fault each, for tests of the doctor: real systems in this process. */
#ifndef DOMT_ILLS_H
#define DOMT_ILLS_H

#include <domus/domus.h>

#include <stdatomic.h>

#define DOMT_ILL_CLIENTS 64

typedef struct domt_ill domt_ill;

/* The state of a program with a fault, while it runs. */
typedef struct domt_ill_run {
    domus_system *system;
    domus_address actor; /* an actor of the program, which `begin` has made */
    uint32_t turn;       /* counter for the program's own use, 0 at the start */
    uint16_t port;       /* port of the program's listener; 0: it has none */
    const domt_ill *ill;
    int fds[DOMT_ILL_CLIENTS]; /* sockets that clients of the program use; -1: unused */
    /* the thread that sends on all sockets of clients; NULL: none */
    struct domt_ill_client *client;
} domt_ill_run;

struct domt_ill {
    /* name of the doctor's rule that has to find the program's fault */
    const char *rule;
    const domus_behaviour *channel; /* behaviour of the program's listener; NULL: it has none */
    /* number of connections to the listener, on which a thread sends bytes */
    uint32_t clients;
    /* changes the program's configuration, which has two threads; NULL: no change */
    void (*configure)(domus_config *config);
    void (*prepare)(domus_system *system); /* runs before the program's system starts; NULL: none */
    /* runs after the program's system has started; NULL: none */
    void (*begin)(domt_ill_run *run);
    void (*again)(domt_ill_run *run); /* runs every 10 ms while the program runs; NULL: none */
    /* runs after the program's system has ended; NULL: none */
    void (*end)(void);
};

/* Lists of programs, each of which ends with a row without a rule. Programs of time take the CPU,
 * and run one after the other; those of limits do not take it. Programs of the machine have files
 * in place of the kernel's, and also run one after the other. Programs of the process change limits
 * of this process. */
extern const domt_ill domt_ills_of_time[];
extern const domt_ill domt_ills_of_limits[];
extern const domt_ill domt_ills_of_machine[];
extern const domt_ill domt_ills_of_process[];

/* Healthy programs, which work all the time and have no fault; each has a name in place of a
 * rule. */
extern const domt_ill domt_wells[];

void domt_ill_start_program(const domt_ill *ill, domt_ill_run *ret_run);
void domt_ill_end_program(domt_ill_run *run);

/* Use this much CPU time in the calling thread. */
void domt_use_cpu_for_ns(uint64_t time_ns);

/* Open a further connection to the program's listener. Returns the descriptor, which the caller
 * closes. */
int domt_ill_connect_to_listener(const domt_ill_run *run);

/* a notice with a uint64_t: nanoseconds of CPU time that its receiver uses */
extern const domus_type domt_work_type;

/* Spawn actors on a thread, each of which sends itself one message of work after another, without
 * end. */
void domt_ill_spawn_workers(domus_system *system, uint32_t thread, uint32_t count,
                            uint64_t work_ns);

#endif
