/* Programs that are ill, each in one way, for tests of the doctor: real systems in this process. */
#ifndef DOMT_ILLS_H
#define DOMT_ILLS_H

#include <domus/domus.h>

#include <stdatomic.h>

#define DOMT_ILL_CLIENTS 64

typedef struct domt_ill domt_ill;

/* An ill program that runs. */
typedef struct domt_ill_run {
    domus_system *system;
    domus_address actor; /* of `begin` */
    uint32_t turn;       /* of the program's own, 0 at first */
    uint16_t port;       /* of its listener; 0: it has none */
    const domt_ill *ill;
    int fds[DOMT_ILL_CLIENTS];      /* clients' sockets; -1: none */
    struct domt_ill_client *client; /* a thread that talks on all of them; NULL: none */
} domt_ill_run;

struct domt_ill {
    const char *rule;                        /* that has to name it */
    const domus_behaviour *channel;          /* of its listener; NULL: it has none */
    uint32_t clients;                        /* connections to it, which a thread makes talk */
    void (*configure)(domus_config *config); /* of two threads; NULL: as it is */
    void (*prepare)(domus_system *system);   /* before it starts; NULL: nothing */
    void (*begin)(domt_ill_run *run);        /* NULL: nothing */
    void (*again)(domt_ill_run *run);        /* called each 10 ms; NULL: nothing */
    void (*end)(void);                       /* behind its end; NULL: nothing */
};

/* The lists end with a row without a rule. Programs of the first list take the CPU, and run one
 * after the other; programs of the second one do not. Programs of the third list have files in
 * place of the kernel's, and run one after the other, too. The fourth list changes limits of this
 * process. */
extern const domt_ill domt_ills_of_time[];
extern const domt_ill domt_ills_of_limits[];
extern const domt_ill domt_ills_of_machine[];
extern const domt_ill domt_ills_of_process[];

/* Programs that work all the time, and are well; each has its name in the place of a rule. */
extern const domt_ill domt_wells[];

void domt_ill_start(const domt_ill *ill, domt_ill_run *ret_run);
void domt_ill_end(domt_ill_run *run);

/* Use so much CPU time of the calling thread. */
void domt_use_cpu(uint64_t time_ns);

/* Connect once more to the listener of a run. Returns the descriptor, which is the caller's. */
int domt_ill_connect(const domt_ill_run *run);

extern const domus_type domt_work_type; /* with a uint64_t */

/* Spawn actors on a thread, each of which has a message of work for itself, again and again. */
void domt_ill_spawn_workers(domus_system *system, uint32_t thread, uint32_t count,
                            uint64_t work_ns);

#endif
