/* What `biella doctor` asks of the engine. */
#ifndef BIELLA_DOCTOR_H
#define BIELLA_DOCTOR_H

#include "scheduler/host/privileges.h"

/* Wakes `count` times, once a period, and writes how late it was, in ns. The first deadline is two periods away, so that taking
   the privileges is not counted. */
BL_API void bl_measure_latency(bl_privileges *privileges, int64_t period_ns, int64_t spin_ns, int64_t count,
                               int64_t *lateness_ns);
/* The name and the version of the compiler that the engine was built by. */
BL_API const char *bl_compiler(void);

#endif
