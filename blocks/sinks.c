/* sinks */
#include "blocks/kernel.h"

const bl_kernel bl_kernels_sinks[] = {
    {.name = 0},
};
