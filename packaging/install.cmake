# What `cmake --install` puts where: headers, libraries, the files by which pkg-config and
# find_package find them, and the program domus with its manual. The installed tree may be moved:
# every path in it is relative to the file that holds it, unless the one who configures gave an
# absolute directory.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(domus_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/domus)

# domus_below(RESULT PREFIX DIRECTORY): a directory of an installation, below PREFIX if it is relative.
function(domus_below result prefix directory)
    if(IS_ABSOLUTE "${directory}")
        set(${result} "${directory}" PARENT_SCOPE)
    else()
        set(${result} "${prefix}/${directory}" PARENT_SCOPE)
    endif()
endfunction()

get_property(domus_libraries GLOBAL PROPERTY domus_libraries)
set(domus_static_libraries ${domus_libraries})
list(TRANSFORM domus_static_libraries APPEND -static)
install(TARGETS ${domus_libraries} EXPORT domus-targets)
install(TARGETS ${domus_static_libraries} EXPORT domus-static-targets)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/domus DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN *.h)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/config/domus.yaml
    DESTINATION ${CMAKE_INSTALL_DOCDIR})
# Units to copy. Where systemd looks for units they would be offered for a program that is not there.
install(FILES ${PROJECT_SOURCE_DIR}/packaging/systemd/echo.service
    ${PROJECT_SOURCE_DIR}/packaging/systemd/echo.socket DESTINATION ${CMAKE_INSTALL_DOCDIR}/systemd)

# ---- The program domus ---------------------------------------------------------------------------

if(TARGET domus-tool)
    install(TARGETS domus-tool)
    file(GLOB domus_pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/packaging/man/*.1)
    install(FILES ${domus_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
    install(FILES ${PROJECT_SOURCE_DIR}/packaging/completion/domus.bash
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME domus)
endif()

include(${CMAKE_CURRENT_LIST_DIR}/manual.cmake)

# ---- CMake ---------------------------------------------------------------------------------------

install(EXPORT domus-targets NAMESPACE domus:: DESTINATION ${domus_cmake_dir})
install(EXPORT domus-static-targets NAMESPACE domus:: DESTINATION ${domus_cmake_dir})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/domus-config.cmake.in
    ${PROJECT_BINARY_DIR}/packaging/domus-config.cmake INSTALL_DESTINATION ${domus_cmake_dir})
# Until 1.0 each minor version may change functions and structures; so does the soname.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/packaging/domus-config-version.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/packaging/domus-config.cmake
    ${PROJECT_BINARY_DIR}/packaging/domus-config-version.cmake DESTINATION ${domus_cmake_dir})

# ---- pkg-config ----------------------------------------------------------------------------------

set(domus_pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(domus_pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
    file(RELATIVE_PATH up /prefix/${domus_pc_dir} /prefix)
    string(REGEX REPLACE "/$" "" up "${up}")
    set(domus_pc_prefix "\${pcfiledir}/${up}")
endif()
domus_below(domus_pc_libdir "\${prefix}" "${CMAKE_INSTALL_LIBDIR}")
domus_below(domus_pc_includedir "\${prefix}" "${CMAKE_INSTALL_INCLUDEDIR}")
foreach(name ${domus_libraries})
    configure_file(${CMAKE_CURRENT_LIST_DIR}/${name}.pc.in
        ${PROJECT_BINARY_DIR}/packaging/${name}.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/packaging/${name}.pc DESTINATION ${domus_pc_dir})
endforeach()
