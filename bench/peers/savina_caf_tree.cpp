// The rows that make actors, many and short-lived: fjcreate, fib, quicksort, skynet.
//
// What an actor is asked comes with its spawn, as its arguments; one that has answered at once has
// no behaviour, and is gone.
#include "savina_caf.hpp"

#include <algorithm>
#include <cmath>

namespace savina
{

// The part [lo, hi) of all values, which lies at begin..end of the array.
struct slice {
    uint32_t *begin = nullptr;
    uint32_t *end = nullptr;
    uint64_t lo = 0;
    uint64_t hi = 0;
};

} // namespace savina

using namespace caf;

namespace savina
{
namespace
{

constexpr uint64_t created_alive = 1000;
constexpr double created_argument = 37.2;
constexpr uint64_t sorted_at_once = 2048;
constexpr uint64_t sky_children = 10;

// ---- fjcreate -----------------------------------------------------------------------------------

void created(event_based_actor *self, const actor &collector, double argument)
{
    self->send(collector, std::sin(argument) * std::sin(argument));
}

struct collector_state {
    uint64_t left = 0;
    uint64_t told = 0;
};

using collector_actor = stateful_actor<collector_state>;

void create(collector_actor *self)
{
    self->spawn(created, actor{self}, created_argument);
    self->state.left--;
}

behavior collector(collector_actor *self, uint64_t size, round *round)
{
    self->state.left = size;
    while (self->state.left != 0 && size - self->state.left < created_alive)
        create(self);
    double expected = std::sin(created_argument) * std::sin(created_argument);
    return {[self, size, round, expected](double product) {
        if (std::fabs(product - expected) > 1e-9)
            wrong("a product");
        if (self->state.left != 0)
            create(self);
        if (++self->state.told != size)
            return;
        self->quit();
        round->end(size);
    }};
}

// ---- fib ----------------------------------------------------------------------------------------

struct sum_state {
    uint64_t sum = 0;
    uint64_t waiting = 0;
};

using sum_actor = stateful_actor<sum_state>;

behavior fib(sum_actor *self, const actor &parent, uint64_t n)
{
    if (n <= 2) {
        self->send(parent, uint64_t{1});
        return {};
    }
    self->spawn(fib, actor{self}, n - 1);
    self->spawn(fib, actor{self}, n - 2);
    self->state.waiting = 2;
    return {[self, parent](uint64_t value) {
        self->state.sum += value;
        if (--self->state.waiting != 0)
            return;
        self->send(parent, self->state.sum);
        self->quit();
    }};
}

// ---- skynet -------------------------------------------------------------------------------------

behavior sky(sum_actor *self, const actor &parent, uint64_t first, uint64_t leaves)
{
    if (leaves == 1) {
        self->send(parent, first);
        return {};
    }
    uint64_t step = leaves / sky_children;
    for (uint64_t i = 0; i < sky_children; i++)
        self->spawn(sky, actor{self}, first + i * step, step);
    self->state.waiting = sky_children;
    return {[self, parent](uint64_t value) {
        self->state.sum += value;
        if (--self->state.waiting != 0)
            return;
        self->send(parent, self->state.sum);
        self->quit();
    }};
}

// Of fib and of skynet: gets the one value that is the result.
behavior root(event_based_actor *self, round *round)
{
    return {[self, round](uint64_t value) {
        self->quit();
        round->end(value);
    }};
}

// ---- quicksort ----------------------------------------------------------------------------------

// A slice belongs to one actor at a time: its parent does not touch it before it is told. What is
// told is how many actors there were.
behavior sorter(sum_actor *self, const actor &parent, const slice &part)
{
    if (part.end - part.begin <= static_cast<ptrdiff_t>(sorted_at_once)) {
        std::sort(part.begin, part.end);
        self->send(parent, uint64_t{1});
        return {};
    }
    uint64_t middle = part.lo + (part.hi - part.lo) / 2;
    auto cut = std::partition(part.begin, part.end, [=](uint32_t x) { return x < middle; });
    self->spawn(sorter, actor{self}, slice{part.begin, cut, part.lo, middle});
    self->spawn(sorter, actor{self}, slice{cut, part.end, middle, part.hi});
    self->state.waiting = 2;
    self->state.sum = 1;
    return {[self, parent](uint64_t actors) {
        self->state.sum += actors;
        if (--self->state.waiting != 0)
            return;
        self->send(parent, self->state.sum);
        self->quit();
    }};
}

std::vector<uint32_t> quicksort_input(uint64_t size)
{
    std::vector<uint32_t> numbers(size);
    uint32_t random = 1;
    for (auto &number : numbers)
        number = xorshift32(random);
    return numbers;
}

uint64_t quicksort_sum(const std::vector<uint32_t> &numbers)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < numbers.size(); i++)
        sum += static_cast<uint32_t>(i % 7) * numbers[i];
    return sum;
}

} // namespace

uint64_t quicksort_expected(uint64_t size)
{
    auto numbers = quicksort_input(size);
    std::sort(numbers.begin(), numbers.end());
    return quicksort_sum(numbers);
}

void run_fjcreate(actor_system &system, uint64_t size, round &round)
{
    system.spawn(collector, size, &round);
    round.wait();
}

void run_fib(actor_system &system, uint64_t size, round &round)
{
    system.spawn(fib, system.spawn<lazy_init>(root, &round), size);
    round.wait();
}

void run_skynet(actor_system &system, uint64_t size, round &round)
{
    system.spawn(sky, system.spawn<lazy_init>(root, &round), uint64_t{0}, size);
    round.wait();
}

void run_quicksort(actor_system &system, uint64_t size, round &round)
{
    auto numbers = quicksort_input(size);
    slice all{numbers.data(), numbers.data() + size, 0, uint64_t{1} << 32};

    round.begin();
    system.spawn(sorter, system.spawn<lazy_init>(root, &round), all);
    round.wait();
    round.messages = 2 * round.result;
    round.result = quicksort_sum(numbers);
}

} // namespace savina
