/* Tells what the two sides of a TLS connection have agreed on, and what the peer's certificate
 * says. Thread-safety: owner thread. */
#include "protocols/tls/tls.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

/* --- what was agreed on ----------------------------------------------------------------------- */

static int copy_info_of_connection(const domi_tls_state *state, domus_tls_info *ret_info)
{
    const unsigned char *alpn = NULL;
    unsigned int alpn_size = 0;

    if (state == NULL)
        return -ENOENT;
    *ret_info = (domus_tls_info){.done = SSL_is_init_finished(state->ssl) == 1};
    snprintf(ret_info->failure, sizeof ret_info->failure, "%s",
             state->failure != NULL ? state->failure : "");
    const char *name = SSL_get_servername(state->ssl, TLSEXT_NAMETYPE_host_name);
    snprintf(ret_info->name, sizeof ret_info->name, "%s", name != NULL ? name : "");
    if (!ret_info->done)
        return 0;
    ret_info->resumed = SSL_session_reused(state->ssl) == 1;
    ret_info->verified = state->tls->settings.verify != DOMUS_TLS_VERIFY_NONE &&
                         SSL_get0_peer_certificate(state->ssl) != NULL &&
                         SSL_get_verify_result(state->ssl) == X509_V_OK;
    snprintf(ret_info->version, sizeof ret_info->version, "%s", SSL_get_version(state->ssl));
    snprintf(ret_info->cipher, sizeof ret_info->cipher, "%s", SSL_get_cipher_name(state->ssl));
    SSL_get0_alpn_selected(state->ssl, &alpn, &alpn_size);
    snprintf(ret_info->alpn, sizeof ret_info->alpn, "%.*s", (int)alpn_size, (const char *)alpn);
    return 0;
}

int domus_tls_info_of(domus_stack *stack, domus_channel *channel, domus_tls_info *ret_info)
{
    return copy_info_of_connection(domus_channel_stage_state(stack, channel, &domus_tls_stage),
                                   ret_info);
}

int domus_tls_kit_info(domus_stage_kit *kit, domus_tls_info *ret_info)
{
    return copy_info_of_connection(domus_stage_kit_state(kit, &domus_tls_stage), ret_info);
}

/* --- the certificate of the peer -------------------------------------------------------------- */

static int copy_certificate_as_der(X509 *certificate, domus_slice *ret_der)
{
    unsigned char *der = NULL;
    int size = i2d_X509(certificate, &der);
    int error = size > 0 ? domus_slice_copy(der, (size_t)size, ret_der) : -ENOMEM;

    OPENSSL_free(der);
    return error;
}

static int copy_subject_of_certificate(X509 *certificate, domus_slice *ret_subject)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *text;

    if (bio == NULL)
        return -ENOMEM;
    int size = X509_NAME_print_ex(bio, X509_get_subject_name(certificate), 0,
                                  XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB);
    long length = BIO_get_mem_data(bio, &text);
    int error = size >= 0 ? domus_slice_copy(text, (size_t)length, ret_subject) : -ENOMEM;
    BIO_free(bio);
    return error;
}

/* Add a name of the peer's certificate as a line. A name with bytes that are not printable is left
 * out, because it could look like two names. */
static void add_name_of_certificate(domus_appender *names, const char *kind,
                                    const ASN1_STRING *text)
{
    const char *bytes = (const char *)ASN1_STRING_get0_data(text);
    int size = ASN1_STRING_length(text);

    for (int i = 0; i < size; i++) {
        if (!isprint((unsigned char)bytes[i]) || (unsigned char)bytes[i] > 126)
            return;
    }
    (void)domus_append_text(names, "%s:%.*s\n", kind, size, bytes);
}

static void add_address_of_certificate(domus_appender *names, const ASN1_OCTET_STRING *address)
{
    int family = ASN1_STRING_length(address) == 4 ? AF_INET : AF_INET6;
    char text[INET6_ADDRSTRLEN];

    if (ASN1_STRING_length(address) != 4 && ASN1_STRING_length(address) != 16)
        return;
    if (inet_ntop(family, ASN1_STRING_get0_data(address), text, sizeof text) != NULL)
        (void)domus_append_text(names, "IP:%s\n", text);
}

static int list_names_of_certificate(X509 *certificate, domus_slice *ret_names)
{
    domus_appender names = {0};
    GENERAL_NAMES *all = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);

    for (int i = 0; i < sk_GENERAL_NAME_num(all); i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(all, i);
        if (name->type == GEN_DNS)
            add_name_of_certificate(&names, "DNS", name->d.dNSName);
        else if (name->type == GEN_EMAIL)
            add_name_of_certificate(&names, "email", name->d.rfc822Name);
        else if (name->type == GEN_URI)
            add_name_of_certificate(&names, "URI", name->d.uniformResourceIdentifier);
        else if (name->type == GEN_IPADD)
            add_address_of_certificate(&names, name->d.iPAddress);
    }
    GENERAL_NAMES_free(all);
    return domus_append_end(&names, ret_names);
}

static int copy_certificate_of_peer(const domi_tls_state *state, domus_tls_peer *ret_peer)
{
    domus_tls_peer peer = {0};

    if (state == NULL)
        return -ENOENT;
    X509 *certificate = SSL_get0_peer_certificate(state->ssl);
    if (certificate == NULL || SSL_is_init_finished(state->ssl) != 1)
        return -ENODATA;
    ERR_clear_error();
    int error = copy_certificate_as_der(certificate, &peer.der);
    if (error == 0)
        error = copy_subject_of_certificate(certificate, &peer.subject);
    if (error == 0)
        error = list_names_of_certificate(certificate, &peer.names);
    ERR_clear_error();
    if (error != 0)
        domus_tls_peer_free(&peer);
    else
        *ret_peer = peer;
    return error;
}

int domus_tls_peer_of(domus_stack *stack, domus_channel *channel, domus_tls_peer *ret_peer)
{
    return copy_certificate_of_peer(domus_channel_stage_state(stack, channel, &domus_tls_stage),
                                    ret_peer);
}

int domus_tls_kit_peer(domus_stage_kit *kit, domus_tls_peer *ret_peer)
{
    return copy_certificate_of_peer(domus_stage_kit_state(kit, &domus_tls_stage), ret_peer);
}

void domus_tls_peer_free(domus_tls_peer *peer)
{
    domus_slice_free(peer->der);
    domus_slice_free(peer->subject);
    domus_slice_free(peer->names);
    *peer = (domus_tls_peer){.der = {NULL, 0, 0}};
}
