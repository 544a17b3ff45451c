/* config/main_front.c: the table of fronts has a place for each listener that a configuration may
 * have and for the servers of a cluster, and keeps nothing of a closed front. */
#include "config/main_parts.h"

#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

static domus_config config;
static domus_listener_config listeners[DOMUS_LISTENERS_MAX];
static char names[DOMUS_LISTENERS_MAX][32];
static const domus_pipeline_stage stages[DOMUS_LISTENERS_MAX];
static size_t opened;
static size_t closed;

/* Open a front whose stages differ from those of each other listener. */
static int open_front(const domus_listener_config *listener, char *error, size_t error_size,
                      void **ret_state, const domus_pipeline_stage **ret_stages)
{
    size_t number = (size_t)(listener - listeners);

    *ret_state = NULL;
    *ret_stages = strncmp(listener->name, "plain", 5) == 0 ? NULL : &stages[number];
    opened += *ret_stages != NULL;
    return 0;
}

static void close_front(void *state)
{
    closed++;
}

static const domus_pipeline_stage servers_stages[1];

static int open_servers(const domus_servers_tls_config *settings, char *error, size_t error_size,
                        void **ret_state, const domus_pipeline_stage **ret_stages)
{
    *ret_state = NULL;
    *ret_stages = settings->enabled ? servers_stages : NULL;
    opened++;
    return 0;
}

static const domus_front front = {
    .open = open_front, .close = close_front, .open_servers = open_servers};
static const domus_cluster_member member;
static const domus_program program = {.name = "fronts", .front = &front, .cluster = &member};
static bool has_servers;

/* Configure listeners, of which the last is plain if `has_plain`, and open their fronts. */
static void open_all(size_t count, bool has_plain)
{
    domus_config_init(&config);
    config.cluster.tls.enabled = has_servers;
    config.listeners = listeners;
    config.listener_count = count;
    for (size_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "%s%zu",
                 has_plain && i + 1 == count ? "plain" : "front", i);
        listeners[i] = (domus_listener_config){.name = names[i]};
    }
    opened = closed = 0;
    ck_assert(domi_fronts_open(&program, &config));
}

DOMT_TEST(full_table_of_fronts_ends_with_its_last_front)
{
    open_all(DOMUS_LISTENERS_MAX, false);
    ck_assert_uint_eq(opened, DOMUS_LISTENERS_MAX);
    for (size_t i = 0; i < DOMUS_LISTENERS_MAX; i++)
        ck_assert_ptr_eq(domi_fronts_find(config.listeners[i].name), &stages[i]);
    ck_assert_ptr_null(domi_fronts_find("other"));
    ck_assert_ptr_null(domi_fronts_find_servers());
    domi_fronts_close(false);
    ck_assert_uint_eq(closed, DOMUS_LISTENERS_MAX);
}

DOMT_TEST(full_table_of_fronts_has_room_for_the_servers)
{
    has_servers = true;
    open_all(DOMUS_LISTENERS_MAX, false);
    ck_assert_uint_eq(opened, DOMUS_LISTENERS_MAX + 1);
    ck_assert_ptr_eq(domi_fronts_find_servers(), servers_stages);
    for (size_t i = 0; i < DOMUS_LISTENERS_MAX; i++)
        ck_assert_ptr_eq(domi_fronts_find(config.listeners[i].name), &stages[i]);
    domi_fronts_close(false);
    ck_assert_uint_eq(closed, DOMUS_LISTENERS_MAX + 1);
    ck_assert_ptr_null(domi_fronts_find_servers());
    has_servers = false;
}

DOMT_TEST(closed_fronts_are_not_found)
{
    open_all(2, false);
    domi_fronts_close(false);
    ck_assert_ptr_null(domi_fronts_find("front0"));
    open_all(2, true);
    ck_assert_ptr_eq(domi_fronts_find("front0"), &stages[0]);
    ck_assert_ptr_null(domi_fronts_find("front1")); /* "front1" was a name of the run before */
    ck_assert_ptr_null(domi_fronts_find("plain1"));
    domi_fronts_close(false);
    ck_assert_uint_eq(closed, 1);
}

DOMT_SUITE(10)
