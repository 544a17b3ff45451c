/* Finds the module and the function of an address by dladdr(). A return address is looked up by the
 * byte before it, which belongs to the call. */
#include "base/symbol.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

void domi_symbol_describe_address(const void *place, bool is_return, bool addresses, char *text,
                                  size_t size)
{
    uintptr_t at = (uintptr_t)place;
    const void *within = (const void *)(is_return ? at - 1 : at);
    Dl_info info;

    if (dladdr(within, &info) == 0 || info.dli_fname == NULL) {
        if (addresses)
            snprintf(text, size, "%p", place);
        else
            snprintf(text, size, "code without a module");
        return;
    }
    const char *slash = strrchr(info.dli_fname, '/');
    const char *module = slash != NULL ? slash + 1 : info.dli_fname;
    int length = snprintf(text, size, "%s+0x%zx", module, (size_t)(at - (uintptr_t)info.dli_fbase));
    if (info.dli_sname != NULL && length > 0 && (size_t)length < size)
        snprintf(text + length, size - (size_t)length, " (%s+0x%zx)", info.dli_sname,
                 (size_t)(at - (uintptr_t)info.dli_saddr));
}
