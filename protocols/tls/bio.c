/* Calls of the stage, and the BIO through which OpenSSL reads and writes during a call: it reads
 * the record that `decode` was shown, and writes to the bytes for the peer. So nothing is copied
 * into a BIO's memory, as with OpenSSL's memory BIO.
 *
 * All connections of a shard have one BIO. It has no state of its own: the call that runs on the
 * thread tells for which connection it is, and its flags, by which OpenSSL asks whether to try
 * again later, never change. A BIO for each connection would cost 208 bytes. (Its byte counts,
 * which nobody reads, mean nothing.) Thread-safety: owner thread. */
#include "protocols/tls/tls.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <string.h>

/* --- calls ------------------------------------------------------------------------------------ */

/* the call of the TLS stage that runs on this thread; NULL: none */
static _Thread_local domi_tls_call *running;

void domi_tls_set_call_that_bio_serves(domi_tls_call *call, domi_tls_state *state, domus_wire *wire)
{
    call->outer = running;
    call->state = state;
    call->wire = wire;
    call->in_size = 0;
    call->wrote = false;
    call->no_memory = false;
    call->alert_size = 0;
    running = call;
    /* the check comes first, because clearing an empty queue of errors costs more than the check */
    if (ERR_peek_error() != 0)
        ERR_clear_error();
}

void domi_tls_restore_outer_call_of_bio(const domi_tls_call *call)
{
    running = call->outer;
}

bool domi_tls_needs_call_more_bytes(const domi_tls_call *call, int result)
{
    /* one BIO serves both directions and always says "try again", so OpenSSL may take a failed
     * write for a read that found nothing */
    return !call->no_memory && SSL_get_error(call->state->ssl, result) == SSL_ERROR_WANT_READ;
}

/* --- the BIO ---------------------------------------------------------------------------------- */

static int read_record_for_openssl(BIO *bio, char *to, int size)
{
    domi_tls_call *call = running;

    (void)bio;
    if (call == NULL || size <= 0 || call->in_size == 0)
        return -1;
    size_t part = (size_t)size < call->in_size ? (size_t)size : call->in_size;
    memcpy(to, call->in, part);
    call->in += part;
    call->in_size -= part;
    return (int)part;
}

/* Write bytes for OpenSSL. A short write is remembered, because it may be the alert of a failure:
 * if the call of `decode` fails, what it has appended is not sent. */
static int write_bytes_for_openssl(BIO *bio, const char *from, int size)
{
    domi_tls_call *call = running;

    (void)bio;
    if (size <= 0)
        return size;
    if (call == NULL)
        return -1;
    if (domus_wire_append(call->wire, from, (size_t)size) != 0) {
        call->no_memory = true;
        return -1;
    }
    call->wrote = true;
    call->alert_size = 0;
    if ((size_t)size <= sizeof call->alert) {
        memcpy(call->alert, from, (size_t)size);
        call->alert_size = (uint8_t)size;
    }
    return size;
}

static long answer_only_flush_of_bio(BIO *bio, int command, long number, void *pointer)
{
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static CRYPTO_ONCE once = CRYPTO_ONCE_STATIC_INIT;
static BIO_METHOD *method;

static void make_bio_method(void)
{
    BIO_METHOD *made = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "domus wire");

    if (made == NULL)
        return;
    BIO_meth_set_read(made, read_record_for_openssl);
    BIO_meth_set_write(made, write_bytes_for_openssl);
    BIO_meth_set_ctrl(made, answer_only_flush_of_bio);
    method = made;
}

static BIO *make_bio_of_shard(void)
{
    if (CRYPTO_THREAD_run_once(&once, make_bio_method) != 1 || method == NULL)
        return NULL;
    BIO *bio = BIO_new(method);
    if (bio == NULL)
        return NULL;
    BIO_set_init(bio, 1);
    BIO_set_retry_read(bio);
    return bio;
}

int domi_tls_set_bio_of_connection(domi_tls_state *state)
{
    domi_tls_shard *shard = SSL_CTX_get_app_data(SSL_get_SSL_CTX(state->ssl));

    if (shard->bio == NULL)
        shard->bio = make_bio_of_shard();
    if (shard->bio == NULL || BIO_up_ref(shard->bio) != 1)
        return -ENOMEM;
    SSL_set_bio(state->ssl, shard->bio, shard->bio);
    return 0;
}
