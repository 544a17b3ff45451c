/* The table of kept files: a hash table by name, and one list of all kept files in the order of
 * use. Each file counts at least FILE_LEAST bytes, so the limit of the bytes also limits the
 * number of files. */
#include "runtime/files/kept.h"

#include "base/check.h"
#include "base/memory.h"
#include "base/page.h"
#include "base/siphash.h"

#include <string.h>

/* least number of bytes for which a kept file counts in the table's limit */
#define FILE_LEAST     1024u
#define LISTS_MOST     16384u
#define SHARE          8u /* one kept file may count for at most 1/8 of the table's bytes */
#define SETTLED_NS     UINT64_C(100000000)
#define SETTLED_SLOWLY UINT64_C(3000000000)
#define NS_OF_SECOND   INT64_C(1000000000)

struct domi_kept {
    uint64_t hash_key[2];
    uint64_t bytes_max;
    uint64_t bytes;         /* sum of the bytes for which the kept files count */
    domi_kept_file *newest; /* kept file that was used last; NULL: the table is empty */
    domi_kept_file *oldest;
    uint32_t lists_count; /* number of lists in the hash table of kept files; a power of two */
    domi_kept_file *lists[];
};

domi_kept *domi_kept_new(uint64_t bytes_max, const uint64_t hash_key[2])
{
    uint32_t lists = 16;

    while (lists < LISTS_MOST && (uint64_t)lists * FILE_LEAST < bytes_max)
        lists *= 2;
    domi_kept *kept = domi_memory_new(sizeof *kept + lists * sizeof(domi_kept_file *));
    if (kept == NULL)
        return NULL;
    memcpy(kept->hash_key, hash_key, sizeof kept->hash_key);
    kept->bytes_max = bytes_max;
    kept->lists_count = lists;
    return kept;
}

/* --- names of kept files ---------------------------------------------------------------------- */

static uint64_t hash_name_of_file(const domi_kept *kept, domi_kept_name name)
{
    uint64_t hash = name.directory ^ (uint64_t)name.flags << 56;

    for (const char *const *path = name.paths; *path != NULL; path++)
        hash = hash * UINT64_C(0x9e3779b97f4a7c15) ^
               domi_siphash(kept->hash_key, *path, strlen(*path));
    return hash;
}

static uint32_t count_bytes_of_paths(domi_kept_name name)
{
    size_t size = 0;

    for (const char *const *path = name.paths; *path != NULL; path++)
        size += strlen(*path) + 1;
    return (uint32_t)size;
}

static bool has_file_this_name(const domi_kept_file *file, domi_kept_name name)
{
    const char *at = file->paths;
    const char *end = at + file->paths_size;

    if (file->directory != name.directory || file->flags != name.flags)
        return false;
    for (const char *const *path = name.paths; *path != NULL; path++) {
        if (at == end || strcmp(at, *path) != 0)
            return false;
        at += strlen(at) + 1;
    }
    return at == end;
}

/* --- the order of use ------------------------------------------------------------------------- */

static void add_kept_file_as_last_used(domi_kept *kept, domi_kept_file *file)
{
    file->newer = NULL;
    file->older = kept->newest;
    if (kept->newest != NULL)
        kept->newest->newer = file;
    else
        kept->oldest = file;
    kept->newest = file;
}

static void remove_from_order_of_use(domi_kept *kept, domi_kept_file *file)
{
    if (file->newer != NULL)
        file->newer->older = file->older;
    else
        kept->newest = file->older;
    if (file->older != NULL)
        file->older->newer = file->newer;
    else
        kept->oldest = file->newer;
}

/* --- files of the table ----------------------------------------------------------------------- */

static domi_kept_file **find_list_of_hash(domi_kept *kept, uint64_t hash)
{
    return &kept->lists[hash & (kept->lists_count - 1)];
}

domi_kept_file *domi_kept_find_file(domi_kept *kept, domi_kept_name name)
{
    uint64_t hash = hash_name_of_file(kept, name);
    domi_kept_file *file = *find_list_of_hash(kept, hash);

    while (file != NULL && (file->hash != hash || !has_file_this_name(file, name)))
        file = file->next;
    if (file != NULL && file != kept->newest) {
        remove_from_order_of_use(kept, file);
        add_kept_file_as_last_used(kept, file);
    }
    return file;
}

