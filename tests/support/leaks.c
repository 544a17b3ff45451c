/* When a test ends, LeakSanitizer searches only the pages of data that were written.
 *
 * The tests of a folder are one program, with up to 40 MB of arrays of which a test writes few. To
 * search all arrays for pointers took two thirds of the time of a short test. A page that was never
 * written holds no pointer to memory of the heap. */
#include "tests/support/leaks.h"

#include "tests/support/sanitizer.h"

#if DOMT_ASAN
#include <fcntl.h>
#include <link.h>
#include <sanitizer/lsan_interface.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE ((uintptr_t)4096)
/* bytes of address space for the copied words; only written pages take memory */
#define ROOM    ((size_t)1 << 28)
#define AT_ONCE 512u /* number of pages whose entries of the page map are read at once */
/* bits of an entry of the page map: the page is in memory or in swap (proc_pid_pagemap(5)) */
#define TOUCHED (UINT64_C(3) << 62)
/* bit of an entry of the page map: the page equals its file, so no byte of it was written */
#define OF_FILE (UINT64_C(1) << 61)

/* LeakSanitizer calls this function by its name when the program begins. */
const char *__lsan_default_options(void);

const char *__lsan_default_options(void)
{
    return "use_globals=0";
}

/* Copies of all words in the written pages that are not 0. They lie together, because LeakSanitizer
 * reads the map of the process again for each separate range that it is told to search. */
static uintptr_t *words;
static size_t word_count;

__attribute__((no_sanitize_address)) static void copy_nonzero_words_of_page(uintptr_t page)
{
    const uintptr_t *from = (const uintptr_t *)page;

    if (word_count > (ROOM - PAGE) / sizeof words[0])
        abort();
    for (size_t i = 0; i < PAGE / sizeof from[0]; i++)
        if (from[i] != 0)
            words[word_count++] = from[i];
}

/* Copy the words of all written pages in [begin, end), or of all pages there if the page map cannot
 * be read. */
static void copy_written_pages(int map, uintptr_t begin, uintptr_t end)
{
    uint64_t entries[AT_ONCE];

    for (uintptr_t at = begin & -PAGE; at < end; at += AT_ONCE * PAGE) {
        ssize_t size = pread(map, entries, sizeof entries, (off_t)(at / PAGE * sizeof entries[0]));
        bool is_read = size == (ssize_t)sizeof entries;
        for (size_t i = 0; i < AT_ONCE && at + i * PAGE < end; i++)
            if (!is_read || ((entries[i] & TOUCHED) != 0 && (entries[i] & OF_FILE) == 0))
                copy_nonzero_words_of_page(at + i * PAGE);
    }
}

static int copy_data_of_module(struct dl_phdr_info *module, size_t size, void *map)
{
    /* this mapping is left out: it is the sanitizer's own memory, which points to each block, also
     * to leaked ones */
    if (strstr(module->dlpi_name, "libasan") != NULL)
        return 0;
    for (size_t i = 0; i < module->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &module->dlpi_phdr[i];
        uintptr_t begin = module->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && (part->p_flags & PF_W) != 0)
            copy_written_pages(*(int *)map, begin, begin + part->p_memsz);
    }
    return 0;
}

static void show_data_to_sanitizer(void)
{
    int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

    words = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                 -1, 0);
    if (words == MAP_FAILED)
        abort();
    dl_iterate_phdr(copy_data_of_module, &map);
    __lsan_register_root_region(words, word_count * sizeof words[0]);
    if (map >= 0)
        close(map);
}

void domt_limit_leak_search(void)
{
    atexit(show_data_to_sanitizer);
}
#else
void domt_limit_leak_search(void)
{
}
#endif
