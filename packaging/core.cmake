# What is built with DOMUS_PROTOCOLS=OFF beside libdomus and libdomus-config: the examples that are one
# file. Tests need the protocols.
if(DOMUS_PROGRAMS)
    file(GLOB examples CONFIGURE_DEPENDS examples/*.c)
    foreach(source ${examples})
        get_filename_component(name ${source} NAME_WE)
        add_executable(${name} ${source})
        target_link_libraries(${name} PRIVATE domus-config-static)
    endforeach()
endif()
add_custom_target(installed) # what `cmake --install` wants to find
add_dependencies(installed libraries)
include(packaging/install.cmake)
