/* TLS: threads connect with the same contexts while their files are read again and the keys of
 * tickets change, and several threads read files again. The thread sanitizer checks that. */
#include "protocols/tls/context.h"
#include "tests/support/sanitizer.h"
#include "tests/support/suite.h"
#include "tests/tls/talk.h"

#include <openssl/crypto.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS  DOMT_SCALE(40, 10)
#define CHANGES DOMT_SCALE(100, 25)

static domt_pki pki;
static domus_tls *server_tls;
static domus_tls *client_tls;
static _Atomic uint32_t done;    /* number of threads that have ended */
static _Atomic uint32_t resumed; /* number of resumed connections */

static void connect_and_exchange(domt_side *server, domt_side *client)
{
    ck_assert_int_eq(domt_side_open(server, server_tls, NULL), 0);
    ck_assert_int_eq(domt_side_open(client, client_tls, "a.example"), 0);
    domt_side_send_line(client, "hello");
    domt_talk(client, server, 0);
    ck_assert_str_eq(client->last, "hello");
    if (domt_side_info(client).resumed)
        atomic_fetch_add(&resumed, 1);
    domt_side_close(client);
    domt_side_close(server);
}

static void *connect_repeatedly(void *sides_)
{
    domt_side *sides = sides_;

    for (int i = 0; i < ROUNDS; i++)
        connect_and_exchange(&sides[0], &sides[1]);
    atomic_fetch_add(&done, 1);
    return NULL;
}

DOMT_TEST(handshakes_go_on_while_files_and_keys_change)
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
        ck_assert_int_eq(pthread_create(&threads[i], NULL, connect_repeatedly, sides[i]), 0);
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

/* --- several threads read files again
 * ----------------------------------------------------------- */

static char path[2][128]; /* paths of the two files that are used in turns */
static char now_path[128];

/* Read the files again. A thread may see the certificate of one file and the key of the other, and
 * fails then. */
static void *reload_repeatedly(void *nothing)
{
    while (atomic_load(&done) == 0)
        (void)domus_tls_reload(server_tls, NULL, 0);
    return NULL;
}

static bool has_certificate(domi_tls_text file)
{
    (void)CRYPTO_THREAD_read_lock(server_tls->lock);
    const domi_tls_text *in_use = &server_tls->files->certs[0];
    bool same = in_use->size >= file.size && memcmp(in_use->bytes, file.bytes, file.size) == 0;
    (void)CRYPTO_THREAD_unlock(server_tls->lock);
    return same;
}

/* Replace the file that is read by another one, in one step. */
static void change_file_to(int which, domi_tls_text *ret_file)
{
    static char bytes[1 << 16];
    char next[160];
    FILE *file = fopen(path[which], "r");

    ck_assert_ptr_nonnull(file);
    *ret_file = (domi_tls_text){bytes, fread(bytes, 1, sizeof bytes, file)};
    ck_assert_int_eq(fclose(file), 0);
    snprintf(next, sizeof next, "%s.next", now_path);
    ck_assert_int_eq(link(path[which], next), 0);
    ck_assert_int_eq(rename(next, now_path), 0);
}

DOMT_TEST(older_read_does_not_replace_a_newer_one)
{
    pthread_t threads[THREADS];
    domi_tls_text file;

    domt_pki_make(&pki);
    domt_pki_issue(&pki, &(domt_wish){.file = "a", .names = "DNS:a.example"});
    domt_pki_issue(&pki, &(domt_wish){.file = "b", .names = "DNS:b.example"});
    snprintf(path[0], sizeof path[0], "%s", domt_pki_path(&pki, "a"));
    snprintf(path[1], sizeof path[1], "%s", domt_pki_path(&pki, "b"));
    snprintf(now_path, sizeof now_path, "%s", domt_pki_path(&pki, "now"));
    change_file_to(0, &file);
    domus_tls_settings settings = domt_server_settings(&pki, "now");
    server_tls = domt_tls(&settings);
    atomic_store(&done, 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, reload_repeatedly, NULL), 0);
    for (int i = 0; i < CHANGES; i++) {
        change_file_to((i + 1) % 2, &file);
        ck_assert_int_eq(domus_tls_reload(server_tls, NULL, 0), 0);
        for (int look = 0; look < 4; look++) {
            ck_assert_msg(has_certificate(file), "change %d, look %d", i, look);
            struct timespec pause = {.tv_nsec = 500000};
            nanosleep(&pause, NULL);
        }
    }
    atomic_store(&done, 1);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    domus_tls_free(server_tls);
    domt_pki_free(&pki);
}

DOMT_SUITE(100)
