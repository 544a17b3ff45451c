# What `domus config` needs beside its sources: the text of config/domus.yaml in it, whose comments it
# shows, and the program domus-keys beside it, which has the tables of the library.
set(tool_yaml ${PROJECT_SOURCE_DIR}/config/domus.yaml)
set(tool_yaml_bytes ${PROJECT_BINARY_DIR}/tool/yaml_bytes.c)
add_custom_command(OUTPUT ${tool_yaml_bytes}
    COMMAND ${CMAKE_COMMAND} -DIN=${tool_yaml} -DOUT=${tool_yaml_bytes}
        -P ${PROJECT_SOURCE_DIR}/tools/domus/embed.cmake
    DEPENDS ${tool_yaml} tools/domus/embed.cmake)
target_sources(domus-tool PRIVATE ${tool_yaml_bytes})

add_executable(domus-keys tools/keys/main.c)
target_link_libraries(domus-keys PRIVATE domus-config-static)
add_dependencies(domus-tool domus-keys)

# When installed, it is no program for users, so it is not in their path: the command finds it by the
# way from its own folder.
set(tool_keys_dir ${CMAKE_INSTALL_LIBEXECDIR}/domus)
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBEXECDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_BINDIR}")
    set(tool_keys_way ${CMAKE_INSTALL_FULL_LIBEXECDIR}/domus)
else()
    file(RELATIVE_PATH tool_keys_way /prefix/${CMAKE_INSTALL_BINDIR} /prefix/${tool_keys_dir})
endif()
target_compile_definitions(domus-tool PRIVATE DOMUS_TOOL_KEYS_WAY="${tool_keys_way}")
install(TARGETS domus-keys RUNTIME DESTINATION ${tool_keys_dir})
