/* The page of the example `web`: tests/system/browser.py uses it in headless Chromium as a person
 * does. Without Chromium nothing is tested. */
#include "tests/support/suite.h"
#include "tests/system/site.h"

#include <stdio.h>
#include <stdlib.h>

static domt_site site;

DOMT_TEST(each_part_of_the_page_works_in_a_browser)
{
    char command[512];

    if (system("command -v chromium >/dev/null && command -v python3 >/dev/null") != 0) {
        printf("chromium or python3 is not installed, so the page is not tried\n");
        return;
    }
    domt_site_start_program(&site, (const char *const[]){"web.tick=100ms", NULL});
    snprintf(command, sizeof command,
             "timeout -k 5 90 python3 " DOMT_SOURCE_DIR "/tests/system/browser.py %u %u", site.web,
             site.rooms);
    ck_assert_int_eq(system(command), 0);
    domt_site_stop_program(&site);
}

DOMT_SUITE(100)
