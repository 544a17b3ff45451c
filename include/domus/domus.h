/* This header includes all public headers of libdomus. Programs that read YAML also include
 * <domus/main.h> or <domus/yaml.h>, whose functions are in libdomus-config. */
#ifndef DOMUS_DOMUS_H
#define DOMUS_DOMUS_H

#include <domus/actor.h>
#include <domus/await.h>
#include <domus/blocking.h>
#include <domus/budget.h>
#include <domus/channel.h>
#include <domus/channel_options.h>
#include <domus/config.h>
#include <domus/config_shown.h>
#include <domus/connect.h>
#include <domus/conversation.h>
#include <domus/cpu_profile.h>
#include <domus/datagram.h>
#include <domus/descriptor.h>
#include <domus/detached.h>
#include <domus/dump.h>
#include <domus/endpoint.h>
#include <domus/entry.h>
#include <domus/figures.h>
#include <domus/file.h>
#include <domus/grain.h>
#include <domus/group.h>
#include <domus/hooks.h>
#include <domus/letters.h>
#include <domus/listen.h>
#include <domus/log.h>
#include <domus/machine.h>
#include <domus/memory.h>
#include <domus/message.h>
#include <domus/name.h>
#include <domus/outsider.h>
#include <domus/pipeline.h>
#include <domus/policy.h>
#include <domus/pool.h>
#include <domus/pools.h>
#include <domus/process.h>
#include <domus/profile.h>
#include <domus/receive.h>
#include <domus/remote.h>
#include <domus/router.h>
#include <domus/slice.h>
#include <domus/spawn.h>
#include <domus/stage.h>
#include <domus/stall.h>
#include <domus/stream.h>
#include <domus/supervise.h>
#include <domus/system.h>
#include <domus/text.h>
#include <domus/timer.h>
#include <domus/trace.h>
#include <domus/waiters.h>
#include <domus/watchdog.h>

#endif
