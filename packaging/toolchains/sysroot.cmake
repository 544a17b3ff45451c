# The settings of a build for another processor, against a Debian of that processor in a folder. The file
# of the processor (aarch64.cmake beside this one) names it and includes this.
#
# DOMUS_SYSROOT, a variable of CMake or of the environment, is the folder: `./dev cross` makes one. With
# CC=clang, clang builds, and the rest of gcc's tools is that of the cross compiler.
set(CMAKE_SYSTEM_NAME Linux)
# It is cached, because a build that configures itself anew has no such environment.
if(NOT DOMUS_SYSROOT)
    set(DOMUS_SYSROOT "$ENV{DOMUS_SYSROOT}" CACHE PATH "The Debian for which this is built" FORCE)
endif()
if(NOT IS_DIRECTORY "${DOMUS_SYSROOT}/usr/include")
    message(FATAL_ERROR "DOMUS_SYSROOT='${DOMUS_SYSROOT}' is no folder with usr/include in it")
endif()
# Each probe of a compiler reads this file anew.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES DOMUS_SYSROOT)
set(CMAKE_SYSROOT "${DOMUS_SYSROOT}")

if("$ENV{CC}" MATCHES "clang" OR CMAKE_C_COMPILER MATCHES "clang")
    if(NOT CMAKE_C_COMPILER)
        set(CMAKE_C_COMPILER "$ENV{CC}")
    endif()
    string(REGEX REPLACE "clang([-0-9.]*)$" "clang++\\1" CMAKE_CXX_COMPILER "${CMAKE_C_COMPILER}")
    set(CMAKE_C_COMPILER_TARGET ${domus_tuple})
    set(CMAKE_CXX_COMPILER_TARGET ${domus_tuple})
else()
    set(CMAKE_C_COMPILER ${domus_tuple}-gcc)
    set(CMAKE_CXX_COMPILER ${domus_tuple}-g++)
endif()

# A cross compiler of Debian looks into a folder of its own first, whose C library may be older than this one.
foreach(kind EXE SHARED MODULE)
    set(CMAKE_${kind}_LINKER_FLAGS_INIT "-L${DOMUS_SYSROOT}/usr/lib/${domus_library_tuple}")
endforeach()

# Libraries and headers come from the folder alone, programs from the machine that builds.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${DOMUS_SYSROOT}")
set(ENV{PKG_CONFIG_LIBDIR}
    "${DOMUS_SYSROOT}/usr/lib/${domus_library_tuple}/pkgconfig:${DOMUS_SYSROOT}/usr/share/pkgconfig")
