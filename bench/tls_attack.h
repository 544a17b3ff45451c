/* An attacker of `bench tls`: a process that holds handshakes which never end. They are of three
 * kinds in equal parts: connected and silent, with a half of a ClientHello, and with a whole one,
 * whose answer is read and not answered. A connection that the server ends is replaced by a new one
 * of its kind at once. The process runs at SCHED_IDLE on the CPU of its starter, so that it takes
 * no time from a load there, and its open files count to no limit of the starter. */
#ifndef DOMUS_BENCH_TLS_ATTACK_H
#define DOMUS_BENCH_TLS_ATTACK_H

#include <stdint.h>

struct tls_attack;

struct tls_attack_counts {
    uint32_t held; /* number of the attack's connections that are open */
    /* number of open connections that have read the server's part of the handshake */
    uint32_t answered;
    /* number of connections that the server has ended, and the attack replaced, since the start */
    uint64_t replaced;
};

/* Start an attack: begin to open `connections` to 127.0.0.1:`port`, evenly over `seconds`. Returns
 * 0, or a negative errno. */
int tls_attack_start(uint16_t port, uint32_t connections, double seconds,
                     struct tls_attack **ret_attack);

/* Read the counts of an attack. Returns 0, or the negative errno by which the attack has ended. */
int tls_attack_read_counts(const struct tls_attack *attack, struct tls_attack_counts *ret_counts);

/* Close all connections and free the attack. NULL is allowed. */
void tls_attack_stop(struct tls_attack *attack);

#endif
