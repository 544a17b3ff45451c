/* The table of sessions (domus/http_sessions.h).
 *
 * Sessions stand in a hash table by the SHA-256 of their ids, and in a list by their last use. The
 * list gives both the sessions that were idle for too long and those that are removed at a bound,
 * so neither needs a search. A session beyond its lifetime is noticed when it is looked up, or when
 * it is idle. */
#include "protocols/http/session/signing.h"

#include <domus/http_sessions.h>

#include <assert.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

#define COUNT      10000u
#define COUNT_MOST 1000000u
#define VALUE      (4u << 10)
#define VALUE_MOST (1u << 20)
#define BYTES      (UINT64_C(16) << 20)
#define IDLE       (UINT64_C(1800) * 1000000000)
#define LIFETIME   (UINT64_C(12) * 3600 * 1000000000)
#define SWEPT      4u /* idle sessions that are removed when a new session is added, at most */

typedef struct session session;

struct session {
    session *next;  /* the next session in its bucket of the hash table */
    session *newer; /* the session that was used next after this one; NULL: this is the newest */
    session *older;
    /* SHA-256 of the session's id, by which the session is found */
    uint8_t hash[SHA256_DIGEST_SIZE];
    domus_slice value;
    uint64_t born_ns;
    uint64_t used_ns;
};

/* The cost that is counted for a session also covers the overhead of its allocation, and of the
 * page of its value. */
static_assert(sizeof(session) + 64 <= DOMUS_HTTP_SESSION_COST, "what a session costs");

struct domus_http_sessions {
    domus_http_sessions_options options; /* options of the table, in which no limit is 0 */
    session *newest;
    session *oldest;
    uint64_t bytes;
    uint32_t count;
    uint32_t mask; /* number of the hash table's buckets, a power of two, minus 1 */
    session *buckets[];
};

/* --- places ----------------------------------------------------------------------------------- */

static void hash_id_of_session(const domus_http_session_id *id, uint8_t hash[SHA256_DIGEST_SIZE])
{
    struct sha256_ctx context;

    sha256_init(&context);
    sha256_update(&context, sizeof id->bytes, id->bytes);
    sha256_digest(&context, SHA256_DIGEST_SIZE, hash);
}

/* Find the pointer in a bucket that leads to the session with this hash, or at which such a session
 * would be linked. */
static session **find_link_to_session_with_hash(domus_http_sessions *sessions, const uint8_t *hash)
{
    uint32_t number;

    memcpy(&number, hash, sizeof number);
    session **place = &sessions->buckets[number & sessions->mask];
    while (*place != NULL && memcmp((*place)->hash, hash, SHA256_DIGEST_SIZE) != 0)
        place = &(*place)->next;
    return place;
}

static void remove_from_order_of_use(domus_http_sessions *sessions, session *one)
{
    *(one->newer != NULL ? &one->newer->older : &sessions->newest) = one->older;
    *(one->older != NULL ? &one->older->newer : &sessions->oldest) = one->newer;
}

static void add_session_as_newest(domus_http_sessions *sessions, session *one, uint64_t now_ns)
{
    one->used_ns = now_ns;
    one->newer = NULL;
    one->older = sessions->newest;
    *(one->older != NULL ? &one->older->newer : &sessions->oldest) = one;
    sessions->newest = one;
}

static uint64_t memory_cost_of_session_with_value(domus_slice value)
{
    return value.size + (uint64_t)DOMUS_HTTP_SESSION_COST;
}

/* Remove the session to which the pointer `place` leads, and free it. */
static void remove_and_free_session(domus_http_sessions *sessions, session **place)
{
    session *one = *place;

    *place = one->next;
    remove_from_order_of_use(sessions, one);
    sessions->count--;
    sessions->bytes -= memory_cost_of_session_with_value(one->value);
    domus_slice_free(one->value);
    explicit_bzero(one, sizeof *one);
    free(one);
}

static bool has_time_passed_since(uint64_t since_ns, uint64_t time_ns, uint64_t now_ns)
{
    return now_ns >= since_ns && now_ns - since_ns >= time_ns;
}

