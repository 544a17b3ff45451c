/* The domus side of the echoes of `bench tls`: every byte goes back, by a message stage
 * that takes bytes as they come. The environment variable WEB_KEY names a file with a
 * certificate and its key. */
#include <domus/domus.h>
#include <domus/main.h>
#include <domus/tls.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* --- the stage -------------------------------------------------------------------------------- */

static int make_notice_of_decrypted_bytes(domus_wire *wire, void *state, const char *bytes,
                                          size_t size)
{
    domus_packet *packet = domus_wire_notice(wire, &domus_packet_type);

    (void)state;
    if (packet == NULL)
        return -ENOMEM;
    packet->bytes = domus_wire_slice(wire, bytes, size);
    return (int)size;
}

static int encode_bytes(domus_wire *wire, void *state, uint64_t id, const domus_type *type,
                        const void *payload)
{
    const domus_packet *packet = payload;

    (void)state, (void)id;
    if (type != &domus_packet_type)
        return -EOPNOTSUPP;
    return domus_wire_append_slice(wire, packet->bytes);
}

static const domus_stage bytes_stage = {
    .name = "bytes", .decode = make_notice_of_decrypted_bytes, .encode = encode_bytes};

/* --- the service ------------------------------------------------------------------------------ */

/* the options of the TLS stage; constant once the program has started */
static domus_tls_options secure;
static const domus_pipeline pipeline = {
    .stages = (const domus_pipeline_stage[]){
        {&domus_tls_stage, &secure}, {&bytes_stage, NULL}, {NULL, NULL}}};

static int echo_bytes(domus_stack *stack, void *self, const void *payload)
{
    (void)self;
    return domus_channel_send(stack, domus_channel_running(stack), &domus_packet_type, payload);
}

static const domus_behaviour service = {
    .name = "echo",
    .kind = DOMUS_CHANNELS,
    .pipeline = &pipeline,
    .on_peer = (const domus_on_peer[]){{.type = &domus_packet_type, .handle = echo_bytes},
                                       {.type = NULL}}};

static int start_service(domus_system *system, void *argument)
{
    const domus_tls_certificate certificate = {.cert_file = getenv("WEB_KEY")};
    const domus_tls_settings settings = {
        .role = DOMUS_ROLE_SERVER, .certificates = &certificate, .certificates_count = 1};
    char text[256];
    int error = domus_tls_new(&settings, text, sizeof text, &secure.tls);

    if (error != 0) {
        fprintf(stderr, "echo: %s\n", text);
        return error;
    }
    return domus_main_serve(system, argument, &service, NULL);
}

static void end_service(domus_system *system, void *argument)
{
    (void)system, (void)argument;
    domus_tls_free(secure.tls);
}

int main(int argc, char **argv)
{
    static const domus_program program = {
        .name = "echo", .start = start_service, .end = end_service, .argument = "echo"};

    return domus_main(argc, argv, &program);
}
