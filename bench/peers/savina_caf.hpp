// What the rows of savina_caf_*.cpp have in common: a round, its clock, its result.
//
// A row gets a system that runs, does one round of its work and leaves the result in the round; the
// program checks it. Actors of a row hold a plain pointer to the round, and to what else the main
// thread keeps on its stack for them: the main thread waits until all of them are gone.
#ifndef DOMUS_BENCH_PEERS_SAVINA_CAF_HPP
#define DOMUS_BENCH_PEERS_SAVINA_CAF_HPP

#include <caf/all.hpp>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

namespace savina
{

using go_atom = caf::atom_constant<caf::atom("go")>;
using ack_atom = caf::atom_constant<caf::atom("ack")>;
using get_atom = caf::atom_constant<caf::atom("get")>;
using next_atom = caf::atom_constant<caf::atom("next")>;
using enough_atom = caf::atom_constant<caf::atom("enough")>;

class round
{
  public:
    // The clock starts; again, where a row has to prepare what is no part of the work.
    void begin();

    // From any thread, once: the result is there.
    void end(uint64_t value);

    // In the main thread: until end(). The clock stops.
    void wait();

    double seconds = 0;
    uint64_t result = 0;
    uint64_t messages = 0; // only for a row that cannot tell them from its size

  private:
    std::mutex lock;
    std::condition_variable changed;
    bool ended = false;
    double began = 0;
};

struct row {
    const char *name;
    uint64_t (*messages)(uint64_t size); // null: the round says
    uint64_t (*expected)(uint64_t size);
    void (*run)(caf::actor_system &system, uint64_t size, round &round);
};

// Ends the process: a result, or what leads to it, is not what it should be.
[[noreturn]] void wrong(const char *what);

double seconds_now(clockid_t clock);

// Marsaglia's generator of 32 bits, the same in all programs of the bench.
inline uint32_t xorshift32(uint32_t &state)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

// Asks the actors to stop; the caller still holds them.
void stop_all(const std::vector<caf::actor> &actors);

// From the samples of all rounds; printed after the last.
extern std::vector<double> latencies_ns;

uint64_t size_itself(uint64_t size);

void run_pingpong(caf::actor_system &system, uint64_t size, round &round);
void run_counting(caf::actor_system &system, uint64_t size, round &round);
void run_fjthrput(caf::actor_system &system, uint64_t size, round &round);
void run_fjcreate(caf::actor_system &system, uint64_t size, round &round);
void run_threadring(caf::actor_system &system, uint64_t size, round &round);
void run_chameneos(caf::actor_system &system, uint64_t size, round &round);
void run_big(caf::actor_system &system, uint64_t size, round &round);
void run_bndbuffer(caf::actor_system &system, uint64_t size, round &round);
void run_banking(caf::actor_system &system, uint64_t size, round &round);
void run_fib(caf::actor_system &system, uint64_t size, round &round);
void run_quicksort(caf::actor_system &system, uint64_t size, round &round);
void run_skynet(caf::actor_system &system, uint64_t size, round &round);
void run_mailbox(caf::actor_system &system, uint64_t size, round &round);
void run_wake(caf::actor_system &system, uint64_t size, round &round);
void run_idle(caf::actor_system &system, uint64_t size, round &round);

uint64_t quicksort_expected(uint64_t size);

} // namespace savina

#endif
