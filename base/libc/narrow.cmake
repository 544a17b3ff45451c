# Settings for pointers of 4 bytes. Sizes of files and times have 64 bits there, too, and gcc does not tell
# that its version 11 has changed how it aligns atomic numbers of 8 bytes.
if(CMAKE_SIZEOF_VOID_P EQUAL 4)
    add_compile_definitions(_FILE_OFFSET_BITS=64 _TIME_BITS=64)
    domus_flag_if_known(domus_has_no_psabi -Wno-psabi)
endif()
