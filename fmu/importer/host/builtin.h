/* FMUs of FMI 3.0 within the engine: instead of a library, a table of functions by name. */
#ifndef BIELLA_BUILTIN_H
#define BIELLA_BUILTIN_H

#include <stddef.h>

typedef void (*bl_builtin_function)(void);
typedef struct {
    const char *name;
    bl_builtin_function function;
} bl_builtin_symbol;
typedef struct {
    const char *name; /* the path of its library */
    const bl_builtin_symbol *symbols; /* the last one has no name */
} bl_builtin;

extern const bl_builtin bl_can_bus, bl_can_node;

#endif
