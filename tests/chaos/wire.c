/* chaos_wire HOSTS SEED: a network of a few hosts, whose links can be made slow, lossy and one-way.
 *
 * Each host is a network namespace with one device, a TUN device with the address 10.77.0.HOST + 1.
 * This program is the wire between them: it reads each packet that a host sends, and writes it to
 * the device of the receiving host, at once, later, or never. The kernel's netem does the same, but
 * many kernels are built without it, and this program sets each direction of a link separately.
 *
 * At the beginning it prints "host HOST PATH" for each host, where PATH names the namespace for
 * setns(2), and then "ready". Each line of its stdin is a command:
 *
 *   set FROM TO DELAY_US JITTER_US LOSS     packets from FROM to TO; LOSS in thousandths,
 *                                           1000: no packet passes. A host of -1 means each host
 *
 * The program ends when stdin ends; the namespaces, and the programs in them, have no network
 * then. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define HOSTS_MAX  16
#define PACKET_MAX 2048 /* largest size of a packet in bytes; the MTU of a TUN device is 1500 */
#define LATER_MAX                                                                                  \
    8192 /* largest number of packets that are delayed at a time; further packets are lost */
#define AT_ONCE      64 /* how many packets of one host are read before the next host's turn */
#define COMMAND_MAX  4096
#define LOSS_OF_ALL  1000
#define ADDRESS_AT   16 /* place of the receiver's address in the header of IPv4 */
#define HEADER_BYTES 20

struct link {
    uint64_t delay_ns;
    uint64_t jitter_ns;
    uint32_t loss;
    /* Due time of the last delayed packet of this link; later packets are due after it, so their
     * order is kept. */
    uint64_t last_ns;
};

struct packet {
    uint64_t due_ns;
    /* number in the order of sending, which decides between packets that are due at the same
     * time */
    uint64_t number;
    int to;
    uint32_t size;
    unsigned char bytes[PACKET_MAX];
};

static int hosts;
static int devices[HOSTS_MAX];
static struct link links[HOSTS_MAX][HOSTS_MAX];
/* Heap of the delayed packets; the packet that is due first is at its top. */
static struct packet *later[LATER_MAX];
static uint32_t later_count;
static uint64_t number;
static uint64_t chance;

static _Noreturn void exit_with_errno_message(const char *what)
{
    fprintf(stderr, "chaos_wire: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t read_monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t draw_number_below(uint64_t below)
{
    chance ^= chance << 13; /* xorshift64 makes the next random number of the wire */
    chance ^= chance >> 7;
    chance ^= chance << 17;
    return below == 0 ? 0 : chance % below;
}

/* ---- Hosts --------------------------------------------------------------------------------- */

static void set_network_device_up(int fd, const char *name)
{
    struct ifreq request = {.ifr_flags = 0};

    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    if (ioctl(fd, SIOCGIFFLAGS, &request) != 0)
        exit_with_errno_message("SIOCGIFFLAGS");
    request.ifr_flags = (short)(request.ifr_flags | IFF_UP | IFF_RUNNING);
    if (ioctl(fd, SIOCSIFFLAGS, &request) != 0)
        exit_with_errno_message("SIOCSIFFLAGS");
}

static void set_address_of_device(int fd, unsigned long what, uint32_t address)
{
    struct ifreq request = {.ifr_flags = 0};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};

    snprintf(request.ifr_name, sizeof request.ifr_name, "wire");
    memcpy(&request.ifr_addr, &in, sizeof in);
    if (ioctl(fd, what, &request) != 0)
        exit_with_errno_message("the address of a device");
}

/* Make the network namespace of a host and its device. The descriptor of the namespace stays open,
 * so that other programs can enter it by the path. */
static void make_namespace_of_host(int host)
{
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};

    if (unshare(CLONE_NEWNET) != 0)
        exit_with_errno_message("unshare");
    int space = open("/proc/self/ns/net", O_RDONLY);
    int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (space < 0 || device < 0 || fd < 0)
        exit_with_errno_message("/dev/net/tun");
    snprintf(request.ifr_name, sizeof request.ifr_name, "wire");
    if (ioctl(device, TUNSETIFF, &request) != 0)
        exit_with_errno_message("TUNSETIFF");
    set_address_of_device(fd, SIOCSIFADDR, 0x0a4d0001 + (uint32_t)host);
    set_address_of_device(fd, SIOCSIFNETMASK, 0xffffff00);
    set_network_device_up(fd, "wire");
    set_network_device_up(fd, "lo");
    close(fd);
    devices[host] = device;
    printf("host %d /proc/%ld/fd/%d\n", host, (long)getpid(), space);
}

/* ---- Packets ------------------------------------------------------------------------------- */

static bool is_packet_due_first(const struct packet *one, const struct packet *other)
{
    return one->due_ns != other->due_ns ? one->due_ns < other->due_ns : one->number < other->number;
}

static void push_delayed_packet(struct packet *packet)
{
    uint32_t at = later_count++;

    for (; at > 0 && is_packet_due_first(packet, later[(at - 1) / 2]); at = (at - 1) / 2)
        later[at] = later[(at - 1) / 2];
    later[at] = packet;
}

