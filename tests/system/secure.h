/* The example web behind TLS: an authority and certificates, which the openssl program makes for
 * each test in a directory of its own, and commands that connect to the ports. */
#ifndef DOMT_SECURE_H
#define DOMT_SECURE_H

#include "tests/support/tree.h"
#include "tests/system/site.h"

typedef struct domt_secure {
    /* the directory with ca.pem, ca.key, and the certificates that the authority has issued */
    domt_tree tree;
    domt_site site;
} domt_secure;

/* Returns whether openssl and these other programs, separated by spaces, are installed; prints the
 * name of a missing one. */
bool domt_secure_are_programs_installed(const char *programs);

/* Make the directory, the authority, and a certificate a.pem with its key a.key for localhost
 * and 127.0.0.1. */
void domt_secure_make_authority(domt_secure *secure);
/* Issue a certificate NAME.pem with its key NAME.key for these alternative names
 * ("DNS:localhost,IP:127.0.0.1"). */
void domt_secure_issue_certificate(const domt_secure *secure, const char *name, const char *names);

/* Start the site with a.pem and a.key on the ports of web, kv, rooms and echo, and with more
 * settings up to a NULL, in which @T@ is the directory. */
void domt_secure_start_site(domt_secure *secure, const char *const settings[]);

/* Run a shell command for at most 30 s, in which $T is the directory, $CA the file of the
 * authority, and $WEB, $KV, $ROOMS and $ECHO are ports. Returns its status; `domt_secure_output`
 * has the first bytes of its output, errors too. */
int domt_secure_run_command(const domt_secure *secure, const char *command);
extern char domt_secure_output[65536];

/* Run a shell command as domt_secure_run_command() does, and check that it succeeds. */
void domt_secure_expect_command_succeeds(const domt_secure *secure, const char *command);

/* Wait until the service has printed this text to stderr `times` times in all; fails after 20 s. */
void domt_secure_wait_until_logged(domt_secure *secure, const char *text, uint32_t times);

/* Stop the site if it runs, and remove the directory. */
void domt_secure_end_site(domt_secure *secure);

#endif
