/* The library of an FMU: loaded so that its names stay its own, since any number of FMUs, and this engine inside
 * some of them, define the same ones. */
#include <stdio.h>
#include <string.h>

#include "fmu/importer/host.h"

#if defined(_WIN32)
#include <windows.h>
#elif !defined(BL_STATIC)
#include <dlfcn.h>
#endif

#if defined(BL_STATIC) /* a target without file system */

int bl_fmu_load(const char *path, int32_t flags, void **library, bl_fmu_calls *calls, char *message,
                size_t message_size) {
    (void)path, (void)flags, (void)calls;
    *library = NULL;
    snprintf(message, message_size, "this engine was built without a loader for shared libraries");
    return BL_ERROR_BLOCK;
}
void bl_fmu_unload(void *library) { (void)library; }

#else

#if defined(_WIN32)
static void *open_library(const char *path, char *message, size_t message_size) {
    wchar_t wide[4096];
    HMODULE library = NULL;
    if (MultiByteToWideChar(CP_UTF8, 0, path, -1, wide, 4096) > 0)
        library = LoadLibraryExW(wide, NULL, LOAD_WITH_ALTERED_SEARCH_PATH);
    if (!library) snprintf(message, message_size, "Windows error %lu", (unsigned long)GetLastError());
    return library;
}
static void *find_symbol(void *library, const char *name) {
    const FARPROC found = GetProcAddress(library, name);
    void *pointer = NULL;
    memcpy(&pointer, &found, sizeof pointer);
    return pointer;
}
void bl_fmu_unload(void *library) {
    if (library) FreeLibrary(library);
}
#else
static void *open_library(const char *path, char *message, size_t message_size) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        snprintf(message, message_size, "%s", why ? why : "no reason stated by the system");
    }
    return library;
}
static void *find_symbol(void *library, const char *name) { return dlsym(library, name); }
void bl_fmu_unload(void *library) {
    if (library) dlclose(library);
}
#endif

typedef struct {
    const char *name;
    size_t offset;
    int32_t flag; /* without it the FMU need not have the function */
} bl_fmu_symbol;

#define SYMBOL(name, flag) {"fmi2" #name, offsetof(bl_fmu_calls, name), flag}
static const bl_fmu_symbol SYMBOLS[] = {
    SYMBOL(GetVersion, 0),
    SYMBOL(SetDebugLogging, 0),
    SYMBOL(Instantiate, 0),
    SYMBOL(FreeInstance, 0),
    SYMBOL(SetupExperiment, 0),
    SYMBOL(EnterInitializationMode, 0),
    SYMBOL(ExitInitializationMode, 0),
    SYMBOL(Terminate, 0),
    SYMBOL(GetReal, 0),
    SYMBOL(GetInteger, 0),
    SYMBOL(GetBoolean, 0),
    SYMBOL(SetReal, 0),
    SYMBOL(SetInteger, 0),
    SYMBOL(SetBoolean, 0),
    SYMBOL(SetString, 0),
    SYMBOL(DoStep, 0),
    SYMBOL(GetBooleanStatus, 0),
    SYMBOL(GetRealStatus, HOST_NO_FLAG),
    SYMBOL(GetFMUstate, HOST_CAN_SAVE),
    SYMBOL(SetFMUstate, HOST_CAN_SAVE),
    SYMBOL(FreeFMUstate, HOST_CAN_SAVE),
    SYMBOL(SerializedFMUstateSize, HOST_CAN_SERIALIZE),
    SYMBOL(SerializeFMUstate, HOST_CAN_SERIALIZE),
    SYMBOL(DeSerializeFMUstate, HOST_CAN_SERIALIZE),
    SYMBOL(SetRealInputDerivatives, HOST_CAN_INTERPOLATE),
    SYMBOL(GetDirectionalDerivative, HOST_GIVES_DERIVATIVES),
};
#undef SYMBOL

int bl_fmu_load(const char *path, int32_t flags, void **library, bl_fmu_calls *calls, char *message,
                size_t message_size) {
    char why[512] = "";
    *library = open_library(path, why, sizeof why);
    if (!*library) {
        snprintf(message, message_size, "its binary cannot be loaded: %s", why);
        return BL_ERROR_BLOCK;
    }
    for (size_t s = 0; s < sizeof SYMBOLS / sizeof *SYMBOLS; s++) {
        const bl_fmu_symbol *symbol = &SYMBOLS[s];
        void *found = find_symbol(*library, symbol->name);
        memcpy((char *)calls + symbol->offset, &found, sizeof found);
        if (found || (symbol->flag && !(flags & symbol->flag))) continue;
        snprintf(message, message_size, "its binary has no function %s%s", symbol->name,
                 symbol->flag ? ", although its description declares this capability" : "");
        bl_fmu_unload(*library);
        *library = NULL;
        return BL_ERROR_BLOCK;
    }
    const char *version = calls->GetVersion();
    if (!version || strncmp(version, "2.", 2) != 0) {
        snprintf(message, message_size, "its binary reports FMI version %.16s instead of 2.0",
                 version ? version : "(nothing)");
        bl_fmu_unload(*library);
        *library = NULL;
        return BL_ERROR_BLOCK;
    }
    return BL_OK;
}

#endif
