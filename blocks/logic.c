/* logic */
#include "blocks/kernel.h"

const bl_kernel bl_kernels_logic[] = {
    {.name = 0},
};
