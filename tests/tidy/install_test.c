/* A user needs only what is installed. The tree is installed to one place and moved to another;
 * examples/echo.c is built with it outside of the sources, as C and as C++, by pkg-config and by
 * find_package, and must serve.
 *
 * Builds with a sanitizer are left out: only programs that are built with the same sanitizer can
 * link their libraries. */
#include "tests/support/crowd.h"
#include "tests/support/service.h"
#include "tests/support/suite.h"
#include "tests/tidy/libraries.h"
#include "tests/tidy/tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BUILD_DIR DOMT_BIN_DIR "/.."
#define MINOR     "0.3" /* the present minor version of domus; another one may have another ABI */

static char output[65536];
/* scratch directory of this test; the installed tree is its folder `moved` */
static char scratch[64];
static domt_service service;

/* Run a command in the scratch directory, with an environment that shows it nothing of domus but
 * the path of the .pc files. Returns the exit status. */
static int run_command_in_scratch_directory(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
static int run_command_in_scratch_directory(const char *format, ...)
{
    char command[4096];
    va_list arguments;

    va_start(arguments, format);
    int length = vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    ck_assert(length > 0 && (size_t)length < sizeof command);
    return domt_run_shell(output, sizeof output,
                          "cd '%s' || exit\n"
                          "unset CC CXX CFLAGS CXXFLAGS LDFLAGS LD_LIBRARY_PATH DESTDIR\n"
                          "export LC_ALL=C CMAKE_GENERATOR=Ninja\n"
                          "pc=$(find . -name domus.pc)\n"
                          "export PKG_CONFIG_PATH=\"$PWD/${pc%%/*}\"\n"
                          "{ %s; } 2>&1",
                          scratch, command);
}

#define MUST_RUN(...)                                                                              \
    do {                                                                                           \
        int status_ = run_command_in_scratch_directory(__VA_ARGS__);                               \
        ck_assert_msg(status_ == 0, "status %d: %s", status_, output);                             \
    } while (0)

/* Install this build to a new directory, and move the installed tree, so that an absolute path in
 * it leads nowhere. `manual` says whether the manual's thousands of files are installed, too. */
static void install_and_move_build(const char *manual)
{
    snprintf(scratch, sizeof scratch, "/tmp/domus-install-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(scratch));
    MUST_RUN("DOMUS_INSTALL_MANUAL=%s cmake --install '" BUILD_DIR "' --prefix \"$PWD/first\"",
             manual);
    MUST_RUN("mv first moved");
    MUST_RUN("cp '" DOMT_SOURCE_DIR "/examples/echo.c' echo.c && cp echo.c echo.cpp");
}

static void install_without_manual(void)
{
    install_and_move_build("no");
}

static void remove_scratch_directory(void)
{
    MUST_RUN("rm -r \"$PWD\"");
}

/* Check that the program runs with the configuration that was installed, and answers. */
static void expect_program_serves(const char *program)
{
    char path[128];
    char configuration[128];
    const char *const arguments[] = {
        path, "--config", configuration, "--set", "listeners.echo.address=127.0.0.1:0", NULL};

    snprintf(path, sizeof path, "%s/%s", scratch, program);
    snprintf(configuration, sizeof configuration, "%s/moved/share/doc/domus/domus.yaml", scratch);
    domt_service_start(&service, arguments);
    int client = domt_connect_to_port(service.port);
    ck_assert(domt_send_and_get_echo(client, program));
    close(client);
    domt_service_stop(&service);
}

DOMT_TEST(installed_tree_is_complete_and_relocatable)
{
    if (DOMT_SANITIZED)
        return;
    install_and_move_build("yes");
    MUST_RUN("cmp moved/share/doc/domus/LICENSE '" DOMT_SOURCE_DIR "/LICENSE'");
    MUST_RUN("diff -r moved/include/domus '" DOMT_SOURCE_DIR "/include/domus'");
    for (size_t i = 0; domt_libraries[i] != NULL; i++) {
        const char *name = domt_libraries[i];

        MUST_RUN("test -f $(find moved -name %s.a)", name);
        MUST_RUN("test $(readlink $(find moved -name %s.so)) = %s.so." MINOR, name, name);
        MUST_RUN("readelf -d $(find moved -name %s.so) | grep -F 'soname: [%s.so." MINOR "]'", name,
                 name);
    }
    if (access(DOMT_BIN_DIR "/domus", X_OK) == 0) {
        MUST_RUN("moved/bin/domus --version | grep -F 'domus " MINOR ".'");
        MUST_RUN("moved/bin/domus config check moved/share/doc/domus/domus.yaml");
        MUST_RUN("diff -r moved/share/man/man1 '" DOMT_SOURCE_DIR "/packaging/man'");
        MUST_RUN("bash -c '. moved/share/bash-completion/completions/domus && complete -p domus'");
    }
    if (access(BUILD_DIR "/manual/made", R_OK) == 0) {
        MUST_RUN("diff -r moved/share/man/man3 '" BUILD_DIR "/manual/man/man3'");
        MUST_RUN("diff -r moved/share/doc/domus/html '" BUILD_DIR "/manual/html'");
    }
    int status = run_command_in_scratch_directory("grep -rlF -e '" DOMT_SOURCE_DIR
                                                  "' -e \"$PWD/first\" moved");
    ck_assert_msg(status == 1, "paths of the build or of the first place in: %s", output);
    remove_scratch_directory();
}

/* The flags of a strict user. -Werror shows each warning; g++ warns of members that are not named,
 * and gcc does not. */
#define STRICT_C   "cc -std=c17 -Wall -Wextra -Wpedantic -Werror"
#define STRICT_CPP "g++ -std=c++20 -Wall -Wextra -Wpedantic -Wno-missing-field-initializers -Werror"
#define RPATH      "-Wl,-rpath,\"$(pkg-config --variable=libdir domus)\""

/* The debugging information of the installed libraries lies beside them; `./dev install` puts it
 * there. */
DOMT_TEST(debugging_information_is_installed_beside_library)
{
    if (DOMT_SANITIZED)
        return;
    install_without_manual();
    MUST_RUN("lib=$(find \"$PWD/moved\" -name libdomus.so." MINOR ".0) && nm -D $lib >before && "
             "cp $lib whole && '" DOMT_SOURCE_DIR "'/tools/split-debug $lib && "
             "nm -D $lib | cmp before - && "
             "test $(wc -c <$lib) -lt $(($(wc -c <whole) / 2)) && "
             "readelf -S $lib | grep -F .symtab && ! readelf -S $lib | grep -F .debug_info && "
             "readelf -p .gnu_debuglink $lib | grep -F libdomus.so." MINOR ".0.debug && "
             "readelf -S ${lib%%/*}/.debug/libdomus.so." MINOR ".0.debug | grep -F .debug_info");
    MUST_RUN(STRICT_C " echo.c $(pkg-config --cflags --libs domus-config) " RPATH " -o stripped");
    expect_program_serves("stripped");
    remove_scratch_directory();
}

DOMT_TEST(echo_built_by_pkg_config_in_c_and_cpp_serves)
{
    if (DOMT_SANITIZED)
        return;
    install_without_manual();
    MUST_RUN(STRICT_C " echo.c $(pkg-config --cflags --libs domus-config) " RPATH " -o pc_c");
    MUST_RUN(STRICT_CPP " echo.cpp $(pkg-config --cflags --libs domus-config) " RPATH " -o pc_cpp");
    MUST_RUN(STRICT_C " -static echo.c $(pkg-config --static --cflags --libs domus-config) "
                      "-o pc_static");
    MUST_RUN("ldd pc_c | grep -F 'libdomus.so." MINOR " => '\"$PWD\"");
    expect_program_serves("pc_c");
    expect_program_serves("pc_cpp");
    expect_program_serves("pc_static");
    remove_scratch_directory();
}

DOMT_TEST(echo_built_by_find_package_in_c_and_cpp_serves)
{
    if (DOMT_SANITIZED)
        return;
    install_without_manual();
    MUST_RUN("cp '" DOMT_SOURCE_DIR "'/tests/tidy/consumer/* .");
    MUST_RUN("grep -F 'find_package(domus " MINOR " ' '" DOMT_SOURCE_DIR "/docs/install.md'");
    MUST_RUN("cmake -S . -B built -DWANTED_VERSION=" MINOR " -DCMAKE_PREFIX_PATH=\"$PWD/moved\"");
    MUST_RUN("cmake --build built --target echo_shared_c echo_shared_cpp echo_static_c "
             "echo_static_cpp");
    MUST_RUN("ldd built/echo_shared_c | grep -F 'libdomus.so." MINOR " => '\"$PWD\"");
    ck_assert_int_ne(run_command_in_scratch_directory("ldd built/echo_static_c | grep -F libdomus"),
                     0);
    expect_program_serves("built/echo_shared_c");
    expect_program_serves("built/echo_shared_cpp");
    expect_program_serves("built/echo_static_c");
    expect_program_serves("built/echo_static_cpp");
    remove_scratch_directory();
}

/* Check that the library of the protocol `name` is found by pkg-config and by find_package, can be
 * used without libdomus-config, and works. */
static void build_user_of_protocol_library(const char *name)
{
    install_without_manual();
    MUST_RUN("cp '" DOMT_SOURCE_DIR "'/tests/tidy/consumer/* .");
    MUST_RUN("mv %s.c p.c", name);
    MUST_RUN(STRICT_C " p.c $(pkg-config --cflags --libs domus-%s) " RPATH " -o p_c", name);
    MUST_RUN("cp p.c p.cpp && " STRICT_CPP " p.cpp $(pkg-config --cflags --libs domus-%s) " RPATH
             " -o p_cpp",
             name);
    /* Debian's libpq.a needs other libraries that are not installed with it, so there is no static
     * program with it. */
    bool has_static = strcmp(name, "pg") != 0;
    if (has_static)
        MUST_RUN(STRICT_C
                 " -static p.c $(pkg-config --static --cflags --libs domus-%s) -o p_static",
                 name);
    ck_assert_int_ne(run_command_in_scratch_directory("ldd p_c | grep -F libdomus-config"), 0);
    MUST_RUN("mv p.c %s.c && cmake -S . -B built -DWANTED_VERSION=" MINOR
             " -DCMAKE_PREFIX_PATH=\"$PWD/moved\" && "
             "cmake --build built --target %s_shared %s_static",
             name, name, name);
    MUST_RUN("./p_c && ./p_cpp && built/%s_shared && built/%s_static", name, name);
    if (has_static)
        MUST_RUN("./p_static");
    remove_scratch_directory();
}

/* Each library of a protocol has a test of its own, so that these tests run beside each other. */
#define FINDS_PROTOCOL(name)                                                                       \
    DOMT_TEST(libdomus_##name##_is_found_by_pkg_config_and_find_package)                           \
    {                                                                                              \
        if (!DOMT_SANITIZED)                                                                       \
            build_user_of_protocol_library(#name);                                                 \
    }

FINDS_PROTOCOL(resp)
FINDS_PROTOCOL(http)
FINDS_PROTOCOL(tls)
FINDS_PROTOCOL(observe)
FINDS_PROTOCOL(cluster)
FINDS_PROTOCOL(nats)
FINDS_PROTOCOL(sql)
FINDS_PROTOCOL(sqlite)
FINDS_PROTOCOL(pg)
FINDS_PROTOCOL(json)
FINDS_PROTOCOL(http2)
FINDS_PROTOCOL(grpc)

DOMT_TEST(each_library_has_test_program_that_uses_it)
{
    for (size_t i = 2; domt_libraries[i] != NULL; i++) {
        char path[DOMT_PATH_MAX];

        snprintf(path, sizeof path, DOMT_SOURCE_DIR "/tests/tidy/consumer/%s.c",
                 domt_libraries[i] + strlen("libdomus-"));
        ck_assert_msg(access(path, R_OK) == 0, "%s is missing", path);
    }
}

/* Until version 1.0 each minor version may have another ABI, so find_package() refuses all other
 * ones. */
DOMT_TEST(find_package_refuses_another_minor_version)
{
    static const char *const others[] = {"0.2", "0.4", "1.0"};

    if (DOMT_SANITIZED)
        return;
    install_without_manual();
    MUST_RUN("cp '" DOMT_SOURCE_DIR "'/tests/tidy/consumer/* .");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        int status = run_command_in_scratch_directory(
            "cmake -S . -B built -DWANTED_VERSION=%s -DCMAKE_PREFIX_PATH=\"$PWD/moved\"",
            others[i]);
        ck_assert_msg(status != 0, "%s is accepted", others[i]);
        ck_assert_msg(strstr(output, "domus-config.cmake, version: " MINOR ".0") != NULL, "%s",
                      output);
    }
    remove_scratch_directory();
}

DOMT_SUITE(60)
