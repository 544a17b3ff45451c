/* testssl.sh checks the protocols, ciphers and extensions of the example web, and tries known
 * attacks. It takes a minute or more, so only the long form (DOMT_LONG) runs it. */
#include "tests/support/suite.h"
#include "tests/system/judges.h"
#include "tests/system/secure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static domt_secure secure;
static char report[262144];

/* Lines that have to be in the report; each space stands for any number of spaces. */
static const char *const findings[] = {
    "SSLv2 not offered (OK)",
    "SSLv3 not offered (OK)",
    "TLS 1 not offered",
    "TLS 1.1 not offered",
    "TLS 1.2 offered (OK)",
    "TLS 1.3 offered (OK): final",
    "NULL ciphers (no encryption) not offered (OK)",
    "Anonymous NULL Ciphers (no authentication) not offered (OK)",
    "Export ciphers (w/o ADH+NULL) not offered (OK)",
    "Triple DES Ciphers / IDEA not offered",
    "Obsolete CBC ciphers (AES, ARIA etc.) not offered",
    "Has server cipher order? yes (OK)",
    "Heartbleed (CVE-2014-0160) not vulnerable (OK)",
    "CCS (CVE-2014-0224) not vulnerable (OK)",
    "Ticketbleed (CVE-2016-9244), experiment. not vulnerable (OK)",
    "Secure Renegotiation (RFC 5746) supported (OK)",
    "Secure Client-Initiated Renegotiation not vulnerable (OK)",
    "CRIME, TLS (CVE-2012-4929) not vulnerable (OK)",
    "SWEET32 (CVE-2016-2183, CVE-2016-6329) not vulnerable (OK)",
    "BEAST (CVE-2011-3389) not vulnerable (OK)",
    "LUCKY13 (CVE-2013-0169), experimental not vulnerable (OK)",
};

/* Read the report of testssl.sh, and replace several spaces by one. */
static void read_report_of_testssl(void)
{
    char path[PATH_MAX];
    size_t size = 0;
    int letter;

    snprintf(path, sizeof path, "%s/scan", secure.tree.root);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while ((letter = fgetc(file)) != EOF && size + 1 < sizeof report)
        if (letter != ' ' || size == 0 || report[size - 1] != ' ')
            report[size++] = (char)letter;
    report[size] = '\0';
    fclose(file);
}

DOMT_TEST(testssl_finds_nothing_that_is_ours)
{
    char command[PATH_MAX];

    if (getenv("DOMT_LONG") == NULL || !domt_secure_is_possible("testssl"))
        return;
    domt_secure_make_authority(&secure);
    domt_secure_start_site(&secure, (const char *const[]){NULL});
    snprintf(command, sizeof command,
             "cd %s && timeout -k 5 1200 testssl --quiet --color 0 --warnings batch --nodns none "
             "--ip 127.0.0.1 -p -s -P -S -U https://localhost:%u/ >scan 2>&1 </dev/null",
             secure.tree.root, secure.site.web);
    /* The status also counts remarks about the authority of the test, so it is not checked. */
    ck_assert_int_ne(system(command), -1); /* NOLINT(cert-env33-c): a test may use the shell */
    read_report_of_testssl();
    for (size_t i = 0; i < sizeof findings / sizeof findings[0]; i++)
        ck_assert_msg(strstr(report, findings[i]) != NULL, "not found: %s\n%s", findings[i],
                      report);
    ck_assert_msg(strstr(report, "VULNERABLE (NOT ok)") == NULL, "%s", report);
    domt_secure_end_site(&secure);
}

DOMT_SUITE(1300)
