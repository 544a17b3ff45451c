/* A stranger's program with libdomus-grpc: a message gets the five bytes that stand before it. It
 * returns 0 if that is so. */
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
