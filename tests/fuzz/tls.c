/* Fuzzes both sides of the stage of TLS. The first byte of an input chooses one of two cases: the
 * rest is sent to a server or to a client; or each two bytes change one byte of the traffic between
 * a client and a server. The key is made when the fuzzer begins, and no result depends on it. */
#include "tests/fuzz/support/fuzz.h"

#include <domus/stage_kit.h>
#include <domus/tls.h>

#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static domus_tls *of_server;
static domus_tls *of_client;

/* Make a key, a certificate for the key, and the contexts of a server and a client. */
static void make_key_and_contexts(void)
{
    char path[] = "/tmp/domt-fuzz-tls-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();

    X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 86400);
    domt_fuzz_abort_unless(X509_set_pubkey(certificate, key) == 1 &&
                           X509_sign(certificate, key, EVP_sha256()) > 0);
    domt_fuzz_abort_unless(file != NULL && PEM_write_X509(file, certificate) == 1);
    domt_fuzz_abort_unless(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) == 1 &&
                           fclose(file) == 0);
    const domus_tls_certificate own = {path, NULL};
    domus_tls_settings settings = {
        .role = DOMUS_ROLE_SERVER, .certificates = &own, .certificates_count = 1};
    domt_fuzz_abort_unless(domus_tls_new(&settings, NULL, 0, &of_server) == 0);
    settings = (domus_tls_settings){.role = DOMUS_ROLE_CLIENT, .verify = DOMUS_TLS_VERIFY_NONE};
    domt_fuzz_abort_unless(domus_tls_new(&settings, NULL, 0, &of_client) == 0);
    unlink(path);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

typedef struct side {
    domus_tls_options options;
    domus_pipeline_stage stages[3];
    domus_pipeline pipeline;
    domus_stage_kit *kit;
    int error;
    uint32_t messages;
} side;

static void open_side_of_tls(side *one, domus_tls *tls)
{
    static const domus_line_options lines = {.role = DOMUS_ROLE_PEER};

    *one = (side){.options = {tls, NULL}};
    one->stages[0] = (domus_pipeline_stage){&domus_tls_stage, &one->options};
    one->stages[1] = (domus_pipeline_stage){&domus_line_stage, &lines};
    one->pipeline.stages = one->stages;
    domt_fuzz_abort_unless(domus_stage_kit_new(&one->pipeline, &one->kit) == 0);
}

static void feed_bytes_to_side(side *one, const char *bytes, size_t size)
{
    domus_stage_message message;

    if (one->error != 0 || size == 0)
        return;
    domt_fuzz_abort_unless(domus_stage_kit_feed(one->kit, bytes, size) == 0);
    while ((one->error = domus_stage_kit_next(one->kit, &message)) == 1)
        one->messages++;
    if (one->error < 0)
        (void)domus_stage_kit_end_output(one->kit);
}

/* Carry the bytes that one side has made to the other side, and change some of them. Returns
 * whether there were any. */
static bool carry_and_change_output(side *from, side *to, const uint8_t **changes, size_t *left,
                                    bool *changed)
{
    size_t size;
    const char *output = domus_stage_kit_output(from->kit, &size);
    char *copy = malloc(size + 1);

    domt_fuzz_abort_unless(copy != NULL);
    memcpy(copy, output, size);
    domus_stage_kit_clear(from->kit);
    if (size != 0 && *left >= 2) {
        size_t at = ((size_t)(*changes)[0] << 3) % size;
        copy[at] = (char)(copy[at] ^ (*changes)[1]);
        *changed = *changed || (*changes)[1] != 0;
        *changes += 2;
        *left -= 2;
    }
    feed_bytes_to_side(to, copy, size);
    free(copy);
    return size != 0;
}

static void run_conversation_with_changes(const uint8_t *changes, size_t left)
{
    static const char text[] = "hello";
    domus_packet packet;
    side server, client;
    bool changed = false;
    bool goes_on = true;

    open_side_of_tls(&server, of_server);
    open_side_of_tls(&client, of_client);
    domt_fuzz_abort_unless(domus_slice_copy(text, 5, &packet.bytes) == 0);
    domt_fuzz_abort_unless(
        domus_stage_kit_encode(client.kit, DOMUS_NO_ID, &domus_packet_type, &packet) == 0);
    domus_slice_free(packet.bytes);
    for (int round = 0; goes_on && round < 20; round++) {
        goes_on = carry_and_change_output(&client, &server, &changes, &left, &changed);
        goes_on = carry_and_change_output(&server, &client, &changes, &left, &changed) || goes_on;
    }
    domt_fuzz_abort_unless(changed ||
                           (server.messages == 1 && server.error == 0 && client.error == 0));
    /* Changed bytes may lose the one message, but cannot add another one. */
    domt_fuzz_abort_unless(server.messages <= 1 && client.messages == 0);
    domus_stage_kit_free(client.kit);
    domus_stage_kit_free(server.kit);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    side one;

    if (of_server == NULL)
        make_key_and_contexts();
    if (size < 2)
        return 0;
    if (data[0] % 4 == 0) {
        run_conversation_with_changes(data + 1, size - 1);
        return 0;
    }
    open_side_of_tls(&one, data[0] % 4 == 1 ? of_client : of_server);
    for (size_t at = 1; at < size; at += data[0] / 4 + 1u)
        feed_bytes_to_side(&one, (const char *)data + at,
                           size - at < data[0] / 4 + 1u ? size - at : data[0] / 4 + 1u);
    domt_fuzz_abort_unless(one.messages == 0);
    domus_stage_kit_finish(one.kit);
    domus_stage_kit_free(one.kit);
    return 0;
}
