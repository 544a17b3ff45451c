# The toolchain of CMake for aarch64: see sysroot.cmake.
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(domus_tuple aarch64-linux-gnu)
set(domus_library_tuple aarch64-linux-gnu)
include(${CMAKE_CURRENT_LIST_DIR}/sysroot.cmake)
