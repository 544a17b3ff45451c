/* Names: the registry that finds an address by its name. There is one for each system, and any
 * thread reads it without a lock.
 *
 * A name has two buckets of one cache line each, which a keyed hash chooses (SipHash-2-4: without
 * the key nobody can aim collisions). The name stands in one of the two for as long as it is
 * registered; nothing is ever moved, and there are no chains. So a find looks at 32 words at most,
 * never repeats anything and never waits, whatever a writer is doing. A removed name leaves nothing
 * behind, so puts and removes do not wear the table out.
 *
 * Memory: 8 to 16 bytes of buckets for each name of the capacity, and 96 bytes for each of the most
 * names that were ever registered at the same time. It is mapped at once, becomes real as it is
 * used, and is given back only by domi_names_fini(). */
#ifndef DOMI_HOUSE_DIRECTORY_NAME_TABLE_H
#define DOMI_HOUSE_DIRECTORY_NAME_TABLE_H

#include "base/counter.h"
#include "base/spinlock.h"

#include <domus/actor.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The limit names.max: the number of names that a system may have registered at the same time. */
#define DOMI_NAMES_PRESET 65536u    /* the value of names.max if the configuration sets none */
#define DOMI_NAMES_MAX    16777216u /* the highest value that names.max may have */

/* Bytes that a name may have, without the zero at its end. */
#define DOMI_NAME_MAX 63u

typedef struct domi_names_entry domi_names_entry;
typedef struct domi_names_bucket domi_names_bucket;

typedef struct domi_names {
    /* hash table of the names; constant after init, as are the next five fields */
    domi_names_bucket *buckets;
    domi_names_entry *entries; /* array of the table's entries, one for each name */
    uint64_t key[2];           /* secret and random key of the hashes of names */
    size_t mapped_bytes;       /* bytes of the table's buckets and entries together */
    uint32_t buckets_count;    /* number of buckets of the table; a power of two, at least 2 */
    uint32_t capacity;         /* capacity: number of names that may be registered */
    /* unused; keeps the fields above, which finds read, off the cache lines that puts write (the
     * hardware fetches lines in pairs) */
    char apart[128];
    /* lock that is held to write the fields below, the buckets and the entries */
    domi_spinlock lock;
    uint32_t free;           /* index of the entry that was freed last, plus 1; 0: none is free */
    _Atomic uint32_t carved; /* number of the table's entries that were ever used */
    _Atomic uint32_t count;  /* number of names that are registered now */
    domi_counter refused;    /* number of puts that found no room; written under the lock */
} domi_names;

/* Make a registry of names with room for `capacity` names. The key has to be secret and random.
 *
 * Returns 0; -EINVAL outside 1..DOMI_NAMES_MAX; -ENOMEM. */
int domi_names_init(domi_names *names, uint32_t capacity, const uint64_t key[2]);

/* Free the registry of names, when no thread uses it any more. A zeroed or finished registry is
 * accepted. */
void domi_names_fini(domi_names *names);

/* Find the address that has this name. A name that is registered during the whole call is found. An
 * address that is found was registered under the name at some moment of the call.
 *
 * Thread-safety: any thread; wait-free, writes nothing. Returns 0; -ENOENT; -EINVAL if it is not a
 * name (1..63 bytes of printable ASCII, no space). */
int domi_names_find_address(const domi_names *names, const char *name, domus_address *ret_address);

/* Register `address`, which must not be the address of zeros. The slot is for
 * domi_names_remove_name(). An address may have several names.
 *
 * Thread-safety: any thread; takes a spinlock.
 * Returns 0; -EEXIST if another address has the name; -EALREADY if this one has it; -EINVAL if it
 * is no name; -ENOSPC at the capacity, counted. (Also if both buckets of a name are full. But a
 * name goes to the emptier of its two buckets, and half of all places stay free, so chance does not
 * bring that about: it is one put in 10^60, in a large table that is full and whose names come and
 * go at random.) */
int domi_names_register_address(domi_names *names, const char *name, domus_address address,
                                uint32_t *ret_slot);

/* Remove the name in this slot, if it still is a name of `address`.
 *
 * Thread-safety: any thread; takes a spinlock.
 * Returns 0; -ENOENT if the slot is empty or belongs to another address. */
int domi_names_remove_name(domi_names *names, uint32_t slot, domus_address address);

/* A registered name as a find saw it. */
typedef struct domi_names_hit {
    domus_address address;
    uint32_t slot;    /* the slot of the name, as domi_names_register_address() has returned it */
    uint64_t version; /* version of the slot, which each change of the slot changes */
    uint64_t hash;    /* the hash of the name; secret */
} domi_names_hit;

/* Find a name as domi_names_find_address() does, and tell all that is known about it. With -ENOENT
 * only `hash` is set. */
int domi_names_find_hit_of_name(const domi_names *names, const char *name, domi_names_hit *ret_hit);

/* True if the name has not changed since `hit` was found. The caller holds a lock that every thread
 * holds which changes this name. */
bool domi_names_is_hit_still_true(const domi_names *names, const domi_names_hit *hit);

/* Let the name in this slot, which is registered, lead to `address` from now on. A find that is
 * under way may miss it.
 *
 * Thread-safety: any thread; takes a spinlock. The caller sees to it that nobody removes or moves
 * the name at the same time. */
void domi_names_redirect_name(domi_names *names, uint32_t slot, domus_address address);

/* Copy the name in this slot. The caller holds the slot for an actor that stays registered
 * during the call. `ret_name` has room for DOMI_NAME_MAX + 1 bytes. Returns 0; -ENOENT if the
 * slot is empty. */
int domi_names_copy_name_of_slot(const domi_names *names, uint32_t slot, char *ret_name);

/* Visit every name, in no order. A name that is registered during the whole walk is visited once. A
 * name that is put or removed during the walk may be missed, and a name that is put again may be
 * visited again. No lock is held, so `visit` may put and remove.
 *
 * Thread-safety: any thread. */
void domi_names_visit_all(const domi_names *names,
                          void (*visit)(const char *name, domus_address address, void *context),
                          void *context);

/* Return numbers: domi_names_count() of registered names, domi_names_count_refused() of puts that
 * answered -ENOSPC. Any thread. */
uint32_t domi_names_count(const domi_names *names);
uint64_t domi_names_count_refused(const domi_names *names);

#endif
