/* This file starts the servers of `bench web` (web_servers.h).
 *
 * nginx runs as one process without a master: this process does the work of a worker, ends with the
 * bench, and has all of the CPU time. */
#include "bench/web_servers.h"

#include "bench/support/command.h"
#include "bench/versus.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NGINX "/usr/sbin/nginx"

static const char nginx_settings[] = "daemon off;\n"
                                     "master_process off;\n"
                                     "worker_processes 1;\n"
                                     "worker_rlimit_nofile 16384;\n"
                                     "pid nginx.pid;\n"
                                     "error_log error.log;\n"
                                     "events { worker_connections 16000; }\n"
                                     "http {\n"
                                     "  access_log off;\n"
                                     "  keepalive_requests 1000000000;\n"
                                     "  keepalive_timeout 1h;\n"
                                     "  default_type text/plain;\n"
                                     "  sendfile %s;\n"
                                     "  tcp_nopush %s;\n"
                                     "  %s\n"
                                     "  client_body_temp_path body;\n"
                                     "  proxy_temp_path proxy;\n"
                                     "  fastcgi_temp_path fastcgi;\n"
                                     "  uwsgi_temp_path uwsgi;\n"
                                     "  scgi_temp_path scgi;\n"
                                     "  server {\n"
                                     "    listen 127.0.0.1:%u%s backlog=1024;\n"
                                     "    location = / { return 200 \"hello, world\\n\"; }\n"
                                     "    location /files/ { root %s; }\n"
                                     "  }\n"
                                     "%s"
                                     "}\n";

/* nginx's settings for TLS: the time-out of a handshake and a head, the key, and the versions,
 * which are the same for all servers. For tickets nginx has its defaults. */
static const char nginx_secure[] = "  client_header_timeout %us;\n"
                                   "  ssl_certificate " WEB_SERVERS_KEY ";\n"
                                   "  ssl_certificate_key " WEB_SERVERS_KEY ";\n"
                                   "  ssl_protocols TLSv1.2 TLSv1.3;\n";

static const char domus_settings[] = "listeners:\n  - name: web\n    address: 127.0.0.1:0\n";

#define HEAD_S 600u /* a time-out for heads, in seconds, that ends no connection of any row */

static enum web_keep keep = WEB_KEEP_BY_LOOK;
static unsigned head_s = HEAD_S;

static char directory[] = "/tmp/bench_web_XXXXXX";
static char program[PATH_MAX];
static bool is_secure;

/* --- the scratch directory -------------------------------------------------------------------- */

int web_servers_make_directory(void)
{
    char files[sizeof directory + 8];

    if (access(NGINX, X_OK) != 0) {
        fprintf(stderr, "web: no nginx (apt install nginx-light): left out\n");
        return -ENOENT;
    }
    if (command_find_program_beside("web_domus", program) != 0) {
        fprintf(stderr, "web: needs %s\n", program);
        return -ENOENT;
    }
    if (mkdtemp(directory) == NULL)
        return -errno;
    snprintf(files, sizeof files, "%s/files", directory);
    return mkdir(files, 0755) == 0 && setenv("WEB_ROOT", files, 1) == 0 ? 0 : -errno;
}

static void remove_directory_tree(const char *path)
{
    DIR *entries = opendir(path);
    char inside[PATH_MAX];

    for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name);
        if (entry->d_type == DT_DIR)
            remove_directory_tree(inside);
        else
            unlink(inside);
    }
    if (entries != NULL)
        closedir(entries);
    rmdir(path);
}

void web_servers_remove_directory(void)
{
    remove_directory_tree(directory);
}

static int write_file_in_scratch(const char *name, const char *bytes, size_t size)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "we");
    if (file == NULL)
        return -errno;
    size_t written = fwrite(bytes, 1, size, file);
    return fclose(file) == 0 && written == size ? 0 : -EIO;
}

