# The toolchain of CMake for i386: see sysroot.cmake.
set(CMAKE_SYSTEM_PROCESSOR i686)
set(domus_tuple i686-linux-gnu)
set(domus_library_tuple i386-linux-gnu)
include(${CMAKE_CURRENT_LIST_DIR}/sysroot.cmake)
