/* TLS: threads shake hands with the same contexts while their files are read again and the keys of
 * tickets change. A sanitizer of threads looks on. */
#include "tests/support/suite.h"
#include "tests/tls/talk.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define THREADS 4
#define ROUNDS  40

static domt_pki pki;
static domus_tls *server_tls;
static domus_tls *client_tls;
static _Atomic uint32_t done;    /* threads */
static _Atomic uint32_t resumed; /* connections */

static void meet(domt_side *server, domt_side *client)
{
    ck_assert_int_eq(domt_side_open(server, server_tls, NULL), 0);
    ck_assert_int_eq(domt_side_open(client, client_tls, "a.example"), 0);
    domt_side_say(client, "hello");
    domt_talk(client, server, 0);
    ck_assert_str_eq(client->last, "hello");
    if (domt_side_info(client).resumed)
        atomic_fetch_add(&resumed, 1);
    domt_side_close(client);
    domt_side_close(server);
}

static void *shake_hands(void *sides_)
{
    domt_side *sides = sides_;

    for (int i = 0; i < ROUNDS; i++)
        meet(&sides[0], &sides[1]);
    atomic_fetch_add(&done, 1);
    return NULL;
}

START_TEST(handshakes_go_on_while_files_and_keys_change)
{
    static domt_side sides[THREADS][2];
    pthread_t threads[THREADS];
    uint32_t reloads = 0;

    domt_pki_make(&pki);
    domt_pki_issue(&pki, &(domt_wish){.file = "a", .names = "DNS:a.example"});
    domus_tls_settings settings = domt_server_settings(&pki, "a");
    server_tls = domt_tls(&settings);
    settings = domt_client_settings(&pki);
    client_tls = domt_tls(&settings);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, shake_hands, sides[i]), 0);
    for (; atomic_load(&done) < THREADS; reloads++) {
        ck_assert_int_eq(domus_tls_reload(server_tls, NULL, 0), 0);
        ck_assert_int_eq(domus_tls_rotate(server_tls), 0);
        if (reloads % 8 == 7)
            ck_assert_int_eq(domus_tls_reload(client_tls, NULL, 0), 0);
        struct timespec pause = {.tv_nsec = 2000000};
        nanosleep(&pause, NULL);
    }
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_uint_gt(reloads, 3);
    ck_assert_uint_gt(atomic_load(&resumed), 0);
    domus_tls_free(client_tls);
    domus_tls_free(server_tls);
    domt_pki_free(&pki);
}
END_TEST

DOMT_MAIN("tls threads", 100, handshakes_go_on_while_files_and_keys_change)
