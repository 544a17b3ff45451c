/* Makes, reloads and frees contexts of TLS, and finds the shard of a thread (context.h).
 * Thread-safety: any thread. */
#include "protocols/tls/context.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>

static _Thread_local char own_address;

/* --- files ------------------------------------------------------------------------------------ */

/* Remove one owner of a context's files. The last one frees the files. The caller does not hold the
 * lock. */
static void remove_owner_and_free_files_if_last(domus_tls *tls, domi_tls_files *files)
{
    if (files == NULL)
        return;
    (void)CRYPTO_THREAD_write_lock(tls->lock);
    bool is_last = --files->owners == 0;
    (void)CRYPTO_THREAD_unlock(tls->lock);
    if (is_last)
        domi_tls_files_free(files);
}

/* Read the files of a context, and check them by making contexts of OpenSSL from them. Returns as
 * domus_tls_new(). */
static int read_and_check_files(domus_tls *tls, const domi_tls_report *report,
                                domi_tls_files **ret_files)
{
    domi_tls_shard trial = {.settings = &tls->settings, .tickets = tls->tickets};

    (void)CRYPTO_THREAD_write_lock(tls->lock);
    uint64_t number = ++tls->reads;
    (void)CRYPTO_THREAD_unlock(tls->lock);
    int error = domi_tls_files_read(&tls->settings, report, &trial.files);

    if (error != 0)
        return error;
    error = domi_tls_make_contexts_of_shard(&trial, report);
    domi_tls_free_contexts_of_shard(&trial);
    if (error != 0) {
        domi_tls_files_free(trial.files);
        return error;
    }
    trial.files->read = number;
    *ret_files = trial.files;
    return 0;
}

/* --- the context ------------------------------------------------------------------------------ */

static int set_up_new_context(domus_tls *tls, const domus_tls_settings *settings,
                              const domi_tls_report *report)
{
    int error = domi_tls_settings_copy(settings, &tls->settings, report);

    if (error != 0)
        return error;
    tls->lock = CRYPTO_THREAD_lock_new();
    tls->tickets =
        settings->tickets_of != NULL
            ? domi_tls_tickets_add_owner(settings->tickets_of->tickets)
            : domi_tls_tickets_new(tls->settings.ticket_time_s, domi_tls_seconds_since_boot());
    if (tls->lock == NULL || tls->tickets == NULL)
        return domi_tls_write_reason_and_return_error(report, -ENOMEM, "settings", "no memory");
    return read_and_check_files(tls, report, &tls->files);
}

int domus_tls_new(const domus_tls_settings *settings, char *error, size_t error_size,
                  domus_tls **ret_tls)
{
    const domi_tls_report report = {error, error_size};
    domus_tls *tls = OPENSSL_zalloc(sizeof *tls);

    if (tls == NULL)
        return domi_tls_write_reason_and_return_error(&report, -ENOMEM, "settings", "no memory");
    int result = set_up_new_context(tls, settings, &report);
    if (result == 0)
        *ret_tls = tls;
    else
        domus_tls_free(tls);
    return result;
}

int domus_tls_reload(domus_tls *tls, char *error, size_t error_size)
{
    const domi_tls_report report = {error, error_size};
    domi_tls_files *files;
    int result = read_and_check_files(tls, &report, &files);

    if (result != 0)
        return result;
    (void)CRYPTO_THREAD_write_lock(tls->lock);
    domi_tls_files *unused = files;
    /* If another thread has begun to read later and is done, its files are newer and stay. */
    if (files->read > tls->files->read) {
        unused = tls->files;
        tls->files = files;
    }
    (void)CRYPTO_THREAD_unlock(tls->lock);
    remove_owner_and_free_files_if_last(tls, unused);
    return 0;
}

int domus_tls_rotate(domus_tls *tls)
{
    return domi_tls_tickets_rotate_keys(tls->tickets, domi_tls_seconds_since_boot());
}

void domus_tls_free(domus_tls *tls)
{
    if (tls == NULL)
        return;
    for (domi_tls_shard *shard = tls->shards; shard != NULL; shard = tls->shards) {
        tls->shards = shard->next;
        domi_tls_free_contexts_of_shard(shard);
        BIO_free(shard->bio);
        remove_owner_and_free_files_if_last(tls, shard->files);
        OPENSSL_free(shard);
    }
    remove_owner_and_free_files_if_last(tls, tls->files);
    domi_tls_tickets_remove_owner(tls->tickets);
    CRYPTO_THREAD_lock_free(tls->lock);
    domi_tls_settings_clear(&tls->settings);
    OPENSSL_free(tls);
}

/* --- shards ----------------------------------------------------------------------------------- */

/* Find the shard of the calling thread. Returns NULL if there is none. If there is none, or if it
 * was made from older files, `ret_files` gets the context's files, and the caller is then one more
 * owner of them. */
static domi_tls_shard *find_shard_of_thread(domus_tls *tls, domi_tls_files **ret_files)
{
    (void)CRYPTO_THREAD_write_lock(tls->lock);
    domi_tls_shard *shard = tls->shards;
    while (shard != NULL && shard->thread != &own_address)
        shard = shard->next;
    *ret_files = NULL;
    if (shard == NULL || shard->files != tls->files) {
        *ret_files = tls->files;
        tls->files->owners++;
    }
    (void)CRYPTO_THREAD_unlock(tls->lock);
    return shard;
}

/* Make an empty shard for the calling thread. Returns NULL if there is no memory. */
static domi_tls_shard *add_shard_of_thread(domus_tls *tls)
{
    domi_tls_shard *shard = OPENSSL_zalloc(sizeof *shard);

    if (shard == NULL)
        return NULL;
    shard->settings = &tls->settings;
    shard->tickets = tls->tickets;
    shard->thread = &own_address;
    (void)CRYPTO_THREAD_write_lock(tls->lock);
    shard->next = tls->shards;
    tls->shards = shard;
    (void)CRYPTO_THREAD_unlock(tls->lock);
    return shard;
}

/* Make the contexts of a shard anew from other files, which the shard then owns. If there is no
 * memory, the shard keeps its old contexts. */
static int renew_contexts_of_shard(domus_tls *tls, domi_tls_shard *shard, domi_tls_files *files)
{
    const domi_tls_report silent = {NULL, 0};
    domi_tls_shard made = {.settings = &tls->settings, .tickets = tls->tickets, .files = files};
    int error = domi_tls_make_contexts_of_shard(&made, &silent);

    if (error != 0) {
        remove_owner_and_free_files_if_last(tls, files);
        return shard->files != NULL ? 0 : error;
    }
    domi_tls_replace_contexts_of_shard(shard, &made);
    remove_owner_and_free_files_if_last(tls, shard->files);
    shard->files = files;
    return 0;
}

bool domi_tls_is_shard_of_this_thread(const domi_tls_shard *shard)
{
    return shard->thread == &own_address;
}

int domi_tls_get_openssl_context(domus_tls *tls, SSL_CTX **ret_context)
{
    domi_tls_files *files;
    domi_tls_shard *shard = find_shard_of_thread(tls, &files);

    if (shard == NULL)
        shard = add_shard_of_thread(tls);
    if (shard == NULL) {
        remove_owner_and_free_files_if_last(tls, files);
        return -ENOMEM;
    }
    int error = files != NULL ? renew_contexts_of_shard(tls, shard, files) : 0;
    if (error == 0)
        *ret_context = shard->contexts[0];
    return error != 0 ? -ENOMEM : 0;
}
