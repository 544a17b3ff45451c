/* The example web behind nginx, and before nginx. Without nginx and curl nothing is tested. */
#include "tests/support/suite.h"
#include "tests/system/judges.h"

static domt_site site;
static domt_tree tree;

static void judge_nginx_by_command(const char *command)
{
    domt_run_judge_command(&tree, &site, command);
}

/* --- nginx passes requests on to web ---------------------------------------------------------- */

static const char before[] =
    "upstream web { server 127.0.0.1:@P@; keepalive 8; }\n"
    "server { listen unix:@T@/nginx; proxy_http_version 1.1; proxy_set_header Connection \"\";\n"
    "location /whole/ { proxy_pass http://web/; }\n"
    "location /pieces/ { proxy_pass http://web/; proxy_buffering off;\n"
    "proxy_request_buffering off; }\n"
    "location /old/ { proxy_pass http://web/; proxy_http_version 1.0; } }\n";

DOMT_TEST(nginx_as_a_proxy_is_served)
{
    if (!domt_are_judges_installed("nginx curl"))
        return;
    domt_make_directory_for_judges(&tree);
    domt_site_start_program(&site, (const char *const[]){NULL});
    domt_nginx_start(&tree, &site, before);
    judge_nginx_by_command(
        "for i in whole pieces old; do X=http://x/$i; C=\"curl -sS $N\"\n"
        "for n in 1 2 3 4 5; do $C $X/json | grep -q hello || exit 1; done\n"
        "$C -X POST -T $IN $X/echo | cmp - $IN || exit 2\n"
        "$C -X POST -T - $X/echo <$IN | cmp - $IN || exit 3\n"
        "test \"$($C -H Expect:100-continue -d hello $X/echo)\" = hello || exit 4\n"
        "$C -I $X/static/page.css | grep -q \"^Content-Length: [1-9]\" || exit 5\n"
        "test \"$($C -r 3-5 -w %{http_code}%{size_download} -o $T/x $X/static/page.css)\" = 2063 "
        "|| exit 6\n"
        "test \"$($C -w %{http_code} -o $T/x -X PUT -d v $X/kv/k)\" = 204 || exit 7\n"
        "test \"$($C $X/kv/k)\" = v || exit 8\n"
        "test \"$($C -w %{http_code} -o $T/x $X/nothing)\" = 404 || exit 9; done");
    domt_nginx_kill();
    domt_site_stop_program(&site);
    domt_tree_remove_copy(&tree);
}

/* --- web passes requests on to nginx ---------------------------------------------------------- */

static const char behind[] =
    "server { listen unix:@T@/nginx; root @T@/www; absolute_redirect off;\n"
    "location / { }\n"
    "location /up/ { dav_methods PUT DELETE; create_full_put_path on; }\n"
    "location /refused/ { return 413 \"no\\n\"; }\n"
    "location /moved/ { return 302 /proxy/small.txt; }\n"
    "location /bare/ { return 302 /small.txt; }\n"
    "location /whole/ { return 302 http://$http_host/small.txt; }\n"
    "location /slow/ { alias @T@/www/; limit_rate 100k; limit_rate_after 64k; } }\n";

static void start_web_and_nginx(void)
{
    char upstream[PATH_MAX];

    domt_make_directory_for_judges(&tree);
    (void)snprintf(upstream, sizeof upstream, "web.upstream=unix:%s/nginx", tree.root);
    domt_site_start_program(&site, (const char *const[]){upstream, NULL});
    domt_nginx_start(&tree, &site, behind);
    judge_nginx_by_command("cp $IN $T/www/large.bin");
}

DOMT_TEST(nginx_serves_the_client_of_the_site)
{
    if (!domt_are_judges_installed("nginx curl"))
        return;
    start_web_and_nginx();
    judge_nginx_by_command(
        "X=$URL/proxy; C=\"curl -sS\"\n"
        "test \"$($C $X/small.txt)\" = hello || exit 1\n"
        "$C $X/large.bin | cmp - $IN || exit 2\n"
        "$C -I $X/large.bin >$T/x && grep -q \"^Content-Length: 1000000\" $T/x || exit 3\n"
        "grep -q \"^Via: 1.1 domus\" $T/x && test \"$(grep -c ^Date: $T/x)\" = 1 || exit 4\n"
        "E=$(grep ^ETag: $T/x | cut -d\" \" -f2 | tr -d \"\\r\")\n"
        "test \"$($C -w %{http_code} -o $T/x -H \"If-None-Match: $E\" $X/large.bin)\" = 304 || "
        "exit 5\n"
        "$C -r 999990- $X/large.bin | cmp - $(tail -c 10 $IN >$T/y; echo $T/y) || exit 6\n"
        "test \"$($C -w %{http_code} -o $T/x -L $X/moved/)\" = 200 || exit 7\n"
        "grep -q hello $T/x || exit 8\n"
        "test \"$($C -w %{http_code} -o $T/x -L $X/bare/)\" = 200 || exit 17\n"
        "test \"$($C -w %{http_code} -o $T/x -L $X/whole/)\" = 200 || exit 18\n"
        "$C -T $IN $X/up/a && cmp $IN $T/www/up/a || exit 9\n"
        "$C -T - $X/up/b <$IN && cmp $IN $T/www/up/b || exit 10\n"
        "test \"$($C -w %{http_code} -X DELETE $X/up/a)\" = 204 || exit 11\n"
        "test ! -e $T/www/up/a || exit 12\n"
        "test \"$($C -w %{http_code} -o $T/x -T $IN $X/refused/)\" = 413 || exit 13\n"
        "test \"$($C -w %{http_code} -o $T/x $X/nothing)\" = 404 || exit 14\n"
        "$C --http1.0 $X/large.bin | cmp - $IN || exit 15\n"
        "test \"$($C $X/small.txt $X/small.txt $X/small.txt -w %{num_connects} | tr -d \"\\n\")\" "
        "= hello1hello0hello0 || exit 16");
    domt_nginx_kill();
    domt_site_stop_program(&site);
    domt_tree_remove_copy(&tree);
}

DOMT_TEST(an_nginx_that_dies_is_seen)
{
    if (!domt_are_judges_installed("nginx curl"))
        return;
    start_web_and_nginx();
    judge_nginx_by_command(
        "curl -sS $URL/proxy/slow/large.bin >$T/got 2>/dev/null & echo $! >$T/curl\n"
        "i=0; until [ -s $T/got ]; do i=$((i + 1)); [ $i -lt 1000 ] || exit 1; sleep 0.01; done");
    domt_nginx_kill();
    judge_nginx_by_command(
        "i=0; while kill -0 $(cat $T/curl) 2>/dev/null; do i=$((i + 1)); [ $i -lt 1000 ] || "
        "exit 1; sleep 0.01; done\n"
        "S=$(wc -c <$T/got); test $S -gt 0 && test $S -lt 1000000 || exit 2\n"
        "test \"$(curl -sS -w %{http_code} -o $T/x $URL/proxy/small.txt)\" = 502 || exit 3\n"
        "test \"$(curl -sS -w %{http_code} -o $T/x -T $IN $URL/proxy/up/a)\" = 502 || exit 4\n"
        "curl -sS $URL/json | grep -q hello");
    domt_site_stop_program(&site);
    domt_tree_remove_copy(&tree);
}

DOMT_SUITE(90)
