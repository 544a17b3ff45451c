/* This file has the table of the ten loads (sweep_rows.h). */
#include "bench/sweep_rows.h"

#include <string.h>

#define ONE_THREAD  "system: {threads: 1}\n"
#define TWO_THREADS "system: {threads: 2}\n"

const struct sweep_row sweep_rows[SWEEP_ROWS] = {
    {.name = "echo",
     .program = "echo",
     .listener = "echo",
     .settings = ONE_THREAD,
     .cpus = 1,
     .goal = SWEEP_CPU,
     .connections = 64,
     .depth = 1,
     .rate = 30000},
    {.name = "web",
     .program = "web_domus",
     .listener = "web",
     .settings = ONE_THREAD,
     .cpus = 1,
     .goal = SWEEP_CPU,
     .requests = SWEEP_GETS,
     .connections = 64,
     .depth = 1,
     .rate = 20000},
    {.name = "kv_near",
     .program = "kv",
     .listener = "kv",
     .settings = ONE_THREAD "kv: {shards: 1}\n",
     .cpus = 1,
     .goal = SWEEP_CPU,
     .requests = SWEEP_KEYS,
     .connections = 50,
     .depth = 16,
     .rate = 100000},
    {.name = "kv_spread",
     .program = "kv",
     .listener = "kv",
     .settings = TWO_THREADS "kv: {shards: 2}\n",
     .cpus = 2,
     .goal = SWEEP_CPU,
     .requests = SWEEP_KEYS,
     .connections = 50,
     .depth = 1,
     .rate = 20000},
    /* row `mixed`: each 2 ms there is background work of 0.6 ms, and one packet in 1,000 is work */
    {.name = "mixed",
     .program = "loads_domus",
     .listener = "load",
     .settings = ONE_THREAD "loads: {steps: 10000, every: 1000, background: 48}\n",
     .cpus = 1,
     .goal = SWEEP_P90,
     .connections = 64,
     .depth = 1,
     .rate = 10000},
    {.name = "bursts", /* row `bursts`: each 20 ms a request comes on every connection */
     .program = "loads_domus",
     .listener = "load",
     .settings = TWO_THREADS "loads: {actors: 128, steps: 10000, every: 2}\n",
     .cpus = 2,
     .goal = SWEEP_P90,
     .connections = 128,
     .depth = 1,
     .rate = 6400,
     .burst = 128},
    {.name = "hot", /* row `hot`: one actor has all the work, and each packet is work of 3 us */
     .program = "loads_domus",
     .listener = "load",
     .settings = TWO_THREADS "loads: {actors: 1, steps: 2000, every: 1}\n",
     .cpus = 2,
     .goal = SWEEP_RATE,
     .connections = 32,
     .depth = 4},
    {.name = "small", /* row `small`: as `hot`, but with many actors, and with work of 0.3 us */
     .program = "loads_domus",
     .listener = "load",
     .settings = TWO_THREADS "loads: {actors: 10000, steps: 200, every: 1}\n",
     .cpus = 2,
     .goal = SWEEP_RATE,
     .connections = 64,
     .depth = 16},
    {.name = "pool", /* row `pool`: one packet in eight is work for a pool */
     .program = "loads_domus",
     .listener = "load",
     .settings = ONE_THREAD "pools: [{name: work, runners: 1}]\n"
                            "loads: {actors: 16, steps: 50000, every: 8, inPool: true}\n",
     .cpus = 2,
     .goal = SWEEP_P90,
     .connections = 64,
     .depth = 1,
     .rate = 20000},
    {.name = "tls",
     .program = "web_domus",
     .listener = "web",
     .settings = ONE_THREAD,
     .cpus = 1,
     .is_secure = true,
     .goal = SWEEP_CPU,
     .requests = SWEEP_GETS,
     .connections = 64,
     .depth = 1,
     .rate = 10000},
};

const struct sweep_row *sweep_find_row_by_name(const char *name)
{
    for (uint32_t i = 0; i < SWEEP_ROWS; i++) {
        if (strcmp(sweep_rows[i].name, name) == 0)
            return &sweep_rows[i];
    }
    return NULL;
}
