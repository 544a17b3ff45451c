/* A user's program with libdomus-grpc: it frames a message, and returns 0 if gRPC's prefix of five
 * bytes stands before the message. */
#include <domus/grpc.h>

int main(void)
{
    domus_slice message;
    domus_slice frame;

    if (domus_slice_copy("abc", 3, &message) != 0)
        return 1;
    int error = domus_grpc_frame(message, &frame);
    domus_slice_free(message);
    if (error != 0)
        return 2;
    int result = domus_slice_equals(frame, "\0\0\0\0\3abc", 8) ? 0 : 3;
    domus_slice_free(frame);
    return result;
}
