/* A BIO that reads the record which `decode` was shown, and writes to what goes to the peer. So
 * nothing is copied into memory of a BIO, as OpenSSL's own for memory does. Owner thread. */
#include "protocols/tls/tls.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <string.h>

static int read_wire(BIO *bio, char *to, int size)
{
    domi_tls_state *state = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    if (size <= 0 || state->in_size == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    size_t part = (size_t)size < state->in_size ? (size_t)size : state->in_size;
    memcpy(to, state->in, part);
    state->in += part;
    state->in_size -= part;
    return (int)part;
}

/* A write that is short enough is remembered, because it may be the alert of a failure: what the
 * failing call of `decode` has appended is not sent. */
static int write_wire(BIO *bio, const char *from, int size)
{
    domi_tls_state *state = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    if (size <= 0)
        return size;
    if (domus_wire_append(state->wire, from, (size_t)size) != 0) {
        state->no_memory = true;
        return -1;
    }
    state->wrote = true;
    state->alert_size = 0;
    if ((size_t)size <= sizeof state->alert) {
        memcpy(state->alert, from, (size_t)size);
        state->alert_size = (uint8_t)size;
    }
    return size;
}

static long control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static CRYPTO_ONCE once = CRYPTO_ONCE_STATIC_INIT;
static BIO_METHOD *method;

static void make_method(void)
{
    BIO_METHOD *made = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "domus wire");

    if (made == NULL)
        return;
    BIO_meth_set_read(made, read_wire);
    BIO_meth_set_write(made, write_wire);
    BIO_meth_set_ctrl(made, control);
    method = made;
}

int domi_tls_bio_use(domi_tls_state *state)
{
    if (CRYPTO_THREAD_run_once(&once, make_method) != 1 || method == NULL)
        return -ENOMEM;
    BIO *bio = BIO_new(method);
    if (bio == NULL)
        return -ENOMEM;
    BIO_set_data(bio, state);
    BIO_set_init(bio, 1);
    SSL_set_bio(state->ssl, bio, bio);
    return 0;
}
