/* What tells the thread of a manager; what a manager does in its turn is in dispatch/turn.c. */
#include "house/message/manager.h"

_Thread_local char domi_here;
