// The rows in which many meet at one or at random: chameneos, big, bndbuffer, banking.
//
// Messages have no sender; if the receiver needs it, they hold its number, because a look into a
// vector costs less than the references to a sender.
#include "savina_caf.hpp"

#include <cmath>
#include <deque>

using namespace caf;

namespace savina
{
namespace
{

constexpr uint32_t creatures = 100;
constexpr uint32_t big_actors = 120;
constexpr uint32_t producers = 40;
constexpr uint32_t consumers = 40;
constexpr uint64_t buffer_places = 50;
constexpr int item_steps = 25;
constexpr uint32_t accounts = 1000;
constexpr uint32_t sources = 900;
constexpr uint32_t amount_end = 1000;
constexpr int64_t balance_begin = 1000000;
constexpr uint64_t transfers_out = 1000;

// ---- chameneos ----------------------------------------------------------------------------------

// Colours are 0, 1, 2. Two creatures of one colour keep it, two of different colours take the third.
uint32_t complement(uint32_t mine, uint32_t other)
{
    return mine == other ? mine : 3 - mine - other;
}

struct creature_state {
    uint32_t colour = 0;
    uint64_t meetings = 0;
};

behavior creature(stateful_actor<creature_state> *self, const actor &mall, uint32_t index)
{
    self->state.colour = index % 3;
    anon_send(mall, index, self->state.colour);
    return {[self, mall, index](uint32_t other) {
                auto &state = self->state;
                state.meetings++;
                state.colour = complement(state.colour, other);
                anon_send(mall, index, state.colour);
            },
            [self, mall](enough_atom) {
                anon_send(mall, self->state.meetings);
                self->quit();
            }};
}

struct mall_state {
    std::vector<actor> creatures;
    bool waits = false;
    uint32_t first = 0;
    uint32_t first_colour = 0;
    uint64_t left = 0;
    uint64_t reports = 0;
    uint64_t sum = 0;
};

void meet(stateful_actor<mall_state> *self, uint32_t index, uint32_t colour)
{
    auto &state = self->state;
    if (state.left == 0) {
        anon_send(state.creatures[index], enough_atom::value);
        return;
    }
    if (!state.waits) {
        state.first = index;
        state.first_colour = colour;
        state.waits = true;
        return;
    }
    anon_send(state.creatures[state.first], colour);
    anon_send(state.creatures[index], state.first_colour);
    state.waits = false;
    state.left--;
}

behavior mall(stateful_actor<mall_state> *self, uint64_t meetings, round *round)
{
    self->state.left = meetings;
    for (uint32_t i = 0; i < creatures; i++)
        self->state.creatures.push_back(self->spawn(creature, actor{self}, i));
    return {[self](uint32_t index, uint32_t colour) { meet(self, index, colour); },
            [self, round](uint64_t count) {
                self->state.sum += count;
                if (++self->state.reports != creatures)
                    return;
                self->quit();
                round->end(self->state.sum);
            }};
}

// ---- big ----------------------------------------------------------------------------------------

struct crowd {
    std::vector<actor> all;
    actor sink;
};

struct one_state {
    uint32_t random = 0;
    uint64_t pongs = 0;
};

using one_actor = stateful_actor<one_state>;

void ping_another(one_actor *self, const crowd &crowd, uint32_t index)
{
    uint32_t target = xorshift32(self->state.random) % (big_actors - 1);
    anon_send(crowd.all[target + (target >= index)], index);
}

// A ping holds the number of its sender, a pong holds no number of an actor.
behavior one(one_actor *self, const crowd *crowd, uint32_t index, uint64_t pings)
{
    self->state.random = index + 1;
    return {[crowd](uint32_t from) { anon_send(crowd->all[from], uint64_t{1}); },
            [self, crowd, index, pings](uint64_t pong) {
                self->state.pongs += pong;
                if (self->state.pongs != pings)
                    ping_another(self, *crowd, index);
                else
                    anon_send(crowd->sink, self->state.pongs);
            },
            [self, crowd, index](go_atom) { ping_another(self, *crowd, index); }};
}

struct sink_state {
    uint64_t sum = 0;
    uint32_t reports = 0;
};

behavior sink(stateful_actor<sink_state> *self, round *round)
{
    return {[self, round](uint64_t pongs) {
        self->state.sum += pongs;
        if (++self->state.reports == big_actors)
            round->end(self->state.sum);
    }};
}

// ---- bndbuffer ----------------------------------------------------------------------------------

volatile double item_start = 0.25;

double make_item()
{
    double x = item_start;
    for (int i = 0; i < item_steps; i++)
        x = std::sin(x) + 1e-9 * i;
    return x;
}

struct maker_state {
    uint64_t left = 0;
};

// Who it is goes with the item; the last one has a mark of its own.
behavior maker(stateful_actor<maker_state> *self, const actor &manager, uint32_t index,
               uint64_t items)
{
    self->state.left = items;
    return {[self, manager, index](next_atom) {
        double item = make_item();
        if (--self->state.left != 0) {
            anon_send(manager, item, index);
            return;
        }
        anon_send(manager, item, producers);
        self->quit();
    }};
}

struct taker_state {
    uint64_t count = 0;
};

behavior taker(stateful_actor<taker_state> *self, const actor &manager, uint32_t index)
{
    anon_send(manager, index);
    return {[self, manager, index](double item) {
                if (std::fabs(make_item() - item) > 1e-9)
                    wrong("an item");
                self->state.count++;
                anon_send(manager, index);
            },
            [self, manager](enough_atom) {
                anon_send(manager, self->state.count);
                self->quit();
            }};
}

struct buffer_state {
    std::vector<actor> makers;
    std::vector<actor> takers;
    std::deque<double> items;
    std::deque<uint32_t> makers_waiting;
    std::deque<uint32_t> takers_waiting;
    uint64_t permits = 0;
    uint64_t left = 0; // items that no consumer got yet
    uint64_t sum = 0;
    uint32_t reports = 0;
};

using buffer_actor = stateful_actor<buffer_state>;

void give_permits(buffer_actor *self)
{
    auto &state = self->state;
    while (!state.makers_waiting.empty() && state.items.size() + state.permits < buffer_places) {
        anon_send(state.makers[state.makers_waiting.front()], next_atom::value);
        state.makers_waiting.pop_front();
        state.permits++;
    }
}

void give_item(buffer_actor *self, uint32_t index, double item)
{
    anon_send(self->state.takers[index], item);
    self->state.left--;
}

void take_item(buffer_actor *self, double item, uint32_t index)
{
    auto &state = self->state;
    state.permits--;
    if (state.takers_waiting.empty()) {
        state.items.push_back(item);
    } else {
        give_item(self, state.takers_waiting.front(), item);
        state.takers_waiting.pop_front();
    }
    if (index != producers)
        state.makers_waiting.push_back(index);
    give_permits(self);
    if (state.left != 0)
        return;
    for (auto waiting : state.takers_waiting)
        anon_send(state.takers[waiting], enough_atom::value);
}

void next_item(buffer_actor *self, uint32_t index)
{
    auto &state = self->state;
    if (state.left == 0) {
        anon_send(state.takers[index], enough_atom::value);
    } else if (state.items.empty()) {
        state.takers_waiting.push_back(index);
    } else {
        give_item(self, index, state.items.front());
        state.items.pop_front();
        give_permits(self);
    }
}

behavior buffer(buffer_actor *self, uint64_t items, round *round)
{
    auto &state = self->state;
    state.left = producers * items;
    for (uint32_t i = 0; i < producers; i++) {
        state.makers.push_back(self->spawn(maker, actor{self}, i, items));
        state.makers_waiting.push_back(i);
    }
    for (uint32_t i = 0; i < consumers; i++)
        state.takers.push_back(self->spawn(taker, actor{self}, i));
    give_permits(self);
    return {[self](double item, uint32_t index) { take_item(self, item, index); },
            [self](uint32_t index) { next_item(self, index); },
            [self, round](uint64_t count) {
                self->state.sum += count;
                if (++self->state.reports != consumers)
                    return;
                self->quit();
                round->end(self->state.sum);
            }};
}

// ---- banking ------------------------------------------------------------------------------------

struct bank {
    std::vector<actor> accounts;
    actor teller;
};

struct account_state {
    int64_t balance = balance_begin;
};

// While it awaits the answer of the other account, it takes nothing else.
behavior account(stateful_actor<account_state> *self, const bank *bank)
{
    return {[self, bank](uint32_t destination, uint32_t amount) {
                self->state.balance -= amount;
                self->request(bank->accounts[destination], infinite, amount).await([bank] {
                    anon_send(bank->teller, ack_atom::value);
                });
            },
            [self](uint32_t amount) { self->state.balance += amount; },
            [self, bank](get_atom) { anon_send(bank->teller, self->state.balance); }};
}

struct teller_state {
    uint32_t random = 1;
    uint64_t left = 0;
    uint64_t out = 0;
    uint32_t reports = 0;
    int64_t sum = 0;
};

using teller_actor = stateful_actor<teller_state>;

void transfer(teller_actor *self, const bank &bank)
{
    auto &random = self->state.random;
    uint32_t source = xorshift32(random) % sources;
    uint32_t destination = source + 1 + xorshift32(random) % (accounts - 1 - source);
    uint32_t amount = xorshift32(random) % amount_end;

    anon_send(bank.accounts[source], destination, amount);
    self->state.left--;
    self->state.out++;
}

void transfer_done(teller_actor *self, const bank &bank)
{
    auto &state = self->state;
    state.out--;
    if (state.left != 0) {
        transfer(self, bank);
        return;
    }
    if (state.out != 0)
        return;
    for (auto &account : bank.accounts)
        anon_send(account, get_atom::value);
}

behavior teller(teller_actor *self, const bank *bank, uint64_t transfers, round *round)
{
    self->state.left = transfers;
    return {[self, bank](ack_atom) { transfer_done(self, *bank); },
            [self, bank](go_atom) {
                while (self->state.left != 0 && self->state.out < transfers_out)
                    transfer(self, *bank);
            },
            [self, round](int64_t balance) {
                self->state.sum += balance;
                if (++self->state.reports == accounts)
                    round->end(static_cast<uint64_t>(self->state.sum));
            }};
}

} // namespace

void run_chameneos(actor_system &system, uint64_t size, round &round)
{
    system.spawn(mall, size, &round);
    round.wait();
}

void run_big(actor_system &system, uint64_t size, round &round)
{
    crowd crowd;
    crowd.sink = system.spawn<lazy_init>(sink, &round);
    for (uint32_t i = 0; i < big_actors; i++)
        crowd.all.push_back(system.spawn<lazy_init>(one, &crowd, i, size));
    for (auto &actor : crowd.all)
        anon_send(actor, go_atom::value);
    round.wait();
    stop_all(crowd.all);
    stop_all({crowd.sink});
    system.await_all_actors_done();
}

void run_bndbuffer(actor_system &system, uint64_t size, round &round)
{
    system.spawn(buffer, size, &round);
    round.wait();
}

void run_banking(actor_system &system, uint64_t size, round &round)
{
    bank bank;
    bank.teller = system.spawn<lazy_init>(teller, &bank, size, &round);
    for (uint32_t i = 0; i < accounts; i++)
        bank.accounts.push_back(system.spawn<lazy_init>(account, &bank));
    anon_send(bank.teller, go_atom::value);
    round.wait();
    stop_all(bank.accounts);
    stop_all({bank.teller});
    system.await_all_actors_done();
}

} // namespace savina
