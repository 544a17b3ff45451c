/* Names: the registry from name to address, one per system, that any thread reads without a lock.
 *
 * A name has two buckets of one cache line each, told by a keyed hash (SipHash-2-4: who does not
 * know the key cannot aim collisions), and stands in one of them for as long as it is registered:
 * nothing is ever moved and there are no chains. A find therefore looks at 32 words at most, never
 * repeats anything and never waits, whatever a writer is in the midst of. A removed name leaves
 * nothing behind, so puts and removes wear nothing out.
 *
 * Memory: 8 to 16 bytes a name of the capacity for the buckets, 96 bytes for each name ever
 * registered at the same time; mapped at once, touched as it is used, given back by fini only. */
#ifndef DOMI_HOUSE_DIRECTORY_NAME_TABLE_H
#define DOMI_HOUSE_DIRECTORY_NAME_TABLE_H

#include "base/counter.h"
#include "base/spinlock.h"

#include <domus/actor.h>

#include <stddef.h>
#include <stdint.h>

/* The limit names.max: how many a system may have registered at a time. */
#define DOMI_NAMES_PRESET 65536u
#define DOMI_NAMES_MAX    16777216u

/* Bytes of a name, without the zero at its end. */
#define DOMI_NAME_MAX 63u

typedef struct domi_names_entry domi_names_entry;
typedef struct domi_names_bucket domi_names_bucket;

typedef struct domi_names {
    domi_names_bucket *buckets; /* constant from here on ... */
    domi_names_entry *entries;
    uint64_t key[2];
    size_t mapped_bytes;
    uint32_t buckets_count; /* a power of two, at least 2 */
    uint32_t capacity;      /* ... to here */
    char apart[128]; /* what finds read shares no line (they come in pairs) with what puts write */
    domi_spinlock lock;      /* for all below, the buckets and the entries */
    uint32_t free;           /* the entry given back last, plus 1; 0: none */
    _Atomic uint32_t carved; /* entries ever used */
    _Atomic uint32_t count;
    domi_counter refused; /* puts that found no room; by who holds the lock */
} domi_names;

/* Room for `capacity` names. The key is to be secret and random.
 *
 * Returns 0; -EINVAL outside 1..DOMI_NAMES_MAX; -ENOMEM. */
int domi_names_init(domi_names *names, uint32_t capacity, const uint64_t key[2]);

/* No thread may use them any more. Zeroed or finished ones are taken. */
void domi_names_fini(domi_names *names);

/* Who has this name. A name that is registered during the whole call is found; what is found was
 * registered under the name at some moment of the call.
 *
 * Thread-safety: any thread; wait-free, writes nothing.
 * Returns 0; -ENOENT; -EINVAL for what is no name (1..63 bytes of printable ASCII, no space). */
int domi_names_find(const domi_names *names, const char *name, domus_address *ret_address);

/* Register `address`, which is not nobody; the slot is for domi_names_remove(). An address may have
 * several names.
 *
 * Thread-safety: any thread; a spinlock.
 * Returns 0; -EEXIST when another has the name; -EALREADY when this one has it; -EINVAL for what is
 * no name; -ENOSPC at the capacity, counted. (Also when both buckets of a name are full; as it goes
 * to the emptier of two, and half of all places stay free, chance does not bring that about: one
 * put in 10^60, of a large table that is full and whose names come and go at random.) */
int domi_names_put(domi_names *names, const char *name, domus_address address, uint32_t *ret_slot);

/* Take the name in this slot away, if it is still this address's.
 *
 * Thread-safety: any thread; a spinlock.
 * Returns 0; -ENOENT when the slot is empty or another's. */
int domi_names_remove(domi_names *names, uint32_t slot, domus_address address);

/* The name in this slot. Who holds it for an actor of his own, which is registered meanwhile.
 * `ret_name` takes DOMI_NAME_MAX + 1 bytes. Returns 0; -ENOENT when the slot is empty. */
int domi_names_get(const domi_names *names, uint32_t slot, char *ret_name);

/* Visit every name, in no order. What is registered during the whole walk is visited once; what
 * comes or goes meanwhile may be missed, and seen again when it was put again. No lock is held:
 * `visit` may put and remove.
 *
 * Thread-safety: any thread. */
void domi_names_walk(const domi_names *names,
                     void (*visit)(const char *name, domus_address address, void *context),
                     void *context);

/* How many are registered; how many puts answered -ENOSPC. Any thread. */
uint32_t domi_names_count(const domi_names *names);
uint64_t domi_names_refused(const domi_names *names);

/* SipHash-2-4 of 0..63 bytes. */
uint64_t domi_names_hash(const uint64_t key[2], const void *bytes, size_t length);

#endif
