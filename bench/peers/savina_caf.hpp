// The parts that the rows of savina_caf_*.cpp share: a round, its clock and its result. A row gets
// a system that runs, does one round of its work and leaves the result in the round; the program
// checks it. Actors of a row hold a plain pointer to the round, and to other data that the main
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
    // Starts the clock. A row that has first prepared something that is no part of the work starts
    // it again.
    void begin();

    // Stores the result and ends the round. Called once, from any thread.
    void end(uint64_t value);

    // Waits until end() was called, then stops the clock. Called by the main thread.
    void wait();

    double seconds = 0;
    uint64_t result = 0;
    uint64_t messages = 0; // number of messages, if the row's size does not tell it

  private:
    std::mutex lock;
    std::condition_variable changed;
    bool ended = false;
    double began = 0;
};

struct row {
    const char *name;
    uint64_t (*messages)(uint64_t size); // returns the number of messages; null: the row sets it
    uint64_t (*expected)(uint64_t size);
    void (*run)(caf::actor_system &system, uint64_t size, round &round);
};

// Ends the process, because a result, or a step to it, is wrong.
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

// Asks the actors to stop; the caller still owns them.
void stop_all(const std::vector<caf::actor> &actors);

// The samples of all rounds, whose percentiles are printed after the last round.
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
