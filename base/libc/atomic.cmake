# A probe for atomic operations on one byte: gcc for riscv64 calls functions of libatomic for them before its
# version 13, and then everything is linked with that library.
check_c_source_compiles("#include <stdatomic.h>
    _Atomic char flag;
    int main(void) { char old = 0; return atomic_exchange(&flag, 1) +
        atomic_compare_exchange_strong(&flag, &old, 2); }" domus_has_atomics)
set(domus_pc_atomic)
if(NOT domus_has_atomics)
    message(STATUS "Atomic operations on one byte are those of libatomic")
    set(domus_pc_atomic " -latomic")
    link_libraries(atomic)
endif()
