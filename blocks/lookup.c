/* lookup */
#include "blocks/kernel.h"

const bl_kernel bl_kernels_lookup[] = {
    {.name = 0},
};
