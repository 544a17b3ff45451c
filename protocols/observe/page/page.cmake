# How the live page of the observation port is put together: one HTML file of those of this folder, and
# a C file of that, which the library has in it.
#
# Its charts are by uPlot, which is fetched from npm's registry into the build directory, once, and
# taken only with the hash that stands here. Without the registry the page has no charts, and all else.
option(DOMUS_PAGE_CHARTS "Fetch uPlot, and build it into the live page of the observation port" ON)

set(page_folder ${PROJECT_SOURCE_DIR}/protocols/observe/page)
set(page_build ${PROJECT_BINARY_DIR}/page)
set(page_styles ${page_folder}/page.css)
set(page_scripts words store view strips heat rates tables figures warnings stalls sets beside stream demo start)
list(TRANSFORM page_scripts PREPEND ${page_folder}/)
list(TRANSFORM page_scripts APPEND .js)

# domus_fetch_uplot(RESULT): fetch it unless it is there. RESULT says whether it is.
function(domus_fetch_uplot result)
    set(version 1.6.32)
    set(archive ${page_build}/uplot-${version}.tgz)
    string(CONCAT hash 2883159c6ebccefbb95d751b0b82d010f9e1c0ec41b8bc96d401eda66e882935
        c89a46cb824332fa369b8cb8122cc6ac36e186cd09bf7a9ded3a4c93c6989023)
    set(found "")
    if(EXISTS ${archive})
        file(SHA512 ${archive} found)
    endif()
    if(NOT found STREQUAL hash)
        file(DOWNLOAD https://registry.npmjs.org/uplot/-/uplot-${version}.tgz ${archive}
            TIMEOUT 60 INACTIVITY_TIMEOUT 20 TLS_VERIFY ON)
        file(SHA512 ${archive} found)
    endif()
    if(found STREQUAL hash)
        file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${page_build})
        set(${result} TRUE PARENT_SCOPE)
    else()
        file(REMOVE ${archive})
        set(${result} FALSE PARENT_SCOPE)
    endif()
endfunction()

if(DOMUS_PAGE_CHARTS)
    domus_fetch_uplot(page_has_charts)
    if(page_has_charts)
        set(uplot ${page_build}/package)
        list(PREPEND page_styles ${uplot}/dist/uPlot.min.css)
        list(PREPEND page_scripts ${uplot}/LICENSE ${uplot}/dist/uPlot.iife.min.js)
    else()
        message(STATUS "The live page has no charts: npm's registry was not reached")
    endif()
else()
    message(STATUS "The live page has no charts: DOMUS_PAGE_CHARTS is off")
endif()

# The program that puts it together runs during the build, so in a build for another processor the compiler
# of this machine makes it.
set(page_assemble domus-page-assemble)
if(CMAKE_CROSSCOMPILING)
    find_program(DOMUS_BUILD_CC NAMES cc gcc clang DOC "The compiler for programs that the build runs")
    if(NOT DOMUS_BUILD_CC)
        message(FATAL_ERROR "a build for another processor needs a compiler for this one (DOMUS_BUILD_CC)")
    endif()
    set(page_assemble ${page_build}/domus-page-assemble)
    add_custom_command(OUTPUT ${page_assemble}
        COMMAND ${DOMUS_BUILD_CC} -std=c17 -D_GNU_SOURCE -O1 ${PROJECT_SOURCE_DIR}/tools/page/assemble.c
            -o ${page_assemble} -lnettle -lz
        DEPENDS ${PROJECT_SOURCE_DIR}/tools/page/assemble.c)
else()
    add_executable(domus-page-assemble ${PROJECT_SOURCE_DIR}/tools/page/assemble.c)
    set_target_properties(domus-page-assemble PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${page_build})
    target_link_libraries(domus-page-assemble PRIVATE PkgConfig::domus_nettle PkgConfig::domus_zlib)
    if(CMAKE_BUILD_TYPE MATCHES "^(Asan|Tsan)$")
        target_compile_options(domus-page-assemble PRIVATE -fno-sanitize=all)
        target_link_options(domus-page-assemble PRIVATE -fno-sanitize=all)
    endif()
endif()
add_custom_command(OUTPUT ${page_build}/page_bytes.c
    COMMAND ${page_assemble} ${page_build}/page_bytes.c ${page_folder}/page.html
        --style ${page_styles} --script ${page_scripts}
    DEPENDS ${page_assemble} ${page_folder}/page.html ${page_styles} ${page_scripts})
target_sources(domus-protocols-observe-objects PRIVATE ${page_build}/page_bytes.c)
