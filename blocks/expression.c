/* expression */
#include "blocks/kernel.h"

const bl_kernel bl_kernels_expression[] = {
    {.name = 0},
};
