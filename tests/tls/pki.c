/* Makes an authority and certificates for tests. */
#include "tests/tls/pki.h"

#include "base/check.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_call_succeeded(int holds)
{
    DOMI_CHECK(holds);
}

static void add_certificate_extension(X509 *certificate, X509 *issuer, int kind, const char *value)
{
    X509V3_CTX context;

    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    check_call_succeeded(extension != NULL && X509_add_ext(certificate, extension, -1) == 1);
    X509_EXTENSION_free(extension);
}

/* Replace each '?' in the certificate's alternative names by a byte 0. */
static void replace_question_marks_by_nul(X509 *certificate)
{
    int place = X509_get_ext_by_NID(certificate, NID_subject_alt_name, -1);
    ASN1_OCTET_STRING *names = X509_EXTENSION_get_data(X509_get_ext(certificate, place));
    unsigned char *bytes = names->data;

    for (int i = 0; i < names->length; i++)
        bytes[i] = bytes[i] == '?' ? 0 : bytes[i];
}

static X509 *make_signed_certificate(const domt_wish *wish, EVP_PKEY *key, X509 *issuer)
{
    static long serial = 1;
    X509 *made = X509_new();
    X509_NAME *subject = X509_get_subject_name(made);
    int ends_s = wish->ends_s != 0 ? wish->ends_s : 3600;

    check_call_succeeded(X509_set_version(made, 2) == 1);
    ASN1_INTEGER_set(X509_get_serialNumber(made), serial++);
    X509_gmtime_adj(X509_getm_notBefore(made), wish->begins_s - 60);
    X509_gmtime_adj(X509_getm_notAfter(made), ends_s);
    check_call_succeeded(X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_ASC,
                                                    (const unsigned char *)"domus", -1, -1,
                                                    0) == 1);
    check_call_succeeded(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                                                    (const unsigned char *)wish->file, -1, -1,
                                                    0) == 1);
    check_call_succeeded(
        X509_set_issuer_name(made, issuer != NULL ? X509_get_subject_name(issuer) : subject) == 1);
    check_call_succeeded(X509_set_pubkey(made, key) == 1);
    if (wish->names != NULL)
        add_certificate_extension(made, issuer != NULL ? issuer : made, NID_subject_alt_name,
                                  wish->names);
    if (wish->usage != NULL)
        add_certificate_extension(made, issuer != NULL ? issuer : made, NID_ext_key_usage,
                                  wish->usage);
    if (wish->nul)
        replace_question_marks_by_nul(made);
    return made;
}

static void write_certificate_and_key_as_pem(const domt_pki *pki, const char *file,
                                             X509 *certificate, EVP_PKEY *key)
{
    FILE *to = fopen(domt_pki_path_of_file(pki, file), "w");

    check_call_succeeded(to != NULL && PEM_write_X509(to, certificate) == 1);
    check_call_succeeded(key == NULL ||
                         PEM_write_PrivateKey(to, key, NULL, NULL, 0, NULL, NULL) == 1);
    check_call_succeeded(fclose(to) == 0);
}

void domt_pki_make_authority(domt_pki *pki)
{
    /* The authority's name has its folder in it, so each authority has another name. */
    const domt_wish wish = {.file = pki->folder};

    snprintf(pki->folder, sizeof pki->folder, "/tmp/domt-pki-XXXXXX");
    check_call_succeeded(mkdtemp(pki->folder) != NULL);
    pki->key = EVP_EC_gen("P-256");
    pki->authority = make_signed_certificate(&wish, pki->key, NULL);
    add_certificate_extension(pki->authority, pki->authority, NID_basic_constraints,
                              "critical,CA:TRUE");
    add_certificate_extension(pki->authority, pki->authority, NID_subject_key_identifier, "hash");
    check_call_succeeded(X509_sign(pki->authority, pki->key, EVP_sha256()) > 0);
    write_certificate_and_key_as_pem(pki, "ca", pki->authority, NULL);
}

void domt_pki_issue_certificate(const domt_pki *pki, const domt_wish *wish)
{
    EVP_PKEY *key = wish->is_rsa ? EVP_RSA_gen(wish->is_rsa > 1 ? (unsigned)wish->is_rsa : 2048u)
                                 : EVP_EC_gen("P-256");
    X509 *made = make_signed_certificate(wish, key, wish->is_self_signed ? NULL : pki->authority);

    check_call_succeeded(X509_sign(made, wish->is_self_signed ? key : pki->key, EVP_sha256()) > 0);
    write_certificate_and_key_as_pem(pki, wish->file, made, key);
    X509_free(made);
    EVP_PKEY_free(key);
}

const char *domt_pki_path_of_file(const domt_pki *pki, const char *file)
{
    static char paths[8][128];
    static unsigned next;
    char *path = paths[next++ % 8];

    snprintf(path, sizeof paths[0], "%s/%s.pem", pki->folder, file);
    return path;
}

void domt_pki_write_file(const domt_pki *pki, const char *file, const char *text)
{
    FILE *to = fopen(domt_pki_path_of_file(pki, file), "w");

    check_call_succeeded(to != NULL && fputs(text, to) >= 0);
    check_call_succeeded(fclose(to) == 0);
}

void domt_pki_free_authority(domt_pki *pki)
{
    char command[128];

    snprintf(command, sizeof command, "rm -r '%s'", pki->folder);
    check_call_succeeded(system(command) == 0);
    X509_free(pki->authority);
    EVP_PKEY_free(pki->key);
}
