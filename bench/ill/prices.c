/* A price service. A thread of its own reads the prices again and again from the database, by the
 * blocking client library that the company has, and clients ask for them by "price ARTICLE". */
#include <domus/main.h>
#include <domus/observe.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ARTICLES 4096
#define ROWS     64 /* rows that the database returns for one fetch */

struct settings {
    uint64_t fetch_ns, pause_ns;
    bool fixed;
};

static struct settings settings;

/* The prices of all articles, which the reader writes and all clients read. */
static struct {
    pthread_mutex_t lock;
    uint32_t cents[ARTICLES];
    uint64_t version;
} prices = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_t reader;
static atomic_bool stops;

static void sleep_this_thread_ns(uint64_t ns)
{
    nanosleep(
        &(struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)},
        NULL);
}

/* Fetch the next rows of the cursor, which is a round trip to the database. */
static void fetch_rows(uint64_t version, uint32_t from, uint32_t *cents)
{
    sleep_this_thread_ns(settings.fetch_ns);
    for (uint32_t i = from; i < from + ROWS; i++)
        cents[i] = 100 + (uint32_t)((i * 2654435761u + version) % 10000);
}

/* All prices that a client sees are to be of one version, so they are written under the lock. */
static void refresh_prices(uint64_t version)
{
    static uint32_t fresh[ARTICLES];

    if (settings.fixed) {
        for (uint32_t i = 0; i < ARTICLES; i += ROWS)
            fetch_rows(version, i, fresh);
    }
    pthread_mutex_lock(&prices.lock);
    if (settings.fixed) {
        memcpy(prices.cents, fresh, sizeof(fresh));
    } else {
        for (uint32_t i = 0; i < ARTICLES; i += ROWS)
            fetch_rows(version, i, prices.cents);
    }
    prices.version = version;
    pthread_mutex_unlock(&prices.lock);
}

static void *refresh_prices_until_service_stops(void *argument)
{
    (void)argument;
    for (uint64_t version = 1; !atomic_load(&stops); version++) {
        refresh_prices(version);
        sleep_this_thread_ns(settings.pause_ns);
    }
    return NULL;
}

/* --- clients ---------------------------------------------------------------------------------- */

static int serve_request(domus_stack *stack, void *self, const void *payload)
{
    const domus_packet *line = payload;
    domus_packet reply = {0};
    uint32_t article, cents;
    uint64_t version;
    char text[64];
    size_t size = line->bytes.size < sizeof(text) ? line->bytes.size : sizeof(text) - 1;

    (void)self;
    memcpy(text, domus_slice_data(line->bytes), size);
    text[size] = 0;
    if (sscanf(text, "price %u", &article) != 1 || article >= ARTICLES)
        return -EINVAL;

    pthread_mutex_lock(&prices.lock);
    cents = prices.cents[article];
    version = prices.version;
    pthread_mutex_unlock(&prices.lock);

    size = (size_t)snprintf(text, sizeof(text), "cents %u version %llu", cents,
                            (unsigned long long)version);
    if (domus_slice_copy(text, size, &reply.bytes) < 0)
        return -ENOMEM;
    return domus_reply(stack, &domus_packet_type, &reply);
}

static const domus_pipeline lines = {
    .stages = (const domus_pipeline_stage[]){{&domus_line_stage, NULL}, {0}}};
static const domus_behaviour client_behaviour = {
    .name = "client",
    .kind = DOMUS_CHANNELS,
    .shares_state = true,
    .pipeline = &lines,
    .on_peer = (const domus_on_peer[]){{.type = &domus_packet_type, .handle = serve_request}, {0}}};
static const domus_behaviour front_behaviour = {
    .name = "front", .kind = DOMUS_CHANNELS, .channel = &client_behaviour};

static int start_service(domus_system *system, void *argument)
{
    (void)argument;
    if (pthread_create(&reader, NULL, refresh_prices_until_service_stops, NULL) != 0)
        return -EAGAIN;
    return domus_main_serve(system, "prices", &front_behaviour, NULL);
}

static void stop_service(domus_system *system, void *argument)
{
    (void)system, (void)argument;
    atomic_store(&stops, true);
    pthread_join(reader, NULL);
}

int main(int argc, char **argv)
{
    static const domus_config_key keys[] = {
        {DOMUS_KEY("fetchTime", DURATION, struct settings, fetch_ns, 1000, 1000000000, 600000)},
        {DOMUS_KEY("pause", DURATION, struct settings, pause_ns, 1000000, 60000000000, 5000000)},
        {DOMUS_KEY_SWITCH("fixed", struct settings, fixed, false)},
        {.path = NULL},
    };
    static const domus_section section = {.name = "prices", .keys = keys, .size = sizeof(settings)};

    return domus_main(argc, argv,
                      &(domus_program){.name = "prices",
                                       .start = start_service,
                                       .stop = stop_service,
                                       .section = &section,
                                       .settings = &settings,
                                       .observe = &domus_observe_front});
}