static bool is_session_expired(const domus_http_sessions *sessions, const session *one,
                               uint64_t now_ns)
{
    return has_time_passed_since(one->used_ns, sessions->options.idle_ns, now_ns) ||
           has_time_passed_since(one->born_ns, sessions->options.lifetime_ns, now_ns);
}

/* Find a session that has not expired, and mark it as used now. Returns the pointer that leads to
 * it; NULL if there is none. */
static session **find_living_session_and_mark_as_used(domus_http_sessions *sessions,
                                                      uint64_t now_ns,
                                                      const domus_http_session_id *id)
{
    uint8_t hash[SHA256_DIGEST_SIZE];

    hash_id_of_session(id, hash);
    session **place = find_link_to_session_with_hash(sessions, hash);
    if (*place == NULL)
        return NULL;
    if (is_session_expired(sessions, *place, now_ns)) {
        remove_and_free_session(sessions, place);
        return NULL;
    }
    remove_from_order_of_use(sessions, *place);
    add_session_as_newest(sessions, *place, now_ns);
    return place;
}

/* --- bounds ----------------------------------------------------------------------------------- */

/* Make room for `count` more sessions and for `bytes`, by removing those that were idle longest,
 * but not `kept`, which is the newest. Returns 0; -ENOBUFS. */
static int make_room_for_sessions(domus_http_sessions *sessions, uint32_t count, uint64_t bytes,
                                  const session *kept)
{
    const domus_http_sessions_options *options = &sessions->options;

    while (sessions->count + count > options->count_max ||
           sessions->bytes + bytes > options->bytes_max) {
        if (options->refuses || sessions->oldest == NULL || sessions->oldest == kept)
            return -ENOBUFS;
        remove_and_free_session(sessions,
                                find_link_to_session_with_hash(sessions, sessions->oldest->hash));
    }
    return 0;
}

uint64_t domus_http_sessions_sweep(domus_http_sessions *sessions, uint64_t now_ns, uint32_t most)
{
    for (; most != 0 && sessions->oldest != NULL; most--) {
        if (!is_session_expired(sessions, sessions->oldest, now_ns))
            break;
        remove_and_free_session(sessions,
                                find_link_to_session_with_hash(sessions, sessions->oldest->hash));
    }
    if (sessions->oldest == NULL)
        return UINT64_MAX;
    uint64_t used_ns = sessions->oldest->used_ns;
    uint64_t idle_ns = sessions->options.idle_ns;
    return used_ns > UINT64_MAX - idle_ns ? UINT64_MAX : used_ns + idle_ns;
}

/* --- the table -------------------------------------------------------------------------------- */

/* Replace zeros in the options of the table by defaults. Returns 0; -EINVAL. */
static int fill_in_defaults_of_table(domus_http_sessions_options *options)
{
    if (options->count_max == 0)
        options->count_max = COUNT;
    if (options->value_max == 0)
        options->value_max = VALUE;
    if (options->bytes_max == 0)
        options->bytes_max = BYTES;
    if (options->idle_ns == 0)
        options->idle_ns = IDLE;
    if (options->lifetime_ns == 0)
        options->lifetime_ns = LIFETIME;
    if (options->draw == NULL)
        options->draw = domi_http_draw_random_bytes;
    return options->count_max > COUNT_MOST || options->value_max > VALUE_MOST ||
                   options->bytes_max < (uint64_t)options->value_max + DOMUS_HTTP_SESSION_COST
               ? -EINVAL
               : 0;
}

int domus_http_sessions_open(const domus_http_sessions_options *options,
                             domus_http_sessions **ret_sessions)
{
    domus_http_sessions_options made = {.count_max = 0};
    uint32_t buckets = 1;

    if (options != NULL)
        made = *options;
    int error = fill_in_defaults_of_table(&made);
    if (error != 0)
        return error;
    while (buckets < made.count_max)
        buckets *= 2;
    domus_http_sessions *sessions = calloc(1, sizeof *sessions + buckets * sizeof(session *));
    if (sessions == NULL)
        return -ENOMEM;
    sessions->options = made;
    sessions->mask = buckets - 1;
    *ret_sessions = sessions;
    return 0;
}