static struct packet *pop_first_due_packet(void)
{
    struct packet *first = later[0];
    struct packet *last = later[--later_count];
    uint32_t at = 0;

    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= later_count)
            break;
        if (child + 1 < later_count && is_packet_due_first(later[child + 1], later[child]))
            child++;
        if (!is_packet_due_first(later[child], last))
            break;
        later[at] = later[child];
        at = child;
    }
    later[at] = last;
    return first;
}

/* Write a packet to the device of a host. The device of a stopped host may be full; then the packet
 * is lost, as it would be in a full queue. */
static void write_packet_to_host(int to, const unsigned char *bytes, uint32_t size)
{
    ssize_t written = write(devices[to], bytes, size);

    (void)written;
}

static void route_packet_over_link(int from, const unsigned char *bytes, uint32_t size)
{
    int to = bytes[ADDRESS_AT + 3] - 1;

    if (size < HEADER_BYTES || bytes[0] >> 4 != 4 || to < 0 || to >= hosts || to == from)
        return;
    struct link *link = &links[from][to];
    if (draw_number_below(LOSS_OF_ALL) < link->loss)
        return;
    uint64_t wait_ns = link->delay_ns + draw_number_below(link->jitter_ns);
    uint64_t now = read_monotonic_ns();
    if (wait_ns == 0 && link->last_ns <= now) {
        write_packet_to_host(to, bytes, size);
        return;
    }
    struct packet *packet = later_count < LATER_MAX ? malloc(sizeof *packet) : NULL;
    if (packet == NULL)
        return;
    packet->due_ns = now + wait_ns > link->last_ns ? now + wait_ns : link->last_ns;
    packet->number = number++;
    packet->to = to;
    packet->size = size;
    memcpy(packet->bytes, bytes, size);
    link->last_ns = packet->due_ns;
    push_delayed_packet(packet);
}

static void read_packets_of_host(int from)
{
    unsigned char bytes[PACKET_MAX];

    for (int i = 0; i < AT_ONCE; i++) {
        ssize_t size = read(devices[from], bytes, sizeof bytes);
        if (size <= 0)
            return;
        route_packet_over_link(from, bytes, (uint32_t)size);
    }
}

/* ---- Commands ------------------------------------------------------------------------------ */

static void execute_command_line(const char *line)
{
    int from, to;
    unsigned long delay_us, jitter_us;
    unsigned loss;

    if (sscanf(line, "set %d %d %lu %lu %u", &from, &to, &delay_us, &jitter_us, &loss) != 5) {
        fprintf(stderr, "chaos_wire: no command: %s\n", line);
        return;
    }
    for (int i = 0; i < hosts; i++) {
        for (int k = 0; k < hosts; k++) {
            if ((from >= 0 && from != i) || (to >= 0 && to != k))
                continue;
            links[i][k].delay_ns = delay_us * 1000;
            links[i][k].jitter_ns = jitter_us * 1000;
            links[i][k].loss = loss;
        }
    }
}

/* Read commands from stdin and execute them. Returns false when stdin has ended. */
static bool read_commands_from_stdin(void)
{
    static char text[COMMAND_MAX];
    static size_t used;
    ssize_t size = read(STDIN_FILENO, text + used, sizeof text - used - 1);
    char *line = text;

    if (size <= 0)
        return false;
    used += (size_t)size;
    text[used] = '\0';
    for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        execute_command_line(line);
    }
    used -= (size_t)(line - text);
    memmove(text, line, used);
    return used < sizeof text - 1;
}

static void forward_packets_until_end(void)
{
    struct pollfd polled[HOSTS_MAX + 1];

    for (int i = 0; i < hosts; i++)
        polled[i] = (struct pollfd){.fd = devices[i], .events = POLLIN};
    polled[hosts] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    for (;;) {
        struct timespec rest = {.tv_sec = 1};
        if (later_count > 0) {
            uint64_t now = read_monotonic_ns(), due_ns = later[0]->due_ns;
            uint64_t wait_ns = due_ns > now ? due_ns - now : 0;
            rest.tv_sec = (time_t)(wait_ns / 1000000000);
            rest.tv_nsec = (long)(wait_ns % 1000000000);
        }
        if (ppoll(polled, (nfds_t)hosts + 1, &rest, NULL) < 0 && errno != EINTR)
            exit_with_errno_message("ppoll");
        while (later_count > 0 && later[0]->due_ns <= read_monotonic_ns()) {
            struct packet *packet = pop_first_due_packet();
            write_packet_to_host(packet->to, packet->bytes, packet->size);
            free(packet);
        }
        for (int i = 0; i < hosts; i++) {
            if (polled[i].revents != 0)
                read_packets_of_host(i);
        }
        if (polled[hosts].revents != 0 && !read_commands_from_stdin())
            return;
    }
}

int main(int argc, char **argv)
{
    hosts = argc == 3 ? (int)strtol(argv[1], NULL, 10) : 0;
    if (hosts < 1 || hosts > HOSTS_MAX) {
        fprintf(stderr, "usage: chaos_wire HOSTS SEED\n");
        return 2;
    }
    chance = strtoull(argv[2], NULL, 10) * 2 + 1;
    for (int i = 0; i < hosts; i++)
        make_namespace_of_host(i);
    printf("ready\n");
    fflush(stdout);
    forward_packets_until_end();
    return 0;
}
