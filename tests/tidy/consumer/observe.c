/* A user's program with libdomus-observe: it returns 0 if an observation port on loopback is
 * accepted, and one that other machines could reach is refused. */
#include <domus/observe.h>

int main(void)
{
    domus_config config;
    char error[200];

    domus_config_init(&config);
    config.observe.listen = "127.0.0.1:0";
    if (domus_observe_front.check(&config, error, sizeof error) != 0)
        return 1;
    config.observe.listen = "0.0.0.0:9100";
    return domus_observe_front.check(&config, error, sizeof error) != 0 ? 0 : 2;
}