domus_http_sessions *domus_http_sessions_close(domus_http_sessions *sessions)
{
    while (sessions != NULL && sessions->oldest != NULL)
        remove_and_free_session(sessions,
                                find_link_to_session_with_hash(sessions, sessions->oldest->hash));
    free(sessions);
    return NULL;
}

int domus_http_sessions_begin(domus_http_sessions *sessions, uint64_t now_ns, domus_slice value,
                              domus_http_session_id *ret_id)
{
    domus_http_session_id id;

    if (value.size > sessions->options.value_max)
        return -EMSGSIZE;
    (void)domus_http_sessions_sweep(sessions, now_ns, SWEPT);
    int error = make_room_for_sessions(sessions, 1, memory_cost_of_session_with_value(value), NULL);
    if (error == 0)
        error = sessions->options.draw(id.bytes, sizeof id.bytes);
    if (error != 0)
        return error;
    session *one = calloc(1, sizeof *one);
    if (one == NULL)
        return -ENOMEM;
    hash_id_of_session(&id, one->hash);
    session **place = find_link_to_session_with_hash(sessions, one->hash);
    if (*place != NULL) { /* an id can be drawn twice only if a test has replaced `draw` */
        free(one);
        return -EEXIST;
    }
    *place = one;
    one->value = value;
    one->born_ns = now_ns;
    add_session_as_newest(sessions, one, now_ns);
    sessions->count++;
    sessions->bytes += memory_cost_of_session_with_value(value);
    *ret_id = id;
    return 0;
}

int domus_http_sessions_find(domus_http_sessions *sessions, uint64_t now_ns,
                             const domus_http_session_id *id, domus_slice *ret_value)
{
    session **place = find_living_session_and_mark_as_used(sessions, now_ns, id);

    if (place == NULL)
        return -ENOENT;
    *ret_value = (*place)->value;
    return 0;
}

int domus_http_sessions_put(domus_http_sessions *sessions, uint64_t now_ns,
                            const domus_http_session_id *id, domus_slice value)
{
    session **place = find_living_session_and_mark_as_used(sessions, now_ns, id);

    if (place == NULL)
        return -ENOENT;
    if (value.size > sessions->options.value_max)
        return -EMSGSIZE;
    session *one = *place;
    uint64_t more = value.size > one->value.size ? value.size - one->value.size : 0;
    int error = make_room_for_sessions(sessions, 0, more, one);
    if (error != 0)
        return error;
    sessions->bytes += value.size;
    sessions->bytes -= one->value.size;
    domus_slice_free(one->value);
    one->value = value;
    return 0;
}

int domus_http_sessions_renew(domus_http_sessions *sessions, uint64_t now_ns,
                              const domus_http_session_id *id, domus_http_session_id *ret_id)
{
    session **place = find_living_session_and_mark_as_used(sessions, now_ns, id);
    uint8_t hash[SHA256_DIGEST_SIZE];
    domus_http_session_id made;

    if (place == NULL)
        return -ENOENT;
    int error = sessions->options.draw(made.bytes, sizeof made.bytes);
    if (error != 0)
        return error;
    hash_id_of_session(&made, hash);
    if (*find_link_to_session_with_hash(sessions, hash) != NULL)
        return -EEXIST;
    session *one = *place;
    *place = one->next;
    one->next = NULL;
    memcpy(one->hash, hash, sizeof hash);
    *find_link_to_session_with_hash(sessions, hash) = one;
    *ret_id = made;
    return 0;
}

int domus_http_sessions_end(domus_http_sessions *sessions, uint64_t now_ns,
                            const domus_http_session_id *id)
{
    session **place = find_living_session_and_mark_as_used(sessions, now_ns, id);

    if (place == NULL)
        return -ENOENT;
    remove_and_free_session(sessions, place);
    return 0;
}

uint32_t domus_http_sessions_count(const domus_http_sessions *sessions)
{
    return sessions->count;
}

uint64_t domus_http_sessions_bytes(const domus_http_sessions *sessions)
{
    return sessions->bytes;
}
