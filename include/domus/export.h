/* Marks what the shared library exports; everything else in it is hidden. */
#ifndef DOMUS_EXPORT_H
#define DOMUS_EXPORT_H

#define DOMUS_API __attribute__((visibility("default")))

#endif