int web_servers_use_tls(const char *pem, size_t size)
{
    char path[PATH_MAX];
    int error = write_file_in_scratch(WEB_SERVERS_KEY, pem, size);

    if (error != 0)
        return error;
    snprintf(path, sizeof path, "%s/" WEB_SERVERS_KEY, directory);
    is_secure = true;
    return setenv("WEB_KEY", path, 1) == 0 ? 0 : -errno;
}

int web_servers_write_file_to_serve(const char *name, const char *bytes, size_t size)
{
    char path[NAME_MAX];

    snprintf(path, sizeof path, "files/%s", name);
    return write_file_in_scratch(path, bytes, size);
}

/* --- servers ---------------------------------------------------------------------------------- */

void web_servers_set_use_of_file_cache(enum web_keep wanted)
{
    keep = wanted;
}

void web_servers_set_timeout_of_heads(unsigned seconds)
{
    head_s = seconds != 0 ? seconds : HEAD_S;
}

static int start_nginx_as_one_process(bool with_sendfile, int cpu, struct server *server)
{
    char secure[sizeof nginx_secure + 16];
    char settings[sizeof nginx_settings + sizeof directory + sizeof secure + 80];
    const char *kept =
        keep == WEB_KEEP_A_MINUTE ? "open_file_cache max=1000; open_file_cache_valid 60s;" : "";
    uint16_t port = versus_find_free_port();
    const char *on = with_sendfile ? "on" : "off";
    char *arguments[] = {(char[]){NGINX},        (char[]){"-p"}, directory,          (char[]){"-c"},
                         (char[]){"nginx.conf"}, (char[]){"-e"}, (char[]){"stderr"}, NULL};

    snprintf(secure, sizeof secure, nginx_secure, head_s);
    int size = snprintf(settings, sizeof settings, nginx_settings, on, on, kept, port,
                        is_secure ? " ssl" : "", directory, is_secure ? secure : "");
    int error = write_file_in_scratch("nginx.conf", settings, (size_t)size);
    if (error != 0) {
        server->error = "its configuration cannot be written";
        return error;
    }
    return server_start_at_port(server, cpu, arguments, port, SIGTERM);
}

int web_servers_start_server(enum web_server which, int cpu, struct server *server)
{
    if (which == WEB_NGINX || which == WEB_NGINX_SENDFILE)
        return start_nginx_as_one_process(which == WEB_NGINX_SENDFILE, cpu, server);

    char config[sizeof directory + 16];
    char head[48], first_byte[48];
    int error = write_file_in_scratch("web.yaml", domus_settings, sizeof domus_settings - 1);
    if (error != 0) {
        server->error = "its configuration cannot be written";
        return error;
    }
    snprintf(config, sizeof config, "%s/web.yaml", directory);
    snprintf(head, sizeof head, "channel.headTimeout=%us", head_s);
    snprintf(first_byte, sizeof first_byte, "channel.firstByteTimeout=%us", head_s);
    char *arguments[] = {
        program,
        (char[]){"--config"},
        config,
        (char[]){"--set"},
        which == WEB_DOMUS ? (char[]){"io.backend=uring"} : (char[]){"io.backend=epoll"},
        (char[]){"--set"},
        (char[]){"system.threads=1"},
        (char[]){"--set"},
        (char[]){"system.cpus=none"},
        (char[]){"--set"},
        (char[]){"channel.maxConnections=12000"},
        (char[]){"--set"},
        (char[]){"profile.atExit=false"},
        (char[]){"--set"},
        keep == WEB_KEEP_NOTHING ? (char[]){"files.keptMax=0"} : (char[]){"files.keptMax=8MiB"},
        (char[]){"--set"},
        keep == WEB_KEEP_A_MINUTE ? (char[]){"files.keptTime=60s"} : (char[]){"files.keptTime=0"},
        (char[]){"--set"},
        head,
        (char[]){"--set"},
        first_byte,
        NULL};
    return server_start(server, cpu, arguments);
}
