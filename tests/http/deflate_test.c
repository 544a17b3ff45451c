/* protocols/http/deflate.c: several threads take streams of compression from one pool and give them
 * back. */
#include "tests/support/suite.h"

#include "protocols/http/coding.h"

#include <pthread.h>
#include <string.h>

#define THREADS 4
#define ROUNDS  300

static domus_http_gzip gzip = {.streams_max = 3};
static uint32_t refused[THREADS], done[THREADS];

static void *compress_again_and_again(void *index_)
{
    const uint32_t *index = index_;
    static const char text[] = "hello, hello, hello, hello, hello, hello, hello, hello, hello";

    for (int i = 0; i < ROUNDS; i++) {
        domus_slice packed;
        domi_http_deflater *deflater = domi_http_deflater_take_from_pool(&gzip);
        if (deflater == NULL) {
            refused[*index]++;
            continue;
        }
        if (domi_http_deflate_whole_body(deflater, text, sizeof text - 1, &packed) == 0 &&
            packed.size < 40) {
            done[*index]++;
            domus_slice_free(packed);
        }
        domi_http_deflater_give_back(deflater);
    }
    return NULL;
}

DOMT_TEST(threads_share_the_deflate_streams)
{
    pthread_t threads[THREADS];
    uint32_t indexes[THREADS];

    for (uint32_t i = 0; i < THREADS; i++) {
        indexes[i] = i;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, compress_again_and_again, &indexes[i]),
                         0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        ck_assert_uint_eq(done[i] + refused[i], ROUNDS);
    }
    ck_assert_uint_le(gzip.streams, 3);
    domus_http_gzip_trim(&gzip);
    ck_assert_uint_eq(gzip.streams, 0);
}

DOMT_TEST(lists_of_deflate_streams_end_with_their_channel)
{
    domi_http_deflater *list = NULL;
    domi_http_deflater *some[3];

    for (int i = 0; i < 3; i++) {
        some[i] = domi_http_deflater_take_from_pool(&gzip);
        ck_assert_ptr_nonnull(some[i]);
        domi_http_deflater_add_to_list(some[i], &list);
    }
    ck_assert_ptr_null(domi_http_deflater_take_from_pool(&gzip));
    domi_http_deflater_give_back(some[1]);
    domi_http_deflater_give_back(some[2]);
    domi_http_deflaters_give_back(&list);
    ck_assert_ptr_null(list);
    ck_assert_uint_eq(gzip.streams, 3);
    domus_http_gzip_trim(&gzip);
    ck_assert_uint_eq(gzip.streams, 0);
}

DOMT_SUITE(60)
