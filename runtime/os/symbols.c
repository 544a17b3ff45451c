/* The symbol tables of ELF files.
 *
 * A file may be another one than the module that was loaded from it, because the program was
 * installed anew meanwhile. So the head of the file, which says where its tables lie, is compared
 * with the head of the module in memory. Everything in a file is checked before it is used, and
 * whatever is wrong means that the module has no table. */
#include "runtime/os/symbols.h"

#include "base/memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* most sections of an ELF file; in a file with more, their number stands elsewhere, and such a
 * file is not read */
#define SECTIONS_MAX 65280u

typedef struct function {
    /* address at which the function begins in the file, without the module's bias */
    uintptr_t begin;
    /* bytes of the function's code; 0: unknown, the function ends where the next one begins */
    size_t size;
    size_t name; /* offset of the function's name in the module's `names` */
} function;

typedef struct module {
    const void *base; /* address in memory at which the module was loaded */
    /* difference between the module's addresses in memory and those in its file */
    uintptr_t bias;
    function *functions;
    /* number of functions in the module's table, which are sorted by address; 0: the module has
     * no table */
    size_t count;
    char *names; /* names of the module's functions, each NUL-terminated */
} module;

struct domi_symbols {
    uint32_t count;
    module modules[DOMI_SYMBOLS_MODULES_MAX];
};

/* --- reading a file --------------------------------------------------------------------------- */

/* Read exactly `size` bytes of a file, beginning at the offset `from`. Returns false if the file
 * has fewer. */
static bool read_exact_bytes_of_file(int fd, void *to, size_t size, uint64_t from)
{
    size_t length = 0;

    while (length < size) {
        ssize_t got = pread(fd, (char *)to + length, size - length, (off_t)(from + length));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        length += (size_t)got;
    }
    return true;
}

/* Read `size` bytes of a file at the offset `from` into new memory, which the caller frees.
 * Returns NULL if that is not possible. */
static void *read_part_of_file(int fd, uint64_t size, uint64_t from)
{
    if (size == 0 || size > DOMI_SYMBOLS_BYTES_MAX || from > INT64_MAX - DOMI_SYMBOLS_BYTES_MAX)
        return NULL;
    void *part = domi_memory_new_bytes((size_t)size);
    if (part != NULL && read_exact_bytes_of_file(fd, part, (size_t)size, from))
        return part;
    domi_memory_free(part);
    return NULL;
}

/* Read the section headers of an ELF file. Returns NULL if the module that lies at `base` in
 * memory was not loaded from this file. */
static ElfW(Shdr) * read_section_headers(int fd, const void *base, uint32_t *ret_count)
{
    ElfW(Ehdr) head;

    if (!read_exact_bytes_of_file(fd, &head, sizeof head, 0) ||
        memcmp(&head, base, sizeof head) != 0)
        return NULL;
    if (head.e_shentsize != sizeof(ElfW(Shdr)) || head.e_shnum > SECTIONS_MAX)
        return NULL;
    *ret_count = head.e_shnum;
    return read_part_of_file(fd, head.e_shnum * sizeof(ElfW(Shdr)), head.e_shoff);
}

static bool is_symbol_a_named_function(const ElfW(Sym) * symbol, size_t names)
{
    unsigned type = symbol->st_info & 0xfu;

    return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF &&
           symbol->st_name != 0 && symbol->st_name < names;
}

static int compare_function_begins(const void *left_, const void *right_)
{
    const function *left = left_;
    const function *right = right_;

    if (left->begin != right->begin)
        return left->begin < right->begin ? -1 : 1;
    return left->name < right->name ? -1 : left->name > right->name;
}

/* Store the functions among `count` symbols of an ELF file in the module's table, sorted by
 * address. */
static void store_functions_in_table(module *made, const ElfW(Sym) * symbols, size_t count,
                                     size_t names)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        kept += is_symbol_a_named_function(&symbols[i], names);
    made->functions = kept != 0 ? domi_memory_new_bytes(kept * sizeof *made->functions) : NULL;
    if (made->functions == NULL)
        return;
    for (size_t i = 0; i < count; i++) {
        if (is_symbol_a_named_function(&symbols[i], names))
            made->functions[made->count++] =
                (function){symbols[i].st_value, symbols[i].st_size, symbols[i].st_name};
    }
    qsort(made->functions, made->count, sizeof *made->functions, compare_function_begins);
}

