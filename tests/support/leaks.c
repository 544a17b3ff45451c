/* LeakSanitizer looks at the pages of data that were touched, when a test ends.
 *
 * The tests of a folder are one program, with up to 40 MB of arrays of which a test touches few.
 * All of them were searched for pointers, which took two thirds of the time of a short test. A page
 * that was never written has no pointer to memory of the heap. */
#include "tests/support/leaks.h"

#include "tests/support/sanitizer.h"

#if DOMT_ASAN
#include <fcntl.h>
#include <link.h>
#include <sanitizer/lsan_interface.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define PAGE    ((uintptr_t)4096)
#define AT_ONCE 512u /* pages that one read of the page map tells of */
#define NEAR    64u
#define TOUCHED (UINT64_C(3) << 62) /* in memory, or in swap (proc_pid_pagemap(5)) */

/* LeakSanitizer asks for it by this name, when the program begins. */
const char *__lsan_default_options(void);

const char *__lsan_default_options(void)
{
    return "use_globals=0";
}

/* A piece that grows while touched pages follow. */
typedef struct stretch {
    uintptr_t begin;
    uintptr_t end; /* 0: there is none */
} stretch;

static void show(stretch *piece)
{
    if (piece->end != 0)
        __lsan_register_root_region((void *)piece->begin, piece->end - piece->begin);
    piece->end = 0;
}

static void add_page(stretch *piece, uintptr_t page)
{
    if (piece->end != 0 && page - piece->end > NEAR * PAGE)
        show(piece);
    if (piece->end == 0)
        piece->begin = page;
    piece->end = page + PAGE;
}

/* Show the touched pages in [begin, end); all, if the page map cannot be read. */
static void show_touched(int map, uintptr_t begin, uintptr_t end)
{
    uint64_t entries[AT_ONCE];
    stretch piece = {0};

    for (uintptr_t at = begin & -PAGE; at < end; at += AT_ONCE * PAGE) {
        ssize_t size = pread(map, entries, sizeof entries, (off_t)(at / PAGE * sizeof entries[0]));
        bool is_read = size == (ssize_t)sizeof entries;
        for (size_t i = 0; i < AT_ONCE && at + i * PAGE < end; i++)
            if (!is_read || (entries[i] & TOUCHED) != 0)
                add_page(&piece, at + i * PAGE);
    }
    show(&piece);
}

static int show_data(struct dl_phdr_info *module, size_t size, void *map)
{
    (void)size;
    for (size_t i = 0; i < module->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &module->dlpi_phdr[i];
        uintptr_t begin = module->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && (part->p_flags & PF_W) != 0)
            show_touched(*(int *)map, begin, begin + part->p_memsz);
    }
    return 0;
}

static void show_all_data(void)
{
    int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

    dl_iterate_phdr(show_data, &map);
    if (map >= 0)
        close(map);
}

void domt_leaks_only_touched(void)
{
    atexit(show_all_data);
}
#else
void domt_leaks_only_touched(void)
{
}
#endif
