/* The table of names works like this. Buckets hold words, and a word points at an entry.
 *
 * A word is an entry's index and eight bits of the name's hash, which are never 0; the word 0 is a
 * free place. An entry is a name, an address, and a version, which is odd while the entry is
 * registered and even while it is free or being written. Entries are never unmapped nor used for
 * anything else. So a late reader always looks at an entry, and the version tells whether the entry
 * belonged to one name all the while.
 *
 *     put      words of name and address; version odd; word in the bucket
 *     remove   version even; word out of the bucket
 *     find     word; version; words of name and address; version again
 *
 * All changes are made under the lock. Readers take none: every word that both touch is atomic, and
 * two pairs of accesses carry the proof (there is no fence in it):
 *
 * P1  A version becomes odd by a release store after the entry's words, and the reader's first load
 *     of it acquires: a reader that sees the odd version v sees the words of v, or later ones.
 * P2  The words are release stores, made after the version became even, and the reader's loads of
 *     them acquire: a reader that saw a word later than v's, and looks again, sees a version later
 *     than v.
 *
 * So if a version is odd and is the same before and after, all words read between were v's own, and
 * v was registered when the second load looked (P1, P2). In all other cases (the version is even,
 * it has changed, or the name is another one) the entry was not this name's at some moment of the
 * find, and the reader looks at the next word. A reader repeats nothing: a name does not move while
 * it is registered, so the word of a name that was registered during the whole find is at its
 * place, and the reader sees it there. (If the put happened before the find, coherence makes sure
 * of this; if the put was under way at the same time, the release of the bucket's word does.) A
 * name that was removed and put again elsewhere meanwhile was not registered in between, so -ENOENT
 * is a correct answer then. */
#include "house/directory/name_table.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/siphash.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* number of places in a bucket of the table of names; on average at most half of them are used */
#define PLACES     16u
#define NAME_WORDS 8u                       /* number of words of 64 bits in the name of an entry */
#define INDEX_BITS 24u                      /* bits of a bucket's word that hold an entry's index */
#define INDEX_MASK ((1u << INDEX_BITS) - 1) /* mask of an entry's index in a bucket's word */
/* least number of buckets of the table, because a name has two to choose from */
#define BUCKETS_MIN 2u

struct domi_names_bucket {
    /* words of the bucket's places: an entry's index and a tag of its hash; 0: the place is free */
    _Atomic uint32_t words[PLACES];
};

struct domi_names_entry {
    /* version: odd while the entry is registered; 64 bits, so that it does not wrap while a reader
     * sleeps */
    _Atomic uint64_t version;
    _Atomic(struct domi_house *) house; /* the actor that has the entry's name */
    _Atomic uint32_t lease;             /* lease of the actor that has the name */
    uint32_t free; /* index of the next free entry, plus 1; used under the lock */
    uint64_t hash; /* hash of the entry's name; used under the lock */
    _Atomic uint64_t words[NAME_WORDS]; /* the bytes of the entry's name, with zeros behind them */
};

static_assert(sizeof(domi_names_bucket) == 64, "a bucket is one cache line");
static_assert(sizeof(domi_names_entry) == 96, "a name costs 96 bytes");
static_assert(DOMI_NAMES_MAX - 1 <= INDEX_MASK, "a word holds every index");
static_assert(DOMI_NAME_MAX < NAME_WORDS * 8, "a name ends with a zero");

typedef struct name {
    uint64_t words[NAME_WORDS]; /* the bytes of the name, with zeros behind them */
    /* number of words that tell the name from all others: those up to the word with its first zero
     * byte */
    uint32_t words_count;
    uint64_t hash; /* hash of these words of the name */
} name;

/* The places where a name may stand: all those of two buckets. */
typedef struct home {
    domi_names_bucket *buckets[2]; /* the two buckets that the hash chooses */
    uint32_t tag; /* tag of the name: the upper bits of its words in buckets; not 0 */
} home;

