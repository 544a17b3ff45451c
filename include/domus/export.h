/* DOMUS_API marks the symbols that the shared library exports. All other symbols are hidden. */
#ifndef DOMUS_EXPORT_H
#define DOMUS_EXPORT_H

#define DOMUS_API __attribute__((visibility("default")))

#endif
