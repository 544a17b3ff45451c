/* The one observation port of a process; see the header. */
#include "protocols/observe/observe.h"

domi_observation domi_observed;