/* Read and check a name. Returns 0; -EINVAL. Reads no byte behind the zero at its end, and at most
 * DOMI_NAME_MAX + 1 bytes. */
static int read_and_check_name(const domi_names *names, const char *text, name *ret_name)
{
    size_t length = 0;

    if (text == NULL)
        return -EINVAL;
    for (; text[length] != '\0'; length++) {
        if (length == DOMI_NAME_MAX || text[length] < '!' || text[length] > '~')
            return -EINVAL;
    }
    if (length == 0)
        return -EINVAL;
    *ret_name = (name){.words_count = (uint32_t)(length / 8 + 1)};
    memcpy(ret_name->words, text, length);
    ret_name->hash = domi_siphash(names->key, text, length);
    return 0;
}

/* Find the places of a name. The two buckets, which differ, and the tag come from three independent
 * parts of the hash. */
static home find_buckets_and_tag_of_name(const domi_names *names, uint64_t hash)
{
    uint32_t mask = names->buckets_count - 1;
    uint32_t first = (uint32_t)hash & mask;
    /* the name's second bucket is 1 to mask buckets behind the first one */
    uint32_t other = 1 + (uint32_t)(((hash >> 32) * mask) >> 32);

    return (home){
        .buckets = {&names->buckets[first], &names->buckets[(first + other) & mask]},
        .tag = (1 + ((uint32_t)hash >> INDEX_BITS) % 255) << INDEX_BITS,
    };
}

/* Copy the address of an entry, its version, and the first `count` words of its name. Returns
 * whether what was read belongs together and was registered when the call ended. The proof is at
 * the top of this file. */
DOMI_INLINE bool copy_entry_if_still_registered(domi_names_entry *entry, uint32_t count,
                                                uint64_t *ret_words, domus_address *ret_address,
                                                uint64_t *ret_version)
{
    /* acquire: P1 (top of this file), pairs with the releases in register_name_under_lock() and
     * domi_names_redirect_name(). */
    uint64_t version = atomic_load_explicit(&entry->version, memory_order_acquire);

    *ret_version = version;
    if (version % 2 == 0)
        return false;
    /* acquire: P2 (top of this file), pairs with the releases in
     * write_name_and_address_to_free_entry() and write_address_of_entry(). */
    for (uint32_t i = 0; i < count; i++)
        ret_words[i] = atomic_load_explicit(&entry->words[i], memory_order_acquire);
    ret_address->house = atomic_load_explicit(&entry->house, memory_order_acquire);
    ret_address->lease = atomic_load_explicit(&entry->lease, memory_order_acquire);
    /* relaxed: the acquire loads above keep this load of the version behind them. */
    return atomic_load_explicit(&entry->version, memory_order_relaxed) == version;
}

/* Write the address of an entry whose version is even. Called under the lock. */
static void write_address_of_entry(domi_names_entry *entry, domus_address address)
{
    /* release: P2 (top of this file), as in write_name_and_address_to_free_entry(). */
    atomic_store_explicit(&entry->house, address.house, memory_order_release);
    atomic_store_explicit(&entry->lease, address.lease, memory_order_release);
}

/* Write address and name into a free entry. Called under the lock. */
static void write_name_and_address_to_free_entry(domi_names_entry *entry, const name *as,
                                                 domus_address address)
{
    /* release: P2 (top of this file), pairs with the acquires in copy_entry_if_still_registered().
     * The even version was stored before these words. */
    for (uint32_t i = 0; i < NAME_WORDS; i++)
        atomic_store_explicit(&entry->words[i], as->words[i], memory_order_release);
    write_address_of_entry(entry, address);
    entry->hash = as->hash;
}