void domi_kept_forget_file(domi_kept *kept, domi_kept_file *file)
{
    domi_kept_file **at = find_list_of_hash(kept, file->hash);

    while (*at != file)
        at = &(*at)->next;
    *at = file->next;
    remove_from_order_of_use(kept, file);
    DOMI_CHECK(kept->bytes >= file->cost);
    kept->bytes -= file->cost;
    domus_slice_free(file->bytes);
    domi_memory_free(file);
}

void domi_kept_forget_all_files(domi_kept *kept)
{
    while (kept != NULL && kept->oldest != NULL)
        domi_kept_forget_file(kept, kept->oldest);
}

domi_kept *domi_kept_free(domi_kept *kept)
{
    domi_kept_forget_all_files(kept);
    domi_memory_free(kept);
    return NULL;
}

/* Set for how many bytes a kept file counts, by the memory that it takes now. Then forget the
 * files that were used least recently until all fit into the table's limit, but never this file. */
static void set_cost_of_kept_file_and_make_room(domi_kept *kept, domi_kept_file *file)
{
    size_t bytes = sizeof *file + file->paths_size;

    if (file->bytes.page != NULL)
        bytes += domi_page_bytes_of_memory(file->bytes.page);
    kept->bytes -= file->cost;
    file->cost = bytes < FILE_LEAST ? FILE_LEAST : (uint32_t)bytes;
    kept->bytes += file->cost;
    while (kept->bytes > kept->bytes_max && kept->oldest != file)
        domi_kept_forget_file(kept, kept->oldest);
}

static domi_kept_file *add_file_to_table(domi_kept *kept, domi_kept_name name)
{
    uint32_t paths_size = count_bytes_of_paths(name);
    domi_kept_file *file = domi_memory_new(sizeof *file + paths_size);

    if (file == NULL)
        return NULL;
    file->hash = hash_name_of_file(kept, name);
    file->directory = name.directory;
    file->flags = name.flags;
    file->paths_size = paths_size;
    char *to = file->paths;
    for (const char *const *path = name.paths; *path != NULL; path++)
        to = stpcpy(to, *path) + 1;
    file->next = *find_list_of_hash(kept, file->hash);
    *find_list_of_hash(kept, file->hash) = file;
    add_kept_file_as_last_used(kept, file);
    return file;
}

bool domi_kept_are_statuses_same(const domus_file_status *one, const domus_file_status *other)
{
    return one->inode == other->inode && one->device == other->device && one->size == other->size &&
           one->modified_ns == other->modified_ns && one->changed_ns == other->changed_ns &&
           one->mode == other->mode;
}

uint64_t domi_kept_time_file_must_be_unchanged(const domus_file_status *status)
{
    bool counts_seconds =
        status->modified_ns % NS_OF_SECOND == 0 && status->changed_ns % NS_OF_SECOND == 0;

    return counts_seconds ? SETTLED_SLOWLY : SETTLED_NS;
}

void domi_kept_record_loaded_file(domi_kept *kept, domi_kept_name name, domi_kept_file *file,
                                  const domus_file_loaded *loaded, domi_kept_times times)
{
    bool is_new = file == NULL;

    if (is_new)
        file = add_file_to_table(kept, name);
    if (file == NULL)
        return;
    if (is_new || !domi_kept_are_statuses_same(&file->status, &loaded->status)) {
        file->since_ns = times.done_ns;
        domus_slice_free(file->bytes);
        file->bytes = (domus_slice){NULL, 0, 0};
    }
    file->status = loaded->status;
    file->index = loaded->index;
    file->looked_ns = times.turn_ns;
    if (file->bytes.page == NULL && loaded->bytes.page != NULL &&
        domi_page_bytes_of_memory(loaded->bytes.page) <= kept->bytes_max / SHARE &&
        times.begun_ns > file->since_ns &&
        times.begun_ns - file->since_ns >= domi_kept_time_file_must_be_unchanged(&file->status))
        (void)domus_slice_keep(loaded->bytes, &file->bytes);
    set_cost_of_kept_file_and_make_room(kept, file);
    if (kept->bytes > kept->bytes_max)
        domi_kept_forget_file(kept, file); /* this kept file alone exceeds the limit of the table */
}