/* Read the symbol table of an ELF file, with the names of its symbols, into the module's table. */
static void read_table_of_module(module *made, int fd, const ElfW(Shdr) * sections, uint32_t count)
{
    const ElfW(Shdr) *table = NULL;

    for (uint32_t i = 0; i < count && table == NULL; i++) {
        if (sections[i].sh_type == SHT_SYMTAB)
            table = &sections[i];
    }
    if (table == NULL || table->sh_entsize != sizeof(ElfW(Sym)) || table->sh_link >= count)
        return;
    size_t size = sections[table->sh_link].sh_size;
    made->names = read_part_of_file(fd, size, sections[table->sh_link].sh_offset);
    ElfW(Sym) *symbols = read_part_of_file(fd, table->sh_size, table->sh_offset);
    if (made->names != NULL && symbols != NULL) {
        made->names[size - 1] = '\0';
        store_functions_in_table(made, symbols, table->sh_size / sizeof(ElfW(Sym)), size);
    }
    domi_memory_free(symbols);
}

static void load_symbols_of_module(module *made, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint32_t count = 0;

    if (fd < 0)
        return;
    ElfW(Shdr) *sections = read_section_headers(fd, made->base, &count);
    if (sections != NULL)
        read_table_of_module(made, fd, sections, count);
    domi_memory_free(sections);
    close(fd);
}

/* --- finding a name --------------------------------------------------------------------------- */

/* Find the table of a module; it is read from the module's file at the first call. Returns NULL
 * if DOMI_SYMBOLS_MODULES_MAX modules have tables already. */
static const module *find_or_load_module(domi_symbols *symbols, const Dl_info *info,
                                         const struct link_map *map)
{
    for (uint32_t i = 0; i < symbols->count; i++) {
        if (symbols->modules[i].base == info->dli_fbase)
            return &symbols->modules[i];
    }
    if (symbols->count == DOMI_SYMBOLS_MODULES_MAX)
        return NULL;
    module *made = &symbols->modules[symbols->count++];
    *made = (module){.base = info->dli_fbase, .bias = map->l_addr};
    /* The dynamic loader gives the program itself no name, and the path on the command line may
     * be a relative one. */
    load_symbols_of_module(made, map->l_name[0] != '\0' ? map->l_name : "/proc/self/exe");
    return made;
}

/* Find the function of a module whose code holds the byte at the address `at`. Returns NULL if
 * there is none. */
static const function *find_function_at_address(const module *where, uintptr_t at)
{
    size_t from = 0;
    size_t to = where->count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (where->functions[middle].begin <= at)
            from = middle + 1;
        else
            to = middle;
    }
    if (from == 0)
        return NULL;
    const function *found = &where->functions[from - 1];
    return found->size == 0 || at - found->begin < found->size ? found : NULL;
}

uintptr_t domi_symbols_find_name(domi_symbols *symbols, uintptr_t at, char *text, size_t size)
{
    struct link_map *map = NULL;
    Dl_info info;

    if (dladdr1((const void *)at, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL ||
        info.dli_fname == NULL) {
        snprintf(text, size, "code without a module");
        return 0;
    }
    const module *where = find_or_load_module(symbols, &info, map);
    const function *found =
        where != NULL ? find_function_at_address(where, at - map->l_addr) : NULL;
    if (found != NULL) {
        snprintf(text, size, "%s", where->names + found->name);
        return found->begin + where->bias;
    }
    if (info.dli_sname != NULL) {
        snprintf(text, size, "%s", info.dli_sname);
        return (uintptr_t)info.dli_saddr;
    }
    const char *slash = strrchr(info.dli_fname, '/');
    snprintf(text, size, "%s", slash != NULL ? slash + 1 : info.dli_fname);
    return 0;
}

/* --- all tables ------------------------------------------------------------------------------- */

domi_symbols *domi_symbols_new(void)
{
    return domi_memory_new(sizeof(domi_symbols));
}

void domi_symbols_free(domi_symbols *symbols)
{
    for (uint32_t i = 0; symbols != NULL && i < symbols->count; i++) {
        domi_memory_free(symbols->modules[i].functions);
        domi_memory_free(symbols->modules[i].names);
    }
    domi_memory_free(symbols);
}
