# How the live page of the observation port is put together: one HTML file of those of this folder, and
# a C file of that, which the library has in it.
#
# Its charts are by uPlot, which npm fetches into the build directory, once, with the integrity that
# package-lock.json says. Without npm or its registry the page has no charts, and all else.
option(DOMUS_PAGE_CHARTS "Build uPlot into the live page of the observation port; npm fetches it" ON)

set(page_folder ${PROJECT_SOURCE_DIR}/protocols/observe/page)
set(page_build ${PROJECT_BINARY_DIR}/page)
set(page_styles ${page_folder}/page.css)
set(page_scripts words store view strips heat rates tables figures warnings stalls beside stream demo start)
list(TRANSFORM page_scripts PREPEND ${page_folder}/)
list(TRANSFORM page_scripts APPEND .js)

# domus_fetch_uplot(RESULT): fetch it unless it is there. RESULT says whether it is.
function(domus_fetch_uplot result)
    set(${result} FALSE PARENT_SCOPE)
    file(SHA256 ${page_folder}/package-lock.json wanted)
    set(stamp ${page_build}/uplot.stamp)
    if(EXISTS ${stamp})
        file(READ ${stamp} fetched)
    endif()
    if(NOT "${fetched}" STREQUAL wanted)
        find_program(DOMUS_NPM npm)
        if(NOT DOMUS_NPM)
            return()
        endif()
        file(COPY ${page_folder}/package.json ${page_folder}/package-lock.json
            DESTINATION ${page_build})
        execute_process(
            COMMAND ${DOMUS_NPM} ci --ignore-scripts --no-audit --no-fund --prefer-offline
                --fetch-retries=0 --fetch-timeout=20000
            WORKING_DIRECTORY ${page_build} TIMEOUT 60
            RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
        if(NOT failed STREQUAL "0")
            return()
        endif()
        file(WRITE ${stamp} ${wanted})
    endif()
    set(${result} TRUE PARENT_SCOPE)
endfunction()

if(DOMUS_PAGE_CHARTS)
    domus_fetch_uplot(page_has_charts)
    if(page_has_charts)
        set(uplot ${page_build}/node_modules/uplot)
        list(PREPEND page_styles ${uplot}/dist/uPlot.min.css)
        list(PREPEND page_scripts ${uplot}/LICENSE ${uplot}/dist/uPlot.iife.min.js)
    else()
        message(STATUS "The live page has no charts: npm is missing, or did not reach its registry")
    endif()
else()
    message(STATUS "The live page has no charts: DOMUS_PAGE_CHARTS is off")
endif()

# The program that puts it together runs during the build.
add_executable(domus-page-assemble ${PROJECT_SOURCE_DIR}/tools/page/assemble.c)
set_target_properties(domus-page-assemble PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${page_build})
target_link_libraries(domus-page-assemble PRIVATE PkgConfig::domus_nettle PkgConfig::domus_zlib)
if(CMAKE_BUILD_TYPE MATCHES "^(Asan|Tsan)$")
    target_compile_options(domus-page-assemble PRIVATE -fno-sanitize=all)
    target_link_options(domus-page-assemble PRIVATE -fno-sanitize=all)
endif()
add_custom_command(OUTPUT ${page_build}/page_bytes.c
    COMMAND domus-page-assemble ${page_build}/page_bytes.c ${page_folder}/page.html
        --style ${page_styles} --script ${page_scripts}
    DEPENDS domus-page-assemble ${page_folder}/page.html ${page_styles} ${page_scripts})
target_sources(domus-protocols-observe-objects PRIVATE ${page_build}/page_bytes.c)