DOMI_INLINE bool look_up_in_bucket(const domi_names *names, domi_names_bucket *bucket, uint32_t tag,
                                   const name *wanted, domi_names_hit *ret_hit)
{
    for (uint32_t i = 0; i < PLACES; i++) {
        uint64_t words[NAME_WORDS];
        /* acquire: pairs with the release in register_name_under_lock(). A reader that sees the
         * bucket's word sees the entry of that put, or a later state of it. */
        uint32_t word = atomic_load_explicit(&bucket->words[i], memory_order_acquire);

        if ((word & ~INDEX_MASK) != tag)
            continue;
        ret_hit->slot = word & INDEX_MASK;
        if (copy_entry_if_still_registered(&names->entries[ret_hit->slot], wanted->words_count,
                                           words, &ret_hit->address, &ret_hit->version) &&
            memcmp(words, wanted->words, wanted->words_count * sizeof words[0]) == 0)
            return true;
    }
    return false;
}

/* Look a name up in its two buckets. Inlined, so that a caller that needs only the address does not
 * pay for the other results. */
DOMI_INLINE bool look_up_name_in_both_buckets(const domi_names *names, const name *wanted,
                                              domi_names_hit *ret_hit)
{
    home at = find_buckets_and_tag_of_name(names, wanted->hash);

    /* lets the CPU load both buckets of the name at the same time */
    __builtin_prefetch(at.buckets[1]);
    return look_up_in_bucket(names, at.buckets[0], at.tag, wanted, ret_hit) ||
           look_up_in_bucket(names, at.buckets[1], at.tag, wanted, ret_hit);
}

/* Returns a free place for a name in the emptier of its two buckets, because this choice keeps both
 * far from full; NULL if there is none. Relaxed, because this runs under the lock. */
static _Atomic uint32_t *find_free_place_for_name(home at)
{
    _Atomic uint32_t *places[2] = {NULL, NULL};
    uint32_t used[2] = {0, 0};

    for (uint32_t b = 0; b < 2; b++) {
        for (uint32_t i = 0; i < PLACES; i++) {
            _Atomic uint32_t *place = &at.buckets[b]->words[i];
            if (atomic_load_explicit(place, memory_order_relaxed) != 0)
                used[b]++;
            else
                places[b] = place;
        }
    }
    return places[used[1] < used[0] ? 1 : 0];
}

/* Returns the place where the word of a registered entry stands. Called under the lock. */
static _Atomic uint32_t *find_bucket_place_of_entry(const domi_names *names, uint32_t index)
{
    home at = find_buckets_and_tag_of_name(names, names->entries[index].hash);
    _Atomic uint32_t *found = NULL;

    for (uint32_t i = 0; i < 2 * PLACES; i++) {
        _Atomic uint32_t *place = &at.buckets[i / PLACES]->words[i % PLACES];
        if (atomic_load_explicit(place, memory_order_relaxed) == (at.tag | index)) {
            DOMI_CHECK(found == NULL);
            found = place;
        }
    }
    DOMI_CHECK(found != NULL);
    return found;
}

/* Take the entry of the table that was given back last, which is still in the cache, or else a new
 * one. Called under the lock, and only below the capacity. */
static uint32_t take_free_or_new_entry(domi_names *names)
{
    uint32_t index = names->free;

    if (index != 0) {
        names->free = names->entries[index - 1].free;
        return index - 1;
    }
    /* relaxed: a walk that reads an old `carved` misses only names that are put during the walk. */
    uint32_t carved = atomic_load_explicit(&names->carved, memory_order_relaxed);
    DOMI_CHECK(carved < names->capacity);
    atomic_store_explicit(&names->carved, carved + 1, memory_order_relaxed);
    return carved;
}

/* Add `by` to the number of names. relaxed: `count` is changed under the lock, and elsewhere only
 * printed. */
static void change_count_of_names(domi_names *names, uint32_t by)
{
    uint32_t count = atomic_load_explicit(&names->count, memory_order_relaxed);

    atomic_store_explicit(&names->count, count + by, memory_order_relaxed);
}

