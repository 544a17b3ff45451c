# The toolchain of CMake for riscv64: see sysroot.cmake.
set(CMAKE_SYSTEM_PROCESSOR riscv64)
set(domus_tuple riscv64-linux-gnu)
set(domus_library_tuple riscv64-linux-gnu)
include(${CMAKE_CURRENT_LIST_DIR}/sysroot.cmake)
