# Probes of the C library. glibc has all of this; of another one each thing that is missing gets a definition
# of its own, for which missing.h comes before each source.
include(CheckSymbolExists)

set(CMAKE_REQUIRED_DEFINITIONS -D_GNU_SOURCE)
check_symbol_exists(strerrorname_np string.h domus_libc_has_errno_names)
check_symbol_exists(malloc_trim malloc.h domus_libc_has_malloc_trim)
check_symbol_exists(pthread_attr_setaffinity_np pthread.h domus_libc_has_attr_affinity)
check_symbol_exists(dladdr1 dlfcn.h domus_libc_has_dladdr1)
check_symbol_exists(statx sys/stat.h domus_libc_has_statx)
check_symbol_exists(renameat2 stdio.h domus_libc_has_renameat2)
check_symbol_exists(preadv2 sys/uio.h domus_libc_has_preadv2) # and pwritev2
check_include_file(execinfo.h domus_libc_has_execinfo)
unset(CMAKE_REQUIRED_DEFINITIONS)

set(domus_libc_missing)
foreach(part errno_names malloc_trim attr_affinity dladdr1 statx renameat2 preadv2)
    if(NOT domus_libc_has_${part})
        string(TOUPPER DOMI_LIBC_WITHOUT_${part} definition)
        list(APPEND domus_libc_missing ${definition})
    endif()
endforeach()
if(NOT domus_libc_has_execinfo)
    include_directories(SYSTEM ${PROJECT_SOURCE_DIR}/base/libc/without)
    # musl-gcc of Debian takes gcc's unwinder that was built for glibc, which cannot be linked.
    check_c_source_compiles("#include <unwind.h>
        static _Unwind_Reason_Code one(struct _Unwind_Context *c, void *t)
        { (void)c; (void)t; return _URC_NO_REASON; }
        int main(void) { return (int)_Unwind_Backtrace(one, 0); }" domus_libc_has_unwinder)
    if(NOT domus_libc_has_unwinder)
        list(APPEND domus_libc_missing DOMI_LIBC_WITHOUT_UNWINDER)
    endif()
endif()
if(domus_libc_missing)
    message(STATUS "This C library gets definitions of its own for: ${domus_libc_missing}")
    add_compile_definitions(${domus_libc_missing})
    add_compile_options(
        "$<$<COMPILE_LANGUAGE:C>:SHELL:-include ${PROJECT_SOURCE_DIR}/base/libc/missing.h>")
endif()
