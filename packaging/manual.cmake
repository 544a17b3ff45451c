# The manual: pages of sections 3, 5 and 7, and all of them as HTML, made from the headers by tools/manual.
# It takes some seconds, so it is no part of `all`: the target `installed` has it, and `cmake --install`
# makes it if it is missing. The sanitizers' builds are not installed, and have none.
set(domus_has_manual OFF)
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE MATCHES "^(Asan|Tsan)$")
    set(domus_has_manual ON)
endif()
option(DOMUS_MANUAL "Make the manual, if python3 and mandoc are found" ${domus_has_manual})
if(DOMUS_MANUAL)
    find_program(domus_python3 python3)
    find_program(domus_mandoc mandoc)
endif()
if(NOT domus_python3 OR NOT domus_mandoc)
    if(DOMUS_MANUAL)
        message(STATUS "the manual is not made: it needs python3 and mandoc")
    endif()
    return()
endif()

set(domus_manual_dir ${PROJECT_BINARY_DIR}/manual)
file(GLOB domus_manual_sources CONFIGURE_DEPENDS
    include/domus/*.h tools/manual/*.py tools/manual/site/* packaging/man/*.1)
file(GLOB_RECURSE domus_manual_code CONFIGURE_DEPENDS
    protocols/*.c config/*.c examples/*.c bench/*.c tests/*.c)
add_custom_command(OUTPUT ${domus_manual_dir}/made
    COMMAND ${CMAKE_COMMAND} -E env MANDOC=${domus_mandoc} ${domus_python3} -B tools/manual ${domus_manual_dir} --version ${PROJECT_VERSION}
    COMMAND ${CMAKE_COMMAND} -E touch ${domus_manual_dir}/made
    DEPENDS ${domus_manual_sources} ${domus_manual_code} config/domus.yaml docs/contract.md
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} COMMENT "the manual" VERBATIM)
add_custom_target(manual DEPENDS ${domus_manual_dir}/made)
add_dependencies(installed manual)

# These are 3,800 files. DOMUS_INSTALL_MANUAL=no in the environment leaves them out, for tests that install.
domus_below(domus_man_place "\${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_MANDIR}")
domus_below(domus_html_place "\${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_DOCDIR}")
install(CODE "if(NOT \"\$ENV{DOMUS_INSTALL_MANUAL}\" STREQUAL no)
    if(NOT EXISTS \"${domus_manual_dir}/made\")
        execute_process(COMMAND \"${CMAKE_COMMAND}\" --build \"${PROJECT_BINARY_DIR}\" --target manual
            COMMAND_ERROR_IS_FATAL ANY)
    endif()
    file(INSTALL DESTINATION \"${domus_man_place}\" TYPE DIRECTORY FILES \"${domus_manual_dir}/man/\")
    file(INSTALL DESTINATION \"${domus_html_place}\" TYPE DIRECTORY FILES \"${domus_manual_dir}/html\")
endif()")
