/* The library of an FMU: loaded so that its names stay its own, since any number of FMUs, and this engine inside
 * some of them, define the same ones. */
#include <stdio.h>
#include <string.h>

#include "fmu/importer/host/builtin.h"
#include "fmu/importer/host/host.h"

#if defined(_WIN32)
#include <windows.h>
#elif !defined(BL_STATIC)
#include <dlfcn.h>
#endif

#if defined(BL_STATIC) /* a target without file system */

int bl_fmu_load(const bl_fmi *fmi, const char *path, int32_t flags, void **library, void *calls, char *message,
                size_t message_size) {
    (void)fmi, (void)path, (void)flags, (void)calls;
    *library = NULL;
    snprintf(message, message_size, "this engine was built without a loader for shared libraries");
    return BL_ERROR_BLOCK;
}
void bl_fmu_unload(void *library) { (void)library; }
void *bl_fmu_find_function(void *library, const char *name) { return (void)library, (void)name, NULL; }

#else

/* Libraries that are tables of functions in this engine, by their path. */
static const bl_builtin *const BUILTIN[] = {&bl_can_bus, &bl_can_node};

static const bl_builtin *find_builtin(const void *library, const char *path) {
    for (size_t k = 0; k < sizeof BUILTIN / sizeof *BUILTIN; k++)
        if (path ? strcmp(path, BUILTIN[k]->name) == 0 : library == BUILTIN[k]) return BUILTIN[k];
    return NULL;
}

static void *find_builtin_function(const bl_builtin *library, const char *name) {
    void *pointer = NULL;
    for (const bl_builtin_symbol *s = library->symbols; s->name; s++)
        if (strcmp(s->name, name) == 0) memcpy(&pointer, &s->function, sizeof pointer);
    return pointer;
}

#if defined(_WIN32)
static void *open_library(const char *path, char *message, size_t message_size) {
    wchar_t wide[4096];
    HMODULE library = NULL;
    if (MultiByteToWideChar(CP_UTF8, 0, path, -1, wide, 4096) > 0)
        library = LoadLibraryExW(wide, NULL, LOAD_WITH_ALTERED_SEARCH_PATH);
    if (!library) snprintf(message, message_size, "Windows error %lu", (unsigned long)GetLastError());
    return library;
}
static void *find_function(void *library, const char *name) {
    const FARPROC found = GetProcAddress(library, name);
    void *pointer = NULL;
    memcpy(&pointer, &found, sizeof pointer);
    return pointer;
}
static void close_library(void *library) { FreeLibrary(library); }
#else
static void *open_library(const char *path, char *message, size_t message_size) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        snprintf(message, message_size, "%s", why ? why : "no reason stated by the system");
    }
    return library;
}
static void *find_function(void *library, const char *name) { return dlsym(library, name); }
static void close_library(void *library) { dlclose(library); }
#endif

void *bl_fmu_find_function(void *library, const char *name) {
    const bl_builtin *builtin = find_builtin(library, NULL);
    return builtin ? find_builtin_function(builtin, name) : find_function(library, name);
}

void bl_fmu_unload(void *library) {
    if (library && !find_builtin(library, NULL)) close_library(library);
}

int bl_fmu_load(const bl_fmi *fmi, const char *path, int32_t flags, void **library, void *calls, char *message,
                size_t message_size) {
    char why[512] = "", name[64];
    const bl_builtin *builtin = find_builtin(NULL, path);
    *library = builtin ? (void *)(uintptr_t)builtin : open_library(path, why, sizeof why);
    if (!*library) {
        snprintf(message, message_size, "its binary cannot be loaded: %s", why);
        return BL_ERROR_BLOCK;
    }
    for (size_t s = 0; s < fmi->symbol_count; s++) {
        const bl_fmu_symbol *symbol = &fmi->symbols[s];
        snprintf(name, sizeof name, "%s%s", fmi->prefix, symbol->name);
        void *found = bl_fmu_find_function(*library, name);
        memcpy((char *)calls + symbol->offset, &found, sizeof found);
        if (found || (symbol->flag && !(flags & symbol->flag))) continue;
        snprintf(message, message_size, "its binary has no function %s%s", name,
                 symbol->flag ? ", although its description declares this capability" : "");
        bl_fmu_unload(*library);
        *library = NULL;
        return BL_ERROR_BLOCK;
    }
    const char *version = fmi->get_version(calls);
    if (!version || strncmp(version, fmi->version, 2) != 0) {
        snprintf(message, message_size, "its binary reports FMI version %.16s instead of %.3s",
                 version ? version : "(nothing)", fmi->version);
        bl_fmu_unload(*library);
        *library = NULL;
        return BL_ERROR_BLOCK;
    }
    return BL_OK;
}

#endif