/* Register a name as domi_names_register_address() does, for a caller that has the lock. */
static int register_name_under_lock(domi_names *names, const name *as, domus_address address,
                                    uint32_t *ret_slot)
{
    home at = find_buckets_and_tag_of_name(names, as->hash);
    domi_names_hit holder;

    if (look_up_name_in_both_buckets(names, as, &holder))
        return domus_address_equals(holder.address, address) ? -EALREADY : -EEXIST;
    _Atomic uint32_t *place = find_free_place_for_name(at);
    if (place == NULL || domi_names_count(names) == names->capacity) {
        domi_counter_add(&names->refused, 1);
        return -ENOSPC;
    }

    uint32_t index = take_free_or_new_entry(names);
    domi_names_entry *entry = &names->entries[index];
    uint64_t version = atomic_load_explicit(&entry->version, memory_order_relaxed);
    DOMI_CHECK(version % 2 == 0);
    write_name_and_address_to_free_entry(entry, as, address);
    /* release: P1 (top of this file), pairs with the first load in
     * copy_entry_if_still_registered(). */
    atomic_store_explicit(&entry->version, version + 1, memory_order_release);
    /* release: pairs with the acquire in look_up_in_bucket(). */
    atomic_store_explicit(place, at.tag | index, memory_order_release);
    change_count_of_names(names, 1);
    *ret_slot = index;
    return 0;
}

int domi_names_init(domi_names *names, uint32_t capacity, const uint64_t key[2])
{
    uint32_t buckets = BUCKETS_MIN;

    if (capacity == 0 || capacity > DOMI_NAMES_MAX)
        return -EINVAL;
    while (buckets * (PLACES / 2) < capacity)
        buckets *= 2;

    size_t buckets_bytes = buckets * sizeof(domi_names_bucket);
    size_t bytes = buckets_bytes + capacity * sizeof(domi_names_entry);
    char *memory = domi_memory_map_pages(
        bytes); /* mapped memory is zero, so all places and entries are free */
    if (memory == NULL)
        return -ENOMEM;
    *names = (domi_names){
        .buckets = (domi_names_bucket *)(void *)memory,
        .entries = (domi_names_entry *)(void *)(memory + buckets_bytes),
        .key = {key[0], key[1]},
        .mapped_bytes = bytes,
        .buckets_count = buckets,
        .capacity = capacity,
    };
    domi_spinlock_init(&names->lock);
    return 0;
}

void domi_names_fini(domi_names *names)
{
    domi_memory_unmap_pages(names->buckets, names->mapped_bytes);
    names->buckets = NULL;
    names->entries = NULL;
}

int domi_names_find_address(const domi_names *names, const char *text, domus_address *ret_address)
{
    domi_names_hit hit;
    name wanted;
    int result = read_and_check_name(names, text, &wanted);

    if (result != 0)
        return result;
    if (!look_up_name_in_both_buckets(names, &wanted, &hit))
        return -ENOENT;
    *ret_address = hit.address;
    return 0;
}

int domi_names_find_hit_of_name(const domi_names *names, const char *text, domi_names_hit *ret_hit)
{
    name wanted;
    int result = read_and_check_name(names, text, &wanted);

    if (result != 0)
        return result;
    ret_hit->hash = wanted.hash;
    return look_up_name_in_both_buckets(names, &wanted, ret_hit) ? 0 : -ENOENT;
}

bool domi_names_is_hit_still_true(const domi_names *names, const domi_names_hit *hit)
{
    /* relaxed: the caller's lock orders this load behind all changes of the name. */
    return atomic_load_explicit(&names->entries[hit->slot].version, memory_order_relaxed) ==
           hit->version;
}

int domi_names_register_address(domi_names *names, const char *text, domus_address address,
                                uint32_t *ret_slot)
{
    name as;
    int result = read_and_check_name(names, text, &as);

    DOMI_CHECK(address.house != NULL);
    if (result != 0)
        return result;
    domi_spinlock_lock(&names->lock);
    result = register_name_under_lock(names, &as, address, ret_slot);
    domi_spinlock_unlock(&names->lock);
    return result;
}

/* True if the entry of the table is registered for `address`. Relaxed, because it runs under the
 * lock. */
static bool is_entry_of_address(const domi_names_entry *entry, domus_address address)
{
    return atomic_load_explicit(&entry->version, memory_order_relaxed) % 2 == 1 &&
           atomic_load_explicit(&entry->house, memory_order_relaxed) == address.house &&
           atomic_load_explicit(&entry->lease, memory_order_relaxed) == address.lease;
}

int domi_names_remove_name(domi_names *names, uint32_t slot, domus_address address)
{
    DOMI_CHECK(slot < names->capacity);
    domi_names_entry *entry = &names->entries[slot];

    domi_spinlock_lock(&names->lock);
    bool ours = is_entry_of_address(entry, address);
    if (ours) {
        _Atomic uint32_t *place = find_bucket_place_of_entry(names, slot);
        uint64_t version = atomic_load_explicit(&entry->version, memory_order_relaxed);
        /* relaxed: the releases in write_name_and_address_to_free_entry() carry this store to a
         * reader that sees the next name's words (P2). A reader that still sees the old version
         * gives an answer that was true until now. */
        atomic_store_explicit(&entry->version, version + 1, memory_order_relaxed);
        /* relaxed: a reader that still sees the word of the removed name finds the version even. */
        atomic_store_explicit(place, 0, memory_order_relaxed);
        entry->free = names->free;
        names->free = slot + 1;
        /* the addition wraps: UINT32_MAX subtracts 1 from the count */
        change_count_of_names(names, UINT32_MAX);
    }
    domi_spinlock_unlock(&names->lock);
    return ours ? 0 : -ENOENT;
}

void domi_names_redirect_name(domi_names *names, uint32_t slot, domus_address address)
{
    DOMI_CHECK(slot < names->capacity);
    domi_names_entry *entry = &names->entries[slot];

    domi_spinlock_lock(&names->lock);
    uint64_t version = atomic_load_explicit(&entry->version, memory_order_relaxed);
    DOMI_CHECK(version % 2 == 1);
    /* relaxed: the comment on the version in domi_names_remove_name() says why. */
    atomic_store_explicit(&entry->version, version + 1, memory_order_relaxed);
    write_address_of_entry(entry, address);
    /* release: P1 (top of this file), pairs with the first load in
     * copy_entry_if_still_registered(). */
    atomic_store_explicit(&entry->version, version + 2, memory_order_release);
    domi_spinlock_unlock(&names->lock);
}

int domi_names_copy_name_of_slot(const domi_names *names, uint32_t slot, char *ret_name)
{
    uint64_t words[NAME_WORDS];
    uint64_t version;
    domus_address address;

    DOMI_CHECK(slot < names->capacity);
    if (!copy_entry_if_still_registered(&names->entries[slot], NAME_WORDS, words, &address,
                                        &version))
        return -ENOENT;
    memcpy(ret_name, words, sizeof words);
    return 0;
}

void domi_names_visit_all(const domi_names *names,
                          void (*visit)(const char *name, domus_address address, void *context),
                          void *context)
{
    /* relaxed: entries beyond this number were put after the walk began. */
    uint32_t carved = atomic_load_explicit(&names->carved, memory_order_relaxed);

    for (uint32_t i = 0; i < carved; i++) {
        uint64_t words[NAME_WORDS];
        uint64_t version;
        domus_address address;
        if (copy_entry_if_still_registered(&names->entries[i], NAME_WORDS, words, &address,
                                           &version))
            visit((const char *)words, address, context);
    }
}

uint32_t domi_names_count(const domi_names *names)
{
    return atomic_load_explicit(&names->count, memory_order_relaxed);
}

uint64_t domi_names_count_refused(const domi_names *names)
{
    return domi_counter_read(&names->refused);
}
